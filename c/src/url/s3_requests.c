/* s3_requests.c - the requests that write an object: begin an upload, send a part, make the object
 * of its parts, and give it up; and what the server answers to them. */
#include "url/s3.h"
#include "base/number.h"
#include "core/status.h"
#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { url_size = 4096 + sizeof((umemS3Requests *)0)->id + 64 };

typedef struct Answer {
  char text[8 << 10]; /* its beginning */
  char code[64];      /* the word of S3 for an error; "": none */
} Answer;

/* ==== answers of the server ==== */

/* Copies the text of the first element `name` of a short XML document to out. False if there is
 * none, or it is too long, or has characters that must be escaped. */
static bool find_element(char const *document, char const *name, char *out, size_t size) {
  char tag[40];
  snprintf(tag, sizeof tag, "<%s>", name);
  char const *text = strstr(document, tag);
  if (!text) return false;
  text += strlen(tag);
  size_t length = strcspn(text, "<&");
  snprintf(tag, sizeof tag, "</%s>", name);
  if (!length || length >= size || strncmp(text + length, tag, strlen(tag))) return false;
  memcpy(out, text, length);
  out[length] = 0;
  return true;
}

/* The word for an error has letters alone. */
static bool find_code(char const *document, char code[64]) {
  static char const letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.0123456789";
  char const *error = strstr(document, "<Error");
  return error && find_element(error, "Code", code, 64) && strspn(code, letters) == strlen(code);
}

/* Whether the server says that the same request may succeed later. */
static bool may_pass(char const *code) {
  static char const *const words[] = {"InternalError", "SlowDown", "RequestTimeout",
                                      "ServiceUnavailable", "OperationAborted"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(code, words[i])) return true;
  return false;
}

/* Records what the server has refused. False. */
static bool refuse(umemS3Requests const *self, umemFetchCall const *call, Answer const *answer) {
  char const *code = answer->code;
  return UMEM_FAIL(self->ctx, umemIOError, "cannot %s %s: HTTP status %d%s%s%s", call->what,
                   umemFetch_label(self->fetch), call->reply.status, *code ? " (" : "", code,
                   *code ? ")" : "");
}

static bool refuse_for(umemS3Requests const *self, umemFetchCall const *call, char const *what) {
  return UMEM_FAIL(self->ctx, umemIOError, "cannot %s %s: the answer of the server has no %s",
                   call->what, umemFetch_label(self->fetch), what);
}

/* False, with a status, if the call is cancelled meanwhile. */
static bool wait_for(umemS3Requests const *self, umemFetchCall const *call, uint64_t ms) {
  uint64_t const moment = 100;
  for (uint64_t done = 0; done < ms; done += moment) {
    uint64_t rest = umem_lesser(moment, ms - done);
    struct timespec time = {0, (long)(rest * umem_ns_of_ms)};
    nanosleep(&time, NULL); /* a signal makes it shorter */
    if (!umem_goes_on())
      return UMEM_FAIL(self->ctx, umemCancelledError, "cannot %s %s: cancelled", call->what,
                       umemFetch_label(self->fetch));
  }
  return true;
}

/* Sends a request, again while the server says that it may succeed later. False, with a status,
 * without an answer. */
static bool request(umemS3Requests *self, umemFetchCall *call, Answer *answer) {
  enum { tries = 6, first_wait_ms = 200 };
  static char const *const headers[] = {"Content-Type: application/octet-stream"};
  if (!call->headers) call->headers = headers, call->header_count = 1;
  call->answer = answer->text;
  call->answer_size = sizeof answer->text;
  for (unsigned i = 0;; i++) {
    if (!umemFetch_call(self->fetch, call)) return false;
    *answer->code = 0;
    if (!find_code(answer->text, answer->code) || !may_pass(answer->code) || i + 1 == tries)
      return true;
    if (!wait_for(self, call, (uint64_t)first_wait_ms << i)) return false;
  }
}

/* request, whose answer must be of status 200 and no error. */
static bool request_good(umemS3Requests *self, umemFetchCall *call, Answer *answer) {
  return request(self, call, answer) &&
         ((call->reply.status == 200 && !*answer->code) || refuse(self, call, answer));
}

/* Writes the number of an upload as a part of a URL. False for what can be none. */
static bool take_id(umemS3Requests *self, char const *id) {
  char *out = self->id;
  for (char const *c = id; *c; c++) {
    if (*c <= ' ' || *c > '~') return false;
    if (strchr("-._~", *c) || (*c >= '0' && *c <= '9') || ((*c | 32) >= 'a' && (*c | 32) <= 'z'))
      *out++ = *c;
    else
      out += sprintf(out, "%%%02X", (unsigned)*c);
  }
  *out = 0;
  return *id;
}

static char const mark_header[] = "x-amz-meta-umem-upload";

/* Draws a number that no other upload has. False with a status. */
static bool draw_mark(umemS3Requests *self) {
  uint64_t number[2];
  if (getrandom(number, sizeof number, 0) != sizeof number)
    return UMEM_FAIL(self->ctx, umemRuntimeError, "the system has no random numbers");
  snprintf(self->mark, sizeof self->mark, "%016jx%016jx", (uintmax_t)number[0],
           (uintmax_t)number[1]);
  return true;
}

bool umemS3Requests_begin(umemS3Requests *self) {
  char url[url_size], id[umemS3IdMost + 1], mark[sizeof mark_header + sizeof self->mark + 2];
  Answer answer;
  if (!draw_mark(self)) return false;
  snprintf(url, sizeof url, "%s?uploads=", self->url);
  snprintf(mark, sizeof mark, "%s: %s", mark_header, self->mark);
  char const *const headers[] = {"Content-Type: application/octet-stream", mark};
  umemFetchCall call = {.what = "begin the upload of",
                        .method = "POST",
                        .url = url,
                        .headers = headers,
                        .header_count = sizeof headers / sizeof *headers,
                        .body = ""};
  if (!request_good(self, &call, &answer)) return false;
  return (find_element(answer.text, "UploadId", id, sizeof id) && take_id(self, id)) ||
         refuse_for(self, &call, "UploadId");
}

bool umemS3Requests_put(umemS3Requests *self, unsigned number, void const *bytes, uint64_t size,
                        char etag[umemS3EtagSize]) {
  char url[url_size], what[40] = "write";
  Answer answer;
  if (number) {
    snprintf(what, sizeof what, "send part %u of", number);
    snprintf(url, sizeof url, "%s?partNumber=%u&uploadId=%s", self->url, number, self->id);
  }
  umemFetchCall call = {.what = what,
                        .method = "PUT",
                        .url = number ? url : self->url,
                        .body = bytes,
                        .body_size = size};
  if (!request_good(self, &call, &answer)) return false;
  if (!umemFetchReply_is_strong(&call.reply) || strpbrk(call.reply.etag, "<>&"))
    return refuse_for(self, &call, "ETag"); /* each answer of S3 has one */
  strcpy(etag, call.reply.etag);
  return true;
}

/* The list of parts that makes the object; owned by the caller. NULL with a status. */
static char *list_parts(umemS3Requests const *self, umemS3Part const *parts, unsigned count,
                        size_t *length) {
  size_t const each = sizeof parts->etag + 80;
  char *list = malloc(count * each + 128);
  if (!list)
    return UMEM_FAIL_NULL(self->ctx, umemMemoryError, "no memory for the list of %u parts", count);
  char *out = list + sprintf(list, "<CompleteMultipartUpload>");
  for (unsigned i = 0; i < count; i++)
    out += sprintf(out, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1,
                   parts[i].etag);
  out += sprintf(out, "</CompleteMultipartUpload>");
  *length = (size_t)(out - list);
  return list;
}

/* Whether the object is that of this upload. */
static bool is_there(umemS3Requests *self, uint64_t length) {
  Answer answer;
  umemFetchCall call = {.what = "look at", .method = "HEAD", .wanted = mark_header};
  return request(self, &call, &answer) && call.reply.status == 200 && call.reply.has_length &&
         call.reply.length == length && !strcmp(call.found, self->mark);
}

/* S3 may answer 200 before it has joined the parts, and send an error as the body. A second
 * request, after one whose answer was lost, finds no upload if the first has succeeded. */
bool umemS3Requests_join(umemS3Requests *self, umemS3Part const *parts, unsigned count,
                         uint64_t length) {
  char url[url_size];
  Answer answer;
  size_t size;
  char *list = list_parts(self, parts, count, &size);
  if (!list) return false;
  snprintf(url, sizeof url, "%s?uploadId=%s", self->url, self->id);
  umemFetchCall call = {
      .what = "complete", .method = "POST", .url = url, .body = list, .body_size = size};
  bool answered = request(self, &call, &answer);
  free(list);
  if (!answered) return false;
  if (call.reply.status == 200 && !*answer.code &&
      strstr(answer.text, "<CompleteMultipartUploadResult"))
    return true;
  if (!strcmp(answer.code, "NoSuchUpload") && is_there(self, length)) return true;
  return refuse(self, &call, &answer);
}

typedef struct Grace {
  umemWaiter waiter, *outer;
  uint64_t until; /* as umemFetch_now() */
} Grace;

static void end_grace(Grace *self) { umem_thread.waiter = self->outer; }

static bool has_time(umemWaiter *waiter) {
  Grace const *self = (Grace *)waiter;
  return umemFetch_now() < self->until;
}

bool umemS3Requests_abort(umemS3Requests *self) {
  char url[url_size];
  Answer answer;
  snprintf(url, sizeof url, "%s?uploadId=%s", self->url, self->id);
  umemFetchCall call = {.what = "end the unfinished upload of", .method = "DELETE", .url = url};
  __attribute__((cleanup(end_grace)))
  Grace grace = {{has_time}, umem_thread.waiter, umemFetch_now() + umemS3GraceMs * umem_ns_of_ms};
  umem_thread.waiter = &grace.waiter;
  if (!request(self, &call, &answer)) return false;
  bool done = call.reply.status / 100 == 2 || !strcmp(answer.code, "NoSuchUpload");
  return done || refuse(self, &call, &answer);
}
