/* shm_words.c - a hostile process writes into every word of the tables and the lock of a segment,
 * while three others allocate, free and look in it. Whatever stands there: no signal comes, no call
 * waits more than two seconds for the lock, and no byte outside of the segment changes.
 *
 * UMEM_TEST_SECONDS: how many seconds it takes. */

#include "child.h"
#include "settings.h"
#include "share/segment.h"
#include "share/shm_segment.h"

enum {
  workers = 3,
  blocks = 24,
  capacity = 256 << 10,
  most_size = 9000,
  kept = 16,
  guard = 64 << 10
};

static umemShm shm;
static umemHost host;
static char *header;      /* a mapping of the hostile process */
static size_t table_size; /* bytes of header and tables */
static uintptr_t first;   /* where the data begins in the workers */

/* ---- random numbers, of each process its own ---- */

static uint64_t state_of_random;

static uint64_t next_random(void) {
  state_of_random ^= state_of_random << 13;
  state_of_random ^= state_of_random >> 7;
  return state_of_random ^= state_of_random << 17;
}

static uint64_t below(uint64_t end) { return next_random() % end; }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- bytes around that must not change ---- */

static struct {
  unsigned char *bytes;
  size_t size;
} canaries[4];
static unsigned char own_bytes[64 << 10];

static void red_zone_bytes(unsigned number, void *bytes, size_t size) {
  canaries[number].bytes = bytes;
  canaries[number].size = size;
  for (size_t i = 0; i < size; i++) canaries[number].bytes[i] = (unsigned char)(i * 7 + number);
}

/* Pages on both sides of the segment, a part of the heap, and variables. */
static void set_canaries(void) {
  int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  char *begin = (char *)first - (umemShm_offset(&shm, first));
  char *end = (char *)first + capacity;
  void *heap = malloc(64 << 10);
  void *before = mmap(begin - guard, guard, PROT_READ | PROT_WRITE, how, -1, 0);
  void *behind = mmap(end, guard, PROT_READ | PROT_WRITE, how, -1, 0);
  EXPECT(before == begin - guard && behind == end && heap);
  red_zone_bytes(0, before, guard);
  red_zone_bytes(1, behind, guard);
  red_zone_bytes(2, own_bytes, sizeof own_bytes);
  red_zone_bytes(3, heap, 64 << 10);
}

static void check_canaries(void) {
  for (unsigned k = 0; k < 4; k++)
    for (size_t i = 0; i < canaries[k].size; i++)
      EXPECT(canaries[k].bytes[i] == (unsigned char)(i * 7 + k));
}

/* ---- the workers ---- */

static uintptr_t mine[kept];
static size_t size_of[kept];

/* What is given out lies in the data, whoever else has it, too. */
static void take(unsigned which, uintptr_t adr, size_t size) {
  mine[which] = adr;
  size_of[which] = size;
  if (!adr) return;
  EXPECT(adr >= first && size <= capacity && adr - first <= capacity - size);
  memset((void *)adr, (int)which, size);
}

static void look(void) {
  static umemShmBlock found[4 * blocks];
  umemFound block = UMEM_FOUND_INIT;
  umemInfo info = UMEM_INFO_INIT;
  size_t count = umemShm_blocks(&shm, found, 4 * blocks);
  EXPECT(count <= umemShmTable_count(blocks));
  for (size_t i = 0; i < count; i++)
    EXPECT(found[i].address >= first && found[i].nbytes <= capacity &&
           found[i].address - first <= capacity - found[i].nbytes);
  if (umem_find_in(&shm, first + below(capacity), &block))
    EXPECT(block.adr >= first && block.adr - first <= capacity - block.nbytes);
  umem_get_info(&shm, &info);
  EXPECT(info.available <= capacity);
}

static void attach(void) {
  umemHandle handle;
  if (umem_share(&shm, first + below(capacity), 1, &handle) != umemOK) return;
  uintptr_t adr = umem_attach(&handle, &host);
  EXPECT(!adr || (adr >= first && adr - first < capacity));
  if (adr) EXPECT(umem_detach(&host, adr) == umemOK);
}

/* One call. Returns for how many seconds it may wait. */
static double call(void) {
  unsigned which = (unsigned)below(kept);
  size_t size = 1 + below(most_size);
  uintptr_t adr = below(8) ? mine[which] : first + below(capacity / 64) * 64;
  switch (below(8)) {
  case 0:
  case 1:
    take(which, umem_alloc(&shm, size), size);
    break;
  case 2:
    take(which, umem_aligned_alloc(&shm, (size_t)64 << below(10), size), size);
    break;
  case 3:
  case 4:
    umem_free(&shm, adr);
    break;
  case 5:
    if (mine[which]) take(which, umem_realloc(&shm, mine[which], size_of[which], size), size);
    return 6; /* a block that moves is looked up, allocated and freed */
  case 6:
    which %= 3;
    if (which == 0) umemShm_reclaim(&shm, (int)below(3));
    if (which == 1) umemShm_own(&shm, adr);
    if (which == 2) attach();
    break;
  default:
    look();
  }
  return 2;
}

static void work(void *end) {
  unsigned long calls = 0;
  alarm((unsigned)setting_seconds(0) + child_seconds);
  set_canaries();
  for (double start = seconds(), before = start; start < *(double *)end; before = start, calls++) {
    double most = call() + 1; /* for what other programs of the machine take */
    start = seconds();
    if (start - before > most) fprintf(stderr, "a call has taken %g s\n", start - before);
    EXPECT(start - before <= most);
    FORGET(&shm, &host);
    if (calls % 64 == 0) check_canaries();
  }
  check_canaries();
  EXPECT(calls > 20);
}

/* ---- the hostile process ---- */

/* Numbers that mean something in the tables, or in the lock, and numbers that mean nothing. */
static uint64_t nonsense(void) {
  uint64_t const numbers[] = {0,
                              1,
                              blocks,
                              umemShmTable_count(blocks),
                              umemShmTable_count(blocks) + 1,
                              0x6c697665,
                              0x66726565,
                              UINT32_MAX,
                              UINT64_MAX,
                              capacity,
                              capacity - 64,
                              64 * below(capacity / 64),
                              umemShmOwner_mark(umemShmOwner_self(), below(2)),
                              umemShmOwner_self().process,
                              umemShmOwner_self().space,
                              (uint64_t)(uintptr_t)&own_bytes[below(sizeof own_bytes)],
                              next_random()};
  return numbers[below(sizeof numbers / sizeof *numbers)];
}

static void write_word(size_t at, bool wide) {
  uint64_t value = nonsense();
  if (wide && at % 8 == 0 && at + 8 <= table_size)
    __atomic_store_n((uint64_t *)(void *)(header + at), value, __ATOMIC_RELAXED);
  else
    __atomic_store_n((uint32_t *)(void *)(header + at), (uint32_t)value, __ATOMIC_RELAXED);
}

static void write_lock(void) {
  size_t const lock = offsetof(umemShmHeader, lock);
  write_word(lock + below(sizeof(umemShmLock) / 4) * 4, below(2));
}

/* Each word comes in its turn, in an order without one. Now and then all is as in a new segment:
 * calls would otherwise only report that the tables are damaged. The lock is seldom left as it
 * is. */
static void write_words(void *end) {
  size_t const words = table_size / 4, step = 7919; /* a prime */
  char *sound = malloc(table_size);
  EXPECT(sound);
  alarm((unsigned)setting_seconds(0) + child_seconds);
  memcpy(sound, header, table_size);
  struct timespec const pause = {0, 50000};
  for (size_t turn = 0; seconds() < *(double *)end; turn++) {
    write_word(turn * step % words * 4, below(2));
    if (turn % 16 == 0) write_lock();
    if (turn % 16 == 4 && below(200)) memset(header + offsetof(umemShmHeader, lock), 0, 8);
    if (turn % 256 == 0) memcpy(header, sound, table_size);
    if (turn % 4 == 0) nanosleep(&pause, NULL);
    if (turn % 16 == 0 && !below(2000)) sleep(3); /* whatever stands in the lock */
  }
}

TEST_CASE(any_word_may_be_anything) {
  umemShmOptions options = {.size = sizeof options, .capacity = capacity, .blocks = blocks};
  assert_int_equal(umemHost_ctor(&host), umemOK);
  double end = seconds() + setting_seconds(setting_small() ? 2 : 5);
  for (unsigned round = 0; round < 2; round++) {
    assert_int_equal(umemShm_ctor_with(&shm, NULL, &options), umemOK);
    table_size = umemSegment_data(blocks, umemSegmentUsual);
    header =
        mmap(NULL, table_size, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(&shm), 0);
    assert_true(header != MAP_FAILED);
    first = umemShm_address(&shm, table_size);
    table_size = umemSegment_tables(blocks);
    pid_t child[workers + 1];
    for (unsigned i = 0; i <= workers; i++) {
      state_of_random = 88172645463325252u + 977 * i + round;
      child[i] = child_start(i < workers ? work : write_words, &end);
    }
    for (unsigned i = 0; i <= workers; i++) assert_int_equal(child_wait(child[i]), 0);
    munmap(header, umemSegment_data(blocks, umemSegmentUsual));
    umem_dtor(&shm);
    end = seconds() + (setting_small() ? 1 : 2); /* once more, in another order */
  }
  umem_dtor(&host);
}
