/* shm_kill.c - processes that share memory are killed while they allocate and free.
 *
 * First at every instruction: one process makes a call, step by step; after each step a copy of the
 * tables is repaired as after a death. Then at random, in a loop: others go on, and each block is
 * compared with a model. */
#include "shm_help.h"

#include <sys/ptrace.h>

#include "share/shm_segment.h"

/* ---- at every instruction ---- */

enum { fixed_count = 3, fixed_size = 200, stepped_size = 1000 };

typedef enum Call {
  callAlloc,
  callAligned,
  callCalloc,
  callFree,
  callShrink,
  callGrow,
  callMove,
  callOwn,
  call_count
} Call;

static umemShmHeader *header;
static uintptr_t fixed[fixed_count], stepped;

static void make_call(Call call) {
  if (call == callAlloc) umem_alloc(&shm, stepped_size);
  if (call == callAligned) umem_aligned_alloc(&shm, 4096, stepped_size);
  if (call == callCalloc) umem_calloc(&shm, 1, stepped_size);
  if (call == callFree) umem_free(&shm, stepped);
  if (call == callShrink) umem_realloc(&shm, stepped, stepped_size, 100);
  if (call == callGrow) umem_realloc(&shm, stepped, stepped_size, 3000);
  if (call == callMove) umem_realloc(&shm, fixed[1], fixed_size, 3000);
  if (call == callOwn) umemShm_own(&shm, stepped);
}

/* A copy of the tables, which is repaired. */
static umemShmTable repaired(unsigned char *copy) {
  size_t extents = umemShmTable_count(header->blocks) * sizeof(umemShmExtent);
  memcpy(copy, header, 4096 + extents + umemShmTable_heads(header->blocks) * sizeof(uint32_t));
  umemShmTable table = {.root = &((umemShmHeader *)(void *)copy)->root,
                        .count = umemShmTable_count(header->blocks),
                        .blocks = header->blocks,
                        .head_mask = umemShmTable_heads(header->blocks) - 1,
                        .capacity = header->capacity};
  table.extents = (umemShmExtent *)(void *)(copy + 4096);
  table.heads = (uint32_t *)(void *)(table.extents + table.count);
  assert_true(umemShmTable_rebuild(&table));
  return table;
}

/* The fixed blocks are there, and at most one more; but a block that moves may be there twice, by
 * then. All sums are right: what is not live can be allocated again, in one piece. */
static void check_tables(umemShmTable *table, Call call, uint64_t first) {
  umemShmEntry entry;
  uint32_t at = 0;
  unsigned found = 0, others = 0;
  while (umemShmTable_next(table, &at, &entry)) {
    bool is_fixed = false;
    for (unsigned i = 0; i < fixed_count; i++) is_fixed |= fixed[i] - first == entry.offset;
    found += is_fixed;
    others += !is_fixed;
    if (!is_fixed && (call == callAlloc || call == callAligned || call == callCalloc ||
                      call == callFree || call == callOwn))
      assert_int_equal(entry.size, stepped_size);
    if (is_fixed && call != callMove) assert_int_equal(entry.size, fixed_size);
  }
  assert_true(others <= 1 + (call == callMove));
  assert_true(found == fixed_count || (call == callMove && found == fixed_count - 1 && others));
  if (call == callShrink || call == callGrow || call == callOwn) assert_int_equal(others, 1);
  for (at = 0; umemShmTable_next(table, &at, &entry);)
    assert_int_equal(umemShmTable_free(table, entry.offset), umemShmOK);
  uint64_t offset;
  assert_int_equal(
      umemShmTable_alloc(table, table->capacity, 64, (umemShmOwner){1, 1}, true, &offset),
      umemShmOK);
  assert_int_equal(offset, 0);
}

static pid_t start_stepped(Call call) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
  raise(SIGSTOP);
  make_call(call);
  _exit(0);
}

/* Returns the number of steps; 0 if the machine does not permit to trace. */
static unsigned long step_through(Call call, unsigned char *copy, uint64_t first) {
  int status;
  unsigned long steps = 0;
  pid_t child = start_stepped(call);
  assert_true(waitpid(child, &status, 0) == child);
  if (!WIFSTOPPED(status)) return 0;
  for (; WIFSTOPPED(status); steps++) {
    umemShmTable table = repaired(copy);
    check_tables(&table, call, first);
    if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) != 0) break;
    assert_true(waitpid(child, &status, 0) == child);
  }
  if (WIFSTOPPED(status)) {
    kill(child, SIGKILL);
    child_wait(child);
    return 0;
  }
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return steps;
}

TEST_CASE(a_death_at_any_instruction_is_repaired) {
  if (setting_small()) skip();
  for (Call call = 0; call < call_count; call++) {
    open_small(&shm, MiB, 8);
    header = mmap(NULL, 4096, PROT_READ, MAP_SHARED, umemShm_descriptor(&shm), 0);
    assert_true(header != MAP_FAILED);
    uint64_t data = header->total - header->capacity;
    munmap(header, 4096);
    header = mmap(NULL, data, PROT_READ, MAP_SHARED, umemShm_descriptor(&shm), 0);
    unsigned char *copy = aligned_alloc(64, data);
    for (unsigned i = 0; i < fixed_count; i++) fixed[i] = umem_alloc(&shm, fixed_size);
    stepped = call == callFree || call >= callShrink ? umem_alloc(&shm, stepped_size) : 0;
    unsigned long steps = step_through(call, copy, umemShm_address(&shm, data));
    free(copy);
    munmap(header, data);
    umem_dtor(&shm);
    if (!steps) skip();
    assert_true(steps > 100);
    print_message("call %d: %lu instructions\n", (int)call, steps);
  }
}

/* ---- at random ---- */

enum { workers = 3, slots = 24, most_size = 2000 };

typedef enum Doing { doingNothing, doingAlloc, doingFree, doingRealloc } Doing;

/* A block in the model; offset 0 for none: it is written last. */
typedef struct Slot {
  uint64_t offset, size, seed;
} Slot;

typedef struct Worker {
  Slot slot[slots];
  uint64_t doing, which, size; /* what the running call does, with which slot, to what size */
  uint64_t wrong;              /* the worker has found a wrong byte */
} Worker;

static Worker *model; /* shared */

static void store(uint64_t *number, uint64_t value) {
  __atomic_store_n(number, value, __ATOMIC_SEQ_CST);
}

static unsigned char *bytes_at(uint64_t offset) {
  return (unsigned char *)umemShm_address(&shm, offset);
}

static void fill(Slot const *slot) { memset(bytes_at(slot->offset), (int)slot->seed, slot->size); }

static bool is_whole(Slot const *slot) {
  unsigned char const *bytes = bytes_at(slot->offset);
  for (uint64_t i = 0; i < slot->size; i++)
    if (bytes[i] != (unsigned char)slot->seed) return false;
  return true;
}

static void begin(Worker *self, Doing doing, uint64_t which, uint64_t size) {
  self->which = which;
  store(&self->size, size);
  store(&self->doing, doing);
}

static void allocate(Worker *self, Slot *slot) {
  uint64_t size = 1 + below(most_size);
  begin(self, doingAlloc, (uint64_t)(slot - self->slot), size);
  uintptr_t adr = next_random() % 4 ? umem_alloc(&shm, size) : umem_aligned_alloc(&shm, 1024, size);
  if (adr) {
    slot->size = size;
    slot->seed = next_random();
    Slot made = {umemShm_offset(&shm, adr), size, slot->seed};
    fill(&made);
    store(&slot->offset, made.offset);
  }
  store(&self->doing, doingNothing);
}

static void resize(Worker *self, Slot *slot) {
  uint64_t size = 1 + below(most_size);
  begin(self, doingRealloc, (uint64_t)(slot - self->slot), size);
  uintptr_t adr = umem_realloc(&shm, (uintptr_t)bytes_at(slot->offset), slot->size, size);
  if (adr) {
    Slot made = {umemShm_offset(&shm, adr), size, slot->seed};
    fill(&made);
    store(&slot->offset, 0); /* between the two stores the block is one that realloc has left */
    slot->size = size;
    store(&slot->offset, made.offset);
  }
  store(&self->doing, doingNothing);
}

static void work(Worker *self) {
  for (;;) {
    Slot *slot = &self->slot[below(slots)];
    if (slot->offset && !is_whole(slot)) {
      store(&self->wrong, 1);
      _exit(1);
    }
    if (!slot->offset) {
      allocate(self, slot);
    } else if (next_random() % 3 == 0) {
      resize(self, slot);
    } else {
      begin(self, doingFree, (uint64_t)(slot - self->slot), 0);
      umem_free(&shm, (uintptr_t)bytes_at(slot->offset));
      store(&slot->offset, 0);
      store(&self->doing, doingNothing);
    }
  }
}

static pid_t start_worker(unsigned number) {
  uint64_t seed = next_random();
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  random_state = seed | 1;
  work(&model[number]);
  _exit(0);
}

/* Whether a block is that of a slot, or may be what the running call of a killed worker has made or
 * left. */
static bool is_explained(umemShmBlock const *block, bool *certain) {
  uint64_t offset = umemShm_offset(&shm, block->address);
  bool stale = false;
  for (unsigned i = 0; i < workers; i++) {
    for (unsigned k = 0; k < slots; k++) {
      Slot const *slot = &model[i].slot[k];
      if (slot->offset != offset) continue;
      *certain = !(model[i].doing > doingAlloc && model[i].which == k);
      if (*certain) return block->nbytes == slot->size;
      stale = true; /* freed or moved perhaps, and then another worker's */
    }
  }
  *certain = false;
  for (unsigned i = 0; i < workers; i++) {
    bool allocates = model[i].doing == doingAlloc || model[i].doing == doingRealloc;
    bool has_size = allocates && block->nbytes == model[i].size;
    if (has_size || (stale && block->nbytes == model[i].slot[model[i].which].size)) return true;
  }
  return false;
}

static int by_address(void const *one, void const *other) {
  uintptr_t a = ((umemShmBlock const *)one)->address, b = ((umemShmBlock const *)other)->address;
  return (a > b) - (a < b);
}

/* All workers are dead. */
static void check_model(umemShmBlock const *blocks, size_t count) {
  unsigned unsure = 0;
  for (size_t i = 0; i < count; i++) {
    bool certain;
    assert_true(is_explained(&blocks[i], &certain));
    unsure += !certain;
    if (i) assert_true(blocks[i - 1].address + blocks[i - 1].nbytes <= blocks[i].address);
  }
  assert_true(unsure <= 2 * workers);
  for (unsigned i = 0; i < workers; i++) {
    assert_int_equal(model[i].wrong, 0);
    for (unsigned k = 0; k < slots; k++) {
      Slot *slot = &model[i].slot[k];
      bool in_flight = model[i].doing > doingAlloc && model[i].which == k;
      bool found = false;
      for (size_t b = 0; b < count; b++)
        found |= slot->offset && blocks[b].address == (uintptr_t)bytes_at(slot->offset);
      if (slot->offset && !in_flight) assert_true(found && is_whole(slot));
    }
  }
}

/* Frees what a running call has left, so that the model and the table agree again. */
static void settle(umemShmBlock const *blocks, size_t count) {
  for (unsigned i = 0; i < workers; i++) {
    if (model[i].doing > doingAlloc) model[i].slot[model[i].which].offset = 0;
    model[i].doing = doingNothing;
  }
  for (size_t b = 0; b < count; b++) {
    bool kept = false;
    for (unsigned i = 0; i < workers; i++)
      for (unsigned k = 0; k < slots; k++)
        kept |= model[i].slot[k].offset == umemShm_offset(&shm, blocks[b].address);
    if (!kept) umem_free(&shm, blocks[b].address);
  }
  assert_ok(umem_get_status(&shm));
}

TEST_CASE(kills_lose_and_double_no_block) {
  unsigned const rounds = setting_small() ? 12 : 334; /* each kills 3 */
  enum { most = 1024 };
  static umemShmBlock blocks[most];
  unsigned inside = 0;
  open_small(&shm, 2 * MiB, most);
  model = mmap(NULL, workers * sizeof *model, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
  assert_true(model != MAP_FAILED);
  header = (umemShmHeader *)mmap(NULL, 4096, PROT_READ, MAP_SHARED, umemShm_descriptor(&shm), 0);
  for (unsigned round = 0; round < rounds; round++) {
    pid_t child[workers];
    for (unsigned i = 0; i < workers; i++) child[i] = start_worker(i);
    for (unsigned i = 0; i < workers; i++) {
      nanosleep(&(struct timespec){0, (long)below(1500000)}, NULL);
      kill(child[i], SIGKILL);
      int status = child_wait(child[i]);
      if (status != -SIGKILL) fail_msg("worker %u ended with %d in round %u", i, status, round);
      uint64_t holder = __atomic_load_n(&header->lock.holder, __ATOMIC_RELAXED);
      inside += holder && umemShmOwner_is_mark_of_dead(holder, umemShm_descriptor(&shm));
    }
    size_t count = umemShm_blocks(&shm, blocks, most);
    assert_ok(umem_get_status(&shm));
    assert_true(count <= most);
    qsort(blocks, count, sizeof *blocks, by_address);
    check_model(blocks, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(blocks[i].dead, 1);
    if (round % 8 == 7) {
      assert_int_equal(umemShm_reclaim(&shm, 0), count);
      memset(model, 0, workers * sizeof *model);
      uintptr_t all = umem_alloc(&shm, 2 * MiB);
      assert_true(all != 0);
      umem_free(&shm, all);
    } else {
      settle(blocks, count);
    }
  }
  print_message("%u kills, %u of them inside of a call\n", workers * rounds, inside);
  if (!setting_small()) assert_true(inside > 0);
  munmap(header, 4096);
  munmap(model, workers * sizeof *model);
  umem_dtor(&shm);
}
