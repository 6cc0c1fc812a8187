/* cuda_room.c - how much managed memory umem allocates: as many bytes as the GPU has, or with an
 * option any number. */
#include "cuda_help.h"

#include "settings.h"

enum { mebi = 1 << 20 };

static void *managed, *more, *beyond, *plain;

static void room_set_up(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->device[0].capacity = 64 * mebi;
  managed = opened("cuda-managed:0");
  more = opened("cuda-managed:0?flags=read-mostly");
  beyond = opened("cuda-managed:0?oversubscribe=yes");
  plain = opened("cuda:0");
}

/* A new block, whose pages are on the GPU as far as they fit. */
static uintptr_t used_block(void *ctx, size_t nbytes) {
  uintptr_t adr = block_of(ctx, nbytes);
  expect_ok(umem_set(ctx, adr, 1, nbytes));
  expect_ok(umem_synchronize(ctx));
  return adr;
}

static void expect_none(void *ctx, size_t nbytes) {
  expect_report(umem_alloc(ctx, nbytes), umemMemoryError, "UMEM_OVERSUBSCRIBE");
  umem_clear_status(ctx);
}

#define ROOM_TEST(name) TEST_CASE_WITH(name, room_set_up, cuda_tear_down)

ROOM_TEST(free_bytes_say_nothing) {
  used_block(managed, 26 * mebi); /* 40 %, then 30 % */
  used_block(managed, 19 * mebi);
  assert_int_equal(fake_cudart_resident(0), 45 * mebi);
  used_block(managed, 19 * mebi);
  assert_int_equal(fake_cudart_resident(0), 64 * mebi);
  assert_int_equal(fake_cudart_calls_of("prefetch"), 0);
}

ROOM_TEST(blocks_of_all_contexts_count) {
  uintptr_t first = block_of(managed, 40 * mebi);
  void *third = opened("cuda-managed:0");
  block_of(more, 20 * mebi);
  expect_none(third, 4 * mebi + 1);
  umem_free(third, block_of(third, 4 * mebi));
  umem_free(managed, first);
  block_of(third, 44 * mebi);
  expect_none(managed, 1);
  expect_ok(close_one(third));
  umem_free(managed, block_of(managed, 44 * mebi));
}

ROOM_TEST(each_gpu_counts_its_own) {
  fake_cudart_machine()->device[1].capacity = 8 * mebi;
  void *other = opened("cuda-managed:1");
  block_of(managed, 64 * mebi);
  expect_none(other, 8 * mebi + 1);
  block_of(other, 8 * mebi);
}

/* The driver moves pages to RAM where others need the memory of the GPU. */
ROOM_TEST(what_others_have_does_not_count) {
  block_of(plain, 60 * mebi);
  used_block(managed, 64 * mebi);
  assert_int_equal(fake_cudart_resident(0), 4 * mebi);
  expect_none(managed, 1);
}

ROOM_TEST(a_refusal_reaches_no_driver) {
  unsigned long before = fake_cudart_calls_of("malloc_managed");
  expect_none(managed, 64 * mebi + 1);
  expect_none(managed, SIZE_MAX);
  assert_int_equal(fake_cudart_calls_of("malloc_managed"), before);
  block_of(managed, 10 * mebi);
  expect_report(umem_alloc(managed, 60 * mebi), umemMemoryError,
                "cannot allocate 62914560 bytes: this process has 10485760 bytes of managed memory "
                "for GPU 0");
}

ROOM_TEST(failures_count_nothing) {
  static char const *const functions[] = {"memory_info", "malloc_managed", "advise"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    fake_cudart_fail_in(functions[i], 1, umemCudaInvalidValue);
    expect_report(umem_alloc(more, 64 * mebi), umemValueError, "cannot allocate 67108864 bytes");
    umem_clear_status(more);
  }
  uintptr_t adr = block_of(more, 64 * mebi);
  fake_cudart_fail_in("free", 1, umemCudaInvalidValue);
  expect_report(umem_free(more, adr), umemValueError, "cannot free");
  expect_none(managed, 1);
  umem_free(more, adr);
  umem_free(managed, block_of(managed, 64 * mebi));
}

ROOM_TEST(an_option_allows_more) {
  uintptr_t adr = used_block(beyond, 100 * mebi);
  used_block(beyond, 30 * mebi);
  assert_int_equal(fake_cudart_resident(0), 64 * mebi);
  expect_none(managed, 1); /* they count */
  umem_free(beyond, adr);
  block_of(managed, 34 * mebi);
  expect_none(managed, 1);
}

ROOM_TEST(a_name_has_the_option) {
  void *ctx = opened("cuda-managed:0?oversubscribe=yes&flags=prefetch");
  block_of(ctx, 65 * mebi);
  assert_int_equal(fake_cudart_calls_of("prefetch"), 1);
  expect_none(opened("cuda-managed:0?oversubscribe=no"), 65 * mebi);
}

/* ---- threads ---- */

static void *allocate_all(void *ctx) {
  for (int i = 0; i < 200; i++) {
    uintptr_t adr = umem_alloc(*(void **)ctx, 40 * mebi);
    if (adr) umem_free(*(void **)ctx, adr);
  }
  return NULL;
}

/* One at a time has the room, and whoever is alone gets it. */
ROOM_TEST(threads_share_the_room) {
  void *contexts[] = {managed, more, managed, more};
  run_at_once(4, allocate_all, contexts, sizeof *contexts);
  umem_clear_status(managed);
  umem_clear_status(more);
  block_of(managed, 64 * mebi);
}

/* ---- a real GPU ---- */

/* Stays below what is free. */
TEST_CASE(a_real_gpu_has_room_for_what_it_has_free) {
  if (!setting_gpu()) skip();
  void *gpu = opened("cuda:0"), *host = opened("host:");
  managed = opened("cuda-managed:0");
  umemInfo info = info_of(gpu);
  size_t parts[] = {info.available / 10 * 4, info.available / 10 * 3};
  uintptr_t adr[2];
  for (int i = 0; i < 2; i++) adr[i] = used_block(managed, parts[i]);
  for (int i = 0; i < 2; i++) {
    unsigned char last = 0;
    expect_ok(umem_copy_from(host, (uintptr_t)&last, managed, adr[i] + parts[i] - 1, 1));
    assert_int_equal(last, 1);
    umem_free(managed, adr[i]);
  }
  close_opened();
}
