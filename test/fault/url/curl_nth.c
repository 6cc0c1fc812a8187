/* curl_nth.c - places behind a URL: the n-th call of libcurl, or the n-th allocation of umem,
 * fails, for every n that opening an object and copying from it make, or writing one. Each time
 * the call fails with a status, nothing is left, and the next attempt works.
 *
 * Linked with --wrap=malloc,--wrap=calloc,--wrap=strdup. */
#include "cases.h"
#include "failures.h"
#include "url/url_curl.h"
#include "url_server.h"
#include "wrap.h"

enum { object_size = 300000 };

static unsigned char object[object_size], got[object_size];
static umemCurl real, failing;
static unsigned long calls, nth; /* nth 0: none fails */
static long easies, multis, lists, urls;

static bool fails_now(void) { return ++calls == nth; }

/* Allocations of this thread alone: the server has others. */
static _Thread_local unsigned long allocations, failing_one;

static bool is_out_of_memory(void) { return ++allocations == failing_one; }

WRAP(is_out_of_memory(), NULL, void *, malloc, (size_t size), (size))
WRAP(is_out_of_memory(), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(is_out_of_memory(), NULL, char *, strdup, (char const *text), (text))

/* ---- the double: counts what is made and ended, and fails the n-th call ---- */

static void *easy_init(void) {
  void *easy = fails_now() ? NULL : real.easy_init();
  easies += easy != NULL;
  return easy;
}

static void easy_cleanup(void *easy) {
  easies--;
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
  else if (!fails)
    code = real.easy_setopt(easy, option, va_arg(arguments, long));
  va_end(arguments);
  return code;
}

static void *multi_init(void) {
  void *multi = fails_now() ? NULL : real.multi_init();
  multis += multi != NULL;
  return multi;
}

static int multi_cleanup(void *multi) {
  multis--;
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

static int multi_poll(void *multi, void *more, unsigned count, int timeout, int *ready) {
  return fails_now() ? 3 : real.multi_poll(multi, more, count, timeout, ready);
}

static umemCurlList *list_append(umemCurlList *list, char const *text) {
  umemCurlList *longer = fails_now() ? NULL : real.list_append(list, text);
  lists += longer && !list;
  return longer;
}

static void list_free(umemCurlList *list) {
  lists -= list != NULL;
  real.list_free(list);
}

static void *new_url(void) {
  void *url = fails_now() ? NULL : real.url();
  urls += url != NULL;
  return url;
}

static void url_cleanup(void *url) {
  urls--;
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

static umemStatusType open_and_read(UrlServer *server, umemHost *host) {
  static char const *const headers[] = {"X-Key: 1", "X-More: 2"};
  umemUrl url;
  umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
  options.piece = 64 << 10;
  options.headers = headers;
  options.header_count = 2;
  options.retries = 0;
  umemStatusType status = umemUrl_ctor(&url, url_server_url(server), &options);
  if (status == umemOK) status = umem_copy_to(&url, 0, host, (uintptr_t)got, object_size);
  if (status == umemOK) assert_memory_equal(got, object, object_size);
  if (status != umemOK && umem_is_ok(&url)) fail_msg("no failure was recorded");
  umem_dtor(&url);
  return status;
}

static void expect_nothing_left(void) {
  assert_int_equal(easies, 0);
  assert_int_equal(multis, 0);
  assert_int_equal(lists, 0);
  assert_int_equal(urls, 0);
}

TEST_CASE(each_call_of_libcurl_may_fail) {
  umemHost host;
  unsigned failed = 0, passed = 0;
  for (size_t i = 0; i < object_size; i++) object[i] = (unsigned char)(i * 7 + i / 256);
  UrlServer *server = url_server_start(object, object_size, NULL, NULL);
  umemHost_ctor(&host);
  use_double();
  for (nth = 1;; nth++) {
    calls = 0;
    umemStatusType status = open_and_read(server, &host);
    expect_nothing_left();
    if (calls < nth) break;
    failed += status != umemOK;
    passed += status == umemOK;
    umem_thread_clear();
  }
  nth = 0;
  assert_int_equal(open_and_read(server, &host), umemOK);
  assert_in_range(failed, 100, 10000);
  assert_int_equal(passed, 0);
  umem_curl_double = NULL;
  umem_dtor(&host);
  url_server_stop(server);
}

typedef umemStatusType Run(UrlServer *server, umemHost *host);

static void fail_each_allocation(UrlServer *server, Run *run) {
  umemHost host;
  umemHost_ctor(&host);
  use_double();
  unsigned failed = 0;
  for (unsigned long at = 1;; at++) {
    allocations = 0;
    failing_one = at;
    umemStatusType status = run(server, &host);
    bool met = allocations >= at;
    failing_one = 0;
    expect_nothing_left();
    if (!met) break;
    if (status == umemOK) fail_msg("allocation %lu has failed, and nothing else", at);
    assert_int_equal(status, umemMemoryError);
    umem_thread_clear();
    failed++;
  }
  assert_in_range(failed, 10, 1000);
  umem_curl_double = NULL;
  umem_dtor(&host);
  url_server_stop(server);
}

TEST_CASE(each_allocation_may_fail) {
  fail_each_allocation(url_server_start(object, object_size, NULL, NULL), open_and_read);
}

/* ---- an object of S3 that is written in two parts ---- */

enum { part_size = 5 << 20 };

static unsigned char written[part_size + 100];

static bool answer_as_s3(void *user, UrlRequest *request) {
  static char body[64 << 10];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  (void)user;
  char const *text = strcasestr(request->head, "\r\nContent-Length:");
  bool begins = strstr(request->path, "?uploads=");
  pthread_mutex_lock(&lock);
  for (size_t left = text ? strtoul(text + 17, NULL, 10) : 0; left;) {
    ssize_t n = read(request->fd, body, left < sizeof body ? left : sizeof body);
    if (n <= 0) break;
    left -= (size_t)n;
  }
  pthread_mutex_unlock(&lock);
  char const *answer = strcmp(request->method, "POST") ? ""
                       : begins                        ? "<UploadId>id</UploadId>"
                                : "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>";
  return url_head(request, "HTTP/1.1 200 OK\r\nETag: \"tag\"\r\nContent-Length: %zu\r\n",
                  strlen(answer)) &&
         url_send(request, answer, strlen(answer));
}

static umemStatusType write_object(UrlServer *server, umemHost *host) {
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
  uintptr_t adr = umem_alloc(&place, sizeof written);
  if (adr != UINTPTR_MAX) umem_copy_to(host, (uintptr_t)written, &place, adr, sizeof written);
  status = umem_thread_status();
  if (status == umemOK) status = umem_flush(&place);
  umem_dtor(&place);
  return status;
}

TEST_CASE(each_allocation_of_an_upload_may_fail) {
  fail_each_allocation(url_server_start("", 0, answer_as_s3, NULL), write_object);
}

int main(void) { return url_has_libcurl() ? run_cases(NULL, NULL) : 0; }
