/* s3.c - a small S3 of the test, in threads: what an upload sends, and what becomes of it when the
 * server fails. test/url has the same with moto's S3 and with signatures that are checked. */
#include "cases.h"
#include "url/s3.h"
#include "s3_help.h"
#include "url_bucket.h"
#include "workers.h"

#include <limits.h>

static size_t const part_size = (size_t)5 << 20;

typedef struct Bucket {
  UrlServer *server;
  UrlBucket s3;
  char const *fails; /* the beginning of the method and the query of requests that fail */
  int status;        /* of these */
  unsigned failures; /* how many of them are left */
  char const *word;  /* of S3, for them; NULL: Broken */
  bool does;         /* what fails is done, and only its answer is lost */
  int silent;        /* atomic: what fails is not answered while this is 1 */
} Bucket;

static Bucket *bucket; /* of the test */
static umemS3 place;   /* that it writes to */

static bool fails(UrlRequest const *request) {
  char line[600];
  snprintf(line, sizeof line, "%s %s", request->method, strchrnul(request->path, '?'));
  pthread_mutex_lock(&bucket->s3.lock);
  bool failed =
      bucket->fails && bucket->failures && !strncmp(line, bucket->fails, strlen(bucket->fails));
  bucket->failures -= failed;
  pthread_mutex_unlock(&bucket->s3.lock);
  return failed;
}

static bool answer(void *user UNUSED, UrlRequest *request) {
  size_t size;
  unsigned char *body = url_read_body(request, &size);
  assert_non_null(strcasestr(request->head, "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=key/"));
  if (!fails(request)) return url_bucket_answer(&bucket->s3, request, body, size);
  char text[128];
  free(body);
  if (bucket->does) url_bucket_join(&bucket->s3);
  while (__atomic_load_n(&bucket->silent, __ATOMIC_RELAXED)) usleep(1000);
  snprintf(text, sizeof text, "<Error><Code>%s</Code></Error>",
           bucket->word ? bucket->word : "Broken");
  return bucket->status && url_answer_text(request, bucket->status, text);
}

static void open_bucket(void **state UNUSED) {
  bucket = calloc(1, sizeof *bucket);
  assert_non_null(bucket);
  pthread_mutex_init(&bucket->s3.lock, NULL);
  bucket->server = url_server_start("", 0, answer, bucket);
  char endpoint[64];
  snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", url_server_port(bucket->server));
  set_s3_environment(endpoint);
}

static void close_bucket(void **state UNUSED) {
  url_server_stop(bucket->server);
  url_bucket_clear(&bucket->s3);
  pthread_mutex_destroy(&bucket->s3.lock);
  free(bucket);
}

#define TEST(name) TEST_CASE_WITH(name, open_bucket, close_bucket)

/* False if this libcurl is too old to sign: the message must say so. */
static bool open_writer_with(char const *mode, umemUrlOptions const *url) {
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  options.part = part_size, options.url = url;
  if (umemS3_ctor_with(&place, "s3://bucket/key", mode, &options) == umemOK) return true;
  assert_int_equal(umem_thread_status(), umemNotSupportedError);
  assert_non_null(strstr(umem_thread_message(), "libcurl"));
  return false;
}

static bool open_writer(char const *mode) {
  umemUrlOptions url = UMEM_URL_OPTIONS_INIT;
  url.connections = 3, url.retries = 1;
  return open_writer_with(mode, &url);
}

static unsigned char *make_bytes(size_t size) {
  unsigned char *bytes = malloc(size);
  assert_non_null(bytes);
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  return bytes;
}

/* Opens it with one block, and returns bytes for that; NULL: as open_writer. */
static unsigned char *begin_object(size_t size) {
  if (!open_writer("w")) return NULL;
  assert_int_equal(umem_alloc(&place, size), 0);
  return make_bytes(size);
}

static umemStatusType write_bytes(uintptr_t adr, void const *bytes, size_t size) {
  SCOPED(umem_dtor) umemHost host;
  umemHost_ctor(&host);
  return umem_copy_to(&host, (uintptr_t)bytes, &place, adr, size);
}

static umemStatusType end(void) {
  uint64_t before = umem_thread_failures();
  umem_dtor(&place);
  return umem_thread_failures() == before ? umemOK : umem_thread_status();
}

/* The upload ends, and the bucket has these bytes. */
static void end_with_object(void const *bytes, size_t size) {
  assert_int_equal(end(), umemOK);
  assert_int_equal(bucket->s3.object_size, size);
  assert_memory_equal(bucket->s3.object, bytes, size);
}

static unsigned puts_so_far(void) {
  pthread_mutex_lock(&bucket->s3.lock);
  unsigned puts = bucket->s3.puts;
  pthread_mutex_unlock(&bucket->s3.lock);
  return puts;
}

/* ---- writing ---- */

typedef struct Share {
  unsigned char const *bytes;
  size_t from, to;
} Share;

static void *write_share(void *data) {
  Share const *share = data;
  size_t const piece = 300 << 10;
  for (size_t at = share->from; at < share->to; at += piece) {
    size_t size = share->to - at < piece ? share->to - at : piece;
    if (write_bytes(at, share->bytes + at, size) != umemOK) return (void *)1;
  }
  return NULL;
}

TEST(threads_write_one_object) {
  enum { threads = 3 };
  size_t const size = 6 * part_size + 12345;
  SCOPED(free_bytes) unsigned char *bytes = begin_object(size);
  if (!bytes) return;
  Share shares[threads];
  for (size_t i = 0; i < threads; i++)
    shares[i] =
        (Share){bytes, size / threads * i, i + 1 < threads ? size / threads * (i + 1) : size};
  run_at_once(threads, write_share, shares, sizeof *shares);
  end_with_object(bytes, size);
  assert_int_equal(bucket->s3.begun, 1);
  assert_int_equal(bucket->s3.completed, 1);
  assert_int_equal(bucket->s3.aborted, 0);
}

/* Senders read its whole parts, which are on the server when it returns. */
TEST(a_long_write_lends_its_bytes) {
  size_t const head = 16, size = 4 * part_size + 100;
  if (!open_writer("w")) return;
  unsigned char *bytes = make_bytes(head + size), *lent = malloc(size);
  assert_int_equal(umem_alloc(&place, head), 0);
  assert_int_equal(umem_alloc(&place, size), head);
  assert_int_equal(write_bytes(0, bytes, head), umemOK);
  memcpy(lent, bytes + head, size);
  assert_int_equal(write_bytes(head, lent, size), umemOK);
  assert_in_range(puts_so_far(), 3, 4);
  memset(lent, 0, size);
  free(lent);
  assert_int_equal(umem_set(&place, head + part_size, 1, 1), umemNotSupportedError); /* is sent */
  umem_clear_status(&place);
  assert_int_equal(umem_flush(&place), umemOK);
  end_with_object(bytes, head + size);
  free(bytes);
}

TEST(a_short_object_is_one_request) {
  if (!open_writer("wb")) return;
  assert_int_equal(umem_alloc(&place, 5), 0);
  assert_int_equal(umem_alloc(&place, 3), 16);
  assert_int_equal(umem_set(&place, 0, 'a', 5), umemOK);
  assert_int_equal(umem_set(&place, 16, 'b', 3), umemOK);
  assert_int_equal(umem_set(&place, 16, 'b', 4), umemIndexError);
  umem_clear_status(&place);
  assert_int_equal(umem_flush(&place), umemOK);
  assert_int_equal(umem_set(&place, 0, 'a', 5), umemNotSupportedError);
  end_with_object("aaaaa\0\0\0\0\0\0\0\0\0\0\0bbb", 19);
  assert_int_equal(bucket->s3.puts, 1);
}

/* Those of umem_calloc, in parts that nothing is written to, too, and those of no bytes. */
TEST(zeros_need_not_be_written) {
  size_t const size = 2 * part_size;
  if (!open_writer("w")) return;
  SCOPED(free_bytes) unsigned char *wanted = calloc(size + 33, 1);
  assert_int_equal(umem_calloc(&place, size, 1), 0);
  assert_int_equal(umem_alloc(&place, 0), size);
  assert_int_equal(umem_alloc(&place, 1), size + 16);
  assert_int_equal(umem_aligned_alloc(&place, 32, 0), size + 32);
  memset(wanted + part_size - 3, 7, 10);
  wanted[size + 16] = 5;
  assert_int_equal(umem_set(&place, part_size - 3, 7, 10), umemOK);
  assert_int_equal(umem_set(&place, size + 16, 5, 1), umemOK);
  end_with_object(wanted, size + 33);
}

/* What else was not written counts as missing beside them. */
TEST(zeros_that_were_written_stand_for_no_others) {
  if (!open_writer("w")) return;
  assert_int_equal(umem_calloc(&place, 100, 1), 0);
  uintptr_t other = umem_alloc(&place, 100);
  assert_int_equal(umem_set(&place, 0, 1, 100), umemOK);
  assert_int_equal(umem_set(&place, other, 1, 90), umemOK);
  assert_int_equal(end(), umemIOError);
  assert_non_null(strstr(umem_thread_message(), ": 10 of its"));
  assert_null(bucket->s3.object);
}

/* But what was not opened, because a layer over it was refused, leaves an older one alone. */
TEST(an_object_without_a_block_is_empty) {
  if (!open_writer("w")) return;
  assert_null(umem_open("log+s3://bucket/key#mode=w&log.file=/nonexistent/log"));
  umem_thread_clear();
  assert_int_equal(bucket->s3.puts, 0);
  end_with_object("", 0);
  assert_int_equal(bucket->s3.puts, 1);
  assert_int_equal(umem_close(umem_open("stats+s3://bucket/key#mode=w")), umemOK);
  assert_int_equal(bucket->s3.puts, 2);
}

TEST(blocks_of_an_object_are_checked) {
  if (!open_writer("w")) return;
  uintptr_t one = umem_alloc(&place, 100), two = umem_aligned_alloc(&place, 4096, 8);
  assert_int_equal(two, 4096);
  umem_free(&place, one);
  assert_int_equal(umem_get_status(&place), umemOK);
  umem_free(&place, one);
  assert_int_equal(umem_get_status(&place), umemValueError);
  umem_clear_status(&place);
  assert_int_equal(umem_set(&place, one, 0, 1), umemIndexError);
  assert_true(umem_alloc(&place, 100) != one);
  assert_int_equal(umem_realloc(&place, two, 8, 4), two);
  assert_int_equal(umem_realloc(&place, two, 8, 16), UINTPTR_MAX);
  assert_int_equal(umemS3_abandon(&place), umemOK);
  assert_int_equal(umem_set(&place, two, 0, 1), umemNotSupportedError);
  assert_int_equal(end(), umemOK);
  assert_int_equal(bucket->s3.puts + bucket->s3.begun, 0);
}

/* ---- from a web server ---- */

enum { web_parts = 8 };

/* An object of web_parts parts. Of long ranges the second half is sent when all have the first. */
typedef struct Web {
  unsigned char *bytes;
  unsigned begun; /* atomic */
} Web;

static bool answer_by_halves(void *user, UrlRequest *request) {
  Web *web = user;
  size_t const size = web_parts * part_size;
  if (!request->has_range || request->last - request->first + 1 < part_size)
    return url_serve(NULL, request);
  unsigned char const *from = web->bytes + request->first;
  bool good = url_head(request,
                       "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n"
                       "Content-Length: %zu\r\nETag: %s\r\n",
                       request->first, request->last, size, part_size, request->match) &&
              url_send(request, from, part_size / 2);
  __atomic_fetch_add(&web->begun, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2000 && __atomic_load_n(&web->begun, __ATOMIC_RELAXED) < web_parts; i++)
    usleep(1000);
  return good && url_send(request, from + part_size / 2, part_size - part_size / 2);
}

/* More pieces arrive at a time than there are buffers for parts: each is written as a whole. */
TEST(an_object_of_a_web_server_arrives_whole) {
  size_t const size = web_parts * part_size;
  umemUrlOptions few = UMEM_URL_OPTIONS_INIT, many = UMEM_URL_OPTIONS_INIT;
  umemUrl url;
  few.connections = 1, many.connections = web_parts, many.piece = part_size;
  if (!open_writer_with("w", &few)) return;
  Web web = {.bytes = make_bytes(size)};
  UrlServer *server = url_server_start(web.bytes, size, answer_by_halves, &web);
  assert_int_equal(umemUrl_ctor(&url, url_server_url(server), &many), umemOK);
  assert_int_equal(umem_alloc(&place, size), 0);
  if (umem_copy_to(&url, 0, &place, 0, size) != umemOK) fail_msg("%s", umem_thread_message());
  assert_int_equal(web.begun, web_parts);
  end_with_object(web.bytes, size);
  umem_dtor(&url);
  url_server_stop(server);
  free(web.bytes);
}

/* ---- failures ---- */

typedef struct Failure {
  char const *fails;
  int status;
  unsigned aborted;
} Failure;

/* One part or the begin or the end fails for good: no object, and nothing is left. */
static void expect_no_object(Failure const *failure) {
  size_t const size = 3 * part_size;
  SCOPED(free_bytes) unsigned char *bytes = begin_object(size);
  if (!bytes) return;
  bucket->fails = failure->fails, bucket->status = failure->status, bucket->failures = 1000;
  write_bytes(0, bytes, size); /* may be over before the server fails */
  assert_int_equal(end(), umemIOError);
  assert_null(bucket->s3.object);
  assert_int_equal(bucket->s3.aborted, failure->aborted);
}

/* Refused where it begins, at a part, by an error in a good answer, and for good; and cut. */
TEST(a_failing_upload_makes_no_object) {
  static Failure const failures[] = {{"POST ?uploads", 403, 0},
                                     {"PUT ?partNumber=2", 400, 1},
                                     {"PUT ?partNumber=2", 0, 1},
                                     {"POST ?uploadId", 200, 1},
                                     {"PUT ?partNumber=1", 503, 1}};
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
    expect_no_object(&failures[i]);
    close_bucket(state);
    open_bucket(state);
  }
}

typedef struct LongWrite {
  unsigned char const *bytes;
  uintptr_t adr;
} LongWrite;

static void *fail_long_write(void *data) {
  LongWrite const *write = data;
  return write_bytes(write->adr, write->bytes, 3 * part_size) == umemIOError ? NULL : data;
}

/* Two threads lend their parts, of which none is sent: no write may say that it was. */
TEST(a_refused_upload_fails_each_write) {
  enum { threads = 2, rounds = 30 };
  SCOPED(free_bytes) unsigned char *bytes = make_bytes(3 * part_size);
  bucket->fails = "POST ?uploads", bucket->status = 403, bucket->failures = UINT_MAX;
  for (unsigned round = 0; round < rounds; round++) {
    LongWrite writes[threads];
    if (!open_writer("w")) break;
    for (size_t i = 0; i < threads; i++)
      writes[i] = (LongWrite){bytes, umem_alloc(&place, 3 * part_size)};
    umem_alloc(&place, 1);
    run_at_once(threads, fail_long_write, writes, sizeof *writes);
    assert_int_equal(end(), umemIOError);
  }
  assert_null(bucket->s3.object);
}

TEST(a_part_is_sent_again) {
  size_t const size = 2 * part_size + 1;
  SCOPED(free_bytes) unsigned char *bytes = begin_object(size);
  if (!bytes) return;
  bucket->fails = "PUT ?partNumber=2", bucket->status = 503, bucket->failures = 1;
  assert_int_equal(write_bytes(0, bytes, size), umemOK);
  end_with_object(bytes, size);
}

TEST(unwritten_bytes_make_no_object) {
  if (!open_writer("w")) return;
  assert_int_equal(umem_alloc(&place, 3 * part_size), 0);
  assert_int_equal(umem_set(&place, 0, 1, 2 * part_size), umemOK);
  assert_int_equal(end(), umemIOError);
  assert_non_null(
      strstr(umem_thread_message(), "5242880 of its 15728640 bytes were never written"));
  assert_null(bucket->s3.object);
  assert_int_equal(bucket->s3.aborted, bucket->s3.begun); /* 0 if no sender was that quick */
}

/* The answer of the completion is lost, and there is no upload any more. Whose object is there? */
static void complete_twice(bool does, umemStatusType wanted) {
  size_t const size = 3 * part_size;
  unsigned char *bytes = begin_object(size), *older = make_bytes(size);
  if (!bytes) return;
  url_bucket_take(&bucket->s3, older, size);
  strcpy(bucket->s3.object_mark, "0123456789abcdef0123456789abcdef");
  bucket->fails = "POST ?uploadId", bucket->status = 404, bucket->failures = 1000;
  bucket->word = "NoSuchUpload", bucket->does = does;
  assert_int_equal(write_bytes(0, bytes, size), umemOK);
  assert_int_equal(end(), wanted);
  if (wanted != umemOK) assert_non_null(strstr(umem_thread_message(), "NoSuchUpload"));
  free(bytes);
}

TEST(an_object_that_was_made_by_a_lost_request_is_found) { complete_twice(true, umemOK); }
TEST(an_older_object_of_this_length_is_not_taken_for_it) { complete_twice(false, umemIOError); }

/* ---- a silent server: the program cancels ---- */

typedef struct Patience {
  unsigned asked, until; /* the answer is no from then on */
} Patience;

static bool ask(void *data) {
  Patience *patience = data;
  return __atomic_fetch_add(&patience->asked, 1, __ATOMIC_RELAXED) < patience->until;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void make_silent(char const *fails) {
  bucket->fails = fails, bucket->status = 503, bucket->failures = 1000;
  __atomic_store_n(&bucket->silent, 1, __ATOMIC_RELAXED);
}

static void make_good(void) {
  pthread_mutex_lock(&bucket->s3.lock);
  bucket->failures = 0;
  pthread_mutex_unlock(&bucket->s3.lock);
  __atomic_store_n(&bucket->silent, 0, __ATOMIC_RELAXED);
}

/* Its parts, which are lent, may be written again: the upload goes on. */
TEST(a_long_write_to_a_silent_server_is_cancelled) {
  Patience patience = {.until = 3};
  size_t const size = 5 * part_size + 7;
  unsigned char *bytes = begin_object(size), *lent = make_bytes(size);
  if (!bytes) return;
  make_silent("PUT ?partNumber=2");
  umem_set_wait_hook(ask, &patience);
  double begin = seconds();
  assert_int_equal(write_bytes(0, lent, size), umemCancelledError);
  assert_true(seconds() - begin < 10);
  umem_set_wait_hook(NULL, NULL);
  memset(lent, 0, size);
  free(lent);
  assert_in_range(patience.asked, 4, 5);
  umem_clear_status(&place);
  make_good();
  assert_int_equal(write_bytes(part_size, bytes + part_size, part_size), umemOK);
  for (size_t part = 0; part < 6; part++) { /* those that the call had not yet begun */
    size_t const at = part * part_size, rest = size - at;
    umemStatusType status = write_bytes(at, bytes + at, rest < part_size ? rest : part_size);
    assert_true(status == umemOK || status == umemNotSupportedError); /* is sent */
    umem_clear_status(&place);
  }
  end_with_object(bytes, size);
  assert_int_equal(bucket->s3.begun, 1);
  free(bytes);
}

typedef struct Reports {
  size_t count, last, most; /* most: so many are asked for */
} Reports;

static bool count_reports(void *user, size_t done, size_t total) {
  Reports *reports = user;
  assert_in_range(done, reports->last, total);
  reports->last = done;
  return ++reports->count < reports->most;
}

static umemStatusType write_in_steps(void const *bytes, size_t size, Reports *reports) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = count_reports, options.user = reports, options.step = part_size;
  umemHost host;
  umemHost_ctor(&host);
  umemStatusType status = umem_copy_to_with(&host, (uintptr_t)bytes, &place, 0, size, &options);
  umem_dtor(&host);
  return status;
}

/* A copy in steps, which are shorter than what is lent, is lent as a whole. */
TEST(a_long_write_reports_what_was_sent) {
  umemUrlOptions url = UMEM_URL_OPTIONS_INIT;
  url.connections = 6, url.retries = 1;
  size_t const size = 8 * part_size;
  if (!open_writer_with("w", &url)) return;
  unsigned char *bytes = make_bytes(size);
  make_silent("PUT ?partNumber");
  Reports reports = {.most = 4};
  assert_int_equal(umem_alloc(&place, size), 0);
  umemStatusType status = write_in_steps(bytes, size, &reports);
  end();
  make_good();
  assert_int_equal(status, umemCancelledError);
  assert_int_equal(reports.last, 0);
  assert_true(open_writer_with("w", &url));
  assert_int_equal(umem_alloc(&place, size), 0);
  reports = (Reports){.most = 1000};
  assert_int_equal(write_in_steps(bytes, size, &reports), umemOK);
  assert_in_range(reports.count, 9, 999); /* 0, each of 8 steps, and some again meanwhile */
  assert_int_equal(reports.last, size);
  assert_int_equal(end(), umemOK);
  assert_memory_equal(bucket->s3.object, bytes, size);
  free(bytes);
}

/* No sender is asked, and a buffer keeps its bytes. */
TEST(a_write_that_waits_for_a_buffer_is_cancelled) {
  Patience patience = {.until = 1};
  umemStatusType status = umemOK;
  size_t const size = 12 * part_size, piece = part_size / 2;
  size_t done = 0;
  SCOPED(free_bytes) unsigned char *bytes = begin_object(size);
  if (!bytes) return;
  make_silent("PUT ?partNumber");
  umem_set_wait_hook(ask, &patience);
  for (; done < size && status == umemOK; done += piece)
    status = write_bytes(done, bytes + done, piece);
  assert_int_equal(status, umemCancelledError);
  assert_int_equal(done, 7 * part_size + piece); /* of 3 in flight, and 4 more */
  double begin = seconds();
  assert_int_equal(end(), umemIOError); /* because of the failure */
  umem_set_wait_hook(NULL, NULL);
  assert_true(seconds() - begin < 10); /* not the time limit of a silent server */
  make_good();
  assert_null(bucket->s3.object);
  assert_int_equal(bucket->s3.aborted, 1);
}

/* The end of an upload waits for no server that was silent. */
TEST(a_flush_is_cancelled_and_may_be_tried_again) {
  Patience patience = {.until = 2};
  size_t const size = 2 * part_size + 7;
  SCOPED(free_bytes) unsigned char *bytes = begin_object(size);
  if (!bytes) return;
  make_silent("P");
  assert_int_equal(write_bytes(0, bytes, size), umemOK);
  umem_set_wait_hook(ask, &patience);
  assert_int_equal(umem_flush(&place), umemCancelledError);
  umem_set_wait_hook(NULL, NULL);
  umem_clear_status(&place);
  make_good();
  /* The last part is as short as it is: a further block would make it longer. */
  assert_int_equal(umem_alloc(&place, part_size), UINTPTR_MAX);
  assert_int_equal(umem_get_status(&place), umemNotSupportedError);
  umem_clear_status(&place);
  assert_int_equal(umem_flush(&place), umemOK);
  end_with_object(bytes, size);
}

TEST(an_earlier_failure_makes_no_object) {
  if (!open_writer("w")) return;
  assert_int_equal(umem_alloc(&place, 5), 0);
  assert_int_equal(umem_set(&place, 0, 'a', 5), umemOK);
  assert_int_equal(umem_set(&place, 3, 'a', 5), umemIndexError); /* its bytes are missing */
  assert_int_equal(end(), umemIOError);
  assert_non_null(strstr(umem_thread_message(), "because of an earlier failure"));
  assert_int_equal(bucket->s3.puts, 0);
}

/* A buffer that has had other bytes before. */
TEST(bytes_that_nothing_has_written_are_zero) {
  if (!open_writer("w")) return;
  assert_int_equal(umem_alloc(&place, 2 * part_size + 3), 0);
  assert_int_equal(umem_set(&place, 0, 'x', part_size), umemOK);
  while (!puts_so_far()) usleep(1000);
  usleep(100 * 1000); /* the sender has the answer */
  assert_int_equal(umem_set(&place, part_size + 7, 'y', 2), umemOK);
  assert_int_equal(umem_flush(&place), umemOK);
  assert_int_equal(end(), umemOK);
  assert_int_equal(bucket->s3.object_size, 2 * part_size + 3);
  for (size_t i = 0; i < bucket->s3.object_size; i++) {
    bool y = i == part_size + 7 || i == part_size + 8;
    if (bucket->s3.object[i] != (i < part_size ? 'x' : y ? 'y' : 0)) fail_msg("byte %zu", i);
  }
}

/* ---- where requests go ---- */

TEST(only_hosts_that_are_allowed) {
  umemOpenOptions allowed = UMEM_OPEN_OPTIONS_INIT;
  assert_null(umem_open_with("s3://bucket/key", &allowed));
  assert_int_equal(umem_thread_status(), umemValueError);
  allowed.hosts = "example.org";
  assert_null(umem_open_with("s3://bucket/key", &allowed));
  if (umem_thread_status() != umemNotSupportedError) /* as without libcurl, which reads the URL */
    assert_non_null(strstr(umem_thread_message(), "not allowed"));
  allowed.hosts = "127.0.0.1:*";
  char host[32];
  snprintf(host, sizeof host, "127.0.0.1:%u", url_server_port(bucket->server));
  allowed.hosts = host;
  void *opened = umem_open_with("s3://bucket/key#mode=w", &allowed);
  if (!opened) assert_int_equal(umem_thread_status(), umemNotSupportedError);
  assert_int_equal(umem_close(opened), umemOK);
}
