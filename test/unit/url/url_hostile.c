/* url_hostile.c - servers that cut, wait, lie, redirect and change the object. Nothing of what they
 * say is used unchecked, no mixture of two objects is ever read, and no credentials leave for
 * others. */
#include "url_help.h"

/* The first request, that of the constructor, and those for a new attempt count from 0. */
typedef struct Script {
  unsigned bad;   /* so many requests after the first one get the bad answer */
  size_t cut;     /* bytes of the body that are sent */
  size_t resumed; /* where the last range began */
  char location[256], head[8192];
  unsigned port;
} Script;

static Script script;

/* Headers of a right answer to the range of the request; format: more of them. */
#define RANGE_HEAD "HTTP/1.1 206 Partial Content\r\n"
#define RANGE_OF(request) (request)->first, (request)->last, (size_t)object_size

#define TAG "ETag: \"first\"\r\n"

static size_t length_of(UrlRequest const *request) { return request->last + 1 - request->first; }

/* That an answer has these bytes of an object of size bytes, and how many follow. */
static bool range_head(UrlRequest *request, size_t first, size_t last, size_t size, size_t length,
                       char const *more) {
  return url_head(request,
                  RANGE_HEAD "Content-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n%s", first,
                  last, size, length, more);
}

/* A right head. */
static bool good_head(UrlRequest *request) {
  return range_head(request, RANGE_OF(request), length_of(request), TAG);
}

static bool answer_range(UrlRequest *request, size_t first, size_t last, size_t size, size_t length,
                         char const *more) {
  return range_head(request, first, last, size, length, more) && url_send(request, object, length);
}

/* The range of the request, with these headers. */
static bool answer_with(UrlRequest *request, char const *more) {
  return answer_range(request, RANGE_OF(request), length_of(request), more);
}

static bool is_bad(UrlRequest const *request) {
  return request->number >= 1 && request->number <= script.bad;
}

/* ---- answers ---- */

/* Each sends one bad answer. */
typedef bool Bad(UrlRequest *request);

static bool answer(void *user, UrlRequest *request) {
  Bad *const *bad = user;
  __atomic_store_n(&script.resumed, request->first, __ATOMIC_RELAXED);
  return is_bad(request) ? (*bad)(request) : url_serve(NULL, request);
}

static bool whole_object(UrlRequest *request) {
  return url_head(request, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" TAG, object_size) &&
         url_send(request, object, object_size);
}

static bool other_begin(UrlRequest *request) {
  return answer_range(request, request->first + 1, request->last, object_size,
                      length_of(request) - 1, TAG);
}

static bool other_end(UrlRequest *request) {
  return answer_range(request, request->first, request->last - 1, object_size,
                      length_of(request) - 1, TAG);
}

/* With these headers in place of a right range. */
static bool answer_ranges(UrlRequest *request, char const *ranges) {
  return url_head(request, RANGE_HEAD "%sContent-Length: %zu\r\n" TAG, ranges,
                  length_of(request)) &&
         url_send(request, object, length_of(request));
}

static bool no_range(UrlRequest *request) { return answer_ranges(request, ""); }

static bool two_ranges(UrlRequest *request) {
  return answer_ranges(request, "Content-Range: bytes 5000-5999/3000000\r\n"
                                "Content-Range: bytes 0-0/1\r\n");
}

static bool huge_range(UrlRequest *request) {
  return answer_ranges(request,
                       "Content-Range: bytes 5000-99999999999999999999/99999999999999999999\r\n");
}

/* The end of the connection looks like that of the body. */
static void endless_head(UrlRequest *request) {
  url_head(request, RANGE_HEAD "Content-Range: bytes %zu-%zu/%zu\r\n" TAG, RANGE_OF(request));
}

static bool more_bytes(UrlRequest *request) {
  endless_head(request);
  url_send(request, object + request->first, length_of(request) + 1);
  return false;
}

/* In two parts, neither of which is longer than the range. */
static bool more_bytes_later(UrlRequest *request) {
  size_t const first = length_of(request) - 10;
  endless_head(request);
  url_send(request, object + request->first, first);
  usleep(50 * 1000);
  url_send(request, object + request->first + first, 20);
  return false;
}

static bool false_length(UrlRequest *request) {
  return answer_range(request, RANGE_OF(request), length_of(request) - 1, TAG);
}

static bool other_total(UrlRequest *request) {
  return answer_range(request, request->first, request->last, object_size + 1, length_of(request),
                      TAG);
}

static bool other_etag(UrlRequest *request) { return answer_with(request, "ETag: \"second\"\r\n"); }

static bool weak_etag(UrlRequest *request) { return answer_with(request, "ETag: W/\"first\"\r\n"); }

static bool no_etag(UrlRequest *request) { return answer_with(request, ""); }

static bool compressed(UrlRequest *request) {
  return answer_with(request, TAG "Content-Encoding: gzip\r\n");
}

static bool with_status(UrlRequest *request, char const *status) {
  return url_head(request, "HTTP/1.1 %s\r\nContent-Length: 4\r\n", status) &&
         url_send(request, "oops", 4);
}

static bool changed(UrlRequest *request) { return with_status(request, "412 Changed"); }
static bool shorter(UrlRequest *request) { return with_status(request, "416 Out of range"); }
static bool not_found(UrlRequest *request) { return with_status(request, "404 Not found"); }
static bool forbidden(UrlRequest *request) { return with_status(request, "403 Forbidden"); }
static bool unavailable(UrlRequest *request) { return with_status(request, "503 Busy"); }

static bool no_http(UrlRequest *request) {
  url_send(request, "hello, world\r\n\r\n", 16);
  return false;
}

static bool cut_at_once(UrlRequest *request UNUSED) { return false; }

static bool cut_in_the_head(UrlRequest *request) {
  url_send(request, RANGE_HEAD "Content-Ra", sizeof RANGE_HEAD + 9);
  return false;
}

static bool cut_in_the_body(UrlRequest *request) {
  good_head(request);
  url_send(request, object + request->first, script.cut);
  return false;
}

static bool short_body(UrlRequest *request) {
  endless_head(request);
  url_send(request, object + request->first, script.cut);
  return false;
}

static bool stall(UrlRequest *request) {
  char byte;
  good_head(request);
  url_send(request, object + request->first, script.cut);
  ssize_t ignored = read(request->fd, &byte, 1); /* until the client gives up */
  (void)ignored;
  return false;
}

/* ---- unusual answers, which are right ---- */

static bool send_text(UrlRequest *request, char const *text) {
  return url_send(request, text, strlen(text));
}

static bool chunked(UrlRequest *request) {
  char size[32];
  snprintf(size, sizeof size, "%zx\r\n", length_of(request));
  return url_head(request,
                  RANGE_HEAD "Transfer-Encoding: chunked\r\n" TAG
                             "Content-Range: bytes %zu-%zu/%zu\r\n",
                  RANGE_OF(request)) &&
         send_text(request, size) &&
         url_send(request, object + request->first, length_of(request)) &&
         send_text(request, "\r\n0\r\n\r\n");
}

static bool early_hints(UrlRequest *request) {
  return send_text(request, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") &&
         url_serve(NULL, request);
}

static bool cut_after_hints(UrlRequest *request) {
  return send_text(request, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") && false;
}

static bool old_http(UrlRequest *request) {
  url_head(request, "HTTP/1.0 206 OK\r\nContent-Range: bytes %zu-%zu/%zu\r\n" TAG,
           RANGE_OF(request));
  url_send(request, object + request->first, length_of(request));
  return false;
}

static bool then_closes(UrlRequest *request) { return url_serve(NULL, request) && false; }

static bool then_says_more(UrlRequest *request) {
  return url_serve(NULL, request) && send_text(request, RANGE_HEAD "\r\n");
}

static bool elsewhere(UrlRequest *request) {
  return url_head(request, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /moved\r\n");
}

static bool long_head(UrlRequest *request) {
  char text[1000] = "X-Long: ";
  memset(text + 8, 'x', sizeof text - 11);
  strcpy(text + sizeof text - 3, "\r\n");
  bool good = send_text(request, RANGE_HEAD);
  for (int i = 0; good && i < 20; i++) good = send_text(request, text);
  return good &&
         url_head(request, "Content-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n" TAG,
                  RANGE_OF(request), length_of(request)) &&
         url_send(request, object + request->first, length_of(request));
}

/* ---- what never helps ---- */

typedef struct Row {
  char const *name;
  Bad *answer;
  char const *words;
  unsigned requests; /* of the copy; libcurl itself adds one if an open connection is cut */
} Row;

/* Bytes of a copy by libcurl alone, and of one that opens a connection of its own, over which what
 * is odd is asked for once more. */
enum { narrow = 1000, wide = 2 << 20 };

/* The copy is one request. */
static void serve_rows(Row const *row) {
  options.connections = 1;
  serve(answer, (void *)(uintptr_t)&row->answer);
}

static Row const finals[] = {
    {"the whole object", whole_object, "the whole object instead of a range", 1},
    {"another begin", other_begin, "another range than that asked for", 1},
    {"another end", other_end, "another range than that asked for", 1},
    {"no range", no_range, "another range than that asked for", 1},
    {"two ranges", two_ranges, "contradict themselves", 1},
    {"a range beyond 64 bits", huge_range, "contradict themselves", 1},
    {"more bytes", more_bytes, "more bytes than asked for", 1},
    {"more bytes, later", more_bytes_later, "more bytes than asked for", 1},
    {"a false length", false_length, "contradict themselves", 1},
    {"another total", other_total, "has changed: it has another length", 1},
    {"another ETag", other_etag, "has changed: it has another ETag", 1},
    {"a weak ETag", weak_etag, "has changed: it has another ETag", 1},
    {"no ETag", no_etag, "has changed: it has another ETag", 1},
    {"compressed bytes", compressed, "compressed the bytes", 1},
    {"status 412", changed, "the object has changed", 1},
    {"status 416", shorter, "it is shorter", 1},
    {"status 404", not_found, "HTTP status 404, not found", 1},
    {"status 403", forbidden, "HTTP status 403, forbidden", 1},
    {"no HTTP", no_http, NULL, 1},
    {"status 503 for ever", unavailable, "HTTP status 503, the server is not available (after 3",
     3},
    {"a cut for ever", cut_at_once, "(after 3 attempts)", 3},
    {"a cut in the head for ever", cut_in_the_head, "(after 3 attempts)", 3},
    {"a cut after early hints for ever", cut_after_hints, "(after 3 attempts)", 3},
    {"a cut in the body for ever", cut_in_the_body, "(after 3 attempts)", 3},
    {"a short body for ever", short_body, "the answer is too short (after 3 attempts)", 3},
    {"a stall for ever", stall, "no byte in 100 ms (stall_ms) (after 3 attempts)", 3},
};

static void fail_in(Row const *row, size_t size) {
  char words[64];
  bool none = row->answer == no_http;
  snprintf(words, sizeof words, "cannot read %zu bytes at 5000 of", size);
  begin(NULL);
  script = (Script){.bad = 100, .cut = 10};
  if (row->answer == stall) options.stall_ms = 100;
  serve_rows(row);
  memset(got, 0xAB, sizeof got);
  assert_failed(read_bytes(5000, size), umemIOError, none ? words : row->words);
  unsigned requests = url_server_requests(server) - 1;
  assert_in_range(requests, row->requests, row->requests + (row->requests > 1 || size == wide));
  assert_int_equal(got[4999], 0xAB);
  assert_int_equal(got[5000 + size], 0xAB);
  script.bad = 0; /* the context goes on */
  assert_read(0, object_size);
  end(NULL);
}

static void fails(void **state) { fail_in(*state, narrow); }
static void fails_wide(void **state) { fail_in(*state, wide); }

/* ---- what passes ---- */

static Row const passing[] = {
    {"a cut", cut_at_once, NULL, 2},
    {"a cut in the head", cut_in_the_head, NULL, 2},
    {"a cut after early hints", cut_after_hints, NULL, 2},
    {"a cut in the body", cut_in_the_body, NULL, 2},
    {"a short body", short_body, NULL, 2},
    {"a stall", stall, NULL, 2},
    {"status 503", unavailable, NULL, 2},
};

static void pass_in(Row const *row, size_t size) {
  unsigned odd = size == wide && row->answer == short_body; /* for want of a length */
  begin(NULL);
  script = (Script){.bad = 1 + odd, .cut = 400};
  if (row->answer == stall) options.stall_ms = 500;
  serve_rows(row);
  assert_read(5000, size);
  assert_int_equal(url_server_requests(server), 1 + row->requests + odd);
  bool resumes =
      row->answer == cut_in_the_body || row->answer == short_body || row->answer == stall;
  assert_int_equal(__atomic_load_n(&script.resumed, __ATOMIC_RELAXED), resumes ? 5400 : 5000);
  umemUrlStats stats = UMEM_URL_STATS_INIT;
  assert_ok(umemUrl_stats(&url, &stats));
  if (row->answer == cut_at_once) /* libcurl itself may try again */
    assert_in_range(stats.retries, 0, 1);
  else
    assert_int_equal(stats.retries, 1);
  assert_int_equal(stats.nbytes, size);
  end(NULL);
}

static void passes(void **state) { pass_in(*state, narrow); }
static void passes_wide(void **state) { pass_in(*state, wide); }

typedef struct Unusual {
  char const *name;
  Bad *answer;
  unsigned bad, more; /* answers of this kind, and requests that libcurl sends once more */
} Unusual;

static Unusual const unusual[] = {
    {"chunks", chunked, 2, 1},
    {"early hints", early_hints, 100, 0},
    {"HTTP 1.0", old_http, 1, 1},
    {"a connection that ends", then_closes, 100, 0},
    {"words after the answer", then_says_more, 100, 0},
    {"a redirect", elsewhere, 2, 2},
    {"long headers", long_head, 1, 1},
};

static void read_and_wait(size_t from, size_t nbytes) {
  assert_read(from, nbytes);
  nanosleep(&(struct timespec){0, 50 * 1000 * 1000}, NULL);
}

static void goes_well(void **state) {
  Unusual const *row = *state;
  begin(NULL);
  script = (Script){.bad = row->bad};
  options.connections = 1;
  serve(answer, (void *)(uintptr_t)&row->answer);
  for (int i = 0; i < 3; i++) {
    memset(got, 0, sizeof got);
    read_and_wait(5000, wide);
    read_and_wait(100, narrow);
  }
  umemUrlStats stats = UMEM_URL_STATS_INIT;
  assert_ok(umemUrl_stats(&url, &stats));
  assert_int_equal(stats.retries, 0);
  assert_int_equal(stats.requests, 1 + 6 + row->more);
  end(NULL);
}

/* After four such answers, nothing is asked for twice any more. */
TEST(a_server_of_long_headers_is_read_by_libcurl_alone) {
  static Bad *const bad = long_head;
  script = (Script){.bad = 100};
  options.connections = 1;
  serve(answer, (void *)(uintptr_t)&bad);
  for (int i = 0; i < 6; i++) assert_read(5000, wide);
  umemUrlStats stats = UMEM_URL_STATS_INIT;
  assert_ok(umemUrl_stats(&url, &stats));
  assert_int_equal(stats.retries, 0);
  assert_int_equal(stats.requests, 1 + 6 + 4);
}

/* Half of all requests are cut. */
static bool cut_often(void *user UNUSED, UrlRequest *request) {
  if (request->number % 2 == 0) return url_serve(NULL, request);
  good_head(request);
  url_send(request, object + request->first, length_of(request) / 3);
  return false;
}

TEST(a_bad_line_costs_time_only) {
  options.piece = 64 << 10;
  options.retries = 20;
  serve(cut_often, NULL);
  assert_read(0, object_size);
}

static bool wait_wanted(UrlRequest *request) {
  return url_head(request, "HTTP/1.1 429 Slowly\r\nRetry-After: 1\r\nContent-Length: 0\r\n");
}

TEST(the_server_says_when_to_come_back) {
  static Bad *const bad = wait_wanted;
  struct timespec before, after;
  script = (Script){.bad = 1};
  serve(answer, (void *)(uintptr_t)&bad);
  clock_gettime(CLOCK_MONOTONIC, &before);
  assert_read(0, 1000);
  clock_gettime(CLOCK_MONOTONIC, &after);
  assert_in_range((after.tv_sec - before.tv_sec) * 1000 +
                      (after.tv_nsec - before.tv_nsec) / 1000000,
                  990, 20000);
}

TEST(a_copy_may_take_so_long) {
  static Bad *const bad = stall;
  script = (Script){.bad = 100};
  options.total_ms = 150;
  serve(answer, (void *)(uintptr_t)&bad);
  assert_failed(read_bytes(0, 1000), umemIOError, "takes longer than 150 ms (total_ms)");
}

/* ---- the object changes ---- */

TEST(two_objects_never_mix) {
  static unsigned char other[object_size];
  options.piece = 64 << 10;
  options.connections = 1;
  serve(NULL, NULL);
  assert_read(0, 100000);
  memset(other, 0xEE, sizeof other);
  url_server_replace(server, other, sizeof other, "\"second\"");
  assert_failed(read_bytes(0, object_size), umemIOError, "the object has changed");
}

/* Some servers give a date only, or a weak ETag. */
static char const *modified = "Sat, 28 Nov 2026 12:00:00 GMT", *etag_line = "";

static bool serve_dated(void *user UNUSED, UrlRequest *request) {
  strcpy(script.head, request->head);
  return url_head(
             request,
             RANGE_HEAD
             "Content-Range: bytes %zu-%zu/%zu\r\nContent-Length: %zu\r\n%sLast-Modified: %s\r\n",
             RANGE_OF(request), length_of(request), etag_line, modified) &&
         url_send(request, object + request->first, length_of(request));
}

TEST(a_date_pins_the_object) {
  etag_line = "";
  modified = "Sat, 28 Nov 2026 12:00:00 GMT";
  serve(serve_dated, NULL);
  assert_read(0, 1000);
  assert_non_null(
      strstr(script.head, "\r\nIf-Unmodified-Since: Sat, 28 Nov 2026 12:00:00 GMT\r\n"));
  modified = "Sat, 28 Nov 2026 12:00:01 GMT";
  assert_failed(read_bytes(0, 1000), umemIOError, "it has another date");
}

TEST(a_weak_etag_pins_the_object) {
  etag_line = "ETag: W/\"one\"\r\n";
  serve(serve_dated, NULL);
  assert_read(0, 1000);
  assert_null(strstr(script.head, "If-Match"));
  etag_line = "ETag: W/\"two\"\r\n";
  assert_failed(read_bytes(0, 1000), umemIOError, "it has another ETag");
}

/* ---- what a constructor refuses ---- */

typedef struct Opening {
  char const *name, *head;
  umemStatusType status;
  char const *words;
} Opening;

static Opening const openings[] = {
    {"no ranges", "200 OK\r\nContent-Length: 1\r\nETag: \"a\"", umemNotSupportedError,
     "the whole object instead of a range"},
    {"nothing to pin", "206 P\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1",
     umemNotSupportedError, "neither an ETag nor a date"},
    {"no length", "206 P\r\nContent-Range: bytes 0-0/*\r\nContent-Length: 1\r\nETag: \"a\"",
     umemNotSupportedError, "does not say how long it is"},
    {"no range", "206 P\r\nContent-Length: 1\r\nETag: \"a\"", umemIOError, "another range"},
    {"another range", "206 P\r\nContent-Range: bytes 1-1/9\r\nContent-Length: 1\r\nETag: \"a\"",
     umemIOError, "another range"},
    {"a long range", "206 P\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 1\r\nETag: \"a\"",
     umemIOError, "another range"},
    {"a range past the end",
     "206 P\r\nContent-Range: bytes 0-0/0\r\nContent-Length: 1\r\nETag: \"a\"", umemIOError,
     "contradict themselves"},
    {"a total beyond 63 bits",
     "206 P\r\nContent-Range: bytes 0-0/9223372036854775808\r\nContent-Length: 1\r\nETag: \"a\"",
     umemIOError, "contradict themselves"},
    {"two ETags",
     "206 P\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\nETag: \"a\"\r\nETag: \"b\"",
     umemIOError, "contradict themselves"},
    {"compressed",
     "206 P\r\nContent-Range: bytes 0-0/9\r\nContent-Length: 1\r\nContent-Encoding: br",
     umemNotSupportedError, "compressed"},
    {"not found", "404 No\r\nContent-Length: 1", umemIOError, "HTTP status 404, not found"},
    {"a password is wanted", "401 No\r\nContent-Length: 1", umemIOError,
     "HTTP status 401, user, password or token are missing or wrong"},
    {"an odd status", "299 Odd\r\nContent-Length: 1", umemIOError, "HTTP status 299"},
};

static bool send_head(void *user, UrlRequest *request) {
  Opening const *row = user;
  return url_head(request, "HTTP/1.1 %s\r\n", row->head) && url_send(request, "x", 1);
}

static void refuses(void **state) {
  Opening const *row = *state;
  begin(NULL);
  start(send_head, (void *)(uintptr_t)row);
  assert_failed(open_url(), row->status, row->words);
  end(NULL);
}

TEST(an_unpinned_object_is_read_on_demand) {
  static Bad *const bad = no_etag;
  script = (Script){.bad = 100};
  etag_line = "";
  options.unpinned = 1;
  start(answer, (void *)(uintptr_t)&bad);
  server = (url_server_stop(server), url_server_start(object, object_size, serve_dated, NULL));
  assert_ok(open_url());
  assert_read(0, 1000);
}

/* ---- redirects ---- */

static char const credentials[] = "Authorization: Basic bWU6c2VjcmV0";
static char const *const more_headers[] = {"X-Key: secret"};

static bool redirect(void *user UNUSED, UrlRequest *request) {
  bool moved = strcmp(request->path, "/object") != 0;
  if (moved) return url_serve(NULL, request);
  return url_head(request, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %s\r\n",
                  script.location);
}

static bool note_head(void *user UNUSED, UrlRequest *request) {
  strcpy(script.head, request->head);
  return url_serve(NULL, request);
}

static void with_credentials(void) {
  options.user = "me";
  options.password = "secret";
  options.headers = more_headers;
  options.header_count = 1;
}

TEST(redirects_are_followed_and_remembered) {
  script = (Script){.location = "/moved?signed=secret"};
  serve(redirect, NULL);
  assert_read(0, object_size);
  assert_int_equal(url_server_requests(server), 2 + 3);
}

TEST(credentials_stay_with_their_server) {
  UrlServer *other = url_server_start(object, object_size, note_head, NULL);
  script = (Script){.port = 0};
  snprintf(script.location, sizeof script.location, "%s", url_server_url(other));
  with_credentials();
  serve(redirect, NULL);
  assert_null(strstr(script.head, "Authorization"));
  assert_null(strstr(script.head, "X-Key"));
  assert_read(0, 1000);
  assert_null(strstr(script.head, "Authorization"));
  assert_null(strstr(script.head, "secret"));
  umem_dtor(&url);
  url_server_stop(other);
}

TEST(credentials_go_to_their_server) {
  with_credentials();
  options.connections = 1;
  serve(note_head, NULL);
  assert_non_null(strstr(script.head, credentials));
  assert_non_null(strstr(script.head, "X-Key: secret"));
  assert_read(0, object_size); /* over connections of its own */
  assert_non_null(strstr(script.head, credentials));
  assert_non_null(strstr(script.head, "X-Key: secret"));
  assert_non_null(strstr(script.head, "If-Match: \"first\"\r\n"));
  options.bearer = "token";
  umem_dtor(&url);
  assert_ok(open_url());
  assert_non_null(strstr(script.head, "Authorization: Bearer token\r\n"));
}

TEST(redirects_are_refused_as_wanted) {
  UrlServer *other = url_server_start(object, object_size, NULL, NULL);
  char here[64];
  start(redirect, NULL);
  options.redirects = umemUrlRedirectsSame;
  snprintf(script.location, sizeof script.location, "%s", url_server_url(other));
  assert_failed(open_url(), umemIOError, "redirects to another host, which the option");
  options.redirects = umemUrlRedirectsNone;
  assert_failed(open_url(), umemIOError, "redirects elsewhere, which the option");
  options.redirects = umemUrlRedirectsAuto;
  snprintf(here, sizeof here, "127.0.0.1:%u", url_server_port(server));
  options.hosts = here;
  assert_failed(open_url(), umemIOError, "to a host that is not allowed");
  assert_int_equal(url_server_requests(other), 0);
  options.hosts = NULL;
  static char const *const odd[] = {"file:///etc/passwd", "ftp://127.0.0.1/x", "http://[",
                                    "gopher:x"};
  for (int i = 0; i < 4; i++) {
    strcpy(script.location, odd[i]);
    umemStatusType status = open_url();
    assert_failed(status, umemIOError, "the server redirects to no URL of http or https");
  }
  strcpy(script.location, "/object");
  assert_failed(open_url(), umemIOError, "redirects in circles");
  assert_in_range(url_server_requests(server), 1, 30);
  url_server_stop(other);
}

/* A signed URL ends: the server is asked for a new one. */
static bool redirect_for_a_time(void *user, UrlRequest *request) {
  unsigned *signs = user;
  char path[32];
  snprintf(path, sizeof path, "/moved-%u", *signs);
  if (!strcmp(request->path, "/object"))
    return url_head(request, "HTTP/1.1 307 There\r\nContent-Length: 0\r\nLocation: %s\r\n", path);
  return strcmp(request->path, path) ? forbidden(request) : url_serve(NULL, request);
}

TEST(a_redirect_that_has_ended_is_renewed) {
  unsigned signs = 1;
  serve(redirect_for_a_time, &signs);
  assert_read(0, 1000);
  signs = 2;
  assert_read(0, 1000);
  assert_read(0, object_size);
}

/* ---- secrets ---- */

static char const *const secrets[] = {"secret", "hidden"};

static void expect_no_secret(char const *text) {
  for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
    if (strstr(text, secrets[i])) fail_msg("\"%s\" has \"%s\"", text, secrets[i]);
}

static void expect_silence(void *ctx, umemStatusType type, char const *message, void *user) {
  (void)ctx, (void)type;
  unsigned *count = user;
  ++*count;
  expect_no_secret(message);
}

/* Each kind of failure, with credentials in the URL and in the options. */
TEST(no_message_has_credentials) {
  unsigned count = 0;
  char text[256];
  with_credentials();
  options.bearer = "hidden";
  options.retries = 0;
  options.stall_ms = 100;
  umem_set_failure_hook(expect_silence, &count);
  for (size_t i = 0; i < sizeof finals / sizeof *finals; i++) {
    script = (Script){.bad = 100, .cut = 10};
    start(answer, (void *)(uintptr_t)&finals[i].answer);
    snprintf(text, sizeof text, "http://me:hidden@127.0.0.1:%u/object?sig=hidden#hidden",
             url_server_port(server));
    assert_ok(umemUrl_ctor(&url, text, &options));
    assert_int_equal(read_bytes(5000, 1000), umemIOError);
    umemInfo info = UMEM_INFO_INIT;
    umem_get_info(&url, &info);
    expect_no_secret(info.name);
    umem_describe_contexts(text, sizeof text);
    expect_no_secret(text);
    umem_dtor(&url);
    end_server();
  }
  assert_int_equal(umemUrl_ctor(&url, "http://me:hidden@127.0.0.1:1/?sig=hidden", &options),
                   umemIOError);
  assert_int_equal(umemUrl_ctor(&url, "http://me:hidden@127.0.0.1:x/?sig=hidden", &options),
                   umemValueError);
  assert_int_equal(umemUrl_ctor(&url, "hppt://me:hidden@127.0.0.1/?sig=hidden", &options),
                   umemValueError);
  assert_null(umem_open("http://me:hidden@127.0.0.1:1/?sig=hidden#retries=0"));
  assert_null(umem_open("http://me:hidden@127.0.0.1:1/?sig=hidden#retries=x"));
  assert_null(
      umem_open("http://me:hidden@127.0.0.1:1/?sig=hidden#password=hidden&password=hidden"));
  umem_set_failure_hook(NULL, NULL);
  assert_in_range(count, sizeof finals / sizeof *finals + 6, 100);
}

/* The server, which knows it, leads to a host of this name. */
TEST(no_message_repeats_a_header) {
  static char const *const headers[] = {"X-Key: Hidden"};
  options.headers = headers;
  options.header_count = 1;
  options.retries = 0;
  strcpy(script.location, "http://hidden.invalid/");
  start(redirect, NULL);
  assert_int_equal(open_url(), umemIOError);
  expect_no_secret(umem_thread_message());
  umem_thread_clear();
}

/* ---- all ---- */

int main(void) {
  if (!url_has_libcurl()) return 0;
  for (size_t i = 0; i < sizeof finals / sizeof *finals; i++)
    add_case(fails, &finals[i], "a copy fails: %s", finals[i].name),
        add_case(fails_wide, &finals[i], "a long copy fails: %s", finals[i].name);
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
    add_case(passes, &passing[i], "a copy goes on: %s", passing[i].name),
        add_case(passes_wide, &passing[i], "a long copy goes on: %s", passing[i].name);
  for (size_t i = 0; i < sizeof unusual / sizeof *unusual; i++)
    add_case(goes_well, &unusual[i], "a long copy reads: %s", unusual[i].name);
  for (size_t i = 0; i < sizeof openings / sizeof *openings; i++)
    add_case(refuses, &openings[i], "an object is not opened: %s", openings[i].name);
  return run_cases(NULL, NULL);
}
