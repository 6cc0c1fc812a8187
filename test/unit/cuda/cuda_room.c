/* cuda_room.c - how much managed memory is given out: pages that are on the GPU count once, and all blocks
 * together never exceed what nothing else has, wherever their pages are.
 *
 * The double of the runtime knows where pages are, and takes what is given out beyond the device, or moved
 * there without room, for misuse. */
#include "cuda_help.h"

enum { mebi = 1 << 20 };

static umemCudaManaged managed, more;
static umemCuda plain;

static int room_set_up(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->device[0].capacity = 64 * mebi;
  expect_ok(umemCudaManaged_ctor(&managed, 0, 0));
  expect_ok(umemCudaManaged_ctor(&more, 0, UMEM_READ_MOSTLY));
  expect_ok(umemCuda_ctor(&plain, 0));
  return 0;
}

static int room_tear_down(void **state) {
  umem_dtor(&managed);
  umem_dtor(&more);
  umem_dtor(&plain);
  if (umem_thread_status() != umemOK) fail_msg("%s", umem_thread_message());
  return cuda_tear_down(state);
}

/* A new block, all of whose pages are on the GPU. */
static uintptr_t used_block(void *ctx, size_t nbytes) {
  uintptr_t adr = block_of(ctx, nbytes);
  expect_ok(umem_set(ctx, adr, 1, nbytes));
  return adr;
}

static void expect_none(void *ctx, size_t nbytes) {
  expect_told(umem_alloc(ctx, nbytes), umemMemoryError, "are free on GPU 0");
  umem_clear_status(ctx);
}

/* ---- pages on the GPU ---- */

static void pages_on_the_gpu_count_once(void **state) {
  (void)state;
  used_block(&managed, 26 * mebi); /* 40 %, then 30 % */
  used_block(&managed, 19 * mebi);
  used_block(&managed, 9 * mebi);
  expect_none(&managed, 10 * mebi + 1);
  block_of(&managed, 10 * mebi);
  assert_int_equal(fake_cudart_resident(0), 54 * mebi);
  expect_none(&managed, 1);
}

static void those_that_kernels_have_used_too(void **state) {
  (void)state;
  uintptr_t adr = block_of(&managed, 40 * mebi);
  fake_cudart_use_managed(adr, 40 * mebi);
  block_of(&managed, 20 * mebi);
  assert_int_equal(fake_cudart_resident(0), 40 * mebi);
}

static void blocks_of_all_contexts_count_once(void **state) {
  (void)state;
  used_block(&managed, 20 * mebi);
  used_block(&more, 20 * mebi);
  block_of(&managed, 20 * mebi);
  umemCudaManaged third;
  expect_ok(umemCudaManaged_ctor(&third, 0, 0));
  expect_none(&third, 5 * mebi);
  umem_free(&third, block_of(&third, 4 * mebi));
  umem_dtor(&third);
}

static void what_others_have_is_left_to_them(void **state) {
  (void)state;
  used_block(&managed, 30 * mebi);
  uintptr_t adr = block_of(&plain, 20 * mebi);
  expect_none(&managed, 15 * mebi);
  umem_free(&managed, block_of(&managed, 14 * mebi));
  umem_free(&plain, adr);
  block_of(&managed, 34 * mebi);
}

/* ---- pages elsewhere ---- */

static void unused_pages_are_kept_room_for(void **state) {
  (void)state;
  uintptr_t adr = block_of(&managed, 40 * mebi);
  expect_none(&managed, 25 * mebi);
  uintptr_t other = block_of(&plain, 10 * mebi);
  expect_none(&managed, 20 * mebi);
  assert_true(fake_cudart_resident(0) < 20 * mebi); /* no more than a piece was moved */
  expect_ok(umem_set(&managed, adr, 1, 40 * mebi));
  umem_free(&plain, other);
}

/* Pages that umem itself has put on the GPU are not there any more. */
static void pages_that_the_cpu_has_touched_are_kept_room_for(void **state) {
  (void)state;
  uintptr_t adr = used_block(&managed, 40 * mebi);
  uintptr_t other = block_of(&plain, 10 * mebi);
  fake_cudart_touch_managed(adr, 40 * mebi);
  expect_none(&managed, 20 * mebi);
  umem_free(&managed, block_of(&managed, 14 * mebi));
  expect_ok(umem_set(&managed, adr, 1, 40 * mebi));
  umem_free(&plain, other);
}

/* Half of it is there. */
static void parts_of_blocks_count_as_they_are(void **state) {
  (void)state;
  uintptr_t adr = block_of(&managed, 40 * mebi);
  fake_cudart_use_managed(adr, 20 * mebi);
  block_of(&managed, 20 * mebi);
  expect_none(&managed, 5 * mebi);
  umem_free(&managed, block_of(&managed, 4 * mebi));
}

/* ---- limits ---- */

/* Drivers without concurrent access have no prefetch, and move all pages when a kernel starts. */
static void without_prefetch_blocks_count_in_full(void **state) {
  (void)state;
  umemCudaManaged old;
  fake_cudart_machine()->device[1].capacity = 64 * mebi;
  fake_cudart_machine()->device[1].no_concurrent_managed = true;
  expect_ok(umemCudaManaged_ctor(&old, 1, 0));
  used_block(&old, 26 * mebi);
  expect_told(umem_alloc(&old, 19 * mebi), umemMemoryError, "");
  umem_free(&old, block_of(&old, 12 * mebi));
  umem_dtor(&old);
}

static void where_nothing_is_learnt_there_is_no_room(void **state) {
  (void)state;
  static char const *const functions[] = {"stream_create", "prefetch", "stream_synchronize",
                                          "memory_info"};
  used_block(&managed, 26 * mebi);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    bool asks_first = i == 3;
    fake_cudart_fail_in(functions[i], 1 + asks_first, umemCudaInvalidValue);
    expect_told(umem_alloc(&managed, 19 * mebi), umemMemoryError, "");
    umem_clear_status(&managed);
    assert_int_equal(rt->last_error(), 0);
  }
  umem_free(&managed, block_of(&managed, 19 * mebi));
}

/* ---- at random ---- */

enum { slots = 12, steps = 400 };

typedef struct Slot {
  void *ctx;
  uintptr_t adr;
  size_t nbytes;
  bool used; /* managed memory, all of it on the GPU */
} Slot;

static unsigned random_below(unsigned bound) {
  static uint32_t seed = 12345;
  seed = seed * 1664525 + 1013904223;
  return (seed >> 8) % bound;
}

/* Bytes that nothing has; *sure: no page of managed memory is elsewhere, and no block too small to be
 * looked at. */
static size_t free_bytes(Slot const *all, bool *sure) {
  size_t left = 64 * mebi;
  *sure = true;
  for (int i = 0; i < slots; i++) {
    left -= all[i].nbytes;
    if (all[i].nbytes && all[i].ctx != &plain && (!all[i].used || all[i].nbytes < 2 * mebi))
      *sure = false;
  }
  return left;
}

static void allocate(Slot *all, Slot *slot) {
  bool sure;
  size_t left = free_bytes(all, &sure);
  void *const contexts[] = {&managed, &more, &plain};
  void *ctx = contexts[random_below(3)];
  size_t nbytes = 1 + random_below(24 * mebi);
  if (ctx == &plain && nbytes > left) return; /* blocks have a right to their room */
  uintptr_t adr = umem_alloc(ctx, nbytes);
  if (adr) {
    if (nbytes > left) fail_msg("%zu bytes where %zu are left", nbytes, left);
    *slot = (Slot){ctx, adr, nbytes, false};
  } else if (sure && nbytes <= left && left >= 8 * mebi) {
    fail_msg("no %zu bytes where %zu are left: %s", nbytes, left, umem_thread_message());
  }
  umem_clear_status(ctx);
  umem_thread_clear();
}

static void act(Slot *all, Slot *slot) {
  if (!slot->nbytes) {
    allocate(all, slot);
    return;
  }
  unsigned what = random_below(4);
  if (what == 0) {
    umem_free(slot->ctx, slot->adr);
    *slot = (Slot){0};
  } else if (slot->ctx != &plain && what == 1) {
    fake_cudart_touch_managed(slot->adr, 1 + random_below((unsigned)slot->nbytes));
    slot->used = false;
  } else if (slot->ctx != &plain) {
    fake_cudart_use_managed(slot->adr, slot->nbytes);
    slot->used = true;
  }
}

static void what_is_given_out_is_there(void **state) {
  (void)state;
  Slot all[slots] = {{0}};
  for (int i = 0; i < steps; i++) {
    act(all, &all[random_below(slots)]);
    expect_no_misuse();
  }
}

#define ROOM_TEST(name) cmocka_unit_test_setup_teardown(name, room_set_up, room_tear_down)

int main(void) {
  static struct CMUnitTest const tests[] = {
      ROOM_TEST(pages_on_the_gpu_count_once),
      ROOM_TEST(those_that_kernels_have_used_too),
      ROOM_TEST(blocks_of_all_contexts_count_once),
      ROOM_TEST(what_others_have_is_left_to_them),
      ROOM_TEST(unused_pages_are_kept_room_for),
      ROOM_TEST(pages_that_the_cpu_has_touched_are_kept_room_for),
      ROOM_TEST(parts_of_blocks_count_as_they_are),
      ROOM_TEST(without_prefetch_blocks_count_in_full),
      ROOM_TEST(where_nothing_is_learnt_there_is_no_room),
      ROOM_TEST(what_is_given_out_is_there),
  };
  return cmocka_run_group_tests_name("CUDA room", tests, NULL, NULL);
}
