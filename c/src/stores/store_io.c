/* store_io.c - reads, writes and fills ranges of the file, and makes them durable. */
#include "stores/store.h"
#include "base/system.h"
#include "base/files.h"
#include "core/status.h"
#include "core/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ==== calls of the system ==== */

enum { ahead_from = 2 << 10 }; /* bytes; for fewer, another copy costs more */
enum { shift = 64, page_size = 4096, write_piece = 32 << 10, slow_read_piece = 256 << 10 };

/* Where it is slow, reads to a place 64 bytes further on, and moves the bytes from there while the
 * cache has them. */
static __attribute__((noinline)) ssize_t pread_shifted(int fd, void *bytes, size_t size,
                                                       off_t offset) {
  char *first = (char *)bytes + shift;
  ssize_t n = pread(fd, first, umem_lesser(size - shift, slow_read_piece), offset);
  if (n > 0) memmove(bytes, first, (size_t)n);
  return n;
}

/* By way of a buffer that has the bytes 64 further on than the page cache, modulo the size of a
 * page. */
static __attribute__((noinline)) ssize_t pwrite_shifted(int fd, void const *bytes, size_t size,
                                                        off_t offset) {
  _Alignas(page_size) char buffer[page_size + shift + write_piece];
  char *first = buffer + offset % page_size + shift;
  size_t n = umem_lesser(size, write_piece);
  memcpy(first, bytes, n);
  return pwrite(fd, first, n, offset);
}

/* As pread and pwrite, of which one call may transfer a part. */
static ssize_t read_call(int fd, void *bytes, size_t size, off_t offset) {
  bool slow = size >= ahead_from && umem_is_slow((uintptr_t)bytes, (uintptr_t)offset);
  return slow ? pread_shifted(fd, bytes, size, offset)
              : pread(fd, bytes, umem_lesser(size, umemStoreMostIO), offset);
}

static ssize_t write_call(umemStore const *store, void const *bytes, size_t size, off_t offset) {
  bool slow = size >= ahead_from && umem_is_slow((uintptr_t)offset, (uintptr_t)bytes);
  return slow ? pwrite_shifted(store->fd, bytes, size, offset)
              : pwrite(store->fd, bytes, umemStore_write_most(store, (uint64_t)offset, size),
                       offset);
}

/* ==== reads ====
 *
 * Short reads are one pread. Long ones are cut into pieces, and each thread takes the next piece
 * that is not taken. What the page cache has comes from there. What it lacks goes around it, where
 * the option direct allows that: many threads that read a disk through the cache disturb its
 * readahead, and take twice as long as O_DIRECT. Elsewhere two threads at most read from the disk
 * through the cache, best of all a half of the range each.
 *
 * A program that reads a file again will read it a third time: after as many bytes as the file has,
 * reads go through the cache, if the file fits into half of the RAM. */

static size_t const query_from = 1 << 20;   /* from here on a read queries what is cached, */
static size_t const query_stride = 1 << 20; /* for one page in so many bytes */
static size_t const thread_part = 2 << 20;  /* what a thread of its own is worth */
static size_t const least_piece = 2 << 20, most_piece = 4 << 20; /* powers of two */

typedef struct Read {
  umemStore *store;
  uint64_t offset;
  char *bytes;
  size_t size;
  size_t head, piece; /* bytes of the first piece, and of the others */
  size_t next;        /* the first piece that is not taken; atomic, as is over */
  bool over;          /* a piece has failed: take no other */
  bool bypasses;      /* what the cache lacks is read around it */
  bool plain;         /* all is read through the cache, whatever it has */
  unsigned threads;   /* that share the read */
  umemMeter *meter;
} Read;

/* The length of the file as this context knows it. */
static uint64_t known_length(umemStore *store) {
  UMEM_LOCKED(&store->lock);
  uint64_t length = store->length;
  return length;
}

/* ---- failures ---- */

static bool fail_read(Read const *read, int error) {
  return UMEM_FAIL(read->store->ctx, umemIOError, "cannot read %zu bytes at %" PRIu64 " of %s: %s",
                   read->size, read->offset, read->store->label, UMEM_WORDS(error));
}

/* Notes that the file has length bytes now. Returns how many it had before others cut it. */
static uint64_t note_cut(umemStore *store, uint64_t length) {
  UMEM_LOCKED(&store->lock);
  umemStore_note_cut(store, length, UMEM_STORE_NONE);
  return umem_greater(store->length, store->before_cut);
}

/* Reports that the file ends before the range: another process has cut it, or the range was never
 * in it. */
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
    ssize_t n =
        read_call(read->store->fd, read->bytes + done, end - done, (off_t)(read->offset + done));
    if (n > 0)
      done += (size_t)n;
    else if (n == 0)
      return fail_past_end(read);
    else if (errno != EINTR)
      return fail_read(read, errno);
  }
  return true;
}

/* read_calls, noted for the route of the copy. */
static __attribute__((noinline)) bool read_noted(Read const *read, size_t done, size_t end) {
  uint64_t begin = umem_route_clock();
  bool good = done == end || read_calls(read, done, end);
  if (done < end) umem_note(umemWayPageCache, good ? end - done : 0, read->threads, begin);
  return good;
}

static bool read_cached(Read const *read, size_t done, size_t end) {
  return umem_is_watched() ? read_noted(read, done, end) : read_calls(read, done, end);
}

/* read_cached for what the disk has, by at most umemStoreTurns threads at a time. */
static bool read_in_turn(Read const *read, size_t done, size_t end) {
  umemStore *store = read->store;
  UMEM_HOLDING();
  UMEM_LOCKED(&store->turns[(read->offset + done) / most_piece % umemStoreTurns]);
  return read_cached(read, done, end);
}

/* ---- around the cache ---- */

bool umemStore_bypasses_cache(umemStore *store) {
  if (store->direct != umemDirectAuto) return store->direct == umemDirectOn;
  if (__atomic_load_n(&store->refuses, __ATOMIC_RELAXED)) return false;
  uint64_t length = known_length(store);
  uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  return length > ram / 2 || __atomic_load_n(&store->bypassed, __ATOMIC_RELAXED) < length;
}

/* As read_cached, but around the cache all whole units; sets *done to where it stops. False where a
 * read failed. */
static bool read_past_cache(Read const *read, umemDirectPath *path, size_t *done, size_t end) {
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
  __atomic_fetch_add(&read->store->bypassed, (uint64_t)n, __ATOMIC_RELAXED);
  return true;
}

/* ---- pieces ---- */

/* Opens path when it is first needed. */
static bool has_path(Read const *read, umemDirectPath *path) {
  if (!read->bypasses) return false;
  if (!path->store) umemDirectPath_open(path, read->store, false);
  if (path->refused) __atomic_store_n(&read->store->refuses, true, __ATOMIC_RELAXED);
  return !path->refused;
}

/* Reads [done, end) of the range, which is on the disk. */
static bool read_from_disk(Read const *read, umemDirectPath *path, size_t done, size_t end) {
  while (done < end) {
    if (!has_path(read, path)) return read_in_turn(read, done, end);
    if (!read_past_cache(read, path, &done, end)) return false;
  }
  return true;
}

/* The end of what begins at done and is all cached, or all not, as far as one page in every stride
 * says. */
static size_t same_until(Read const *read, size_t done, size_t end, bool cached) {
  size_t stop = done + query_stride;
  while (stop < end && umemStore_is_cached(read->store, read->offset + stop) == cached)
    stop += query_stride;
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

/* read_piece, also of long pieces, for a meter. Whether to go on. */
static bool read_metered(Read const *read, umemDirectPath *path, size_t done, size_t end) {
  bool good = true;
  for (size_t n; good && done < end && !umemMeter_is_over(read->meter); done += n) {
    n = umem_lesser(end - done, most_piece);
    good = read_piece(read, path, done, done + n);
    if (good)
      umemMeter_add(read->meter, done, n);
    else
      umemMeter_stop(read->meter);
  }
  return !umemMeter_is_over(read->meter);
}

static void close_path(umemDirectPath *path) {
  if (path->store) umemDirectPath_close(path);
}

/* The work of one thread. */
static void read_pieces(void *job, unsigned thread) {
  (void)thread;
  Read *read = job;
  __attribute__((cleanup(close_path))) umemDirectPath path = {.fd = -1}; /* an exception may pass */
  while (!__atomic_load_n(&read->over, __ATOMIC_RELAXED)) {
    size_t k = __atomic_fetch_add(&read->next, 1, __ATOMIC_RELAXED);
    size_t begin = k ? end_of(read, k - 1) : 0;
    if (begin == read->size) break;
    if (!(read->meter ? read_metered : read_piece)(read, &path, begin, end_of(read, k)))
      __atomic_store_n(&read->over, true, __ATOMIC_RELAXED);
  }
}

/* Pieces begin at whole units of the file, and as near as they can to the beginning of a huge page
 * in memory: two threads rarely touch the same one. */
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
  read->bypasses = umemStore_bypasses_cache(read->store);
  read->plain = threads > 1 && !read->bypasses && !is_all_cached(read);
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

static bool read_range(Read *read) {
  umemStore *store = read->store;
  uint64_t offset = read->offset, size = read->size;
  if (!umemStore_ensure_committed(store)) return false;
  if (offset > INT64_MAX || size > INT64_MAX - offset) return fail_past_end(read);
  if (!umemStore_is_whole(store, "read", offset, size)) return false;
  bool is_long = size >= (store->direct == umemDirectOn ? umemStoreDirectFrom : query_from);
  return is_long ? read_long(read) : read_cached(read, 0, size);
}

void umemStoreContext_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                              uintptr_t dst_adr, size_t nbytes) {
  (void)host;
  umemStore *store = umemStore_of(ctx);
  bool metered = umem_thread.meter && nbytes >= query_from;
  Read read = {.store = store,
               .offset = umemStore_offset(store, src_adr),
               .bytes = (char *)dst_adr,
               .size = nbytes,
               .threads = 1,
               .meter = metered ? umemMeter_find(ctx, src_adr, dst_adr, nbytes) : NULL};
  if (!umemStore_maps(store, src_adr, umemIndexError)) return;
  if (read.meter) read.size = umemMeter_take(read.meter);
  read_range(&read);
}

/* ==== writes ====
 *
 * pwrite in loops: a call may transfer less than asked, be interrupted, and is not asked for more
 * than umemStore_write_most. One thread writes: writes of one file exclude each other in the
 * kernel, and several threads take longer. */

enum { fill_chunk = 2 << 20, least_fill = 1 << 12 };

static size_t const zero_range_from = 1 << 20; /* below this, writing zeros is faster */

/* ---- write ---- */

static __attribute__((noinline)) bool fail_write(umemStore *store, uint64_t offset, size_t size,
                                                 int error) {
  return UMEM_FAIL(store->ctx, umemIOError, "cannot write %zu bytes at %" PRIu64 " of %s: %s", size,
                   offset, store->label, UMEM_WORDS(error));
}

/* size > 0 */
static inline bool write_all(umemStore *store, uint64_t offset, char const *bytes, size_t size) {
  for (size_t done = 0;;) {
    ssize_t n = write_call(store, bytes + done, size - done, (off_t)(offset + done));
    if (n == (ssize_t)(size - done)) return true;
    if (n > 0)
      done += (size_t)n;
    else if (n == 0 || errno != EINTR)
      return fail_write(store, offset, size, n == 0 ? EIO : errno);
  }
}

/* write_all, noted for the route of the copy. */
static __attribute__((noinline)) bool write_noted(umemStore *store, uint64_t offset,
                                                  char const *bytes, size_t size) {
  uint64_t begin = umem_route_clock();
  bool good = write_all(store, offset, bytes, size);
  umem_note(umemWayPageCache, good ? size : 0, 1, begin);
  return good;
}

static inline bool write_cached(umemStore *store, uint64_t offset, char const *bytes, size_t size) {
  return umem_is_watched() ? write_noted(store, offset, bytes, size)
                           : write_all(store, offset, bytes, size);
}

/* All whole units around the cache, the rest, and what the file system does not do, through it. */
static __attribute__((noinline)) bool write_past_cache(umemStore *store, uint64_t offset,
                                                       char const *bytes, size_t size) {
  size_t done = umem_lesser(-offset % umemDirectUnit, size);
  size_t end = done + (size - done) / umemDirectUnit * umemDirectUnit;
  umemDirectPath path;
  umemDirectPath_open(&path, store, true);
  bool good = !done || write_cached(store, offset, bytes, done);
  while (good && done < end && !path.refused) {
    uint64_t begin = umem_route_clock();
    ssize_t n = umemDirectPath_write(&path, offset + done, bytes + done,
                                     umem_lesser(end - done, umemStoreMostIO));
    if (n > 0) {
      done += (size_t)n;
      umem_note(umemStore_direct_way(store), (size_t)n, 1, begin);
    } else if (!path.refused)
      good = fail_write(store, offset, size, n == 0 ? EIO : errno);
    if (n > 0 && n % umemDirectUnit) break; /* a part of a unit: the cache does the rest */
  }
  umemDirectPath_close(&path);
  return good && (done == size || write_cached(store, offset + done, bytes + done, size - done));
}

/* Whether the bytes are inside one live block of a committed store. */
static inline bool may_write(umemStore *store, uintptr_t adr, size_t nbytes) {
  return umemStore_maps(store, adr, umemIndexError) &&
         umemStore_may_write(store, umemStore_offset(store, adr), nbytes) &&
         umemStore_ensure_committed(store);
}

void umemStoreContext_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *host,
                                uintptr_t src_adr, size_t nbytes) {
  (void)host;
  umemStore *store = umemStore_of(ctx);
  uint64_t offset = umemStore_offset(store, dst_adr);
  if (!may_write(store, dst_adr, nbytes)) return;
  if (nbytes >= umemStoreDirectFrom && store->direct == umemDirectOn)
    write_past_cache(store, offset, (char const *)src_adr, nbytes);
  else
    write_cached(store, offset, (char const *)src_adr, nbytes);
}

/* ---- buffers ---- */

/* Host memory of nbytes, or NULL: callers then use a small buffer of their own. */
static char *take_buffer(umemStore *store, size_t nbytes) {
  UMEM_FORGETTING();
  return (char *)umem_alloc(&store->host, nbytes);
}

/* ---- fill ---- */

/* Lets the file system zero the range without writing; false where it cannot. */
static bool zero_range(umemStore *store, uint64_t offset, size_t size) {
  return umem_change_space(store->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset,
                           offset + size) == 0;
}

/* After umemStore_ensure_committed. */
static bool fill(umemStore *store, uint64_t offset, int c, size_t size) {
  if (!(unsigned char)c && size >= zero_range_from && zero_range(store, offset, size)) return true;
  char small[least_fill];
  char *large = size > sizeof small ? take_buffer(store, umem_lesser(size, fill_chunk)) : NULL;
  char *buffer = large ? large : small;
  size_t chunk = umem_lesser(size, large ? fill_chunk : sizeof small);
  memset(buffer, c, chunk);
  bool good = true;
  for (size_t done = 0, n; good && done < size; done += n) {
    size_t odd = chunk == fill_chunk ? (size_t)((offset + done) % chunk) : 0;
    n = umem_lesser(size - done, chunk - odd);
    good = write_all(store, offset + done, buffer, n);
  }
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size) {
  return umemStore_ensure_committed(store) && fill(store, offset, c, size);
}

void umemStoreContext_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemStore *store = umemStore_of(ctx);
  if (may_write(store, adr, nbytes)) fill(store, umemStore_offset(store, adr), c, nbytes);
}

/* ---- move ---- */

bool umemStore_move(umemStore *store, uint64_t from, uint64_t to, size_t size) {
  char small[least_fill];
  char *large = size > sizeof small ? take_buffer(store, umem_lesser(size, fill_chunk)) : NULL;
  char *buffer = large ? large : small;
  size_t chunk = umem_lesser(size, large ? fill_chunk : sizeof small);
  bool good = true;
  for (size_t done = 0; good && done < size; done += chunk) {
    size_t n = umem_lesser(size - done, chunk);
    Read read = {.store = store, .offset = from + done, .bytes = buffer, .size = n, .threads = 1};
    good = read_range(&read) && write_all(store, to + done, buffer, n);
  }
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

/* ---- durability ---- */

/* The name of a new file is durable when its directory is; where that cannot be opened any more,
 * the whole file system's state is written. */
static bool sync_name(umemStore *store) {
  int fd = umemStore_open_directory(store, O_RDONLY);
  int result = fd >= 0 ? UMEM_AGAIN(fsync(fd)) : UMEM_AGAIN(syncfs(store->fd));
  umem_close_failed(fd); /* read-only: nothing to lose */
  return result == 0 || umemStore_fail(store, umemIOError, errno, "cannot flush the name of");
}

/* Linux finds pages that were written through a mapping without msync too; POSIX requires it. */
static bool flush_mapping(umemStore *store) {
  uint64_t length;
  if (!umemStore_measure(store, &length)) return false;
  if (length > store->limit) length = store->limit;
  return !length || UMEM_AGAIN(msync(store->base, length, MS_SYNC)) == 0 ||
         umemStore_fail(store, umemIOError, errno, "cannot flush the mapping of");
}

void umemStoreContext_flush(umemVirtual *ctx) {
  umemStore *store = umemStore_of(ctx);
  if (!store->writable || !umemStore_ensure_committed(store)) return;
  if (store->base && !flush_mapping(store)) return;
  if (UMEM_AGAIN(fdatasync(store->fd)) != 0)
    umemStore_fail(store, umemIOError, errno, "cannot flush");
  else if (__atomic_load_n(&store->unsynced_name, __ATOMIC_ACQUIRE) && sync_name(store))
    __atomic_store_n(&store->unsynced_name, false, __ATOMIC_RELEASE);
}
