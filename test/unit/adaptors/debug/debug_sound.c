/* debug_sound.c - umem/debug.h: there are no findings in programs without a wrong call, whatever
 * they do, in children and in threads. */
#include "debug_help.h"

/* ---- programs without a fault ---- */

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
  return *state >> 33;
}

enum { slots = 50 };

typedef struct Slot {
  uintptr_t adr;
  size_t size;
  bool aligned, used;
} Slot;

/* Fills, from the first to the last byte, what is there. */
static void fill_slot(Place *place, Slot *slot, uint64_t *random) {
  assert_true(slot->adr != umem_null(&place->debug));
  assert_ok(umem_set(&place->debug, slot->adr, (int)next_random(random), slot->size));
}

static void step(Place *place, Slot *slot, uint64_t *random) {
  umemDebug *debug = &place->debug;
  size_t size = 1 + next_random(random) % (next_random(random) % 50 ? 300 : 100000);
  if (!slot->used) {
    slot->aligned = next_random(random) % 3 == 0;
    size_t alignment = (size_t)1 << next_random(random) % 13;
    slot->adr = slot->aligned             ? umem_aligned_alloc(debug, alignment, size)
                : next_random(random) % 3 ? umem_alloc(debug, size)
                                          : umem_calloc(debug, 1, size);
    *slot = (Slot){slot->adr, size, slot->aligned, true};
    fill_slot(place, slot, random);
  } else if (!slot->aligned && next_random(random) % 4 == 0) {
    slot->adr = umem_realloc(debug, slot->adr, slot->size, size);
    slot->size = size;
    fill_slot(place, slot, random);
  } else {
    (slot->aligned ? umem_aligned_free : umem_free)(debug, slot->adr);
    slot->used = false;
  }
}

TEST(a_correct_program_is_told_nothing) {
  umemDebugOptions options = few(30, 100000);
  int const steps = setting_small() ? 500 : 3000;
  uint64_t random = 1;
  Place place;
  FOR_EACH_PLACE(place, &options) {
    Slot all[slots] = {{0}};
    for (int i = 0; i < steps; i++) {
      step(&place, &all[next_random(&random) % slots], &random);
      if (i % 500 == 0) assert_ok(umemDebug_check(&place.debug));
      if (i % 700 == 0) assert_ok(umem_trim(&place.debug, 0));
    }
    size_t used = 0, bytes = 0;
    for (size_t i = 0; i < slots; i++) used += all[i].used, bytes += all[i].used ? all[i].size : 0;
    assert_int_equal(figures_of(&place.debug).live_blocks, used);
    assert_int_equal(figures_of(&place.debug).live_bytes, bytes);
    assert_int_equal(figures_of(&place.debug).faults, 0);
    assert_true(umem_thread_status() == umemOK);
  }
}

/* ---- fork ---- */

/* Frees what the parent still has, in the way of a process that ends: 0 when nothing was wrong. */
static int end_in_child(Place *place, uintptr_t adr) {
  umem_free(&place->debug, adr);
  umem_free(&place->debug, umem_alloc(&place->debug, 10));
  umem_dtor(&place->debug);
  return umem_is_ok(&place->debug) ? 0 : 1;
}

/* A file is that of both: what the parent has done meanwhile is not wrong, what it has stays. */
TEST(a_child_leaves_the_parents_memory_alone) {
  char const *const names[] = {"host", "file-scratch", "mmap-scratch"};
  for (size_t i = 0; i < 3; i++) {
    Place place;
    int gate[2], status;
    char byte;
    open_place(&place, names[i], NULL);
    uintptr_t adr = umem_calloc(&place.debug, 1, 5000), other = umem_calloc(&place.debug, 1, 5000);
    umem_free(&place.debug, umem_alloc(&place.debug, 3000));
    assert_int_equal(pipe(gate), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      close(gate[1]);
      ssize_t ended = read(gate[0], &byte, 1); /* until the parent has gone on */
      _exit(ended ? 2 : end_in_child(&place, adr));
    }
    umem_free(&place.debug, other);
    assert_ok(umem_trim(&place.debug, 0));
    uintptr_t over = umem_calloc(&place.debug, 1, 9000); /* over the old guards */
    assert_true(over != umem_null(&place.debug));
    close(gate[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(gate[0]);
    assert_int_equal(status, 0);
    assert_true(all_are(&place, adr, 0, 5000) && all_are(&place, over, 0, 9000));
    FREE(&place.debug, adr, over);
    close_place(&place);
  }
}

/* ---- threads ---- */

static Place shared;

/* The first keeps looking while the others allocate and free. */
static void *churn(void *number) {
  int const rounds = setting_small() ? 100 : 500;
  uint64_t random = (uintptr_t)number;
  for (int i = 0; i < rounds; i++) {
    if (!number) {
      umemDebug_check(&shared.debug);
      if (i % 5 == 0) umem_trim(&shared.debug, 0);
      continue;
    }
    uintptr_t adr[6];
    for (size_t k = 0; k < 6; k++) {
      size_t size = 1 + next_random(&random) % (i % 4 ? 3000 : 40000); /* some do not wait */
      adr[k] =
          k % 2 ? umem_alloc(&shared.debug, size) : umem_aligned_alloc(&shared.debug, 64, size);
      umem_set(&shared.debug, adr[k], (int)i, size);
      if (k == 1) adr[k] = umem_realloc(&shared.debug, adr[k], size, 2 * size);
    }
    for (size_t k = 0; k < 6; k++) (k % 2 ? umem_free : umem_aligned_free)(&shared.debug, adr[k]);
  }
  return number;
}

TEST(threads_share_it) {
  umemDebugOptions options = few(20, 20000);
  FOR_EACH_PLACE(shared, &options) {
    in_threads(churn);
    assert_true(umem_is_ok(&shared.debug));
    assert_int_equal(figures_of(&shared.debug).faults, 0);
    assert_int_equal(figures_of(&shared.debug).live_blocks, 0);
    assert_ok(umem_trim(&shared.debug, 0));
    assert_int_equal(figures_of(&shared.debug).kept_blocks, 0);
  }
}

/* Each block is freed by all of them: one frees it, the others get a failure. */
static uintptr_t contested[200];
static size_t refused; /* atomic */

static void *free_all(void *unused) {
  for (size_t i = 0; i < 200; i++) {
    uint64_t before = umem_thread_failures();
    umem_free(&shared.debug, contested[i]);
    if (umem_thread_failures() != before) __atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

TEST(one_of_many_frees_a_block) {
  FOR_EACH_PLACE(shared, NULL) {
    refused = 0;
    for (size_t i = 0; i < 200; i++) contested[i] = umem_alloc(&shared.debug, 50);
    in_threads(free_all);
    assert_int_equal(refused, 200 * (worker_count - 1));
    assert_int_equal(figures_of(&shared.debug).live_blocks, 0);
    assert_int_equal(figures_of(&shared.debug).kept_blocks, 200);
    assert_int_equal(first_fault(&shared.debug).kind, umemDebugDoubleFree);
    umem_clear_status(&shared.debug);
  }
}

int main(void) {
  doubles_use();
  return run_cases(NULL, NULL);
}
