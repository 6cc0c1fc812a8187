/* s3_upload.c - sends the parts of an object as they become complete.
 *
 * The object is cut into parts of one size. A part that is written has a buffer: its bytes, and a
 * bit for each that says whether it was written. When all bytes of blocks in it are, it is queued,
 * and a sender takes it: a thread that lives as long as there is something to send. Then the buffer
 * is free for another part. Of a long write the senders take whole parts from the program's memory,
 * and it returns when they are sent. Whoever needs a buffer waits for one that is on its way; if
 * there is none, it fails.
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
  /* Of a part that a long write has whole: its bytes in the program's memory, and the write, which
   * returns when they are sent; else NULL. */
  void const *lent, *lender;
} Buffer;

typedef struct Sender {
  umemS3Upload *upload;
  pthread_t thread;
  enum { senderNone = 0, senderRuns, senderEnded } state;
} Sender;

struct umemS3Upload {
  umemVirtual *ctx;
  umemS3Requests requests; /* its id is set once, by one thread */
  unsigned forks, connections;
  uint64_t length, part_size; /* part_size 0: not chosen */
  umemLock lock;              /* of the rest */
  pthread_cond_t changed;
  umemRange *range; /* of the blocks; those that were freed are held. Owned */
  uint64_t end;     /* of the last block */
  Buffer *buffers;  /* owned */
  unsigned buffer_count;
  umemS3Part *parts; /* once the size of parts is chosen: all that have blocks; owned */
  unsigned part_room;
  bool begins; /* a sender requests the id */
  bool complete, abandoned;
  umemAttempt failure; /* if has_failed */
  bool has_failed;
  Sender senders[most_senders];
  unsigned running;
};

static char const *label_of(umemS3Upload const *upload) {
  return umemFetch_label(upload->requests.fetch);
}

/* ==== parts: under the lock ==== */

static unsigned count_parts(umemS3Upload const *upload) {
  return (unsigned)((upload->end + upload->part_size - 1) / upload->part_size);
}

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

/* Returns when there is a number of the upload, which one thread requests. False if that has
 * failed: the threads that have waited do not try again. */
static bool ensure_begun(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  while (upload->begins) umemLock_wait(&upload->lock, &upload->changed);
  bool has = *upload->requests.id, over = upload->has_failed || upload->abandoned;
  upload->begins = !has && !over;
  umemLock_release(&upload->lock);
  if (has || over) return has;
  has = umemS3Requests_begin(&upload->requests);
  umemLock_acquire(&upload->lock);
  upload->begins = false;
  pthread_cond_broadcast(&upload->changed);
  umemLock_release(&upload->lock);
  return has;
}

static void keep_failure(umemS3Upload *upload, umemAttempt const *attempt) {
  if (!upload->has_failed) upload->failure = *attempt;
  upload->has_failed = true;
}

static void set_free(Buffer *buffer) {
  buffer->state = bufferFree;
  buffer->lent = buffer->lender = NULL;
}

/* Under the lock, which it releases meanwhile. */
static void send_buffer(umemS3Upload *upload, Buffer *buffer) {
  umemAttempt attempt;
  unsigned const part = buffer->part;
  uint64_t const size = size_of(upload, part);
  char etag[umemS3EtagSize] = "";
  buffer->state = bufferSends;
  umemLock_release(&upload->lock);
  umemAttempt_begin(&attempt);
  if (buffer->covered < size) clear_unmarked(buffer, size);
  bool sent = ensure_begun(upload) &&
              umemS3Requests_put(&upload->requests, part + 1,
                                 buffer->lent ? buffer->lent : buffer->bytes, size, etag);
  umemAttempt_end(&attempt);
  umemLock_acquire(&upload->lock);
  if (sent)
    strcpy(upload->parts[part].etag, etag);
  else if (umemAttempt_failed(&attempt))
    keep_failure(upload, &attempt);
  set_free(buffer);
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
  char const *label = label_of(upload);
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
  umemS3Part *more = realloc(upload->parts, room * sizeof *more);
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
                   label_of(upload), end, part, part * umemS3PartsMost);
}

/* The block that begins at offset, or has it. False for one that was freed. */
static bool find_block(umemS3Upload *upload, uint64_t offset, umemRangeItem *block) {
  return umemRange_find(upload->range, offset, block) && block->live && !block->held &&
         offset - block->start < block->size;
}

static bool begins_block(umemS3Upload *upload, uint64_t offset, umemRangeItem *block) {
  return (find_block(upload, offset, block) && block->start == offset) ||
         UMEM_FAIL(upload->ctx, umemValueError, "no live block of %s begins at offset %" PRIu64,
                   label_of(upload), offset);
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
                        part + 1, label_of(upload), begin_of(upload, part), upload->part_size, why);
}

/* The buffer of the part, which may wait for one; a new one has memory unless bytes are lent. NULL
 * with a status. */
static Buffer *take_buffer(umemS3Upload *upload, unsigned part, void const *lent) {
  for (;;) {
    if (!is_usable(upload)) return NULL;
    Buffer *buffer = buffer_of(upload, part);
    if (is_sent(upload, part) || (buffer && buffer->state != bufferFills))
      return refuse_part(upload, part, "the part is already sent");
    if (buffer) return buffer;
    buffer = free_buffer(upload);
    if (buffer) {
      if (!lent && !allocate_buffer(upload, buffer)) return NULL;
      buffer->state = bufferFills;
      buffer->part = part;
      buffer->covered = 0;
      buffer->lent = lent;
      return buffer;
    }
    if (!wait_for_sender(upload))
      return UMEM_FAIL_NULL(upload->ctx, umemMemoryError,
                            "%u parts of %s are incomplete, so there is no buffer for another one: "
                            "write in ascending order",
                            upload->buffer_count, label_of(upload));
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
  upload->requests.ctx = ctx;
  upload->requests.fetch = fetch;
  upload->requests.url = url;
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
  if (own && *upload->requests.id && !upload->complete) umemS3Requests_abort(&upload->requests);
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
                     label_of(upload));
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
  Buffer *buffer = take_buffer(upload, part, NULL);
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

/* ---- long writes: the senders read the memory of the program ---- */

/* Queues a whole part, if no byte of it was written before, without a copy. */
static bool lend_part(umemS3Upload *upload, uint64_t offset, char const *bytes,
                      void const *lender) {
  unsigned part = (unsigned)(offset / upload->part_size);
  if (buffer_of(upload, part) || !is_closed(upload, part))
    return write_part(upload, offset, bytes, 0, upload->part_size);
  Buffer *buffer = take_buffer(upload, part, bytes);
  if (!buffer) return false;
  if (!buffer->lent) return write_part(upload, offset, bytes, 0, upload->part_size);
  buffer->lender = lender;
  buffer->covered = upload->part_size;
  queue(upload, buffer);
  return true;
}

/* Returns when no sender reads what was lent. False if the upload has failed. */
static bool take_back(umemS3Upload *upload, void const *lender) {
  for (bool any = true; any;) {
    any = false;
    for (unsigned i = 0; i < upload->buffer_count; i++) {
      Buffer *buffer = &upload->buffers[i];
      bool ends = upload->has_failed || upload->abandoned;
      if (buffer->lender != lender) continue;
      if (buffer->state == bufferQueued && ends)
        set_free(buffer);
      else
        any = true;
    }
    if (any) wait_for_sender(upload);
  }
  return is_usable(upload);
}

static bool is_inside(umemS3Upload *upload, uint64_t offset, size_t size) {
  umemRangeItem block;
  bool inside = find_block(upload, offset, &block) && size <= block.start + block.size - offset;
  return inside || UMEM_FAIL(upload->ctx, umemIndexError,
                             "%zu bytes at offset %" PRIu64 " of %s are not inside one live block",
                             size, offset, label_of(upload));
}

bool umemS3Upload_write(umemS3Upload *upload, uint64_t offset, void const *bytes, int value,
                        size_t size) {
  umemLock_acquire(&upload->lock);
  bool good = is_usable(upload) && is_inside(upload, offset, size) && choose_part_size(upload);
  bool lends = good && bytes && size / upload->part_size >= upload->connections;
  for (size_t done = 0; good && done < size;) {
    uint64_t at = offset + done;
    size_t rest = upload->part_size - at % upload->part_size;
    size_t piece = umem_lesser(size - done, rest);
    char const *from = bytes ? (char const *)bytes + done : NULL;
    if (lends && piece == upload->part_size)
      good = lend_part(upload, at, from, &lends);
    else
      good = write_part(upload, at, from, value, piece);
    done += piece;
  }
  if (lends && !take_back(upload, &lends)) good = false;
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
    Buffer *buffer = take_buffer(upload, part, NULL);
    if (!buffer) return false;
    queue(upload, buffer);
  }
  while (!upload->has_failed && wait_for_sender(upload)) {
  }
  return is_usable(upload);
}

/* An object of one part, or of none, by one request. */
static bool put_object(umemS3Upload *upload) {
  char etag[umemS3EtagSize];
  Buffer *buffer = upload->end ? take_buffer(upload, 0, NULL) : NULL;
  if (upload->end && !buffer) return false;
  if (buffer) clear_unmarked(buffer, upload->end);
  umemLock_release(&upload->lock);
  char const *bytes = buffer ? buffer->bytes : "";
  bool sent = umemS3Requests_put(&upload->requests, 0, bytes, upload->end, etag);
  umemLock_acquire(&upload->lock);
  return sent;
}

static bool join_all(umemS3Upload *upload) {
  if (!send_all(upload)) return false;
  umemLock_release(&upload->lock);
  bool joined =
      umemS3Requests_join(&upload->requests, upload->parts, count_parts(upload), upload->end);
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
                     label_of(upload), missing, upload->end);
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
