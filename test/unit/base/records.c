/* records.c - base/records.h: both tables of live blocks against naive models, without memory, in
 * threads.
 *
 * The number of random operations comes from UMEM_TEST_OPERATIONS (1000000 when unset or empty).
 * Linked with -Wl,--wrap=calloc,--wrap=realloc. */

#include "base/records.h"
#include "random.h"
#include "settings.h"
#include "workers.h"
#include "wrap.h"

/* ---- memory that fails ---- */

static _Thread_local unsigned one_fails_of; /* each with this probability; 0: none */
static _Thread_local uint64_t failing_random;

static bool fails_now(void) { return one_fails_of && !below(&failing_random, one_fails_of); }

WRAP(fails_now(), NULL, void *, calloc, (size_t count, size_t size), (count, size))
WRAP(fails_now(), NULL, void *, realloc, (void *block, size_t size), (block, size))

/* ---- addresses ---- */

/* The address of this hash: umemTable_hash is a product by an odd number. */
static uintptr_t address_of_hash(uint64_t hash) {
  uint64_t factor = umemTable_hash(1), inverse = factor;
  for (int i = 0; i < 6; i++) inverse *= 2 - factor * inverse; /* Newton */
  return (uintptr_t)(hash * inverse);
}

/* Addresses of one part that all want the same cell, until it has 2^28 of them. */
static uintptr_t colliding(unsigned part, size_t i) {
  return address_of_hash(((uint64_t)part << (64 - umemValuesPartBits)) + i + 1);
}

/* Of every kind: offsets from 0 on, as an allocator gives them, those at the end of a part,
 * anything. */
static uintptr_t any_address(uint64_t *random, size_t i) {
  switch (i % 5) {
  case 0:
    return i / 5 * 16;
  case 1:
    return (uintptr_t)0x7f0000000000 + i * 48;
  case 2:
    return colliding(3, i);
  case 3:
    return address_of_hash(((uint64_t)8 << (64 - umemValuesPartBits)) - 1 - i); /* wraps */
  default:
    return (uintptr_t)random64(random) >> 1;
  }
}

static size_t cells_in(umemValues const *blocks) {
  size_t cells = 0;
  for (int i = 0; i < umemValuesParts; i++) cells += blocks->part[i].table.capacity;
  return cells;
}

static unsigned reserved_in(umemValues const *blocks) {
  unsigned reserved = 0;
  for (int i = 0; i < umemValuesShares; i++) reserved += blocks->share[i].reserved;
  return reserved;
}

/* Entries, and the room of those that were taken. */
static size_t used_in(umemValues const *blocks) {
  size_t used = 0;
  for (int i = 0; i < umemValuesParts; i++)
    used += blocks->part[i].table.count + blocks->part[i].taken - blocks->part[i].dropped;
  return used;
}

/* ---- the model: what there is of each of some addresses ---- */

typedef struct Known {
  uintptr_t adr;
  bool live;
  umemValuesPart *taken; /* NULL: it is not */
  size_t size, taken_size;
} Known;

enum { most_known = 5000, most_reserved = 40 };

typedef struct Model {
  umemValues blocks;
  Known known[most_known];
  size_t count; /* of known addresses */
  umemValuesShare *rooms[most_reserved];
  unsigned reserved, refused;
  uint64_t random, seed, operation;
} Model;

static Model model;

#define CHECK(condition) check_operation(condition, model.seed, model.operation)

static void reserve(void) {
  if (model.reserved == most_reserved) return;
  umemValuesShare *room = umemValues_reserve(&model.blocks);
  CHECK(room || one_fails_of);
  if (room)
    model.rooms[model.reserved++] = room;
  else
    model.refused++;
}

static void release(void) {
  if (!model.reserved) return;
  umemValues_release(model.rooms[--model.reserved]);
}

static void put(Known *known) {
  size_t size = (size_t)random64(&model.random), old = 1;
  if (!model.reserved) return;
  umemValuesShare *room = model.rooms[--model.reserved];
  bool was = umemValues_put(&model.blocks, room, known->adr, size, &old);
  CHECK(was == known->live);
  CHECK(!was || old == known->size);
  known->live = true;
  known->size = size;
}

static void find(Known const *known) {
  size_t size = 1;
  CHECK(umemValues_find(&model.blocks, known->adr, &size) == known->live);
  CHECK(!known->live || size == known->size);
}

static void take(Known *known) {
  size_t size = 1;
  if (known->taken) return; /* one thread has it */
  known->taken = umemValues_take(&model.blocks, known->adr, &size);
  CHECK((known->taken != NULL) == known->live);
  CHECK(!known->live || size == known->size);
  known->taken_size = known->size;
  known->live = false;
}

static void drop(Known *known) {
  if (known->taken) umemValues_drop(known->taken);
  known->taken = NULL;
}

static void put_back(Known *known) {
  size_t old = 1;
  if (!known->taken) return;
  bool was = umemValues_put_back(known->taken, known->adr, known->taken_size, &old);
  CHECK(was == known->live);
  CHECK(!was || old == known->size);
  known->live = true;
  known->taken = NULL;
  known->size = known->taken_size;
}

static void act(void) {
  Known *known = &model.known[below(&model.random, model.count)];
  bool grows = model.operation / 20000 % 2 == 0; /* and shrinks in turn */
  size_t kind = below(&model.random, 12);
  if (kind == 0)
    find(known);
  else if (kind == 1)
    release();
  else if (kind == 2)
    put_back(known);
  else if (kind < 5)
    drop(known);
  else if (kind == 8 || (kind < 8 && grows))
    reserve();
  else if (kind < 10)
    take(known);
  else
    put(known);
}

static void run(uint64_t seed, size_t count, unsigned fails) {
  umemValues_init(&model.blocks);
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
    used += (size_t)model.known[i].live + (model.known[i].taken != NULL);
  }
  assert_int_equal(used_in(&model.blocks), used);
  assert_int_equal(reserved_in(&model.blocks), model.reserved);
  umemValues_fini(&model.blocks);
}

TEST_CASE(agrees_with_the_model) {
  run(1, 50, 0);
  run(2, most_known, 0);
}

TEST_CASE(agrees_when_memory_fails) {
  run(3, most_known, 2);
  run(4, most_known, 1);
  assert_true(model.refused > 0 || setting_operations(1000000) < 1000000);
}

/* ---- one thing at a time ---- */

static umemValues table;

/* Reserves room and enters a block. Returns false without memory. */
static bool enter(uintptr_t adr, size_t number) {
  size_t none;
  umemValuesShare *room = umemValues_reserve(&table);
  if (room) umemValues_put(&table, room, adr, number, &none);
  return room;
}

/* Whether room can be reserved, which is released. */
static bool has_room(void) {
  umemValuesShare *room = umemValues_reserve(&table);
  if (room) umemValues_release(room);
  return room;
}

static void open_table(void **state UNUSED) {
  umemValues_init(&table);
  one_fails_of = 0;
}

static void close_table(void **state UNUSED) {
  umemValues_fini(&table);
  one_fails_of = 0;
}

#define TEST(name) TEST_CASE_WITH(name, open_table, close_table)

TEST(an_empty_one_has_nothing) {
  size_t size;
  uintptr_t const addresses[] = {0, 16, UINTPTR_MAX};
  for (int i = 0; i < 3; i++) {
    assert_false(umemValues_find(&table, addresses[i], &size));
    assert_null(umemValues_take(&table, addresses[i], &size));
  }
  assert_true(has_room()); /* now there are cells */
  for (int i = 0; i < 3; i++) {
    assert_false(umemValues_find(&table, addresses[i], &size));
    assert_null(umemValues_take(&table, addresses[i], &size));
  }
}

/* All that was reserved finds room in one part and from one cell on, also without memory. */
TEST(what_is_reserved_has_room) {
  enum { reserved = 300, most = 20000 };
  static umemValuesShare *rooms[reserved];
  static umemValuesPart *parts[most];
  size_t none, size, i;
  for (i = 0; i < reserved; i++) assert_non_null(rooms[i] = umemValues_reserve(&table));
  one_fails_of = 1;
  for (i = 0; i < reserved; i++)
    assert_false(umemValues_put(&table, rooms[i], colliding(5, i), i, &none));
  while (enter(colliding(5, i), i)) i++; /* until nothing is promised any more */
  size_t entered = i;
  assert_in_range(entered, reserved, most);
  assert_true(entered < table.part[5].table.capacity);
  for (i = 0; i < entered; i++) {
    assert_true(umemValues_find(&table, colliding(5, i), &size));
    assert_int_equal(size, i);
  }
  assert_false(umemValues_find(&table, colliding(5, entered), &size));
  /* What is taken can go back. */
  for (i = 0; i < entered; i++)
    assert_non_null(parts[i] = umemValues_take(&table, colliding(5, i), &size));
  assert_false(has_room());
  for (i = 0; i < entered; i++)
    assert_false(umemValues_put_back(parts[i], colliding(5, i), i, &none));
  one_fails_of = 0;
  assert_true(has_room());
}

/* Room that becomes free is as good as memory. */
TEST(room_comes_back) {
  size_t size, entered = 0;
  assert_true(has_room());
  one_fails_of = 1;
  while (enter(colliding(9, entered), entered)) entered++;
  for (int round = 0; round < 100; round++) {
    umemValuesPart *part = umemValues_take(&table, colliding(9, (size_t)round % entered), &size);
    assert_non_null(part);
    assert_false(has_room()); /* it may come back */
    umemValues_drop(part);
    assert_true(enter(colliding(9, (size_t)round % entered), size));
    assert_false(has_room());
  }
}

TEST(cells_go_with_the_blocks) {
  size_t const count = 100000;
  size_t size;
  for (size_t i = 0; i < count; i++) assert_true(enter(4096 + 16 * i, i));
  assert_in_range(cells_in(&table), count / 3 * 4, 3 * count);
  for (size_t i = 0; i < count; i++) {
    umemValuesPart *part = umemValues_take(&table, 4096 + 16 * i, &size);
    assert_non_null(part);
    umemValues_drop(part);
  }
  assert_in_range(cells_in(&table), 1, count / 20);
}

/* ---- threads ---- */

enum { writers = 8, worker_blocks = 200, late_count = 32 };

static pthread_barrier_t reserved_all, filled;

static void *enter_late(void *number) {
  size_t none;
  umemValuesShare *room = umemValues_reserve(&table);
  pthread_barrier_wait(&reserved_all);
  pthread_barrier_wait(&filled);
  one_fails_of = 1;
  if (room) umemValues_put(&table, room, colliding(1, (uintptr_t)number), 1, &none);
  return room ? number : NULL;
}

/* What threads have reserved has room after another one has filled their part as far as it
 * could. */
TEST(what_threads_reserve_has_room) {
  pthread_t workers[late_count];
  size_t size, entered = late_count + 1;
  assert_int_equal(pthread_barrier_init(&reserved_all, NULL, late_count + 1), 0);
  assert_int_equal(pthread_barrier_init(&filled, NULL, late_count + 1), 0);
  for (uintptr_t i = 0; i < late_count; i++) workers[i] = start_thread(enter_late, (void *)(i + 1));
  pthread_barrier_wait(&reserved_all);
  one_fails_of = 1;
  while (enter(colliding(1, entered), 1)) entered++;
  pthread_barrier_wait(&filled);
  assert_true(join_threads(workers, late_count));
  for (size_t i = 1; i < entered; i++) assert_true(umemValues_find(&table, colliding(1, i), &size));
  assert_false(umemValues_find(&table, colliding(1, entered), &size)); /* searches end */
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
    uintptr_t adr = colliding((unsigned)i % 2, i * writers + number);
    one_fails_of = round / 1000 % 2 ? 2 : 0;
    umemValuesShare *room = live[i] ? NULL : umemValues_reserve(&table);
    if (room) {
      right = right && !umemValues_put(&table, room, adr, i, &old);
      live[i] = true;
    } else if (live[i]) {
      umemValuesPart *part = umemValues_take(&table, adr, &size);
      right = right && part && size == i;
      live[i] = below(&random, 4) == 0;
      if (!part) return NULL;
      if (live[i])
        right = right && !umemValues_put_back(part, adr, i, &old);
      else
        umemValues_drop(part);
    }
    right = right && umemValues_find(&table, adr, &size) == live[i];
  }
  return right ? argument : NULL;
}

TEST(threads_do_not_disturb_each_other) {
  pthread_t workers[writers];
  for (uintptr_t i = 0; i < writers; i++) workers[i] = start_thread(work, (void *)(i + 1));
  assert_true(join_threads(workers, writers));
  assert_int_equal(reserved_in(&table), 0);
}

/* ---- records, against a byte map of a short piece of memory ---- */

enum { map_size = 4096, most_named = 4096 };

typedef struct Record {
  umemRecord head;
  uintptr_t start;
  size_t size;
} Record;

static umemRecords records;
static uint64_t owner[map_size]; /* the number of the block that has each byte; 0: none */
static umemRecordName names[most_named];
static size_t named, removed_count;
static uint64_t removed_numbers[map_size];

static void note_removed(umemRecords *of, uint32_t slot) {
  Record const *record = umemRecords_at(of, slot);
  assert_int_equal(of->index.spans[slot].start, record->start);
  removed_numbers[removed_count++] = record->head.number;
}

static void clear_owner(uint64_t number) {
  for (size_t i = 0; i < map_size; i++)
    if (owner[i] == number) owner[i] = 0;
}

/* Enters a block; whatever it overlaps goes. */
static void enter_record(uint64_t *random) {
  uintptr_t start = below(random, map_size - 64);
  size_t size = 1 + below(random, 64);
  if (!umemRecords_reserve(&records)) {
    assert_true(one_fails_of);
    return;
  }
  removed_count = 0;
  uint32_t slot = umemRecords_enter(&records, start, size);
  Record *record = umemRecords_at(&records, slot);
  *record = (Record){{records.entered}, start, size};
  names[named++ % most_named] = umemRecords_name(&records, slot);
  for (size_t i = start; i < start + size; i++) {
    bool met = !owner[i];
    for (size_t gone = 0; gone < removed_count; gone++)
      met = met || removed_numbers[gone] == owner[i];
    assert_true(met);
  }
  for (size_t gone = 0; gone < removed_count; gone++) clear_owner(removed_numbers[gone]);
  for (size_t i = start; i < start + size; i++) owner[i] = records.entered;
}

static uint64_t number_of(uint32_t slot) {
  return slot ? ((umemRecord *)umemRecords_at(&records, slot))->number : 0;
}

static void look_up(uintptr_t adr) {
  uint64_t number = owner[adr];
  bool begins = number && (!adr || owner[adr - 1] != number);
  uintptr_t from = adr;
  while (from < map_size && !(owner[from] && (!from || owner[from - 1] != owner[from]))) from++;
  assert_int_equal(number_of(umemRecords_inside(&records, adr)), number);
  assert_int_equal(number_of(umemRecords_exact(&records, adr)), begins ? number : 0);
  uint32_t next = umemRecords_from(&records, adr);
  assert_int_equal(number_of(next), from < map_size ? owner[from] : 0);
}

/* A name finds its block while this is live, and nothing later, though the slot may have another
 * one. */
static void look_up_name(umemRecordName name) {
  bool live = false;
  for (size_t i = 0; i < map_size && !live; i++) live = owner[i] == name.number;
  uint32_t slot = umemRecords_named(&records, name);
  assert_int_equal(number_of(slot), live ? name.number : 0);
}

static void remove_record(uintptr_t adr) {
  uint32_t slot = umemRecords_inside(&records, adr);
  if (!slot) return;
  removed_count = 0;
  umemRecords_remove(&records, slot);
  assert_int_equal(removed_count, 1);
  assert_int_equal(removed_numbers[0], owner[adr]);
  clear_owner(owner[adr]);
}

TEST_CASE(records_agree_with_the_bytes) {
  uint64_t random = 5;
  assert_true(umemRecords_init(&records, sizeof(Record), note_removed));
  for (uint64_t i = 0; i < setting_operations(1000000) / 20; i++) {
    one_fails_of = i / 500 % 2 ? 2 : 0;
    umemLock_acquire(&records.lock);
    uintptr_t adr = below(&random, map_size);
    look_up(adr);
    if (named) look_up_name(names[below(&random, named < most_named ? named : most_named)]);
    if (i % 3 == 0) remove_record(adr);
    umemLock_release(&records.lock);
    enter_record(&random);
  }
  one_fails_of = 0;
  removed_count = 0;
  size_t live = 0;
  for (size_t i = 0; i < map_size; i++) live += owner[i] && (!i || owner[i - 1] != owner[i]);
  umemRecords_fini(&records);
  assert_int_equal(removed_count, live);
}

/* Entering needs no memory where room was reserved, and released room can be reserved again. */
TEST_CASE(reserved_records_need_no_memory) {
  enum { count = 1000 };
  assert_true(umemRecords_init(&records, sizeof(Record), note_removed));
  for (int i = 0; i < count; i++) assert_true(umemRecords_reserve(&records));
  one_fails_of = 1;
  umemRecords_release(&records);
  assert_true(umemRecords_reserve(&records));
  umemLock_acquire(&records.lock);
  for (uintptr_t i = 0; i < count; i++) {
    uintptr_t start = i * 0x10001;
    Record *record = umemRecords_at(&records, umemRecords_enter(&records, start, 16));
    *record = (Record){{records.entered}, start, 16};
  }
  umemLock_release(&records.lock);
  int more = 0;
  while (umemRecords_reserve(&records)) more++;
  assert_in_range(more, 0, 2 * count);
  one_fails_of = 0;
  assert_true(umemRecords_reserve(&records));
  removed_count = 0;
  umemRecords_fini(&records);
  assert_int_equal(removed_count, count);
}
