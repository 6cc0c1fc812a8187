/* url_talk.c - what a web server answers to reads of an object and to the requests of an upload, as
 * libFuzzer makes it up: headers, bodies, ends and redirects, in any order. A table in place of
 * libcurl's functions hands it to umem. A copy that says that it has read has read the object; an
 * upload is begun, sent and joined by answers that say so. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "url/s3.h"

enum { object_size = 200000, most_easies = 8 };

static unsigned char const *input, *input_end;

static unsigned next(void) { return input < input_end ? *input++ : 0; }

static char byte_of(uint64_t offset) { return (char)(offset * 2654435761u >> 13); }

/* Each look at the clock takes a while, so that no retry waits. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  static uint64_t ms = 1000;
  (void)clock;
  ms += 20;
  *time = (struct timespec){(time_t)(ms / 1000), (long)(ms % 1000 * 1000000)};
  return 0;
}

/* ---- the server: a table of libcurl's functions ---- */

typedef size_t Take(char *data, size_t one, size_t count, void *user);

typedef struct Easy {
  void *private, *write_data, *header_data;
  Take *write, *header;
  char method[16], range[64];
  bool head, done;
  enum { inHead = 0, behindHead, inBody, inTrailer } phase; /* which libcurl keeps in this order */
  int code;
  uint64_t sent;
} Easy;

typedef struct Multi {
  Easy *easies[most_easies];
} Multi;

/* Of the last request: all that was in its body. */
static char seen[4096];
static size_t seen_size;

static void *easy_init(void) { return calloc(1, sizeof(Easy)); }
static void easy_cleanup(void *easy) { free(easy); }

static int set_pointer(Easy *easy, int option, void *value) {
  if (option == umemCurlOptPrivate) easy->private = value;
  if (option == umemCurlOptWriteData) easy->write_data = value;
  if (option == umemCurlOptHeaderData) easy->header_data = value;
  if (option == umemCurlOptWrite) memcpy(&easy->write, &value, sizeof value);
  if (option == umemCurlOptHeader) memcpy(&easy->header, &value, sizeof value);
  if (option == umemCurlOptMethod)
    snprintf(easy->method, sizeof easy->method, "%s", value ? (char *)value : "");
  if (option == umemCurlOptRange)
    snprintf(easy->range, sizeof easy->range, "%s", value ? (char *)value : "");
  return umemCurlOK;
}

static int easy_setopt(void *easy, int option, ...) {
  va_list arguments;
  va_start(arguments, option);
  if (option >= 10000 && option < 30000) set_pointer(easy, option, va_arg(arguments, void *));
  if (option == umemCurlOptHttpGet) ((Easy *)easy)->head = false;
  if (option == umemCurlOptNoBody) ((Easy *)easy)->head = true;
  va_end(arguments);
  return umemCurlOK;
}

static int easy_getinfo(void *easy, int info, ...) {
  static char *const places[] = {
      "http://127.0.0.1:1/other", "https://h/x", "http://", NULL, "file:///etc/passwd", "x",
      "http://127.0.0.1:2/"};
  va_list arguments;
  va_start(arguments, info);
  void *to = va_arg(arguments, void *);
  if (info == umemCurlInfoPrivate) *(void **)to = ((Easy *)easy)->private;
  if (info == umemCurlInfoRedirect) *(char **)to = places[next() % 7];
  if (info == umemCurlInfoRetryAfter) *(int64_t *)to = (int64_t)next() - 100;
  va_end(arguments);
  return umemCurlOK;
}

static void *multi_init(void) { return calloc(1, sizeof(Multi)); }
static int multi_cleanup(void *multi) { return free(multi), 0; }
static int multi_setopt(void *multi, int option, ...) { return (void)multi, (void)option, 0; }

static int replace(Multi *multi, Easy const *old, Easy *easy) {
  unsigned i = 0;
  while (i < most_easies && multi->easies[i] != old) i++;
  expect(i < most_easies);
  multi->easies[i] = easy;
  return 0;
}

static int multi_add(void *multi, void *easy) {
  Easy *self = easy;
  self->done = false;
  self->sent = 0;
  self->phase = inHead;
  seen_size = 0;
  return replace(multi, NULL, self);
}

static int multi_remove(void *multi, void *easy) { return replace(multi, easy, NULL); }

static void end(Easy *easy, int code) {
  easy->done = true;
  easy->code = code;
}

/* In memory of its own, so that the sanitizer sees each byte behind it. */
static void hand(Easy *easy, Take *take, void *user, char const *bytes, size_t size) {
  char *copy = malloc(size + !size);
  expect(copy != NULL);
  memcpy(copy, bytes, size);
  if (!easy->done && take(copy, 1, size, user) != size) end(easy, umemCurlWriteError);
  free(copy);
}

static void send_line(Easy *easy, char const *text) {
  char line[300];
  int size = snprintf(line, sizeof line, "%s\r\n", text);
  if (easy->phase >= inBody)
    easy->phase = inTrailer;
  else
    easy->phase = *text ? inHead : behindHead; /* maybe of 100 Continue */
  hand(easy, easy->header, easy->header_data, line, (size_t)size);
}

static void send_body(Easy *easy, char const *bytes, size_t size) {
  size_t kept = size < sizeof seen - 1 - seen_size ? size : sizeof seen - 1 - seen_size;
  if (easy->head || !size || easy->phase == inHead || easy->phase == inTrailer) return;
  easy->phase = inBody;
  memcpy(seen + seen_size, bytes, kept);
  seen[seen_size += kept] = 0;
  hand(easy, easy->write, easy->write_data, bytes, size);
  easy->sent += size;
}

static bool range_of(Easy const *easy, uint64_t *first, uint64_t *last) {
  return sscanf(easy->range, "%ju-%ju", (uintmax_t *)first, (uintmax_t *)last) == 2;
}

/* Bytes of the range that are not sent. */
static uint64_t left_of(Easy const *easy) {
  uint64_t first, last;
  bool ranged = range_of(easy, &first, &last);
  return ranged && last - first + 1 > easy->sent ? last - first + 1 - easy->sent : 0;
}

static void send_right_head(Easy *easy) {
  char line[200];
  uint64_t first, last;
  bool ranged = range_of(easy, &first, &last);
  send_line(easy, ranged ? "HTTP/1.1 206 Partial" : "HTTP/1.1 200 OK");
  send_line(easy, "ETag: \"a\"");
  if (ranged) {
    snprintf(line, sizeof line, "Content-Range: bytes %ju-%ju/%d", (uintmax_t)first,
             (uintmax_t)last, object_size);
    send_line(easy, line);
  }
  send_line(easy, "");
}

static void send_right_body(Easy *easy, size_t size) {
  static char bytes[1 << 16];
  uint64_t first, last;
  if (!range_of(easy, &first, &last)) {
    static char const text[] = "<UploadId>id</UploadId><CompleteMultipartUploadResult>";
    send_body(easy, text, sizeof text - 1);
    return;
  }
  uint64_t left = left_of(easy);
  while (size && left && !easy->done && (easy->phase == behindHead || easy->phase == inBody)) {
    size_t part = size < sizeof bytes ? size : sizeof bytes;
    if (part > left) part = (size_t)left;
    for (size_t i = 0; i < part; i++) bytes[i] = byte_of(first + easy->sent + i);
    send_body(easy, bytes, part);
    size -= part, left -= part;
  }
}

/* One step of the server, as the input says. At its end, the server is gone. */
static void step(Easy *easy) {
  static int const codes[] = {7, 18, 23, 27, 28, 35, 48, 52, 56, 92};
  char text[256];
  size_t size;
  if (input == input_end) return end(easy, umemCurlNoConnection);
  unsigned what = next();
  switch (what % 8) {
  case 0:
    size = next();
    for (size_t i = 0; i < size; i++) text[i] = (char)next();
    text[size] = 0;
    return send_line(easy, text);
  case 1:
    return send_line(easy, "");
  case 2:
    return send_right_head(easy);
  case 3:
    return send_right_body(easy, 1 + (size_t)next() * 512 + next());
  case 4:
    size = next();
    for (size_t i = 0; i < size; i++) text[i] = (char)next();
    /* A server that lies about bytes of the object is not found out. */
    return left_of(easy) ? send_right_body(easy, size) : send_body(easy, text, size);
  case 5:
    return end(easy, umemCurlOK);
  case 6:
    return end(easy, codes[what / 8 % (sizeof codes / sizeof *codes)]);
  default:
    send_right_head(easy);
    send_right_body(easy, SIZE_MAX);
    if (!easy->done) end(easy, umemCurlOK);
  }
}

static int multi_perform(void *multi, int *running) {
  *running = 0;
  for (unsigned i = 0; i < most_easies; i++) {
    Easy *easy = ((Multi *)multi)->easies[i];
    if (easy && !easy->done) step(easy);
    *running += easy && !easy->done;
  }
  return 0;
}

static umemCurlMessage *multi_read(void *multi, int *left) {
  static umemCurlMessage message;
  *left = 0;
  for (unsigned i = 0; i < most_easies; i++) {
    Easy *easy = ((Multi *)multi)->easies[i];
    if (!easy || !easy->done) continue;
    message = (umemCurlMessage){umemCurlDone, easy, {.result = easy->code}};
    return &message;
  }
  return NULL;
}

static int multi_poll(void *multi, umemCurlWait *more, unsigned count, int timeout, int *ready) {
  return (void)multi, (void)more, (void)count, (void)timeout, (void)ready, 0;
}

/* libcurl takes URLs apart. */
static bool use_double(void) {
  static umemCurl table;
  if (umem_curl_double) return true;
  umemCurl const *real = umemCurl_get(NULL);
  if (!real) return false;
  table = *real;
  table.easy_init = easy_init, table.easy_cleanup = easy_cleanup;
  table.easy_setopt = easy_setopt, table.easy_getinfo = easy_getinfo;
  table.multi_init = multi_init, table.multi_cleanup = multi_cleanup;
  table.multi_setopt = multi_setopt, table.multi_add = multi_add;
  table.multi_remove = multi_remove, table.multi_perform = multi_perform;
  table.multi_read = multi_read, table.multi_poll = multi_poll;
  umem_curl_double = &table;
  return true;
}

/* ---- what umem does with it ---- */

static void set_options(umemUrlOptions *options) {
  unsigned what = next();
  *options = (umemUrlOptions)UMEM_URL_OPTIONS_INIT;
  options->retries = what & 3;
  options->connections = 1 + (what >> 2 & 3);
  options->piece = 64 << 10;
  options->stall_ms = what & 32 ? 1000 : 0;
  options->unpinned = what & 16;
}

static void read_object(void) {
  umemUrl url;
  umemHost host;
  umemUrlOptions options;
  set_options(&options);
  umemHost_ctor(&host);
  if (umemUrl_ctor(&url, "http://127.0.0.1:1/object", &options) == umemOK) {
    umemInfo info = UMEM_INFO_INIT;
    umem_get_info(&url, &info);
    size_t const from = (size_t)next() * 300, size = 1 + (size_t)next() * 400;
    char *to = malloc(size);
    expect(to != NULL);
    umemStatusType status = umem_copy_to(&url, from, &host, (uintptr_t)to, size);
    if (from + size > info.capacity) expect(status != umemOK);
    for (size_t i = 0; status == umemOK && i < size; i++) expect(to[i] == byte_of(from + i));
    free(to);
  }
  umem_dtor(&url);
  umem_dtor(&host);
}

static void expect_id(char const *id) {
  static char const good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%";
  expect(*id && strlen(id) <= 3 * umemS3IdMost && strspn(id, good) == strlen(id));
}

static void write_object(umemFetch *fetch, umemVirtual *ctx) {
  umemS3Requests requests = {.ctx = ctx, .fetch = fetch, .url = "http://127.0.0.1:1/bucket/key"};
  umemS3Part parts[2] = {{0}};
  if (!umemS3Requests_begin(&requests)) return;
  expect_id(requests.id);
  expect(strstr(seen, "<UploadId>") != NULL);
  for (unsigned i = 0; i < 2; i++)
    if (!umemS3Requests_put(&requests, i + 1, "abc", 3, parts[i].etag)) return;
  for (unsigned i = 0; i < 2; i++)
    expect(strlen(parts[i].etag) >= 2 && !strpbrk(parts[i].etag, "<>&\r\n"));
  if (umemS3Requests_join(&requests, parts, 2, 6))
    expect(strstr(seen, "<CompleteMultipartUploadResult") != NULL);
  else
    umemS3Requests_abort(&requests);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  umemHost host;
  umemUrlOptions options;
  if (!use_double()) return 0;
  input = data, input_end = data + size;
  umem_thread_clear();
  if (next() % 2) {
    read_object();
    return 0;
  }
  set_options(&options);
  umemHost_ctor(&host);
  umemFetch *fetch = umemFetch_create(&host.super, "http://127.0.0.1:1/bucket/key",
                                      "s3://bucket/key", &options, (umemFetchSigner){0});
  if (fetch) write_object(fetch, &host.super);
  umemFetch_destroy(fetch);
  umem_dtor(&host);
  return 0;
}
