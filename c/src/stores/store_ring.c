/* store_ring.c - reads many runs of a file at the same time, around the page cache, by io_uring.
 *
 * A thread that calls pread has one read in flight, and advice to the kernel (posix_fadvise) fills
 * the page cache, from which the bytes are copied once more. A ring has many reads in flight, whose
 * bytes the disk writes to their place. A run that is not aligned as the disk needs it is read to a
 * buffer, with the rest of its pages.
 *
 * Sandboxes often forbid io_uring. Then, in older kernels, and where a read fails or is short, the
 * runs wait: the caller reads them by other calls, which say what is wrong. */
#include "stores/store_file.h"
#include "base/system.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- the interface of the kernel: linux/io_uring.h, which older systems do not have ---- */

enum { setup_number = 425, enter_number = 426, read_operation = 22, enter_waits = 1 };
enum { reads_plainly = 1 << 3 }; /* IORING_FEAT_RW_CUR_POS: Linux 5.6, as is the operation */
static off_t const entries_offset = 0x10000000;

typedef struct SubmissionOffsets {
  uint32_t head, tail, mask, entries, flags, dropped, array, reserved[3];
} SubmissionOffsets;

typedef struct CompletionOffsets {
  uint32_t head, tail, mask, entries, overflow, cqes, flags, reserved[3];
} CompletionOffsets;

typedef struct Parameters {
  uint32_t submissions, completions, flags, cpu, idle, features, workers, reserved[3];
  SubmissionOffsets submission;
  CompletionOffsets completion;
} Parameters;

typedef struct Submission {
  uint8_t operation, flags;
  uint16_t priority;
  int32_t fd;
  uint64_t offset, address;
  uint32_t size, how;
  uint64_t user, reserved[3];
} Submission;

typedef struct Completion {
  uint64_t user;
  int32_t result;
  uint32_t flags;
} Completion;

_Static_assert(sizeof(Parameters) == 120 && sizeof(Submission) == 64 && sizeof(Completion) == 16,
               "the structs of the kernel");

/* ---- rings ---- */

enum { most_in_flight = 128, page_size = umemDirectUnit };
static size_t const buffers_most = 16 << 20; /* bytes */

typedef struct Slot {
  umemCopyRun *run;
  char *bytes;    /* where its bytes are read to */
  size_t skipped; /* of these, before the run */
} Slot;

typedef struct Ring {
  umemStore *store;
  int fd, file;
  void *queues;
  size_t queues_size, entries_size;
  Submission *entries;
  Parameters at;
  char *buffers;                                  /* NULL: none is needed */
  size_t buffer;                                  /* bytes of each */
  unsigned depth, waiting, in_flight, free_count; /* waiting: for the next call */
  unsigned char free[most_in_flight];
  Slot slots[most_in_flight];
  size_t nbytes; /* that are done */
  bool failed;   /* start no other */
} Ring;

static bool is_refused; /* by the system, to this process; atomic */

static uint32_t *word_of(Ring const *ring, uint32_t offset) {
  return (uint32_t *)(void *)((char *)ring->queues + offset);
}

static void close_ring(Ring *ring) {
  if (ring->buffers) munmap(ring->buffers, ring->depth * ring->buffer);
  if (ring->entries) munmap(ring->entries, ring->entries_size);
  if (ring->queues) munmap(ring->queues, ring->queues_size);
  if (ring->fd >= 0) close(ring->fd);
}

static void *map(size_t size, int fd, off_t offset) {
  int how = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
  void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, how, fd, offset);
  return bytes == MAP_FAILED ? NULL : bytes;
}

static bool map_ring(Ring *ring) {
  Parameters const *at = &ring->at;
  ring->queues_size = umem_greater(at->submission.array + at->submissions * sizeof(uint32_t),
                                   at->completion.cqes + at->completions * sizeof(Completion));
  ring->entries_size = at->submissions * sizeof(Submission);
  ring->queues = map(ring->queues_size, ring->fd, 0);
  ring->entries = map(ring->entries_size, ring->fd, entries_offset);
  if (ring->buffer) ring->buffers = map(ring->depth * ring->buffer, -1, 0);
  return ring->queues && ring->entries && (ring->buffers || !ring->buffer);
}

/* buffer: bytes of each that a run needs at most; 0: none. */
static bool open_ring(Ring *ring, umemStore *store, int file, size_t buffer) {
  *ring = (Ring){.store = store, .file = file, .fd = -1, .buffer = buffer};
  ring->depth =
      buffer ? (unsigned)umem_lesser(most_in_flight, buffers_most / buffer) : most_in_flight;
  ring->fd = (int)syscall(setup_number, most_in_flight, &ring->at);
  if (ring->fd < 0 && errno != ENOMEM && errno != EMFILE && errno != ENFILE)
    __atomic_store_n(&is_refused, true, __ATOMIC_RELAXED);
  if (ring->fd >= 0 && !(ring->at.features & reads_plainly))
    __atomic_store_n(&is_refused, true, __ATOMIC_RELAXED);
  else if (ring->fd >= 0 && map_ring(ring))
    return true;
  close_ring(ring);
  return false;
}

/* ---- reads ---- */

static bool is_aligned(umemStore *store, umemCopyRun const *run) {
  return !(run->dst_adr % umemDirectAddress) && !(run->nbytes % page_size) &&
         !(umemStore_offset(store, run->src_adr) % page_size);
}

/* The run waits for the next call. */
static void add(Ring *ring, umemCopyRun *run) {
  unsigned k = ring->free[--ring->free_count];
  uint64_t offset = umemStore_offset(ring->store, run->src_adr);
  size_t skipped = (size_t)(offset % page_size);
  size_t size = (skipped + run->nbytes + page_size - 1) / page_size * page_size;
  bool direct = is_aligned(ring->store, run);
  char *bytes = direct ? (char *)run->dst_adr : ring->buffers + k * ring->buffer;
  ring->slots[k] = (Slot){run, bytes, skipped};
  uint32_t *tail = word_of(ring, ring->at.submission.tail);
  uint32_t at = *tail & *word_of(ring, ring->at.submission.mask);
  ring->entries[at] = (Submission){.operation = read_operation,
                                   .fd = ring->file,
                                   .offset = offset - skipped,
                                   .address = (uintptr_t)bytes,
                                   .size = (uint32_t)size,
                                   .user = k};
  word_of(ring, ring->at.submission.array)[at] = at;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  ring->waiting++;
}

/* A read that is short may be one at the end of the file, behind the run. */
static void end_read(Ring *ring, Completion const *completion) {
  Slot *slot = &ring->slots[completion->user];
  size_t nbytes = slot->run->nbytes;
  ring->free[ring->free_count++] = (unsigned char)completion->user;
  ring->in_flight--;
  if (completion->result < 0 || (size_t)completion->result < slot->skipped + nbytes) {
    ring->failed = true;
    return;
  }
  if (slot->bytes != (char *)slot->run->dst_adr)
    memcpy((void *)slot->run->dst_adr, slot->bytes + slot->skipped, nbytes);
  slot->run->state = umemRunDone;
  ring->nbytes += nbytes;
}

static void take_completions(Ring *ring) {
  uint32_t *head = word_of(ring, ring->at.completion.head);
  uint32_t tail = __atomic_load_n(word_of(ring, ring->at.completion.tail), __ATOMIC_ACQUIRE);
  uint32_t mask = *word_of(ring, ring->at.completion.mask);
  Completion const *all = (void *)word_of(ring, ring->at.completion.cqes);
  for (; *head != tail; __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE))
    end_read(ring, &all[*head & mask]);
}

/* Starts those that wait, and waits for one that ends. The kernel writes to the memory of those in
 * flight: they are waited for, whatever fails. */
static void enter(Ring *ring) {
  unsigned starts = ring->failed ? 0 : ring->waiting;
  long n = syscall(enter_number, ring->fd, starts, 1, enter_waits, NULL, 0);
  if (n > 0) {
    ring->waiting -= (unsigned)n;
    ring->in_flight += (unsigned)n;
  } else if (n < 0 && errno != EINTR) {
    ring->failed = true;
    nanosleep(&(struct timespec){0, 50000}, NULL);
  }
  take_completions(ring);
}

static bool is_late(size_t next) {
  uint64_t until = umem_thread.until;
  return until && next && umemClock_read(CLOCK_MONOTONIC) >= until;
}

/* Returns how many runs are passed. */
static size_t read_runs(Ring *ring, umemCopyRun *runs, size_t count) {
  size_t next = 0;
  bool over = false;
  for (unsigned k = ring->depth; k > 0; k--)
    ring->free[ring->free_count++] = (unsigned char)(k - 1);
  do {
    over = over || ring->failed || is_late(next);
    for (; !over && next < count && ring->free_count; next++)
      if (runs[next].state == umemRunWaits) add(ring, &runs[next]);
    if (ring->in_flight || (ring->waiting && !ring->failed)) enter(ring);
  } while (ring->in_flight || (!ring->failed && (ring->waiting || (!over && next < count))));
  return next;
}

/* ---- lists ---- */

/* A run of which another read fits into a page, or that several threads read sooner. */
static size_t const least_run = 16 << 10, most_run = 1 << 20;

/* Whether a ring reads all of the runs. Sets *buffer to the bytes that one of them needs. */
static bool suit(umemStore *store, umemCopyRun const *runs, size_t count, size_t *buffer) {
  uint64_t first = UINT64_MAX, end = 0, length;
  *buffer = 0;
  for (size_t i = 0; i < count; i++) {
    size_t nbytes = runs[i].nbytes;
    uint64_t offset = umemStore_offset(store, runs[i].src_adr);
    if (nbytes < least_run || nbytes > most_run || offset > INT64_MAX - most_run) return false;
    if (!is_aligned(store, &runs[i]))
      *buffer = umem_greater(*buffer, (nbytes / page_size + 3) * page_size);
    first = umem_lesser(first, offset);
    end = umem_greater(end, offset + nbytes);
  }
  return umemStore_may_touch(store, first, (size_t)(end - first), umemReadable, &length);
}

size_t umemStore_read_ring(umemStore *store, umemCopyRun *runs, size_t count) {
  Ring ring;
  umemDirectPath path;
  size_t buffer, passed = 0;
  if (__atomic_load_n(&is_refused, __ATOMIC_RELAXED) || !umemStore_bypasses_cache(store) ||
      !suit(store, runs, count, &buffer))
    return 0;
  umemDirectPath_open(&path, store, false);
  if (!path.refused && open_ring(&ring, store, path.fd, buffer)) {
    uint64_t begin = umem_route_clock();
    passed = read_runs(&ring, runs, count);
    umem_note(umemStore_direct_way(store), ring.nbytes, 1, begin);
    __atomic_fetch_add(&store->bypassed, ring.nbytes, __ATOMIC_RELAXED);
    close_ring(&ring);
  }
  umemDirectPath_close(&path);
  return passed;
}
