/* store_io.c - moves bytes between the file and memory, and makes them durable.
 *
 * pread and pwrite in loops: a call may transfer less than asked, be interrupted, and transfers at
 * most io_most. Long reads are split over two threads, because one cannot both take the page faults of
 * fresh memory and copy at the speed of the machine (bench: file to host). Writes of one file exclude
 * each other in the kernel. */
#include "stores/store_io.h"
#include "base/again.h"
#include "base/disk.h"
#include "base/number.h"
#include "base/thread.h"
#include "core/status.h"
#include "core/parallel.h"
#include "stores/store_blocks.h"
#include "stores/store_commit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static size_t const io_most = 0x7ffff000; /* Linux transfers no more in one call: read(2) */

enum { read_threads = 2, fill_chunk = 1 << 20, least_fill = 1 << 12 };

static size_t const read_piece = 8 << 20;      /* what a thread of its own is worth */
static size_t const zero_range_from = 1 << 20; /* below this, writing zeros is faster */

/* ---- read ---- */

typedef struct {
  umemStore *store;
  uint64_t offset;
  char *bytes;
  size_t size;
  size_t piece;
} Read;

static void fail_read(Read const *read, int error) {
  char words[128];
  umemVirtual_fail(read->store->ctx, umemIOError, "cannot read %zu bytes at %" PRIu64 " of %s: %s",
                   read->size, read->offset, read->store->label,
                   umem_system_words(error, words, sizeof words));
}

/* Reports that the file ends before the range: another process has cut it, or the range was never in it. */
static void fail_past_end(Read const *read) {
  umemStore *store = read->store;
  umemLock_acquire(&store->lock);
  uint64_t known = store->length;
  umemLock_release(&store->lock);
  uint64_t now;
  if (!umemStore_measure(store, &now)) return;
  if (read->offset < known && read->size <= known - read->offset)
    umemVirtual_fail(store->ctx, umemIOError,
                     "%s was truncated by another process: read of %zu bytes at %" PRIu64
                     ", but only %" PRIu64 " of %" PRIu64 " bytes are left",
                     store->label, read->size, read->offset, now, known);
  else
    umemVirtual_fail(store->ctx, umemIndexError,
                     "read of %zu bytes at %" PRIu64 " past the end of %s (%" PRIu64 " bytes)",
                     read->size, read->offset, store->label, now);
}

static void read_part(void *job, unsigned k) {
  Read const *read = job;
  size_t done = k * read->piece;
  size_t end = read->size - done < read->piece ? read->size : done + read->piece;
  while (done < end) {
    ssize_t n = pread(read->store->fd, read->bytes + done, umem_lesser(end - done, io_most),
                      (off_t)(read->offset + done));
    if (n > 0) {
      done += (size_t)n;
    } else if (n == 0) {
      fail_past_end(read);
      return;
    } else if (errno != EINTR) {
      fail_read(read, errno);
      return;
    }
  }
}

bool umemStore_read(umemStore *store, uint64_t offset, void *bytes, size_t size) {
  if (!umemStore_settle(store)) return false;
  Read read = {store, offset, bytes, size, size};
  uint64_t before = umem_thread.failures;
  if (offset > INT64_MAX || size > INT64_MAX - offset) {
    fail_past_end(&read);
    return false;
  }
  unsigned pieces = umem_parallel_pieces(size, read_piece, read_threads);
  read.piece = (size + pieces - 1) / pieces;
  umem_parallel(pieces, read_part, &read);
  return umem_thread.failures == before;
}

/* ---- write ---- */

static bool write_all(umemStore *store, uint64_t offset, char const *bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t n =
        pwrite(store->fd, bytes + done, umem_lesser(size - done, io_most), (off_t)(offset + done));
    if (n > 0) {
      done += (size_t)n;
    } else if (n == 0 || errno != EINTR) {
      char words[128];
      return UMEM_FAIL(store->ctx, umemIOError, "cannot write %zu bytes at %" PRIu64 " of %s: %s",
                       size, offset, store->label,
                       umem_system_words(n == 0 ? EIO : errno, words, sizeof words));
    }
  }
  return true;
}

bool umemStore_write(umemStore *store, uint64_t offset, void const *bytes, size_t size) {
  return umemStore_owns(store, offset, size) && umemStore_settle(store) &&
         write_all(store, offset, bytes, size);
}

/* ---- buffers ---- */

/* Host memory of nbytes, or NULL: callers then use a small buffer of their own. */
static char *take_buffer(umemStore *store, size_t nbytes) {
  umemAttempt ignored;
  umemAttempt_begin(&ignored);
  uintptr_t buffer = umem_alloc(&store->host, nbytes);
  umemAttempt_end(&ignored);
  return (char *)buffer;
}

/* ---- fill ---- */

/* Lets the file system zero the range without writing; false where it cannot. */
static bool zero_range(umemStore *store, uint64_t offset, size_t size) {
  return umem_change_space(store->fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, offset,
                           offset + size) == 0;
}

/* After umemStore_settle. */
static bool fill(umemStore *store, uint64_t offset, int c, size_t size) {
  if (!(unsigned char)c && size >= zero_range_from && zero_range(store, offset, size)) return true;
  char small[least_fill];
  char *large = size > sizeof small ? take_buffer(store, umem_lesser(size, fill_chunk)) : NULL;
  char *buffer = large ? large : small;
  size_t chunk = umem_lesser(size, large ? fill_chunk : sizeof small);
  memset(buffer, c, chunk);
  bool good = true;
  for (size_t done = 0; good && done < size; done += chunk)
    good = write_all(store, offset + done, buffer, umem_lesser(size - done, chunk));
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

bool umemStore_fill(umemStore *store, uint64_t offset, int c, size_t size) {
  return umemStore_settle(store) && fill(store, offset, c, size);
}

bool umemStore_set(umemStore *store, uint64_t offset, int c, size_t size) {
  return umemStore_owns(store, offset, size) && umemStore_settle(store) &&
         fill(store, offset, c, size);
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
    good = umemStore_read(store, from + done, buffer, n) && write_all(store, to + done, buffer, n);
  }
  umem_free(&store->host, (uintptr_t)large);
  return good;
}

/* ---- durability ---- */

/* The name of a new file is durable when its directory is; where that cannot be opened any more, the
 * whole file system's state is written. */
static bool sync_name(umemStore *store) {
  int fd = umemStore_open_directory(store, O_RDONLY);
  int result = fd >= 0 ? UMEM_AGAIN(fsync(fd)) : UMEM_AGAIN(syncfs(store->fd));
  int error = errno;
  if (fd >= 0) close(fd); /* read-only: nothing to lose */
  return result == 0 || umemStore_fail(store, umemIOError, error, "cannot flush the name of");
}

bool umemStore_flush(umemStore *store) {
  if (!store->writable) return true;
  if (!umemStore_settle(store)) return false;
  if (UMEM_AGAIN(fdatasync(store->fd)) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot flush");
  if (!__atomic_load_n(&store->unsynced_name, __ATOMIC_ACQUIRE)) return true;
  if (!sync_name(store)) return false;
  __atomic_store_n(&store->unsynced_name, false, __ATOMIC_RELEASE);
  return true;
}
