/* plans.c - each context of the library that copies by a route of its own plans that first: its
 * method copy_direct never leaves a copy to others that plan_copy has agreed to. */
#include "core/kind.h"

#include "fake/doubles.h"
#include "cases.h"

static char const *const names[] = {"host:",  "file:",        "mmap:",      "shm:?size=64M",
                                    "cuda:0", "cuda-async:0", "cuda-host:", "cuda-managed:0"};
enum { count = sizeof names / sizeof *names, most_bytes = 3 << 20 };

/* A context whose copies are counted: its table is a copy of its own one, but for copy_direct. */
typedef struct Watched {
  umemVirtual *ctx;
  struct umemVtbl const *own;
  struct umemVtbl table;
} Watched;

static Watched opened[count];
static unsigned agreed, done, declined, queried_alike;

static Watched *watched(umemVirtual *ctx) {
  for (int i = 0; i < count; i++)
    if (opened[i].ctx == ctx) return &opened[i];
  return NULL;
}

static bool count_plan(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                       uintptr_t dst_adr, umemLayout const *layout) {
  uint64_t before = umem_thread_failures();
  bool agrees = watched(ctx)->own->plan_copy(ctx, src, src_adr, dst, dst_adr, layout);
  assert_true(umem_thread_failures() == before);
  agreed += agrees;
  if (!layout->rank && ctx->capabilities & umemPlansAlike) {
    assert_ptr_equal((ctx == src ? dst : src)->vptr->plan_copy, count_plan);
    queried_alike++;
  }
  return agrees;
}

static bool count_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                       uintptr_t dst_adr, umemLayout const *layout) {
  bool takes = watched(ctx)->own->copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
  *(takes ? &done : &declined) += 1;
  return takes;
}

static void open_all(void) {
  doubles_use();
  for (int i = 0; i < count; i++) {
    Watched *one = &opened[i];
    one->ctx = umem_open(names[i]);
    if (!one->ctx) fail_msg("%s", umem_thread_message());
    one->own = one->ctx->vptr;
    one->table = *one->own;
    if (!one->own->copy_direct) continue;
    assert_non_null(one->own->plan_copy);
    one->table.copy_direct = count_copy;
    one->table.plan_copy = count_plan;
    one->ctx->vptr = &one->table;
  }
}

static void close_all(void) {
  for (int i = 0; i < count; i++) {
    opened[i].ctx->vptr = opened[i].own;
    umem_close(opened[i].ctx);
  }
  assert_null(doubles_complaint());
}

static char bytes[most_bytes], back[most_bytes];

static void copy_items(umemVirtual *src, umemVirtual *dst, size_t nbytes, umemLayout const *items) {
  uintptr_t from = umem_alloc(src, nbytes), to = umem_calloc(dst, 1, nbytes);
  umem_copy_from(src, from, opened[0].ctx, (uintptr_t)bytes, nbytes);
  umem_synchronize(src);
  assert_int_equal(umem_copy_strided(src, from, dst, to, items), umemOK);
  umem_synchronize(src), umem_synchronize(dst);
  umem_copy_to(dst, to, opened[0].ctx, (uintptr_t)back, nbytes);
  umem_synchronize(dst);
  assert_memory_equal(bytes, back, items->item_size);
  umem_free(src, from), umem_free(dst, to);
}

static void copy_between_all(size_t nbytes, umemLayout items) {
  items.size = sizeof items;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < count; k++) copy_items(opened[i].ctx, opened[k].ctx, nbytes, &items);
}

TEST_CASE(who_agrees_copies) {
  size_t const sizes[] = {1, 4096, 40000, most_bytes};
  open_all();
  for (size_t i = 0; i < most_bytes; i++) bytes[i] = (char)(i * 7 + i / 251);
  for (int i = 0; i < 4; i++) copy_between_all(sizes[i], (umemLayout){.item_size = sizes[i]});
  size_t const rows[] = {20}, squares[] = {30, 30};
  ptrdiff_t const gaps[] = {200}, turned[] = {8, 480}, packed[] = {240, 8};
  copy_between_all(4000, (umemLayout){0, 80, 1, rows, gaps, gaps});
  copy_between_all(16000, (umemLayout){0, 8, 2, squares, turned, packed});
  assert_int_equal(declined, 0);
  assert_int_equal(agreed, done);
  assert_true(done > 100);
  assert_true(queried_alike > 50);
  close_all();
}
