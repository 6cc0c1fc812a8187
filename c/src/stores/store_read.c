/* store_read.c - see store_read.h.
 *
 * Short reads are one pread. Long ones are cut into pieces, and each thread takes the next piece that nobody has
 * taken. What the page cache has comes from there. What it lacks goes around it, where the option direct allows
 * that: many threads that read a disk through the cache disturb its readahead, and take twice as long as O_DIRECT.
 * Elsewhere two threads at most read from the disk through the cache, best of all a half of the range each.
 *
 * A program that reads a file again will read it a third time: after as many bytes as the file has, reads go
 * through the cache, if the file fits into half of the RAM. */
#include "stores/store_read.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/threads.h"
#include "core/watch.h"
#include "core/status.h"
#include "stores/store_ahead.h"
#include "stores/store_blocks.h"
#include "stores/store_cached.h"
#include "stores/store_commit.h"
#include "stores/store_direct.h"

#include <inttypes.h>
#include <unistd.h>

static size_t const ask_from = 1 << 20;    /* from here on a read asks what is cached, */
static size_t const ask_stride = 1 << 20;  /* for one page in so many bytes */
static size_t const thread_part = 2 << 20; /* what a thread of its own is worth */
static size_t const least_piece = 2 << 20, most_piece = 4 << 20; /* powers of two */

typedef struct Read {
  umemStore *store;
  uint64_t offset;
  char *bytes;
  size_t size;
  size_t head, piece; /* bytes of the first piece, and of the others */
  size_t next;        /* piece that nobody has taken; atomic, as is over */
  bool over;          /* a piece has failed: take no other */
  bool around;        /* what the cache lacks is read around it */
  bool plain;         /* all is read through the cache, whatever it has */
  unsigned threads;   /* that share the read */
} Read;

/* The length of the file as this context knows it. */
static uint64_t known_length(umemStore *store) {
  umemLock_acquire(&store->lock);
  uint64_t length = store->length;
  umemLock_release(&store->lock);
  return length;
}

/* ---- failures ---- */

static bool fail_read(Read const *read, int error) {
  char words[128];
  return UMEM_FAIL(read->store->ctx, umemIOError, "cannot read %zu bytes at %" PRIu64 " of %s: %s",
                   read->size, read->offset, read->store->label,
                   umem_system_words(error, words, sizeof words));
}

/* Notes that the file has length bytes now. Returns how many it had before others cut it. */
static uint64_t note_cut(umemStore *store, uint64_t length) {
  umemLock_acquire(&store->lock);
  umemStore_note_cut(store, length, UMEM_STORE_NONE);
  uint64_t had = umem_greater(store->length, store->before_cut);
  umemLock_release(&store->lock);
  return had;
}

/* Reports that the file ends before the range: another process has cut it, or the range was never in it. */
static bool fail_past_end(Read const *read) {
  umemStore *store = read->store;
  uint64_t now;
  if (!umemStore_measure(store, &now)) return false;
  uint64_t known = note_cut(store, now);
  if (read->offset < known && read->size <= known - read->offset)
    umemVirtual_fail(store->ctx, umemIOError,
                     "%s was truncated by another process: read of %zu bytes at %" PRIu64
                     ", but only %" PRIu64 " of %" PRIu64 " bytes are left",
                     store->label, read->size, read->offset, now, known);
  else
    umemVirtual_fail(store->ctx, umemIndexError,
                     "read of %zu bytes at %" PRIu64 " past the end of %s (%" PRIu64 " bytes)",
                     read->size, read->offset, store->label, now);
  return false;
}

/* ---- through the cache ---- */

/* Reads [done, end) of the range. */
static bool read_calls(Read const *read, size_t done, size_t end) {
  while (done < end) {
    ssize_t n = umemStore_pread(read->store->fd, read->bytes + done, end - done,
                                (off_t)(read->offset + done));
    if (n > 0)
      done += (size_t)n;
    else if (n == 0)
      return fail_past_end(read);
    else if (errno != EINTR)
      return fail_read(read, errno);
  }
  return true;
}

/* The same, noted for the route of the copy. */
static __attribute__((noinline)) bool read_noted(Read const *read, size_t done, size_t end) {
  uint64_t begin = umem_route_clock();
  bool good = done == end || read_calls(read, done, end);
  if (done < end) umem_note(umemWayPageCache, good ? end - done : 0, read->threads, begin);
  return good;
}

static bool read_cached(Read const *read, size_t done, size_t end) {
  return umem_is_watched() ? read_noted(read, done, end) : read_calls(read, done, end);
}

/* The same of what the disk has, by at most umemStoreTurns threads at a time. */
static bool read_in_turn(Read const *read, size_t done, size_t end) {
  umemStore *store = read->store;
  umemLock *turn = &store->turns[(read->offset + done) / most_piece % umemStoreTurns];
  umemLock_acquire(turn);
  uint64_t before = umem_thread.failures;
  umemAttempt attempt; /* the failure hook may call back */
  umemAttempt_begin(&attempt);
  read_cached(read, done, end);
  umemAttempt_end(&attempt);
  umemLock_release(turn);
  umemAttempt_record(&attempt);
  return umem_thread.failures == before;
}

/* ---- around the cache ---- */

bool umemStore_goes_around(umemStore *store) {
  if (store->direct != umemDirectAuto) return store->direct == umemDirectOn;
  if (__atomic_load_n(&store->refuses, __ATOMIC_RELAXED)) return false;
  uint64_t length = known_length(store);
  uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  return length > ram / 2 || __atomic_load_n(&store->around, __ATOMIC_RELAXED) < length;
}

/* As read_cached, but around the cache all whole units; sets *done to where it stops. False where a read failed. */
static bool read_around(Read const *read, umemDirectPath *path, size_t *done, size_t end) {
  size_t to_unit = -(read->offset + *done) % umemDirectUnit;
  size_t begin = *done + umem_lesser(to_unit, end - *done);
  if (!read_cached(read, *done, begin)) return false;
  *done = begin;
  size_t whole = (end - begin) / umemDirectUnit * umemDirectUnit;
  if (!whole) return read_cached(read, begin, end) && (*done = end, true);
  uint64_t start = umem_route_clock();
  ssize_t n = umemDirectPath_read(path, read->offset + begin, read->bytes + begin, whole);
  if (n == 0) return fail_past_end(read);
  if (n < 0) return path->refused || fail_read(read, errno);
  *done += (size_t)n;
  umem_note(umemStore_direct_way(read->store), (size_t)n, read->threads, start);
  __atomic_fetch_add(&read->store->around, (uint64_t)n, __ATOMIC_RELAXED);
  return true;
}

/* ---- pieces ---- */

/* Opens path when it is first needed. */
static bool has_path(Read const *read, umemDirectPath *path) {
  if (!read->around) return false;
  if (!path->store) umemDirectPath_open(path, read->store, false);
  if (path->refused) __atomic_store_n(&read->store->refuses, true, __ATOMIC_RELAXED);
  return !path->refused;
}

/* Reads [done, end) of the range, which is on the disk. */
static bool read_from_disk(Read const *read, umemDirectPath *path, size_t done, size_t end) {
  while (done < end) {
    if (!has_path(read, path)) return read_in_turn(read, done, end);
    if (!read_around(read, path, &done, end)) return false;
  }
  return true;
}

/* The end of what begins at done and is all cached, or all not, as far as one page in every stride says. */
static size_t same_until(Read const *read, size_t done, size_t end, bool cached) {
  size_t stop = done + ask_stride;
  while (stop < end && umemStore_is_cached(read->store, read->offset + stop) == cached)
    stop += ask_stride;
  return umem_lesser(stop, end);
}

/* Reads [done, end) of the range, from wherever it is. */
static bool read_piece(Read const *read, umemDirectPath *path, size_t done, size_t end) {
  umemStore *store = read->store;
  if (read->plain) return read_cached(read, done, end);
  if (store->direct == umemDirectOn) return read_from_disk(read, path, done, end);
  bool good = true;
  while (good && done < end) {
    bool cached = umemStore_is_cached(store, read->offset + done);
    size_t stop = same_until(read, done, end, cached);
    good = cached ? read_cached(read, done, stop) : read_from_disk(read, path, done, stop);
    done = stop;
  }
  return good;
}

static size_t end_of(Read const *read, size_t k) {
  return umem_lesser(read->size, read->head + k * read->piece);
}

/* The work of one thread. */
static void read_pieces(void *job, unsigned thread) {
  (void)thread;
  Read *read = job;
  umemDirectPath path = {.fd = -1};
  while (!__atomic_load_n(&read->over, __ATOMIC_RELAXED)) {
    size_t k = __atomic_fetch_add(&read->next, 1, __ATOMIC_RELAXED);
    size_t begin = k ? end_of(read, k - 1) : 0;
    if (begin == read->size) break;
    if (!read_piece(read, &path, begin, end_of(read, k)))
      __atomic_store_n(&read->over, true, __ATOMIC_RELAXED);
  }
  if (path.store) umemDirectPath_close(&path);
}

/* Pieces begin at whole units of the file, and as near as they can to the beginning of a huge page in memory: two
 * threads rarely touch the same one. */
static void cut(Read *read, unsigned threads) {
  read->piece = read->size / threads / 4 < most_piece ? least_piece : most_piece;
  size_t to_page = -(uintptr_t)read->bytes % read->piece;
  size_t over = (read->offset + to_page) % umemDirectUnit;
  read->head = over > to_page ? to_page + umemDirectUnit - over : to_page - over;
}

/* As far as some pages say. */
static bool is_all_cached(Read const *read) {
  size_t const stride = read->size / 8;
  for (size_t at = 0; at < read->size; at += stride)
    if (!umemStore_is_cached(read->store, read->offset + at)) return false;
  return true;
}

static bool read_long(Read *read) {
  uint64_t before = umem_thread.failures;
  bool shares =
      read->size > most_piece; /* a thread that fills a chunk for a GPU reads one piece alone */
  unsigned threads = shares ? umem_parallel_pieces(read->size, thread_part, umemParallelMost) : 1;
  read->around = umemStore_goes_around(read->store);
  read->plain = threads > 1 && !read->around && !is_all_cached(read);
  if (read->plain) {
    threads = umemStoreTurns;
    read->piece = read->size / threads + 1;
  } else {
    cut(read, threads);
  }
  read->threads = threads;
  umem_parallel(threads, read_pieces, read);
  return umem_thread.failures == before;
}

bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size) {
  if (!umemStore_settle(store)) return false;
  Read read = {.store = store, .offset = offset, .bytes = bytes, .size = size, .threads = 1};
  if (offset > INT64_MAX || size > INT64_MAX - offset) return fail_past_end(&read);
  if (!umemStore_is_whole(store, "read", offset, size)) return false;
  bool is_long = size >= (store->direct == umemDirectOn ? umemStoreDirectFrom : ask_from);
  return is_long ? read_long(&read) : read_cached(&read, 0, size);
}
