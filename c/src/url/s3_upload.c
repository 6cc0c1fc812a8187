/* s3_upload.c - sends the parts of an object as they become complete.
 *
 * The object is cut into parts of one size. A part that is written has a buffer: its bytes, and a
 * bit for each that says whether it was written. When all bytes of blocks in it are, it is queued,
 * and a sender takes it: a thread that lives as long as there is something to send. Then the buffer
 * is free for another part. Whoever needs a buffer waits for one that is on its way; if there is
 * none, it fails.
 *
 * A failure of a sender ends the upload: each later call records it. The lock is never held during
 * a request. */
#include "url/s3.h"
#include "base/number.h"
#include "base/range.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  spare_buffers = 4, /* besides those in flight */
  most_senders = UMEM_URL_CONNECTIONS,
  id_most = 1024, /* characters of the number of an upload */
  answer_size = 8 << 10,
  etag_size = sizeof((umemFetchReply *)0)->etag,
  url_size = 4096 + 3 * id_most + 64
};

enum { granule = 16 }; /* of the placement of blocks: that of files */
static uint64_t const last_offset = (uint64_t)INT64_MAX & ~(uint64_t)(granule - 1);
static uint64_t const usual_part = (uint64_t)8 << 20, part_unit = (uint64_t)1 << 20;

typedef enum BufferState { bufferFree = 0, bufferFills, bufferQueued, bufferSends } BufferState;

typedef struct Buffer {
  BufferState state;
  unsigned part;    /* from 0 */
  unsigned writers; /* threads that copy into it */
  char *bytes;      /* of part_size; owned; NULL: not allocated yet */
  uint64_t *marks;  /* behind them: a bit for each byte that was written */
  uint64_t covered; /* those */
} Buffer;

typedef struct Sender {
  umemS3Upload *upload;
  pthread_t thread;
  enum { senderNone = 0, senderRuns, senderEnded } state;
} Sender;

typedef struct Part {
  uint64_t needed;      /* bytes of blocks in it */
  char etag[etag_size]; /* of the server, when it is sent; else "" */
} Part;

struct umemS3Upload {
  umemVirtual *ctx;
  umemFetch *fetch;
  char const *url;
  unsigned forks, connections;
  uint64_t length, part_size; /* part_size 0: not chosen */
  umemLock lock;              /* of the rest */
  pthread_cond_t changed;
  umemRange *range; /* of the blocks; those that were freed are held. Owned */
  uint64_t end;     /* of the last block */
  Buffer *buffers;  /* owned */
  unsigned buffer_count;
  Part *parts; /* once the size of parts is chosen: all that have blocks; owned */
  unsigned part_room;
  char id[3 * id_most + 1]; /* of the multipart upload, as in a URL; "": none */
  bool begins;              /* a sender requests the id */
  bool complete, abandoned;
  umemAttempt failure; /* if has_failed */
  bool has_failed;
  Sender senders[most_senders];
  unsigned running;
};

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

/* The word of S3 for an error: letters alone. */
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

static bool refuse_answer(umemS3Upload *upload, umemFetchCall const *call, char const *code) {
  return UMEM_FAIL(upload->ctx, umemIOError, "cannot %s %s: HTTP status %d%s%s%s", call->what,
                   umemFetch_label(upload->fetch), call->reply.status, *code ? " (" : "", code,
                   *code ? ")" : "");
}

/* Sends a request, again while the server says that it may succeed later. Sets *code to the word of
 * its last error, or "". False, with a status, without an answer. */
static bool request(umemS3Upload *upload, umemFetchCall *call, char code[64]) {
  enum { tries = 6, first_wait_ms = 200 };
  static char const *const headers[] = {"Content-Type: application/octet-stream"};
  call->headers = headers;
  call->header_count = sizeof headers / sizeof *headers;
  for (unsigned i = 0;; i++) {
    if (!umemFetch_call(upload->fetch, call)) return false;
    *code = 0;
    if (!find_code(call->answer, code) || !may_pass(code) || i + 1 == tries) return true;
    uint64_t ms = (uint64_t)first_wait_ms << i;
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL); /* a signal makes it shorter */
  }
}

/* ==== requests ==== */

/* Writes the number of an upload as a part of a URL. False for what can be none. */
static bool take_id(umemS3Upload *upload, char const *id) {
  char *out = upload->id;
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

/* Requests the number of a multipart upload. */
static bool begin_upload(umemS3Upload *upload) {
  char url[url_size], answer[answer_size], id[id_most + 1], code[64];
  snprintf(url, sizeof url, "%s?uploads=", upload->url);
  umemFetchCall call = {.what = "begin the upload of",
                        .method = "POST",
                        .url = url,
                        .body = "",
                        .answer = answer,
                        .answer_size = sizeof answer};
  if (!request(upload, &call, code)) return false;
  if (call.reply.status != 200 || *code) return refuse_answer(upload, &call, code);
  return (find_element(answer, "UploadId", id, sizeof id) && take_id(upload, id)) ||
         UMEM_FAIL(upload->ctx, umemIOError,
                   "cannot begin the upload of %s: the answer of the server has no UploadId",
                   umemFetch_label(upload->fetch));
}

/* Returns when there is a number, which one thread requests. False if that has failed. */
static bool ensure_begun(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  while (upload->begins) umemLock_wait(&upload->lock, &upload->changed);
  bool has = *upload->id;
  upload->begins = !has;
  umemLock_release(&upload->lock);
  if (has) return true;
  has = begin_upload(upload);
  umemLock_acquire(&upload->lock);
  upload->begins = false;
  pthread_cond_broadcast(&upload->changed);
  umemLock_release(&upload->lock);
  return has;
}

/* Whether an answer to PUT has an ETag, as each of S3 does; copies it. */
static bool take_etag(umemS3Upload *upload, umemFetchCall const *call, char etag[etag_size]) {
  if (!umemFetchReply_is_strong(&call->reply) || strpbrk(call->reply.etag, "<>&"))
    return UMEM_FAIL(upload->ctx, umemIOError, "cannot %s %s: the answer of the server has no ETag",
                     call->what, umemFetch_label(upload->fetch));
  strcpy(etag, call->reply.etag);
  return true;
}

/* Sends bytes to url, and takes the ETag of the answer. */
static bool put(umemS3Upload *upload, char const *what, char const *url, void const *bytes,
                uint64_t size, char etag[etag_size]) {
  char answer[answer_size], code[64];
  umemFetchCall call = {.what = what,
                        .method = "PUT",
                        .url = url,
                        .body = bytes,
                        .body_size = size,
                        .answer = answer,
                        .answer_size = sizeof answer};
  if (!request(upload, &call, code)) return false;
  if (call.reply.status != 200 || *code) return refuse_answer(upload, &call, code);
  return take_etag(upload, &call, etag);
}

static bool put_part(umemS3Upload *upload, unsigned part, void const *bytes, uint64_t size,
                     char etag[etag_size]) {
  char url[url_size], what[40];
  if (!ensure_begun(upload)) return false;
  snprintf(what, sizeof what, "send part %u of", part + 1);
  snprintf(url, sizeof url, "%s?partNumber=%u&uploadId=%s", upload->url, part + 1, upload->id);
  return put(upload, what, url, bytes, size, etag);
}

/* ---- the end of a multipart upload ---- */

static unsigned count_parts(umemS3Upload const *upload) {
  return (unsigned)((upload->end + upload->part_size - 1) / upload->part_size);
}

/* The list of parts that makes the object; owned by the caller. NULL with a status. */
static char *list_parts(umemS3Upload *upload, unsigned count, size_t *length) {
  size_t const each = etag_size + 80;
  char *list = malloc(count * each + 128);
  if (!list)
    return UMEM_FAIL_NULL(upload->ctx, umemMemoryError, "no memory for the list of %u parts",
                          count);
  char *out = list + sprintf(list, "<CompleteMultipartUpload>");
  for (unsigned i = 0; i < count; i++)
    out += sprintf(out, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1,
                   upload->parts[i].etag);
  out += sprintf(out, "</CompleteMultipartUpload>");
  *length = (size_t)(out - list);
  return list;
}

/* Whether the object is there with this length, made of so many parts. */
static bool is_there(umemS3Upload *upload, unsigned count) {
  char answer[answer_size], code[64], end[24];
  umemFetchCall call = {
      .what = "look at", .method = "HEAD", .answer = answer, .answer_size = sizeof answer};
  if (!request(upload, &call, code) || call.reply.status != 200) return false;
  snprintf(end, sizeof end, "-%u\"", count);
  size_t length = strlen(call.reply.etag), tail = strlen(end);
  return call.reply.has_length && call.reply.length == upload->end && length > tail &&
         !strcmp(call.reply.etag + length - tail, end);
}

/* Makes the object of its parts. S3 may answer 200 before it has done so, and send an error as the
 * body. A second request, after one whose answer was lost, finds no upload if the first has
 * succeeded. */
static bool join_parts(umemS3Upload *upload) {
  char url[url_size], answer[answer_size], code[64];
  unsigned const count = count_parts(upload);
  size_t length;
  char *list = list_parts(upload, count, &length);
  if (!list) return false;
  snprintf(url, sizeof url, "%s?uploadId=%s", upload->url, upload->id);
  umemFetchCall call = {.what = "complete",
                        .method = "POST",
                        .url = url,
                        .body = list,
                        .body_size = length,
                        .answer = answer,
                        .answer_size = sizeof answer};
  bool answered = request(upload, &call, code);
  free(list);
  if (!answered) return false;
  if (call.reply.status == 200 && !*code && strstr(answer, "<CompleteMultipartUploadResult"))
    return true;
  if (!strcmp(code, "NoSuchUpload") && is_there(upload, count)) return true;
  return refuse_answer(upload, &call, code);
}

/* Lets the server forget the parts. */
static bool abort_upload(umemS3Upload *upload) {
  char url[url_size], answer[answer_size], code[64];
  snprintf(url, sizeof url, "%s?uploadId=%s", upload->url, upload->id);
  umemFetchCall call = {.what = "end the unfinished upload of",
                        .method = "DELETE",
                        .url = url,
                        .answer = answer,
                        .answer_size = sizeof answer};
  if (!request(upload, &call, code)) return false;
  bool done = call.reply.status / 100 == 2 || !strcmp(code, "NoSuchUpload");
  return done || refuse_answer(upload, &call, code);
}

/* ==== parts: under the lock ==== */

static uint64_t begin_of(umemS3Upload const *upload, unsigned part) {
  return part * upload->part_size;
}

static uint64_t size_of(umemS3Upload const *upload, unsigned part) {
  uint64_t begin = begin_of(upload, part);
  return begin < upload->end ? umem_lesser(upload->part_size, upload->end - begin) : 0;
}

static bool is_sent(umemS3Upload const *upload, unsigned part) {
  return part < upload->part_room && *upload->parts[part].etag;
}

static Buffer *buffer_of(umemS3Upload *upload, unsigned part) {
  for (unsigned i = 0; i < upload->buffer_count; i++)
    if (upload->buffers[i].state != bufferFree && upload->buffers[i].part == part)
      return &upload->buffers[i];
  return NULL;
}

/* Whether the part may be sent before the end: it becomes no longer, and there will be another
 * one. */
static bool is_closed(umemS3Upload const *upload, unsigned part) {
  return size_of(upload, part) == upload->part_size && upload->end > upload->part_size;
}

static bool is_covered(umemS3Upload const *upload, Buffer const *buffer) {
  return !buffer->writers && buffer->covered == upload->parts[buffer->part].needed;
}

/* ---- the marks of a buffer ---- */

/* Marks [from, from + size), and counts those that were not. */
static void mark(Buffer *buffer, uint64_t from, uint64_t size) {
  for (uint64_t at = from, end = from + size; at < end;) {
    uint64_t bit = at % 64, count = umem_lesser(64 - bit, end - at);
    uint64_t bits = (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << bit;
    uint64_t *word = &buffer->marks[at / 64];
    buffer->covered += (uint64_t)__builtin_popcountll(bits & ~*word);
    *word |= bits;
    at += count;
  }
}

/* Makes bytes zero that nothing has written: whole words of them in one go. */
static void clear_unmarked(Buffer *buffer, uint64_t size) {
  for (uint64_t at = 0; at < size;) {
    uint64_t word = buffer->marks[at / 64], count = umem_lesser(64, size - at);
    if (!word)
      memset(buffer->bytes + at, 0, count);
    else if (~word)
      for (uint64_t i = 0; i < count; i++)
        if (!(word >> i & 1)) buffer->bytes[at + i] = 0;
    at += count;
  }
}

/* ==== senders ==== */

static void keep_failure(umemS3Upload *upload, umemAttempt const *attempt) {
  if (!upload->has_failed) upload->failure = *attempt;
  upload->has_failed = true;
}

/* Under the lock, which it releases meanwhile. */
static void send_buffer(umemS3Upload *upload, Buffer *buffer) {
  umemAttempt attempt;
  unsigned const part = buffer->part;
  uint64_t const size = size_of(upload, part);
  char etag[etag_size] = "";
  buffer->state = bufferSends;
  umemLock_release(&upload->lock);
  umemAttempt_begin(&attempt);
  if (buffer->covered < size) clear_unmarked(buffer, size);
  bool sent = put_part(upload, part, buffer->bytes, size, etag);
  umemAttempt_end(&attempt);
  umemLock_acquire(&upload->lock);
  if (sent)
    strcpy(upload->parts[part].etag, etag);
  else
    keep_failure(upload, &attempt);
  buffer->state = bufferFree;
  pthread_cond_broadcast(&upload->changed);
}

static Buffer *next_queued(umemS3Upload *upload) {
  Buffer *first = NULL;
  for (unsigned i = 0; i < upload->buffer_count && !upload->has_failed && !upload->abandoned; i++) {
    Buffer *buffer = &upload->buffers[i];
    if (buffer->state == bufferQueued && (!first || buffer->part < first->part)) first = buffer;
  }
  return first;
}

/* Only calls of the program can be cancelled. */
static bool never_ends(umemWaiter *self) {
  (void)self;
  return true;
}

/* A thread without its variables leaves the parts to whoever waits for them. */
static void *serve(void *data) {
  Sender *sender = data;
  umemS3Upload *upload = sender->upload;
  bool serves = umem_worker_has_data();
  Buffer *buffer;
  umemWaiter patient = {never_ends};
  umemLock_acquire(&upload->lock);
  if (serves) umem_thread.function = "an upload", umem_thread.waiter = &patient;
  while (serves && (buffer = next_queued(upload))) send_buffer(upload, buffer);
  sender->state = senderEnded;
  upload->running--;
  pthread_cond_broadcast(&upload->changed);
  umemLock_release(&upload->lock);
  return NULL;
}

/* Starts a sender, if there may be one more. */
static void start_sender(umemS3Upload *upload) {
  if (upload->running >= upload->connections) return;
  Sender *sender = upload->senders;
  while (sender->state == senderRuns) sender++;
  if (sender->state == senderEnded) pthread_join(sender->thread, NULL);
  sender->upload = upload;
  sender->state = senderRuns;
  upload->running++;
  if (!umem_thread_start(&sender->thread, serve, sender)) return;
  sender->state = senderNone;
  upload->running--;
}

static void queue(umemS3Upload *upload, Buffer *buffer) {
  buffer->state = bufferQueued;
  start_sender(upload);
}

static void queue_if_ready(umemS3Upload *upload, Buffer *buffer) {
  if (buffer->state == bufferFills && is_closed(upload, buffer->part) && is_covered(upload, buffer))
    queue(upload, buffer);
}

/* Waits for a change; without a sender, sends a part. False if nothing is on its way. */
static bool wait_for_sender(umemS3Upload *upload) {
  Buffer *queued = next_queued(upload);
  bool sends = queued != NULL || upload->running;
  for (unsigned i = 0; i < upload->buffer_count; i++)
    sends |= upload->buffers[i].state == bufferSends;
  if (queued && !upload->running)
    send_buffer(upload, queued);
  else if (sends)
    umemLock_wait(&upload->lock, &upload->changed);
  return sends;
}

static void join_senders(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  while (upload->running) umemLock_wait(&upload->lock, &upload->changed);
  umemLock_release(&upload->lock);
  for (unsigned i = 0; i < most_senders; i++)
    if (upload->senders[i].state == senderEnded) pthread_join(upload->senders[i].thread, NULL);
}

/* ==== what may be done: under the lock ==== */

/* Whether the upload goes on. */
static bool is_usable(umemS3Upload *upload) {
  char const *label = umemFetch_label(upload->fetch);
  if (upload->forks != umem_fork_count())
    return UMEM_FAIL(upload->ctx, umemNotSupportedError,
                     "%s is written by the parent of this process", label);
  if (upload->has_failed) return umemAttempt_record(&upload->failure), false;
  if (upload->abandoned)
    return UMEM_FAIL(upload->ctx, umemNotSupportedError, "the upload of %s was abandoned", label);
  return !upload->complete || UMEM_FAIL(upload->ctx, umemNotSupportedError,
                                        "%s is complete: nothing can be written any more", label);
}

/* ---- blocks and parts ---- */

/* The table has all parts up to end. */
static bool reserve_parts(umemS3Upload *upload, uint64_t end) {
  unsigned count = (unsigned)((end + upload->part_size - 1) / upload->part_size);
  if (count <= upload->part_room) return true;
  unsigned room = (unsigned)umem_lesser(umemS3PartsMost, 2 * (uint64_t)count);
  Part *more = realloc(upload->parts, room * sizeof *more);
  if (!more)
    return UMEM_FAIL(upload->ctx, umemMemoryError, "no memory for the table of %u parts", room);
  memset(more + upload->part_room, 0, (room - upload->part_room) * sizeof *more);
  upload->parts = more;
  upload->part_room = room;
  return true;
}

/* Counts the bytes of a block in its parts. */
static void count_block(umemS3Upload *upload, uint64_t start, uint64_t size) {
  while (size) {
    uint64_t rest = upload->part_size - start % upload->part_size;
    uint64_t piece = umem_lesser(rest, size);
    upload->parts[start / upload->part_size].needed += piece;
    start += piece, size -= piece;
  }
}

/* Chooses the size of parts, by what is known of the object when the first byte is written. */
static bool choose_part_size(umemS3Upload *upload) {
  umemRangeItem item;
  if (upload->parts) return true;
  if (!upload->part_size) {
    uint64_t length = umem_greater(upload->length, upload->end);
    uint64_t each = (length + umemS3PartsMost - 1) / umemS3PartsMost;
    each = (each + part_unit - 1) / part_unit * part_unit;
    upload->part_size = umem_greater(each, usual_part);
  }
  if (!reserve_parts(upload, umem_greater(upload->end, 1))) return false;
  for (uint64_t at = 0; umemRange_next(upload->range, at, &item); at = item.start + item.extent)
    if (item.live) count_block(upload, item.start, item.size);
  return true;
}

/* Whether the object may be this long. */
static bool has_room(umemS3Upload *upload, uint64_t end) {
  uint64_t part = upload->part_size ? upload->part_size : UMEM_S3_PART_MOST;
  if (end <= part * umemS3PartsMost) return !upload->parts || reserve_parts(upload, end);
  return UMEM_FAIL(upload->ctx, umemMemoryError,
                   "%s would have %" PRIu64 " bytes: with parts of %" PRIu64 " it can have %" PRIu64
                   " (the option length chooses longer ones)",
                   umemFetch_label(upload->fetch), end, part, part * umemS3PartsMost);
}

/* The block that begins at offset, or has it. False for one that was freed. */
static bool find_block(umemS3Upload *upload, uint64_t offset, umemRangeItem *block) {
  return umemRange_find(upload->range, offset, block) && block->live && !block->held &&
         offset - block->start < block->size;
}

static bool begins_block(umemS3Upload *upload, uint64_t offset, umemRangeItem *block) {
  return (find_block(upload, offset, block) && block->start == offset) ||
         UMEM_FAIL(upload->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   umemFetch_label(upload->fetch), offset);
}

/* ---- buffers ---- */

static bool allocate_buffer(umemS3Upload *upload, Buffer *buffer) {
  size_t bytes = upload->part_size, marks = (bytes + 63) / 64 * sizeof(uint64_t);
  size_t begin = (bytes + 63) / 64 * 64;
  if (!buffer->bytes) buffer->bytes = malloc(begin + marks);
  if (!buffer->bytes)
    return UMEM_FAIL(upload->ctx, umemMemoryError, "no memory for a part of %zu bytes", bytes);
  buffer->marks = (uint64_t *)(void *)(buffer->bytes + begin);
  memset(buffer->marks, 0, marks);
  return true;
}

static Buffer *free_buffer(umemS3Upload *upload) {
  for (unsigned i = 0; i < upload->buffer_count; i++)
    if (upload->buffers[i].state == bufferFree) return &upload->buffers[i];
  return NULL;
}

static Buffer *refuse_part(umemS3Upload *upload, unsigned part, char const *why) {
  return UMEM_FAIL_NULL(upload->ctx, umemNotSupportedError,
                        "bytes of part %u of %s (from %" PRIu64 ", %" PRIu64 " each) cannot be "
                        "written: %s",
                        part + 1, umemFetch_label(upload->fetch), begin_of(upload, part),
                        upload->part_size, why);
}

/* The buffer of the part, which may wait for one. NULL with a status. */
static Buffer *take_buffer(umemS3Upload *upload, unsigned part) {
  for (;;) {
    if (!is_usable(upload)) return NULL;
    Buffer *buffer = buffer_of(upload, part);
    if (is_sent(upload, part) || (buffer && buffer->state != bufferFills))
      return refuse_part(upload, part, "the part is already sent");
    if (buffer) return buffer;
    buffer = free_buffer(upload);
    if (buffer) {
      if (!allocate_buffer(upload, buffer)) return NULL;
      buffer->state = bufferFills;
      buffer->part = part;
      buffer->covered = 0;
      return buffer;
    }
    if (!wait_for_sender(upload))
      return UMEM_FAIL_NULL(upload->ctx, umemMemoryError,
                            "%u parts of %s are incomplete, so there is no buffer for another one: "
                            "write in ascending order",
                            upload->buffer_count, umemFetch_label(upload->fetch));
  }
}

/* ==== the calls ==== */

static void free_upload(umemS3Upload *upload) {
  for (unsigned i = 0; upload->buffers && i < upload->buffer_count; i++)
    free(upload->buffers[i].bytes);
  umemRange_destroy(upload->range);
  free(upload->buffers);
  free(upload->parts);
  free(upload);
}

umemS3Upload *umemS3Upload_create(umemVirtual *ctx, umemFetch *fetch, char const *url,
                                  uint64_t length, uint64_t part, unsigned connections) {
  umemS3Upload *upload = calloc(1, sizeof *upload);
  if (!upload) return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for an upload");
  upload->ctx = ctx;
  upload->fetch = fetch;
  upload->url = url;
  upload->length = length;
  upload->part_size = part;
  upload->connections = connections;
  upload->buffer_count = connections + spare_buffers;
  upload->buffers = calloc(upload->buffer_count, sizeof *upload->buffers);
  upload->range = umemRange_create(granule);
  upload->forks = umem_fork_count();
  if (!upload->buffers || !upload->range || !umemRange_add(upload->range, 0, last_offset, true)) {
    free_upload(upload);
    return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for an upload");
  }
  umemLock_init(&upload->lock);
  pthread_cond_init(&upload->changed, NULL); /* cannot fail: the attributes are the default ones */
  return upload;
}

void umemS3Upload_destroy(umemS3Upload *upload) {
  if (!upload) return;
  bool const own = upload->forks == umem_fork_count();
  if (own) join_senders(upload);
  if (own && *upload->id && !upload->complete) abort_upload(upload);
  if (own) pthread_cond_destroy(&upload->changed);
  umemLock_destroy(&upload->lock);
  free_upload(upload);
}

/* ---- blocks ---- */

/* A place that begins in no part that was sent: those between blocks are skipped. */
static uint64_t find_place(umemS3Upload *upload, uint64_t size, uint64_t alignment) {
  for (;;) {
    uint64_t start = umemRange_alloc(upload->range, size, alignment);
    if (start == UMEM_RANGE_NONE || !upload->parts) return start;
    unsigned part = (unsigned)umem_lesser(start / upload->part_size, umemS3PartsMost);
    Buffer const *buffer = buffer_of(upload, part);
    if (!is_sent(upload, part) && (!buffer || buffer->state == bufferFills)) return start;
    umemRange_hold(upload->range, start);
  }
}

static uint64_t alloc(umemS3Upload *upload, uint64_t size, uint64_t alignment) {
  if (!is_usable(upload)) return UINT64_MAX;
  uint64_t start = find_place(upload, size, alignment);
  if (start == UMEM_RANGE_NONE) {
    umemVirtual_fail(upload->ctx, umemMemoryError, "no room for %" PRIu64 " bytes in %s", size,
                     umemFetch_label(upload->fetch));
    return UINT64_MAX;
  }
  if (!has_room(upload, start + size)) {
    umemRange_free(upload->range, start);
    return UINT64_MAX;
  }
  upload->end = umem_greater(upload->end, start + size);
  if (upload->parts) count_block(upload, start, size);
  for (unsigned i = 0; i < upload->buffer_count; i++) queue_if_ready(upload, &upload->buffers[i]);
  return start;
}

uint64_t umemS3Upload_alloc(umemS3Upload *upload, uint64_t size, uint64_t alignment) {
  umemLock_acquire(&upload->lock);
  uint64_t start = alloc(upload, size, alignment);
  umemLock_release(&upload->lock);
  return start;
}

bool umemS3Upload_free(umemS3Upload *upload, uint64_t offset) {
  umemRangeItem block;
  umemLock_acquire(&upload->lock);
  bool good = begins_block(upload, offset, &block);
  if (good) umemRange_hold(upload->range, offset);
  umemLock_release(&upload->lock);
  return good;
}

uint64_t umemS3Upload_begins(umemS3Upload *upload, uint64_t offset) {
  umemRangeItem block;
  umemLock_acquire(&upload->lock);
  bool good = begins_block(upload, offset, &block);
  umemLock_release(&upload->lock);
  return good ? block.size : 0;
}

umemSearch umemS3Upload_find(umemS3Upload *upload, uint64_t offset, umemFound *found) {
  umemRangeItem block;
  if (!umemLock_try(&upload->lock)) return umemSearchBusy;
  bool has = find_block(upload, offset, &block);
  umemLock_release(&upload->lock);
  if (!has) return umemSearchNone;
  found->adr = (uintptr_t)block.start;
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

bool umemS3Upload_usage(umemS3Upload *upload, umemUsage *usage) {
  if (!umemLock_try(&upload->lock)) return false;
  usage->nbytes = umemRange_totals(upload->range).live_bytes;
  umemLock_release(&upload->lock);
  return true;
}

/* ---- writes ---- */

/* Writes to one part. Under the lock, which it releases meanwhile. */
static bool write_part(umemS3Upload *upload, uint64_t offset, char const *bytes, int value,
                       size_t size) {
  unsigned part = (unsigned)(offset / upload->part_size);
  uint64_t at = offset - begin_of(upload, part);
  Buffer *buffer = take_buffer(upload, part);
  if (!buffer) return false;
  buffer->writers++;
  umemLock_release(&upload->lock);
  if (bytes)
    memcpy(buffer->bytes + at, bytes, size);
  else
    memset(buffer->bytes + at, value, size);
  umemLock_acquire(&upload->lock);
  buffer->writers--;
  mark(buffer, at, size);
  queue_if_ready(upload, buffer);
  pthread_cond_broadcast(&upload->changed);
  return true;
}

static bool is_inside(umemS3Upload *upload, uint64_t offset, size_t size) {
  umemRangeItem block;
  bool inside = find_block(upload, offset, &block) && size <= block.start + block.size - offset;
  return inside || UMEM_FAIL(upload->ctx, umemIndexError,
                             "%zu bytes at offset %" PRIu64 " of %s are not inside one live block",
                             size, offset, umemFetch_label(upload->fetch));
}

bool umemS3Upload_write(umemS3Upload *upload, uint64_t offset, void const *bytes, int value,
                        size_t size) {
  umemLock_acquire(&upload->lock);
  bool good = is_usable(upload) && is_inside(upload, offset, size) && choose_part_size(upload);
  for (size_t done = 0; good && done < size;) {
    uint64_t at = offset + done;
    size_t rest = upload->part_size - at % upload->part_size;
    size_t piece = umem_lesser(size - done, rest);
    good = write_part(upload, at, bytes ? (char const *)bytes + done : NULL, value, piece);
    done += piece;
  }
  umemLock_release(&upload->lock);
  return good;
}

/* ---- completion: under the lock ---- */

/* Bytes of blocks that nothing has written. */
static uint64_t count_missing(umemS3Upload *upload) {
  uint64_t missing = 0;
  for (unsigned part = 0; part < count_parts(upload); part++) {
    Buffer const *buffer = buffer_of(upload, part);
    bool whole = is_sent(upload, part) || (buffer && buffer->state != bufferFills);
    if (!whole) missing += upload->parts[part].needed - (buffer ? buffer->covered : 0);
  }
  return missing;
}

static bool has_writers(umemS3Upload const *upload) {
  unsigned writers = 0;
  for (unsigned i = 0; i < upload->buffer_count; i++) writers += upload->buffers[i].writers;
  return writers;
}

/* Queues each part that is not sent, as it is, and waits until all are. */
static bool send_all(umemS3Upload *upload) {
  while (has_writers(upload)) umemLock_wait(&upload->lock, &upload->changed);
  for (unsigned i = 0; i < upload->buffer_count; i++)
    if (upload->buffers[i].state == bufferFills) queue(upload, &upload->buffers[i]);
  for (unsigned part = 0; part < count_parts(upload); part++) {
    if (is_sent(upload, part) || buffer_of(upload, part)) continue;
    Buffer *buffer = take_buffer(upload, part);
    if (!buffer) return false;
    queue(upload, buffer);
  }
  while (!upload->has_failed && wait_for_sender(upload)) {
  }
  return is_usable(upload);
}

/* An object of one part, or of none, by one request. */
static bool put_object(umemS3Upload *upload) {
  char etag[etag_size];
  Buffer *buffer = upload->end ? take_buffer(upload, 0) : NULL;
  if (upload->end && !buffer) return false;
  if (buffer) clear_unmarked(buffer, upload->end);
  umemLock_release(&upload->lock);
  bool sent = put(upload, "write", upload->url, buffer ? buffer->bytes : "", upload->end, etag);
  umemLock_acquire(&upload->lock);
  return sent;
}

static bool join_all(umemS3Upload *upload) {
  if (!send_all(upload)) return false;
  umemLock_release(&upload->lock);
  bool joined = join_parts(upload);
  umemLock_acquire(&upload->lock);
  return joined;
}

static bool make_object(umemS3Upload *upload, bool whole) {
  uint64_t missing;
  if (!is_usable(upload) || !choose_part_size(upload)) return false;
  if (whole && (missing = count_missing(upload)))
    return UMEM_FAIL(upload->ctx, umemIOError,
                     "%s was not made: %" PRIu64 " of its %" PRIu64 " bytes were never written "
                     "(umem_flush makes it with zeros in their place)",
                     umemFetch_label(upload->fetch), missing, upload->end);
  bool single = upload->end <= upload->part_size;
  upload->complete = single ? put_object(upload) : join_all(upload);
  return upload->complete;
}

bool umemS3Upload_complete(umemS3Upload *upload, bool whole) {
  umemLock_acquire(&upload->lock);
  bool good =
      (upload->complete && upload->forks == umem_fork_count()) || make_object(upload, whole);
  umemLock_release(&upload->lock);
  return good;
}

uint64_t umemS3Upload_length(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  uint64_t length = upload->end;
  umemLock_release(&upload->lock);
  return length;
}

bool umemS3Upload_is_open(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  bool open =
      !upload->complete && !upload->abandoned && upload->end && upload->forks == umem_fork_count();
  umemLock_release(&upload->lock);
  return open;
}

void umemS3Upload_abandon(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  upload->abandoned = !upload->complete;
  umemLock_release(&upload->lock);
}
