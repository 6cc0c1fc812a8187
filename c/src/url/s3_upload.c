/* s3_upload.c - sends the parts of an object as they become complete.
 *
 * When all bytes of a part are in its buffer (s3_parts.c), it is queued, and a sender takes it: a
 * thread that lives as long as there is something to send. Then the buffer is free for another
 * part. Of a long write the senders take whole parts from the program's memory, and it returns when
 * they are sent. Whoever needs a buffer waits for one that is on its way; if there is none, it
 * fails.
 *
 * A failure of a sender ends the upload: each later call records it. The lock is never held during
 * a request, nor while a call that waits queries whether it goes on. */
#include "url/s3.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
  spare_buffers = 4, /* besides those in flight */
  most_senders = UMEM_URL_CONNECTIONS,
  ask_ms = 100 /* after which a call that waits queries whether it goes on */
};

typedef umemS3Buffer Buffer;

typedef struct Sender {
  umemS3Upload *upload;
  pthread_t thread;
  enum { senderNone = 0, senderRuns, senderEnded } state;
} Sender;

struct umemS3Upload {
  umemVirtual *ctx;
  umemS3Requests requests; /* its id is set once, by one thread */
  unsigned forks, connections;
  umemLock lock; /* of the rest */
  pthread_cond_t changed;
  umemS3Parts parts;
  bool begins; /* a sender requests the id */
  bool closed; /* its length is final: it is made, or was once tried to be */
  bool complete, abandoned;
  umemAttempt failure; /* if has_failed */
  bool has_failed;
  uint64_t over; /* when nothing was to be sent any more, as umemFetch_now(); 0: not yet; atomic */
  Sender senders[most_senders];
  unsigned running;
};

/* ==== the lock ==== */

static void unlock(umemS3Upload **upload) { umemLock_release(&(*upload)->lock); }
static void lock_again(umemS3Upload **upload) { umemLock_acquire(&(*upload)->lock); }

static inline umemS3Upload *lock(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  return upload;
}

/* Until the end of the block, also when an exception of C++ passes. */
#define WITH_LOCK(upload)                                                                          \
  __attribute__((cleanup(unlock), unused)) umemS3Upload *locked_ = lock(upload)
#define WITHOUT_LOCK(upload)                                                                       \
  __attribute__((cleanup(lock_again), unused)) umemS3Upload *unlocked_ =                           \
      (umemLock_release(&(upload)->lock), (upload))

/* What is sent is not wanted any more: requests end soon, and no other ones begin. */
static void end_requests(umemS3Upload *upload) {
  if (!upload->over) __atomic_store_n(&upload->over, umemFetch_now(), __ATOMIC_RELAXED);
}

/* ==== senders ==== */

/* Of the requests for one buffer, which no user can cancel, but what its write or the upload is
 * cancelled for. */
typedef struct Patience {
  umemWaiter waiter;
  umemS3Upload const *upload;
  Buffer const *buffer;
  bool begins; /* the answer has the number by which the upload is ended: it gets a while */
} Patience;

static bool is_wanted(umemWaiter *self) {
  Patience const *patience = (Patience *)self;
  uint64_t over = __atomic_load_n(&patience->upload->over, __ATOMIC_RELAXED);
  if (!over) over = __atomic_load_n(&patience->buffer->unwanted, __ATOMIC_RELAXED);
  return !over || (patience->begins && umemFetch_now() - over < umemS3GraceMs * umem_ns_of_ms);
}

/* With the lock: others may look for the number, or request it. */
static void end_begin(umemS3Upload *upload, Patience *patience) {
  if (patience->begins) upload->begins = patience->begins = false;
  pthread_cond_broadcast(&upload->changed);
}

/* Returns when there is a number of the upload, which one thread requests. False if that has
 * failed: the others wait until it has kept why, and called end_begin. */
static bool ensure_begun(umemS3Upload *upload, Patience *patience) {
  UMEM_LOCKED(&upload->lock);
  while (upload->begins) umemLock_wait(&upload->lock, &upload->changed);
  if (*upload->requests.id || !is_wanted(&patience->waiter)) return *upload->requests.id;
  upload->begins = patience->begins = true;
  umemLock_release(&upload->lock);
  bool has = umemS3Requests_begin(&upload->requests);
  umemLock_acquire(&upload->lock);
  if (has) end_begin(upload, patience);
  return has;
}

static void keep_failure(umemS3Upload *upload, umemAttempt const *attempt) {
  if (!upload->has_failed) upload->failure = *attempt;
  upload->has_failed = true;
  end_requests(upload);
}

/* Under the lock, which it releases meanwhile. */
static void send_buffer(umemS3Upload *upload, Buffer *buffer) {
  umemAttempt attempt;
  Patience patience = {{is_wanted}, upload, buffer, false};
  umemWaiter *outer = umem_thread.waiter;
  unsigned const part = buffer->part;
  uint64_t const size = umemS3Parts_size_of(&upload->parts, part);
  char etag[umemS3EtagSize] = "";
  buffer->state = umemS3BufferSends;
  umemLock_release(&upload->lock);
  umemAttempt_begin(&attempt);
  umem_thread.waiter = &patience.waiter;
  if (buffer->covered < size) umemS3Buffer_clear_unmarked(buffer, size);
  bool sent = ensure_begun(upload, &patience) &&
              umemS3Requests_put(&upload->requests, part + 1,
                                 buffer->lent ? buffer->lent : buffer->bytes, size, etag);
  umem_thread.waiter = outer;
  umemAttempt_end(&attempt);
  umemLock_acquire(&upload->lock);
  if (sent)
    strcpy(upload->parts.parts[part].etag, etag);
  else if (umemAttempt_failed(&attempt) && !buffer->unwanted && !upload->abandoned)
    keep_failure(upload, &attempt);
  umemS3Buffer_set_free(buffer);
  end_begin(upload, &patience);
}

static Buffer *next_queued(umemS3Upload *upload) {
  umemS3Parts *parts = &upload->parts;
  Buffer *first = NULL;
  for (unsigned i = 0; i < parts->buffer_count && !upload->over; i++) {
    Buffer *buffer = &parts->buffers[i];
    if (buffer->state == umemS3BufferQueued && (!first || buffer->part < first->part))
      first = buffer;
  }
  return first;
}

/* A thread without its variables leaves the parts to whoever waits for them. */
static void *serve(void *data) {
  Sender *sender = data;
  umemS3Upload *upload = sender->upload;
  bool serves = umem_worker_has_data();
  Buffer *buffer;
  umemLock_acquire(&upload->lock);
  if (serves) umem_thread.function = "an upload";
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
  buffer->state = umemS3BufferQueued;
  start_sender(upload);
}

static void queue_if_ready(umemS3Upload *upload, Buffer *buffer) {
  if (umemS3Parts_is_ready(&upload->parts, buffer)) queue(upload, buffer);
}

static void join_senders(umemS3Upload *upload) {
  umemLock_acquire(&upload->lock);
  while (upload->running) umemLock_wait(&upload->lock, &upload->changed);
  umemLock_release(&upload->lock);
  for (unsigned i = 0; i < most_senders; i++)
    if (upload->senders[i].state == senderEnded) pthread_join(upload->senders[i].thread, NULL);
}

/* ==== calls that wait for senders: under the lock ==== */

/* One call of the program. */
typedef struct Call {
  umemS3Upload *upload;
  uint64_t asked;       /* when it has asked whether it goes on, as umemFetch_now() */
  bool lends;           /* buffers have its address as their lender */
  umemMeter *meter;     /* of a write that lends; NULL: none */
  uint64_t begin, done; /* of the object: where it begins to write, and is */
  uint64_t noted;       /* bytes that the meter knows */
} Call;

typedef enum Waiting { hasChanged, nothingComes, isCancelled } Waiting;

/* Notes in the meter how many bytes are sent. False when it is over, which needs no status. */
static bool note_sent(Call *call) {
  umemS3Parts const *parts = &call->upload->parts;
  uint64_t end = call->done;
  if (!call->meter) return true;
  for (unsigned i = 0; i < parts->buffer_count; i++)
    if (parts->buffers[i].lender == call)
      end = umem_lesser(end, parts->buffers[i].part * parts->size);
  uint64_t const noted = call->begin + call->noted;
  if (end > noted && !call->upload->over) { /* parts that have failed are not lent, either */
    WITHOUT_LOCK(call->upload);
    umemMeter_add(call->meter, call->noted, end - noted);
    call->noted = end - call->begin;
  }
  return !umemMeter_is_over(call->meter);
}

/* Some ten times a second. False with a status, or because the meter is over. */
static bool goes_on(Call *call) {
  umemS3Upload *upload = call->upload;
  if (!note_sent(call)) return false;
  if (umemFetch_now() - call->asked < ask_ms * umem_ns_of_ms) return true;
  {
    WITHOUT_LOCK(upload);
    call->asked = umemFetch_now();
    if (umem_goes_on()) return true;
  }
  return UMEM_FAIL(upload->ctx, umemCancelledError, "cannot write %s: cancelled",
                   upload->parts.label);
}

static void wait_a_moment(umemS3Upload *upload) {
  uint64_t end = umemFetch_now() + ask_ms * umem_ns_of_ms, second = 1000 * umem_ns_of_ms;
  struct timespec until = {(time_t)(end / second), (long)(end % second)};
  umem_defer_cancel();
  pthread_cond_timedwait(&upload->changed, &upload->lock.mutex, &until);
}

/* Waits for a change, or a moment; without a sender, sends a part. */
static Waiting wait_for_sender(Call *call) {
  umemS3Upload *upload = call->upload;
  Buffer *queued = next_queued(upload);
  bool sends = queued != NULL || upload->running;
  for (unsigned i = 0; i < upload->parts.buffer_count; i++)
    sends |= upload->parts.buffers[i].state == umemS3BufferSends;
  if (queued && !upload->running)
    send_buffer(upload, queued);
  else if (sends)
    wait_a_moment(upload);
  return !sends ? nothingComes : goes_on(call) ? hasChanged : isCancelled;
}

/* Whether the upload goes on. */
static bool is_usable(umemS3Upload *upload) {
  char const *label = upload->parts.label;
  if (upload->forks != umem_fork_count())
    return UMEM_FAIL(upload->ctx, umemNotSupportedError,
                     "%s is written by the parent of this process", label);
  if (upload->has_failed) return umemAttempt_record(&upload->failure), false;
  if (upload->abandoned)
    return UMEM_FAIL(upload->ctx, umemNotSupportedError, "the upload of %s was abandoned", label);
  return !upload->complete || UMEM_FAIL(upload->ctx, umemNotSupportedError,
                                        "%s is complete: nothing can be written any more", label);
}

/* The buffer of the part, which may wait for one. NULL with a status. */
static Buffer *take_buffer(Call *call, unsigned part, void const *lent) {
  umemS3Upload *upload = call->upload;
  for (Waiting waiting = hasChanged; waiting == hasChanged;) {
    bool full;
    if (!is_usable(upload)) return NULL;
    Buffer *buffer = umemS3Parts_take(&upload->parts, part, lent, &full);
    if (!full) return buffer;
    waiting = wait_for_sender(call);
    if (waiting == nothingComes)
      umemVirtual_fail(upload->ctx, umemMemoryError,
                       "%u parts of %s are incomplete, so there is no buffer for another one: "
                       "write in ascending order",
                       upload->parts.buffer_count, upload->parts.label);
  }
  return NULL;
}

/* ==== the calls ==== */

static void free_upload(umemS3Upload *upload) {
  umemS3Parts_end(&upload->parts);
  free(upload);
}

umemS3Upload *umemS3Upload_create(umemVirtual *ctx, umemFetch *fetch, char const *url,
                                  uint64_t length, uint64_t part, unsigned connections) {
  umemS3Upload *upload = calloc(1, sizeof *upload);
  if (!upload) return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for an upload");
  upload->ctx = ctx;
  upload->requests = (umemS3Requests){.ctx = ctx, .fetch = fetch, .url = url};
  upload->parts =
      (umemS3Parts){.ctx = ctx, .label = umemFetch_label(fetch), .length = length, .size = part};
  upload->connections = connections;
  upload->forks = umem_fork_count();
  if (!umemS3Parts_init(&upload->parts, connections + spare_buffers)) {
    free_upload(upload);
    return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for an upload");
  }
  umemLock_init(&upload->lock);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&upload->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  return upload;
}

void umemS3Upload_destroy(umemS3Upload *upload) {
  if (!upload) return;
  bool const own = upload->forks == umem_fork_count();
  umemLock_acquire(&upload->lock);
  end_requests(upload);
  umemLock_release(&upload->lock);
  if (own) join_senders(upload);
  if (own && *upload->requests.id && !upload->complete) umemS3Requests_abort(&upload->requests);
  if (own) pthread_cond_destroy(&upload->changed);
  umemLock_destroy(&upload->lock);
  free_upload(upload);
}

/* ---- blocks ---- */

uint64_t umemS3Upload_alloc(umemS3Upload *upload, uint64_t size, uint64_t alignment, bool zero) {
  WITH_LOCK(upload);
  if (!is_usable(upload)) return UINT64_MAX;
  if (upload->closed) {
    umemVirtual_fail(upload->ctx, umemNotSupportedError,
                     "a flush of %s has begun: it can have no further block", upload->parts.label);
    return UINT64_MAX;
  }
  uint64_t start = umemS3Parts_alloc(&upload->parts, size, alignment, zero);
  for (unsigned i = 0; start != UINT64_MAX && i < upload->parts.buffer_count; i++)
    queue_if_ready(upload, &upload->parts.buffers[i]);
  return start;
}

bool umemS3Upload_free(umemS3Upload *upload, uint64_t offset) {
  umemRangeItem block;
  WITH_LOCK(upload);
  bool good = umemS3Parts_begins(&upload->parts, offset, &block);
  if (good) umemRange_hold(upload->parts.range, offset);
  return good;
}

uint64_t umemS3Upload_begins(umemS3Upload *upload, uint64_t offset) {
  umemRangeItem block;
  WITH_LOCK(upload);
  return umemS3Parts_begins(&upload->parts, offset, &block) ? block.size : 0;
}

umemSearch umemS3Upload_find(umemS3Upload *upload, uint64_t offset, umemFound *found) {
  umemRangeItem block;
  if (!umemLock_try(&upload->lock)) return umemSearchBusy;
  bool has = umemS3Parts_find(&upload->parts, offset, &block);
  umemLock_release(&upload->lock);
  if (!has) return umemSearchNone;
  found->adr = (uintptr_t)block.start;
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

bool umemS3Upload_usage(umemS3Upload *upload, umemUsage *usage) {
  if (!umemLock_try(&upload->lock)) return false;
  usage->nbytes = umemRange_totals(upload->parts.range).live_bytes;
  umemLock_release(&upload->lock);
  return true;
}

/* ---- writes: under the lock ---- */

/* Writes to one part. Releases the lock meanwhile. */
static bool write_part(Call *call, uint64_t offset, char const *bytes, int value, size_t size) {
  umemS3Upload *upload = call->upload;
  uint64_t const at = offset % upload->parts.size;
  Buffer *buffer = take_buffer(call, (unsigned)(offset / upload->parts.size), NULL);
  if (!buffer) return false;
  buffer->writers++;
  umemLock_release(&upload->lock);
  if (bytes)
    memcpy(buffer->bytes + at, bytes, size);
  else
    memset(buffer->bytes + at, value, size);
  umemLock_acquire(&upload->lock);
  buffer->writers--;
  umemS3Buffer_mark(buffer, at, size);
  queue_if_ready(upload, buffer);
  pthread_cond_broadcast(&upload->changed);
  return true;
}

/* ---- long writes: the senders read the memory of the program ---- */

/* Queues a whole part, if no byte of it was written before, without a copy. */
static bool lend_part(Call *call, uint64_t offset, char const *bytes) {
  umemS3Upload *upload = call->upload;
  umemS3Parts *parts = &upload->parts;
  unsigned part = (unsigned)(offset / parts->size);
  if (umemS3Parts_buffer_of(parts, part) || !umemS3Parts_is_closed(parts, part))
    return write_part(call, offset, bytes, 0, parts->size);
  Buffer *buffer = take_buffer(call, part, bytes);
  if (!buffer) return false;
  if (!buffer->lent) return write_part(call, offset, bytes, 0, parts->size);
  buffer->lender = call;
  buffer->covered = parts->size;
  queue(upload, buffer);
  return true;
}

/* Whether a sender reads, or will read, what was lent. ends: it does so no longer than it must. */
static bool is_lent(Call *call, bool ends) {
  umemS3Parts *parts = &call->upload->parts;
  bool any = false;
  for (unsigned i = 0; i < parts->buffer_count; i++) {
    Buffer *buffer = &parts->buffers[i];
    if (buffer->lender != call) continue;
    if (ends && buffer->state == umemS3BufferQueued)
      umemS3Buffer_set_free(buffer);
    else
      any = true;
    if (ends && !buffer->unwanted && buffer->state == umemS3BufferSends)
      __atomic_store_n(&buffer->unwanted, umemFetch_now(), __ATOMIC_RELAXED);
  }
  return any;
}

/* Returns when no sender reads what was lent. False if the upload has failed, or the call is
 * cancelled. */
static bool take_back(Call *call) {
  umemS3Upload *upload = call->upload;
  while (is_lent(call, upload->over != 0))
    if (wait_for_sender(call) == isCancelled) return false;
  return is_usable(upload) && note_sent(call);
}

/* Also when an exception of C++ passes. */
static void end_write(Call *call) {
  umemS3Upload *upload = call->upload;
  while (call->lends && is_lent(call, true)) umemLock_wait(&upload->lock, &upload->changed);
  umemLock_release(&upload->lock);
}

bool umemS3Upload_write(umemS3Upload *upload, uint64_t offset, void const *bytes, int value,
                        size_t size, umemMeter *meter) {
  umemS3Parts *parts = &upload->parts;
  size_t const all = meter ? meter->rest : size;
  __attribute__((cleanup(end_write)))
  Call call = {.upload = lock(upload), .asked = umemFetch_now(), .begin = offset, .done = offset};
  bool good = is_usable(upload) && umemS3Parts_is_inside(parts, offset, all) &&
              umemS3Parts_choose_size(parts);
  call.lends = good && bytes && all / parts->size >= upload->connections;
  if (call.lends && meter) size = umemMeter_take(call.meter = meter);
  for (size_t done = 0; good && done < size;) {
    uint64_t at = offset + done;
    size_t piece = umem_lesser(size - done, parts->size - at % parts->size);
    char const *from = bytes ? (char const *)bytes + done : NULL;
    if (call.lends && piece == parts->size)
      good = lend_part(&call, at, from);
    else
      good = write_part(&call, at, from, value, piece);
    done += piece;
    call.done = offset + done;
  }
  return good && (!call.lends || take_back(&call));
}

/* ---- completion: under the lock ---- */

static bool has_writers(umemS3Upload const *upload) {
  unsigned writers = 0;
  for (unsigned i = 0; i < upload->parts.buffer_count; i++)
    writers += upload->parts.buffers[i].writers;
  return writers;
}

/* Queues each part that is not sent, as it is, and waits until all are. */
static bool send_all(Call *call) {
  umemS3Upload *upload = call->upload;
  umemS3Parts *parts = &upload->parts;
  Waiting waiting = hasChanged;
  while (has_writers(upload)) umemLock_wait(&upload->lock, &upload->changed);
  for (unsigned i = 0; i < parts->buffer_count; i++)
    if (parts->buffers[i].state == umemS3BufferFills) queue(upload, &parts->buffers[i]);
  for (unsigned part = 0; part < umemS3Parts_count(parts); part++) {
    if (umemS3Parts_is_sent(parts, part) || umemS3Parts_buffer_of(parts, part)) continue;
    Buffer *buffer = take_buffer(call, part, NULL);
    if (!buffer) return false;
    queue(upload, buffer);
  }
  while (!upload->has_failed && waiting == hasChanged) waiting = wait_for_sender(call);
  return waiting != isCancelled && is_usable(upload);
}

/* An object of one part, or of none, by one request. */
static bool put_object(Call *call) {
  umemS3Upload *upload = call->upload;
  uint64_t const size = upload->parts.end;
  char etag[umemS3EtagSize];
  Buffer *buffer = size ? take_buffer(call, 0, NULL) : NULL;
  if (size && !buffer) return false;
  if (buffer) umemS3Buffer_clear_unmarked(buffer, size);
  WITHOUT_LOCK(upload);
  return umemS3Requests_put(&upload->requests, 0, buffer ? buffer->bytes : "", size, etag);
}

static bool join_all(Call *call) {
  umemS3Upload *upload = call->upload;
  umemS3Parts const *parts = &upload->parts;
  if (!send_all(call)) return false;
  WITHOUT_LOCK(upload);
  return umemS3Requests_join(&upload->requests, parts->parts, umemS3Parts_count(parts), parts->end);
}

static bool make_object(Call *call, bool whole) {
  umemS3Upload *upload = call->upload;
  umemS3Parts *parts = &upload->parts;
  uint64_t missing;
  if (!is_usable(upload) || !umemS3Parts_choose_size(parts)) return false;
  if (whole && (missing = umemS3Parts_missing(parts)))
    return UMEM_FAIL(upload->ctx, umemIOError,
                     "%s was not made: %" PRIu64 " of its %" PRIu64 " bytes were never written "
                     "(umem_flush makes it with zeros in their place)",
                     parts->label, missing, parts->end);
  upload->closed = true;
  upload->complete = parts->end <= parts->size ? put_object(call) : join_all(call);
  return upload->complete;
}

bool umemS3Upload_complete(umemS3Upload *upload, bool whole) {
  Call call = {.upload = upload, .asked = umemFetch_now()};
  WITH_LOCK(upload);
  return (upload->complete && upload->forks == umem_fork_count()) || make_object(&call, whole);
}

bool umemS3Upload_is_open(umemS3Upload *upload) {
  WITH_LOCK(upload);
  return !upload->complete && !upload->abandoned && upload->forks == umem_fork_count();
}

void umemS3Upload_abandon(umemS3Upload *upload) {
  WITH_LOCK(upload);
  upload->abandoned = !upload->complete;
  if (upload->abandoned) end_requests(upload);
}
