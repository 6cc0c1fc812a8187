/* large.c - sizes and offsets that 32 bits do not hold. The files are sparse, and few bytes
 * move. */
#include "contract.h"

static size_t const giga = (size_t)1 << 30;
enum { piece = 5000 };

/* A file of 7 GiB that takes no room on the disk. */
static void make_sparse(char path[BACKEND_PATH_SIZE]) {
  assert_true(backend_temp_file(path));
  assert_int_equal(truncate(path, (off_t)(7 * giga)), 0);
}

/* A block of 5 GiB holds different bytes at addresses that are equal in their low 32 bits. */
static void check_far_offsets(umemVirtual *ctx, uintptr_t adr) {
  size_t const offsets[] = {0, 4 * giga, 4 * giga + piece, 5 * giga - piece};
  unsigned char bytes[piece];
  for (size_t i = 0; i < 4; i++) {
    fill_bytes(bytes, piece, i);
    put(ctx, adr + offsets[i], bytes, piece);
  }
  for (size_t i = 0; i < 4; i++) assert_filled(ctx, adr + offsets[i], piece, i);
  assert_ok(umem_set(ctx, adr + 4 * giga + 10, 0xEE, 20));
  assert_filled(ctx, adr, piece, 0);
  fill_bytes(bytes, piece, 1);
  memset(bytes + 10, 0xEE, 20);
  assert_holds(ctx, adr + 4 * giga, bytes, piece);
}

/* Both ends of 5 GiB go to another context and back into it. */
static void check_far_copies(umemVirtual *ctx, uintptr_t adr, umemVirtual *other) {
  uintptr_t far = new_block(other, 5 * giga);
  unsigned char low[piece], high[piece];
  fill_bytes(low, piece, 100);
  fill_bytes(high, piece, 200);
  put(ctx, adr, low, piece);
  put(ctx, adr + 5 * giga - piece, high, piece);
  assert_ok(umem_copy_to(ctx, adr, other, far + 5 * giga - piece, piece));
  assert_ok(umem_copy_from(other, far + 1, ctx, adr + 5 * giga - piece, piece));
  settle(ctx, other);
  assert_holds(other, far + 5 * giga - piece, low, piece);
  assert_holds(other, far + 1, high, piece);
  umem_free(other, far);
}

/* Two rows of an array, 4.5 GiB apart on one side. */
static void check_far_strides(umemVirtual *ctx, uintptr_t adr, umemVirtual *other) {
  ptrdiff_t const far_stride[] = {(ptrdiff_t)(9 * giga / 2)};
  size_t const extents[] = {2};
  umemLayout layout = {sizeof layout, piece, 1, extents, NULL, far_stride};
  uintptr_t rows = new_filled_block(other, 2 * piece, 7);
  unsigned char bytes[2 * piece];
  fill_bytes(bytes, 2 * piece, 7);
  assert_ok(umem_copy_strided(other, rows, ctx, adr, &layout));
  settle(ctx, other);
  assert_holds(ctx, adr, bytes, piece);
  assert_holds(ctx, adr + 9 * giga / 2, bytes + piece, piece);
  umem_free(other, rows);
}

static void check_large(umemVirtual *ctx) {
  uintptr_t adr = new_block(ctx, 5 * giga), next = new_block(ctx, piece);
  assert_true(next >= adr + 5 * giga || next + piece <= adr);
  check_far_offsets(ctx, adr);
  char const *const names[] = {"host", "fake", "fake-offset", "fake-async"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    Backend const *row = backend_by_name(names[i]);
    umemVirtual *other = backend_open(row);
    assert_non_null(other);
    check_far_copies(ctx, adr, other);
    check_far_strides(ctx, adr, other);
    backend_close(row, other);
  }
  FREE(ctx, next, adr);
}

ONCE(a_file_beyond_4_GiB) {
  for (Backend const *row = backends; row < backends + backend_count; row++) {
    char path[BACKEND_PATH_SIZE];
    if (!row->at) continue;
    make_sparse(path);
    umemVirtual *ctx = backend_open_at(row, path, "r+");
    assert_non_null(ctx);
    check_large(ctx);
    assert_true(umem_is_ok(ctx));
    backend_close(row, ctx);
    unlink(path);
  }
}

ONCE(a_device_beyond_4_GiB) {
  char const *const names[] = {"fake", "fake-offset", "fake-async"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    Backend const *row = backend_by_name(names[i]);
    umemVirtual *ctx = backend_open(row);
    assert_non_null(ctx);
    check_large(ctx);
    assert_true(umem_is_ok(ctx));
    backend_close(row, ctx);
  }
}

SUITE(large)
