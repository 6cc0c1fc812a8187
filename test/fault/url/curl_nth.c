/* curl_nth.c - places behind a URL: the n-th call of libcurl, or the n-th allocation of umem,
 * fails, for every n that opening an object and copying from it make, or writing one in parts. Each
 * time the call fails with a status, nothing is left, and the next attempt works. Of an upload, no
 * half object is there, and no part.
 *
 * Linked with --wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=umem_thread_start. */
#include <stdatomic.h>

#include "failures.h"
#include "url/url_curl.h"
#include "url_bucket.h"
#include "wrap.h"

enum { short_size = 300000, object_size = 17 << 20 };

static unsigned char object[object_size], got[object_size];
static umemCurl real, failing;
static atomic_ulong calls, nth; /* nth 0: none fails */
static atomic_long easies, multis, lists, urls;
static atomic_long patience = 1000; /* ms until a body is sent without the server's permission */

/* Senders of an upload count, too. */
static bool fails_now(void) { return atomic_fetch_add(&calls, 1) + 1 == nth; }
static void count(atomic_long *number, bool is) { atomic_fetch_add(number, is); }
static void discount(atomic_long *number) { atomic_fetch_sub(number, 1); }

/* Of all threads but those of the server. */
static atomic_ulong allocations, failing_one, starts, failing_start;
static _Thread_local bool is_server;

static bool is_nth(atomic_ulong *number, unsigned long which) {
  return !is_server && atomic_fetch_add(number, 1) + 1 == which;
}
static bool is_out_of_memory(void) { return is_nth(&allocations, failing_one); }

WRAP(is_out_of_memory(), NULL, void *, malloc, (size_t size), (size))
WRAP(is_out_of_memory(), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(is_out_of_memory(), NULL, void *, realloc, (void *old, size_t size), (old, size))
WRAP(is_out_of_memory(), NULL, char *, strdup, (char const *text), (text))
WRAP(is_nth(&starts, failing_start), EAGAIN, int, umem_thread_start,
     (pthread_t * thread, void *(*run)(void *), void *data), (thread, run, data))

/* ---- the double: counts what is made and ended, and fails the n-th call ---- */

static void *easy_init(void) {
  void *easy = fails_now() ? NULL : real.easy_init();
  count(&easies, easy != NULL);
  return easy;
}

static void easy_cleanup(void *easy) {
  discount(&easies);
  real.easy_cleanup(easy);
}

static int easy_setopt(void *easy, int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  int code = umemCurlNoMemory;
  bool fails = fails_now();
  if (!fails && option >= 30000)
    code = real.easy_setopt(easy, option, va_arg(arguments, int64_t));
  else if (!fails && option >= 10000)
    code = real.easy_setopt(easy, option, va_arg(arguments, void *));
  else if (!fails) {
    long value = va_arg(arguments, long);
    if (option == umemCurlOptExpectMs) atomic_store(&patience, value);
    code = real.easy_setopt(easy, option, value);
  }
  va_end(arguments);
  return code;
}

static void *multi_init(void) {
  void *multi = fails_now() ? NULL : real.multi_init();
  count(&multis, multi != NULL);
  return multi;
}

static int multi_cleanup(void *multi) {
  discount(&multis);
  return real.multi_cleanup(multi);
}

static int multi_setopt(void *multi, int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  int code = fails_now() ? 1 : real.multi_setopt(multi, option, va_arg(arguments, long));
  va_end(arguments);
  return code;
}

static int multi_add(void *multi, void *easy) {
  return fails_now() ? 3 : real.multi_add(multi, easy);
}

static int multi_perform(void *multi, int *running) {
  return fails_now() ? 3 : real.multi_perform(multi, running);
}

static int multi_poll(void *multi, umemCurlWait *more, unsigned count, int timeout, int *ready) {
  return fails_now() ? 3 : real.multi_poll(multi, more, count, timeout, ready);
}

static int easy_send(void *easy, void const *bytes, size_t size, size_t *sent) {
  return fails_now() ? umemCurlSendError : real.easy_send(easy, bytes, size, sent);
}

static int easy_recv(void *easy, void *bytes, size_t size, size_t *received) {
  return fails_now() ? umemCurlReceiveError : real.easy_recv(easy, bytes, size, received);
}

static umemCurlList *list_append(umemCurlList *list, char const *text) {
  umemCurlList *longer = fails_now() ? NULL : real.list_append(list, text);
  count(&lists, longer && !list);
  return longer;
}

static void list_free(umemCurlList *list) {
  if (list) discount(&lists);
  real.list_free(list);
}

static void *new_url(void) {
  void *url = fails_now() ? NULL : real.url();
  count(&urls, url != NULL);
  return url;
}

static void url_cleanup(void *url) {
  discount(&urls);
  real.url_cleanup(url);
}

static int url_set(void *url, int part, char const *text, unsigned flags) {
  return fails_now() ? 7 : real.url_set(url, part, text, flags);
}

static int url_get(void *url, int part, char **text, unsigned flags) {
  return fails_now() ? 7 : real.url_get(url, part, text, flags);
}

static void use_double(void) {
  umem_curl_double = NULL;
  real = *umemCurl_get(NULL);
  failing = real;
  failing.easy_init = easy_init;
  failing.easy_cleanup = easy_cleanup;
  failing.easy_setopt = easy_setopt;
  failing.easy_send = easy_send;
  failing.easy_recv = easy_recv;
  failing.multi_init = multi_init;
  failing.multi_cleanup = multi_cleanup;
  failing.multi_setopt = multi_setopt;
  failing.multi_add = multi_add;
  failing.multi_perform = multi_perform;
  failing.multi_poll = multi_poll;
  failing.list_append = list_append;
  failing.list_free = list_free;
  failing.url = new_url;
  failing.url_cleanup = url_cleanup;
  failing.url_set = url_set;
  failing.url_get = url_get;
  umem_curl_double = &failing;
}

/* ---- the runs ---- */

/* What has failed leaves nothing half made: the next copy is as good as one without a failure. */
static void read_again(umemUrl *url, umemHost *host, size_t size) {
  memset(got, 0, size);
  if (umem_copy_to(url, 0, host, (uintptr_t)got, size) != umemOK)
    fail_msg("the copy after a failure: %s", umem_thread_message());
  assert_memory_equal(got, object, size);
}

static umemStatusType read_pieces(UrlServer *server, umemHost *host, size_t size, size_t piece) {
  static char const *const headers[] = {"X-Key: 1", "X-More: 2"};
  SCOPED(umem_dtor) umemUrl url;
  umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
  options.piece = piece;
  options.headers = headers;
  options.header_count = 2;
  options.retries = 0;
  umemStatusType status = umemUrl_ctor(&url, url_server_url(server), &options);
  if (status != umemOK) {
    if (umem_is_ok(&url)) fail_msg("no failure was recorded");
    return status;
  }
  status = umem_copy_to(&url, 0, host, (uintptr_t)got, size);
  if (status == umemOK)
    assert_memory_equal(got, object, size);
  else if (umem_is_ok(&url))
    fail_msg("no failure was recorded");
  else
    read_again(&url, host, size);
  return status;
}

static umemStatusType open_and_read(UrlServer *server, umemHost *host) {
  return read_pieces(server, host, short_size, 64 << 10);
}

/* By three threads. */
static umemStatusType read_long(UrlServer *server, umemHost *host) {
  assert_int_equal(umem_set_threads(3), umemOK);
  umemStatusType status = read_pieces(server, host, object_size, 2 << 20);
  umem_set_threads(0);
  return status;
}

static void expect_nothing_left(void) {
  assert_int_equal(easies, 0);
  assert_int_equal(multis, 0);
  assert_int_equal(lists, 0);
  assert_int_equal(urls, 0);
}

/* ---- an object of S3 that is written in parts ---- */

enum { part_size = 5 << 20, written_size = 2 * part_size + 100 };

static unsigned char written[written_size];

static bool serve_bucket(void *user, UrlRequest *request) {
  is_server = true;
  return url_bucket_serve(user, request);
}

static umemStatusType fill_object(umemS3 *place, umemHost *host, size_t step) {
  if (umem_alloc(place, written_size) == UINTPTR_MAX) return umem_thread_status();
  for (size_t at = 0; at < written_size; at += step) {
    size_t size = step < written_size - at ? step : written_size - at;
    umemStatusType status = umem_copy_to(host, (uintptr_t)written + at, place, at, size);
    if (status != umemOK) return status;
  }
  return umem_flush(place);
}

static umemStatusType write_steps(UrlServer *server, umemHost *host, size_t step) {
  umemS3 place;
  umemUrlOptions requests = UMEM_URL_OPTIONS_INIT;
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  char endpoint[64];
  snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", url_server_port(server));
  requests.connections = 2, requests.retries = 0;
  options.part = part_size, options.url = &requests, options.endpoint = endpoint;
  options.anonymous = 1;
  umemStatusType status = umemS3_ctor_with(&place, "s3://bucket/key", "w", &options);
  if (status != umemOK) return status;
  status = fill_object(&place, host, step);
  if ((status == umemOK) != umem_is_ok(&place)) fail_msg("its status is another one");
  umem_dtor(&place);
  return status;
}

/* As a whole: its parts are sent from where they are. */
static umemStatusType write_whole(UrlServer *server, umemHost *host) {
  return write_steps(server, host, written_size);
}
/* By buffers. */
static umemStatusType write_pieces(UrlServer *server, umemHost *host) {
  return write_steps(server, host, part_size / 2 + 1);
}

/* The object is whole, or not there: it is if the answer to the last request is lost. A part
 * remains only if the answer with the number of the upload is lost. */
static void expect_whole_or_none(UrlBucket *bucket, umemStatusType status) {
  pthread_mutex_lock(&bucket->lock);
  bool has = bucket->object != NULL;
  if (has) assert_int_equal(bucket->object_size, written_size);
  if (has) assert_memory_equal(bucket->object, written, written_size);
  if (!has) assert_int_not_equal(status, umemOK);
  if (has) assert_true(bucket->completed);
  if (!has && bucket->puts) assert_int_equal(bucket->aborted, bucket->begun);
  url_bucket_clear(bucket);
  bucket->begun = bucket->aborted = bucket->completed = bucket->puts = 0;
  pthread_mutex_unlock(&bucket->lock);
}

/* ---- each of them ---- */

typedef umemStatusType Run(UrlServer *server, umemHost *host);

/* What becomes of a run in which one call has failed. */
typedef enum Outcome { anyFailure, isOutOfMemory, passesOrIsOutOfMemory, passes, any } Outcome;

static void expect_outcome(Outcome wanted, umemStatusType status, unsigned long at) {
  bool good = status == umemMemoryError;
  if (wanted == anyFailure) good = status != umemOK;
  if (wanted == passes) good = status == umemOK;
  if (wanted == any) good = true;
  if (wanted == passesOrIsOutOfMemory) good |= status == umemOK;
  if (!good) fail_msg("call %lu has failed: status %d", at, (int)status);
}

/* Runs with the first, the second, ... of what *number counts failing, until there are no more.
 * Returns how many have failed. */
static unsigned fail_each(atomic_ulong *number, atomic_ulong *which, UrlBucket *bucket, Run *run,
                          Outcome wanted) {
  umemHost host;
  unsigned failed = 0;
  for (size_t i = 0; i < object_size; i++) object[i] = (unsigned char)(i * 7 + i / 256);
  for (size_t i = 0; i < written_size; i++) written[i] = (unsigned char)(i * 7 + i / 251);
  umemHost_ctor(&host);
  use_double();
  for (unsigned long at = 1;; at += run == read_long ? 3 : 1) {
    UrlServer *server = bucket ? url_server_start("", 0, serve_bucket, bucket)
                               : url_server_start(object, object_size, NULL, NULL);
    *number = 0;
    *which = at;
    umemStatusType status = run(server, &host);
    bool met = *number >= at;
    *which = 0;
    expect_nothing_left();
    url_server_stop(server);
    if (bucket) expect_whole_or_none(bucket, status);
    if (!met && status != umemOK) fail_msg("%lu: %s", at, umem_thread_message());
    umem_thread_clear();
    if (!met) break;
    expect_outcome(wanted, status, at);
    failed++;
  }
  umem_curl_double = NULL;
  umem_dtor(&host);
  return failed;
}

TEST_CASE(each_call_of_libcurl_may_fail) {
  assert_in_range(fail_each(&calls, &nth, NULL, open_and_read, anyFailure), 100, 10000);
}

TEST_CASE(calls_of_a_long_read_may_fail) {
  /* What has no line is read by libcurl alone. */
  assert_in_range(fail_each(&calls, &nth, NULL, read_long, any), 20, 10000);
  fail_each(&allocations, &failing_one, NULL, read_long, passesOrIsOutOfMemory);
  fail_each(&starts, &failing_start, NULL, read_long, passes);
}

TEST_CASE(each_allocation_may_fail) {
  unsigned failed = fail_each(&allocations, &failing_one, NULL, open_and_read, isOutOfMemory);
  assert_in_range(failed, 10, 1000);
}

static void fail_each_of_an_upload(Run *run) {
  UrlBucket bucket = {.lock = PTHREAD_MUTEX_INITIALIZER};
  unsigned failed = fail_each(&calls, &nth, &bucket, run, anyFailure);
  assert_in_range(failed, 100, 10000);
  /* A sender without memory for its variables leaves the parts to whoever waits for them, as does
   * one that is not started. */
  failed = fail_each(&allocations, &failing_one, &bucket, run, passesOrIsOutOfMemory);
  assert_in_range(failed, 10, 1000);
  failed = fail_each(&starts, &failing_start, &bucket, run, passes);
  assert_in_range(failed, 1, 100);
  pthread_mutex_destroy(&bucket.lock);
}

/* A round trip for each part, and a second where the server gives none. */
TEST_CASE(a_part_waits_for_no_permission) {
  umemHost host;
  UrlBucket bucket = {.lock = PTHREAD_MUTEX_INITIALIZER};
  UrlServer *server = url_server_start("", 0, serve_bucket, &bucket);
  umemHost_ctor(&host);
  use_double();
  patience = 1000;
  assert_int_equal(write_whole(server, &host), umemOK);
  assert_in_range(patience, 0, 1);
  umem_curl_double = NULL;
  umem_dtor(&host);
  url_server_stop(server);
  url_bucket_clear(&bucket);
}

TEST_CASE(each_call_of_a_long_write_may_fail) { fail_each_of_an_upload(write_whole); }
TEST_CASE(each_call_of_a_write_in_pieces_may_fail) { fail_each_of_an_upload(write_pieces); }

int main(void) { return url_has_libcurl() ? run_cases(NULL, NULL) : 0; }
