/* url_lane.c - many requests at a time.
 *
 * A thread that has something to fetch takes a lane: a multi handle of libcurl with its open
 * connections, and slots for requests. It drives them until all is there, and gives the lane back
 * for the next copy. So no thread runs between copies, and none is shared. A child of fork leaves
 * the lanes of its parent alone, whose connections both would use.
 *
 * The lanes of one copy take requests from a common list: ranges of the runs to be read. Bytes go
 * from libcurl to where they belong, or to a buffer of the request, which is written when it is
 * full. */
#include "url/url_fetch.h"
#include "base/number.h"
#include "core/status.h"
#include "core/copy.h"
#include "core/threads.h"
#include "watch/watch.h"

#include <stdlib.h>
#include <string.h>

enum {
  least_piece = 1 << 20,  /* a copy is not cut finer, to have more requests in flight */
  most_lanes = 16,        /* threads that read for one copy */
  lane_bytes = 8 << 20,   /* a copy has a further one for so many bytes */
  buffer_bytes = 2 << 20, /* what contexts for GPUs lend pinned */
  poll_ms = 100,          /* after which a thread looks at what others have stopped */
  gather_ms = 2           /* after which the threads of a copy are there, or busy elsewhere */
};

/* After which a lane without a request looks at what others do. */
static struct timespec const idle_time = {0, 100 * 1000};

/* ==== lanes ==== */

static void end_lane(umemLane *lane) {
  umemCurl const *curl = lane->fetch->curl;
  for (unsigned i = 0; i < lane->slots; i++) {
    umemSlot *slot = &lane->slot[i];
    umemLine_end(slot);
    umemModel_end(&slot->model);
    if (slot->easy) curl->easy_cleanup(slot->easy);
    umemSlot_end_headers(slot);
  }
  if (lane->multi) curl->multi_cleanup(lane->multi);
  free(lane);
}

static umemLane *new_lane(umemFetch *fetch) {
  unsigned slots = fetch->options.connections;
  umemLane *lane = calloc(1, sizeof *lane + slots * sizeof *lane->slot);
  if (!lane) return umemFetch_no_memory(fetch), NULL;
  lane->fetch = fetch;
  lane->slots = slots;
  lane->random = umemFetch_now() ^ (uintptr_t)lane ^ UINT64_C(0x9e3779b97f4a7c15);
  for (unsigned i = 0; i < slots; i++) lane->slot[i].fetch = fetch;
  lane->multi = fetch->curl->multi_init();
  if (lane->multi && !fetch->curl->multi_setopt(lane->multi, umemCurlMultiConnections, (long)slots))
    return lane;
  end_lane(lane);
  return umemFetch_no_memory(fetch), NULL;
}

/* Lanes of parents, which nothing uses any more: their end would end connections of the parent. */
static umemLane *abandoned;

static void abandon_lanes(umemFetch *fetch) {
  umemLane *first = fetch->idle, *last = first;
  fetch->idle = NULL;
  if (!first) return;
  while (last->next) last = last->next;
  last->next = __atomic_load_n(&abandoned, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&abandoned, &last->next, first, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED))
    continue;
}

/* Takes the lane that was given back last, whose connections are the most likely to be open. */
static umemLane *take_lane(umemFetch *fetch) {
  umemLock_acquire(&fetch->lock);
  if (fetch->forks != umem_fork_count()) abandon_lanes(fetch);
  fetch->forks = umem_fork_count();
  umemLane *lane = fetch->idle;
  if (lane) fetch->idle = lane->next;
  umemLock_release(&fetch->lock);
  return lane ? lane : new_lane(fetch);
}

void umemFetch_destroy(umemFetch *fetch) {
  if (!fetch) return;
  if (fetch->forks != umem_fork_count()) abandon_lanes(fetch);
  for (umemLane *lane = fetch->idle, *next; lane; lane = next) {
    next = lane->next;
    end_lane(lane);
  }
  umemFetch_free(fetch);
}

/* Ends what a lane was doing. */
static void stop_lane(umemLane *lane) {
  for (unsigned i = 0; i < lane->slots; i++) {
    umemSlot *slot = &lane->slot[i];
    if (slot->state == slotRuns && !slot->lined)
      lane->fetch->curl->multi_remove(lane->multi, slot->easy);
    if (slot->lined) umemLine_end(slot);
    umemSlot_set_free(slot);
    slot->job = NULL;
    slot->call = NULL;
  }
}

/* Gives a lane that does nothing back. */
static void give_lane(umemLane *lane) {
  umemFetch *fetch = lane->fetch;
  umemLock_acquire(&fetch->lock);
  lane->next = fetch->idle;
  fetch->idle = lane;
  umemLock_release(&fetch->lock);
}

/* ---- what comes next ---- */

/* The runs from job->run on that one request reads: those that follow closely enough. */
static void join_runs(umemFetchJob *job, umemSlot *slot) {
  size_t gap = job->fetch->options.gap;
  while (job->run < job->count) {
    umemCopyRun const *run = &job->runs[job->run];
    uint64_t end = slot->from + slot->size;
    if (run->state != umemRunWaits || run->src_adr < end || run->src_adr - end > gap ||
        run->nbytes > job->piece || run->src_adr + run->nbytes - slot->from > job->piece)
      return;
    slot->size = (size_t)(run->src_adr + run->nbytes - slot->from);
    slot->used += run->nbytes;
    job->run++;
  }
}

/* Whether something has failed, or the program has cancelled the copy. */
static bool is_over(umemFetchJob const *job) {
  return __atomic_load_n(&job->over, __ATOMIC_RELAXED) ||
         (job->meter && umemMeter_is_over(job->meter));
}

/* Takes the next request of the job. False if there is none, or, with *full, if so many are in
 * flight that it must wait. */
static bool take_request(umemFetchJob *job, umemSlot *slot, bool *full) {
  pthread_mutex_lock(&job->lock);
  while (job->run < job->count && job->runs[job->run].state != umemRunWaits) job->run++;
  bool late = job->until && job->taken && !job->skip && umemFetch_now() >= job->until;
  bool more = job->run < job->count && !late && !is_over(job);
  *full =
      more && __atomic_load_n(&job->inflight, __ATOMIC_RELAXED) >= job->fetch->options.connections;
  if (more && !*full) {
    __atomic_fetch_add(&job->inflight, 1, __ATOMIC_RELAXED);
    umemCopyRun const *run = &job->runs[job->run];
    size_t rest = run->nbytes - job->skip;
    job->taken = true;
    slot->first_run = slot->run = job->run;
    slot->first_skip = slot->skip = job->skip;
    slot->from = run->src_adr + job->skip;
    slot->used = slot->size = umem_lesser(rest, job->piece);
    job->skip += slot->size;
    if (slot->size == rest) job->run++, job->skip = 0, join_runs(job, slot);
  }
  pthread_mutex_unlock(&job->lock);
  return more && !*full;
}

/* How many lanes share the requests: the first one leaves those of the others to them. */
static unsigned lanes_of(umemFetchJob const *job) {
  unsigned lanes = __atomic_load_n(&job->lanes, __ATOMIC_RELAXED);
  return lanes < job->planned && umemFetch_now() < job->gathered ? job->planned : lanes;
}

/* Whether a lane may have one more request in flight. Lanes of other copies do not keep it from its
 * first one, so that each copy goes on. */
static bool may_begin(umemLane const *lane, umemFetchJob const *job) {
  umemFetch *fetch = lane->fetch;
  if (!lane->busy) return true;
  unsigned share = fetch->options.connections / lanes_of(job);
  return lane->busy < (share ? share : 1) &&
         __atomic_load_n(&fetch->inflight, __ATOMIC_RELAXED) < fetch->options.connections;
}

static bool take_buffer(umemFetchJob *job, umemSlot *slot) {
  if (!job->host || slot->buffer) return true;
  slot->buffer = umem_alloc(job->host, job->room);
  return slot->buffer != 0;
}

/* Gives free slots requests to do. *full: there are more, which must wait for other lanes. */
static bool begin_requests(umemLane *lane, umemFetchJob *job, bool *full) {
  for (unsigned i = 0; i < lane->slots && may_begin(lane, job); i++) {
    umemSlot *slot = &lane->slot[i];
    if (slot->state != slotIdle) continue;
    slot->attempts = slot->hops = 0;
    slot->got = slot->emptied = 0;
    slot->plain = false;
    slot->begin = umem_route_clock();
    slot->job = job;
    if (!take_buffer(job, slot)) return false;
    if (!take_request(job, slot, full)) return true;
    __atomic_fetch_add(&lane->fetch->inflight, 1, __ATOMIC_RELAXED);
    slot->counts = true;
    lane->busy++;
    umemSlot_send_soon(slot);
  }
  return true;
}

/* ---- the loop ---- */

/* As far as the thread has listened: the program's target may have held it up since. */
static bool is_stalled(umemLane const *lane, umemSlot const *slot) {
  uint64_t limit = lane->fetch->options.stall_ms * umem_ns_of_ms, time = lane->listened;
  return slot->state == slotRuns && limit && time > slot->heard && time - slot->heard > limit;
}

static bool end_stalled(umemLane *lane, umemSlot *slot) {
  bool good = umemSlot_end_stalled(lane, slot);
  if (slot->lined) umemLine_end(slot);
  return good;
}

/* Sends what waits no longer, and ends what nothing is heard of. Sets *timeout to the milliseconds
 * until it has to look again. */
static bool look_at_slots(umemLane *lane, umemFetchJob const *job, int *timeout) {
  bool gathers = job && umemFetch_now() < job->gathered;
  uint64_t next = umemFetch_now() + (gathers ? gather_ms : poll_ms) * umem_ns_of_ms;
  for (unsigned i = 0; i < lane->slots; i++) {
    umemSlot *slot = &lane->slot[i];
    uint64_t time = umemFetch_now();
    if (is_stalled(lane, slot) && !end_stalled(lane, slot)) return false;
    if (slot->state == slotWaits && slot->wake <= time && !umemLine_send(lane, slot)) return false;
    if (slot->state == slotWaits) next = umem_lesser(next, slot->wake);
    if (slot->state == slotRuns && lane->fetch->options.stall_ms)
      next = umem_lesser(next, slot->heard + lane->fetch->options.stall_ms * umem_ns_of_ms);
  }
  uint64_t time = umemFetch_now();
  *timeout = next > time ? (int)((next - time) / umem_ns_of_ms) + 1 : 0;
  return true;
}

static bool fail_multi(umemLane *lane, int code) {
  return UMEM_FAIL(lane->fetch->ctx, umemRuntimeError, "libcurl cannot go on with %s: %s",
                   lane->fetch->label, lane->fetch->curl->multi_words(code));
}

/* Lets libcurl work, and takes what it has finished. */
static bool perform(umemLane *lane, bool *ended) {
  umemCurl const *curl = lane->fetch->curl;
  umemCurlMessage *message;
  int running = 0, left = 0;
  lane->listened = umemFetch_now();
  int code = curl->multi_perform(lane->multi, &running);
  if (code) return fail_multi(lane, code);
  for (*ended = false; (message = curl->multi_read(lane->multi, &left)) != NULL; *ended = true) {
    char *slot = NULL;
    int result = message->data.result; /* the message ends with the handle's removal */
    if (message->message != umemCurlDone) continue;
    curl->easy_getinfo(message->easy, umemCurlInfoPrivate, &slot);
    if (!umemSlot_end(lane, (umemSlot *)(void *)slot, result)) return false;
    if (((umemSlot *)(void *)slot)->state == slotIdle) lane->busy--;
  }
  return true;
}

/* Lets lines go on. *more: some need not wait. */
static bool step_lines(umemLane *lane, bool *ended, bool *more) {
  *more = false;
  for (unsigned i = 0; i < lane->slots; i++) {
    umemSlot *slot = &lane->slot[i];
    int code = slot->state == slotRuns && slot->lined ? umemLine_step(slot, more) : umemLineWaits;
    if (code == umemLineWaits) continue;
    *ended = true;
    if (!umemSlot_end_line(lane, slot, code)) return false;
    if (slot->state == slotIdle) lane->busy--;
  }
  return true;
}

static bool is_late(umemLane const *lane, uint64_t deadline) {
  if (!deadline || umemFetch_now() < deadline) return false;
  umemVirtual_fail(lane->fetch->ctx, umemIOError,
                   "the transfer from %s takes longer than %u ms (total_ms)", lane->fetch->label,
                   lane->fetch->options.total_ms);
  return true;
}

/* Of a line that connects, libcurl does not say what it waits for. */
static bool wait_for_some(umemLane *lane, int timeout) {
  umemCurlWait waits[UMEM_URL_CONNECTIONS];
  unsigned count = 0;
  for (unsigned i = 0; i < lane->slots; i++) {
    umemSlot const *slot = &lane->slot[i];
    if (slot->state != slotRuns || !slot->lined) continue;
    if (umemLine_wait(slot, &waits[count]))
      count++;
    else
      timeout = 1;
  }
  int code = lane->fetch->curl->multi_poll(lane->multi, waits, count, timeout, NULL);
  return !code || fail_multi(lane, code);
}

/* Whether this is the thread of the call, which alone may report and be cancelled. */
static bool is_caller(umemFetchJob const *job) {
  return !job || pthread_equal(job->caller, pthread_self());
}

/* Begins to count the time. Many short calls are like one that is long. */
static void begin_wait(umemLane *lane) {
  uint64_t now = umemFetch_now();
  if (now - lane->asked > 2 * poll_ms * umem_ns_of_ms) lane->asked = now;
}

/* Now and then lets the program cancel; where requests end, a meter does. False with a status. */
static bool goes_on(umemLane *lane, umemFetchJob *job, bool ended) {
  uint64_t now = umemFetch_now();
  bool reports = ended && job && job->meter;
  if (!reports && now - lane->asked < poll_ms * umem_ns_of_ms) return true;
  lane->asked = now;
  if (reports || !is_caller(job) || umem_goes_on()) return true;
  if (job && job->meter) {
    umemMeter_stop(job->meter); /* it records why */
    return true;
  }
  return UMEM_FAIL(lane->fetch->ctx, umemCancelledError, "cannot %s %s: cancelled",
                   job ? "read" : lane->slot->call->what, lane->fetch->label);
}

/* Whether a thread that has nothing to do waits for others. */
static bool must_wait(umemFetchJob const *job) {
  return job && is_caller(job) && __atomic_load_n(&job->inflight, __ATOMIC_RELAXED);
}

/* Does requests of the job, or the one that a slot has, until there are no more. False with a
 * status. */
static bool drive(umemLane *lane, umemFetchJob *job, uint64_t deadline) {
  begin_wait(lane);
  for (;;) {
    bool ended, more, full = false;
    int timeout;
    if (job && is_over(job)) return true;
    if (job && !begin_requests(lane, job, &full)) return false;
    if (!lane->busy && !full && !must_wait(job)) return true;
    if (is_late(lane, deadline) || !look_at_slots(lane, job, &timeout) || !perform(lane, &ended) ||
        !step_lines(lane, &ended, &more))
      return false;
    if (!lane->busy && !ended)
      nanosleep(&idle_time, NULL);
    else if (!ended && !more && !wait_for_some(lane, timeout))
      return false;
    if (!goes_on(lane, job, ended)) return false;
  }
}

/* ==== copies ==== */

static void free_buffers(umemLane *lane, umemFetchJob const *job, uint64_t unfinished) {
  for (unsigned i = 0; i < lane->slots; i++) {
    if (lane->slot[i].buffer) umem_free_buffer(job->host, lane->slot[i].buffer, unfinished);
    lane->slot[i].buffer = 0;
  }
}

typedef struct Work {
  umemFetchJob *job;
  umemLane *lane; /* NULL: there is none */
  uint64_t unfinished;
  bool good; /* false: the others begin nothing more */
} Work;

/* Also when an exception of C++ passes, which a report has thrown. */
static void end_work(Work *work) {
  if (!work->good) __atomic_store_n(&work->job->over, true, __ATOMIC_RELAXED);
  __atomic_fetch_sub(&work->job->lanes, 1, __ATOMIC_RELAXED);
  if (!work->lane) return;
  stop_lane(work->lane); /* no request uses the buffers any more */
  free_buffers(work->lane, work->job, work->unfinished);
  give_lane(work->lane);
}

/* The work of one thread. */
static void read_lane(void *data, unsigned piece) {
  (void)piece;
  umemFetchJob *job = data;
  if (__atomic_load_n(&job->over, __ATOMIC_RELAXED)) return;
  __atomic_fetch_add(&job->lanes, 1, __ATOMIC_RELAXED);
  __attribute__((cleanup(end_work))) Work work = {job, NULL, umem_unfinished_so_far(), false};
  work.lane = take_lane(job->fetch);
  if (work.lane) work.lane->busy = 0;
  work.good = work.lane && drive(work.lane, job, job->deadline);
}

/* How long a request is: shorter ones for a short copy, so that there are many at a time. */
static size_t piece_of(umemFetch const *fetch, size_t nbytes) {
  size_t each = nbytes / fetch->options.connections + 1;
  size_t const unit = 64 << 10;
  each = (each + unit - 1) / unit * unit;
  return umem_lesser(umem_greater(each, least_piece), fetch->options.piece);
}

static size_t count_waiting(umemCopyRun const *runs, size_t count) {
  size_t nbytes = 0;
  for (size_t i = 0; i < count; i++)
    if (runs[i].state == umemRunWaits) nbytes += runs[i].nbytes;
  return nbytes;
}

static size_t *count_left(umemFetch *fetch, umemCopyRun const *runs, size_t count) {
  size_t *left = malloc(count * sizeof *left);
  if (!left) umemFetch_no_memory(fetch);
  for (size_t i = 0; left && i < count; i++) left[i] = runs[i].nbytes;
  return left;
}

/* Makes memory of dst ready to be written by the CPU, or finds the host for buffers. */
static bool prepare_target(umemFetchJob *job, umemVirtual *src, umemVirtual *dst) {
  if (!umem_cpu_writes(dst)) return (job->host = umem_host_between(src, dst)) != NULL;
  if (umem_can(dst, umemOrdered)) return umem_finish(dst) == umemOK;
  return umem_settle(dst);
}

static bool read_runs(umemFetchJob *job) {
  size_t nbytes = job->nbytes = count_waiting(job->runs, job->count);
  uint32_t total = job->fetch->options.total_ms;
  unsigned lanes = (unsigned)umem_lesser(most_lanes, job->fetch->options.connections);
  job->piece = piece_of(job->fetch, nbytes);
  /* A pinned chunk for a GPU; else the piece as a whole, which others may want in few calls. */
  bool pinned = job->host && umem_can(job->host, umemDeviceAccessible);
  job->room = pinned ? umem_lesser(job->piece, buffer_bytes) : job->piece;
  job->deadline = total ? umemFetch_now() + total * umem_ns_of_ms : 0;
  job->planned = umem_parallel_pieces(nbytes, lane_bytes, lanes);
  job->gathered = umemFetch_now() + gather_ms * umem_ns_of_ms;
  uint64_t before = umem_thread.failures;
  umem_parallel(job->planned, read_lane, job);
  return umem_thread.failures == before;
}

static void free_left(umemFetchJob *job) { free(job->left); }

bool umemFetch_runs(umemFetch *fetch, umemVirtual *dst, umemCopyRun *runs, size_t count,
                    umemMeter *meter) {
  __attribute__((cleanup(free_left))) umemFetchJob job = {.fetch = fetch,
                                                          .dst = dst,
                                                          .runs = runs,
                                                          .count = count,
                                                          .meter = meter,
                                                          .caller = pthread_self(),
                                                          .until = umem_thread.until,
                                                          .lock = PTHREAD_MUTEX_INITIALIZER,
                                                          .turn = PTHREAD_MUTEX_INITIALIZER};
  if (!prepare_target(&job, fetch->ctx, dst)) return false;
  if (count > 1 && !(job.left = count_left(fetch, runs, count))) return false;
  bool good = read_runs(&job);
  if (good && count == 1) runs->state = umemRunDone;
  if (good && job.until) umem_thread.stopped = job.run < count;
  return good;
}

/* ==== single requests ==== */

/* Also when an exception of C++ passes. */
static void end_call(umemLane **lane) {
  stop_lane(*lane);
  give_lane(*lane);
}

bool umemFetch_call(umemFetch *fetch, umemFetchCall *call) {
  uint64_t before = umem_thread.failures;
  umemLane *taken = take_lane(fetch);
  if (!taken) return false;
  __attribute__((cleanup(end_call))) umemLane *lane = taken;
  umemSlot *slot = lane->slot;
  uint32_t total = fetch->options.total_ms;
  slot->attempts = slot->hops = 0;
  slot->call = call;
  slot->job = NULL;
  umemSlot_send_soon(slot);
  lane->busy = 1;
  drive(lane, NULL, total ? umemFetch_now() + total * umem_ns_of_ms : 0);
  if (call->answer) call->answer[call->answered] = 0;
  return umem_thread.failures == before;
}

/* ==== the object ==== */

static bool refuse_object(umemFetch *fetch, umemStatusType type, char const *cause) {
  return UMEM_FAIL(fetch->ctx, type, "cannot open %s: %s", fetch->label, cause);
}

/* Takes the length of the object from the answer to a request for its first byte. */
static bool take_length(umemFetch *fetch, umemFetchCall const *call) {
  umemFetchReply const *reply = &call->reply;
  bool empty = (reply->status == 416 && reply->has_total && !reply->total) ||
               (reply->status == 200 && reply->has_length && !reply->length);
  if (reply->malformed)
    return refuse_object(fetch, umemIOError, "the headers of the answer contradict themselves");
  if (empty) return true;
  if (reply->status == 200)
    return refuse_object(fetch, umemNotSupportedError,
                         "the server sends the whole object instead of a range");
  if (reply->status != 206) return umemFetch_refuse(fetch, "open", reply->status);
  if (reply->encoded)
    return refuse_object(fetch, umemNotSupportedError, "the server sends it compressed");
  if (!reply->has_range || reply->first || reply->last || call->answered != 1)
    return refuse_object(fetch, umemIOError, "the server sends another range than that asked for");
  if (!reply->has_total)
    return refuse_object(fetch, umemNotSupportedError, "the server does not say how long it is");
  fetch->length = reply->total;
  return true;
}

/* Whether an object has no bytes, of which S3 says no more than that the range is not there. */
static bool is_empty(umemFetch *fetch) {
  umemFetchCall call = {.what = "open", .method = "HEAD"};
  return umemFetch_call(fetch, &call) && call.reply.status == 200 && !call.reply.malformed &&
         call.reply.has_length && !call.reply.length;
}

bool umemFetch_pin(umemFetch *fetch) {
  char first[2];
  umemFetchCall call = {.what = "open",
                        .method = "GET",
                        .range = "0-0",
                        .answer = first,
                        .answer_size = sizeof first};
  if (!umemFetch_call(fetch, &call)) return false;
  if (call.reply.status == 416 && !call.reply.has_total && is_empty(fetch)) return true;
  if (!take_length(fetch, &call)) return false;
  fetch->pin = call.reply;
  bool pinned = *call.reply.etag || *call.reply.modified;
  return pinned || fetch->options.unpinned || !fetch->length ||
         refuse_object(
             fetch, umemNotSupportedError,
             "the server gives neither an ETag nor a date, by which a change of the object "
             "could be noticed (the option unpinned reads it all the same)");
}
