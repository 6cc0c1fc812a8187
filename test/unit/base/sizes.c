/* sizes.c - base/sizes.h: the table of live blocks against a naive model, without memory, in threads.
 *
 * The number of random operations comes from UMEM_TEST_OPERATIONS (1000000 when unset or empty).
 * Linked with -Wl,--wrap=calloc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"
#include "base/sizes.h"

/* ---- memory that fails ---- */

static _Thread_local unsigned one_fails_of; /* each with this probability; 0: none */
static _Thread_local uint64_t failing_random;

/* splitmix64: S. Vigna, public domain. */
static uint64_t random64(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t n) { return (size_t)(random64(state) % n); }

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
  if (one_fails_of && !below(&failing_random, one_fails_of)) return NULL;
  return __real_calloc(count, size);
}

/* ---- addresses ---- */

/* The address of this hash: umemTable_hash is a product by an odd number. */
static uintptr_t address_of_hash(uint64_t hash) {
  uint64_t factor = umemTable_hash(1), inverse = factor;
  for (int i = 0; i < 6; i++) inverse *= 2 - factor * inverse; /* Newton */
  return (uintptr_t)(hash * inverse);
}

/* Addresses of one part that all want the same cell, until it has 2^28 of them. */
static uintptr_t colliding(unsigned part, size_t i) {
  return address_of_hash(((uint64_t)part << (64 - umemSizesPartBits)) + i + 1);
}

/* Of every kind: offsets from 0 on, as an allocator gives them, those at the end of a part, anything. */
static uintptr_t any_address(uint64_t *random, size_t i) {
  switch (i % 5) {
  case 0:
    return i / 5 * 16;
  case 1:
    return (uintptr_t)0x7f0000000000 + i * 48;
  case 2:
    return colliding(3, i);
  case 3:
    return address_of_hash(((uint64_t)8 << (64 - umemSizesPartBits)) - 1 - i); /* wraps */
  default:
    return (uintptr_t)random64(random) >> 1;
  }
}

static size_t cells_in(umemSizes const *blocks) {
  size_t cells = 0;
  for (int i = 0; i < umemSizesParts; i++) cells += blocks->part[i].table.capacity;
  return cells;
}

static unsigned reserved_in(umemSizes const *blocks) {
  unsigned reserved = 0;
  for (int i = 0; i < umemSizesShares; i++) reserved += blocks->share[i].reserved;
  return reserved;
}

/* Entries, and the room of those that were taken. */
static size_t used_in(umemSizes const *blocks) {
  size_t used = 0;
  for (int i = 0; i < umemSizesParts; i++)
    used += blocks->part[i].table.count + blocks->part[i].taken - blocks->part[i].dropped;
  return used;
}

/* ---- the model: what there is of each of some addresses ---- */

typedef struct Known {
  uintptr_t adr;
  bool live, taken;
  size_t size, taken_size;
} Known;

enum { most_known = 5000, most_reserved = 40 };

typedef struct Model {
  umemSizes blocks;
  Known known[most_known];
  size_t count; /* of known addresses */
  unsigned reserved, refused;
  uint64_t random, seed, operation;
} Model;

static Model model;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      fail_msg("seed %llu, operation %llu: %s", (unsigned long long)model.seed,                    \
               (unsigned long long)model.operation, #condition);                                   \
  } while (0)

static void reserve(void) {
  if (model.reserved == most_reserved) return;
  bool reserved = umemSizes_reserve(&model.blocks);
  CHECK(reserved || one_fails_of);
  model.reserved += reserved;
  model.refused += !reserved;
}

static void release(void) {
  if (!model.reserved) return;
  umemSizes_release(&model.blocks);
  model.reserved--;
}

static void put(Known *known) {
  size_t size = (size_t)random64(&model.random), old = 1;
  if (!model.reserved) return;
  bool was = umemSizes_put(&model.blocks, known->adr, size, &old);
  model.reserved--;
  CHECK(was == known->live);
  CHECK(!was || old == known->size);
  known->live = true;
  known->size = size;
}

static void find(Known const *known) {
  size_t size = 1;
  CHECK(umemSizes_find(&model.blocks, known->adr, &size) == known->live);
  CHECK(!known->live || size == known->size);
}

static void take(Known *known) {
  size_t size = 1;
  if (known->taken) return; /* one thread has it */
  CHECK(umemSizes_take(&model.blocks, known->adr, &size) == known->live);
  CHECK(!known->live || size == known->size);
  known->taken = known->live;
  known->taken_size = known->size;
  known->live = false;
}

static void drop(Known *known) {
  if (known->taken) umemSizes_drop(&model.blocks, known->adr);
  known->taken = false;
}

static void put_back(Known *known) {
  size_t old = 1;
  if (!known->taken) return;
  bool was = umemSizes_put_back(&model.blocks, known->adr, known->taken_size, &old);
  CHECK(was == known->live);
  CHECK(!was || old == known->size);
  known->live = true;
  known->taken = false;
  known->size = known->taken_size;
}

static void act(void) {
  Known *known = &model.known[below(&model.random, model.count)];
  bool grows = model.operation / 20000 % 2 == 0; /* and shrinks in turn */
  switch (below(&model.random, 12)) {
  case 0:
    find(known);
    break;
  case 1:
    release();
    break;
  case 2:
    put_back(known);
    break;
  case 3:
  case 4:
    drop(known);
    break;
  case 5:
  case 6:
  case 7:
    grows ? reserve() : take(known);
    break;
  case 8:
    reserve();
    break;
  case 9:
    take(known);
    break;
  default:
    put(known);
    break;
  }
}

static void run(uint64_t seed, size_t count, unsigned fails) {
  umemSizes_init(&model.blocks);
  model.count = count;
  model.reserved = model.refused = 0;
  model.random = model.seed = failing_random = seed;
  for (size_t i = 0; i < count; i++) {
    bool is_new = false;
    while (!is_new) {
      model.known[i] = (Known){.adr = any_address(&model.random, i)};
      is_new = true;
      for (size_t k = 0; k < i; k++) is_new = is_new && model.known[k].adr != model.known[i].adr;
    }
  }
  uint64_t operations = setting_operations(1000000) / 4;
  for (model.operation = 0; model.operation < operations; model.operation++) {
    one_fails_of = model.operation / 5000 % 2 ? 0 : fails;
    act();
  }
  one_fails_of = 0;
  size_t used = 0;
  for (size_t i = 0; i < count; i++) {
    find(&model.known[i]);
    used += (size_t)model.known[i].live + model.known[i].taken;
  }
  assert_int_equal(used_in(&model.blocks), used);
  assert_int_equal(reserved_in(&model.blocks), model.reserved);
  umemSizes_fini(&model.blocks);
}

static void agrees_with_the_model(void **state) {
  (void)state;
  run(1, 50, 0);
  run(2, most_known, 0);
}

static void agrees_when_memory_fails(void **state) {
  (void)state;
  run(3, most_known, 2);
  run(4, most_known, 1);
  assert_true(model.refused > 0 || setting_operations(1000000) < 1000000);
}

/* ---- one thing at a time ---- */

static umemSizes table;

static int open_table(void **state) {
  (void)state;
  umemSizes_init(&table);
  one_fails_of = 0;
  return 0;
}

static int close_table(void **state) {
  (void)state;
  umemSizes_fini(&table);
  one_fails_of = 0;
  return 0;
}

static void an_empty_one_has_nothing(void **state) {
  (void)state;
  size_t size;
  uintptr_t const addresses[] = {0, 16, UINTPTR_MAX};
  for (int i = 0; i < 3; i++) {
    assert_false(umemSizes_find(&table, addresses[i], &size));
    assert_false(umemSizes_take(&table, addresses[i], &size));
  }
  assert_true(umemSizes_reserve(&table)); /* now there are cells */
  umemSizes_release(&table);
  for (int i = 0; i < 3; i++) {
    assert_false(umemSizes_find(&table, addresses[i], &size));
    assert_false(umemSizes_take(&table, addresses[i], &size));
  }
}

/* All that was reserved finds room in one part and from one cell on, also without memory. */
static void what_is_reserved_has_room(void **state) {
  (void)state;
  size_t const reserved = 300;
  size_t none, size, i;
  for (i = 0; i < reserved; i++) assert_true(umemSizes_reserve(&table));
  one_fails_of = 1;
  for (i = 0; i < reserved; i++) assert_false(umemSizes_put(&table, colliding(5, i), i, &none));
  /* Until nothing is promised any more. */
  for (; umemSizes_reserve(&table); i++) umemSizes_put(&table, colliding(5, i), i, &none);
  size_t entered = i;
  assert_true(entered < table.part[5].table.capacity);
  for (i = 0; i < entered; i++) {
    assert_true(umemSizes_find(&table, colliding(5, i), &size));
    assert_int_equal(size, i);
  }
  assert_false(umemSizes_find(&table, colliding(5, entered), &size));
  /* What is taken can go back. */
  for (i = 0; i < entered; i++) assert_true(umemSizes_take(&table, colliding(5, i), &size));
  assert_false(umemSizes_reserve(&table));
  for (i = 0; i < entered; i++) assert_false(umemSizes_put_back(&table, colliding(5, i), i, &none));
  one_fails_of = 0;
  assert_true(umemSizes_reserve(&table));
  umemSizes_release(&table);
}

/* Room that becomes free is as good as memory. */
static void room_comes_back(void **state) {
  (void)state;
  size_t none, size, entered = 0;
  assert_true(umemSizes_reserve(&table));
  umemSizes_release(&table);
  one_fails_of = 1;
  for (; umemSizes_reserve(&table); entered++)
    umemSizes_put(&table, colliding(9, entered), entered, &none);
  for (int round = 0; round < 100; round++) {
    assert_true(umemSizes_take(&table, colliding(9, (size_t)round % entered), &size));
    assert_false(umemSizes_reserve(&table)); /* it may come back */
    umemSizes_drop(&table, colliding(9, (size_t)round % entered));
    assert_true(umemSizes_reserve(&table));
    umemSizes_put(&table, colliding(9, (size_t)round % entered), size, &none);
    assert_false(umemSizes_reserve(&table));
  }
}

static void cells_go_with_the_blocks(void **state) {
  (void)state;
  size_t const count = 100000;
  size_t none, size;
  for (size_t i = 0; i < count; i++) {
    assert_true(umemSizes_reserve(&table));
    umemSizes_put(&table, 4096 + 16 * i, i, &none);
  }
  assert_in_range(cells_in(&table), count / 3 * 4, 3 * count);
  for (size_t i = 0; i < count; i++) {
    assert_true(umemSizes_take(&table, 4096 + 16 * i, &size));
    umemSizes_drop(&table, 4096 + 16 * i);
  }
  assert_in_range(cells_in(&table), 1, count / 20);
}

/* ---- threads ---- */

enum { worker_count = 8, worker_blocks = 200, late_count = 32 };

static pthread_barrier_t reserved_all, filled;

static void *enter_late(void *number) {
  size_t none;
  bool reserved = umemSizes_reserve(&table);
  pthread_barrier_wait(&reserved_all);
  pthread_barrier_wait(&filled);
  one_fails_of = 1;
  if (reserved) umemSizes_put(&table, colliding(1, (uintptr_t)number), 1, &none);
  return reserved ? number : NULL;
}

/* What threads have reserved has room after another one has filled their part as far as it could. */
static void what_threads_reserve_has_room(void **state) {
  (void)state;
  pthread_t workers[late_count];
  size_t none, size, entered = late_count + 1;
  assert_int_equal(pthread_barrier_init(&reserved_all, NULL, late_count + 1), 0);
  assert_int_equal(pthread_barrier_init(&filled, NULL, late_count + 1), 0);
  for (uintptr_t i = 0; i < late_count; i++)
    assert_int_equal(pthread_create(&workers[i], NULL, enter_late, (void *)(i + 1)), 0);
  pthread_barrier_wait(&reserved_all);
  one_fails_of = 1;
  for (; umemSizes_reserve(&table); entered++)
    umemSizes_put(&table, colliding(1, entered), 1, &none);
  pthread_barrier_wait(&filled);
  bool all = true;
  for (int i = 0; i < late_count; i++) {
    void *result;
    assert_int_equal(pthread_join(workers[i], &result), 0);
    all = all && result;
  }
  assert_true(all);
  for (size_t i = 1; i < entered; i++) assert_true(umemSizes_find(&table, colliding(1, i), &size));
  assert_false(umemSizes_find(&table, colliding(1, entered), &size)); /* searches end */
  pthread_barrier_destroy(&reserved_all);
  pthread_barrier_destroy(&filled);
}

/* Each with addresses of its own. All addresses have the same part and the same home there. */
static void *work(void *argument) {
  uint64_t number = (uintptr_t)argument, random = number, rounds = setting_operations(1000000) / 16;
  bool live[worker_blocks] = {false}, right = true;
  size_t old, size;
  failing_random = number;
  for (uint64_t round = 0; round < rounds; round++) {
    size_t i = below(&random, worker_blocks);
    uintptr_t adr = colliding((unsigned)i % 2, i * worker_count + number);
    one_fails_of = round / 1000 % 2 ? 2 : 0;
    if (!live[i] && umemSizes_reserve(&table)) {
      right = right && !umemSizes_put(&table, adr, i, &old);
      live[i] = true;
    } else if (live[i]) {
      right = right && umemSizes_take(&table, adr, &size) && size == i;
      live[i] = below(&random, 4) == 0;
      if (live[i])
        right = right && !umemSizes_put_back(&table, adr, i, &old);
      else
        umemSizes_drop(&table, adr);
    }
    right = right && umemSizes_find(&table, adr, &size) == live[i];
  }
  return right ? argument : NULL;
}

static void threads_do_not_disturb_each_other(void **state) {
  (void)state;
  pthread_t workers[worker_count];
  for (uintptr_t i = 0; i < worker_count; i++)
    assert_int_equal(pthread_create(&workers[i], NULL, work, (void *)(i + 1)), 0);
  bool right = true;
  for (int i = 0; i < worker_count; i++) {
    void *result;
    assert_int_equal(pthread_join(workers[i], &result), 0);
    right = right && result;
  }
  assert_true(right);
  assert_int_equal(reserved_in(&table), 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, open_table, close_table)

int main(void) {
  static struct CMUnitTest const tests[] = {
      cmocka_unit_test(agrees_with_the_model),
      cmocka_unit_test(agrees_when_memory_fails),
      TEST(an_empty_one_has_nothing),
      TEST(what_is_reserved_has_room),
      TEST(room_comes_back),
      TEST(cells_go_with_the_blocks),
      TEST(what_threads_reserve_has_room),
      TEST(threads_do_not_disturb_each_other),
  };
  return cmocka_run_group_tests_name("table of blocks", tests, NULL, NULL);
}
