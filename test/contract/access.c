/* access.c - contexts that may only be read, or only be written. */
#include "contract.h"

enum { nbytes = 10000 };

/* A file that holds the bytes of seed 1. */
static void make_file(char path[BACKEND_PATH_SIZE]) {
  assert_true(backend_temp_file(path));
  unsigned char bytes[nbytes];
  fill_bytes(bytes, nbytes, 1);
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  assert_int_equal(fwrite(bytes, nbytes, 1, stream), 1);
  assert_int_equal(fclose(stream), 0);
}

static void check_read_only(umemVirtual *ctx, umemVirtual *other) {
  unsigned char bytes[nbytes];
  fill_bytes(bytes, nbytes, 1);
  uintptr_t adr = new_block(ctx, nbytes), there = new_block(other, nbytes);
  umemLayout layout = {.size = sizeof layout, .item_size = 10};
  assert_holds(ctx, adr, bytes, nbytes);
  assert_ok(umem_copy_to(ctx, adr, other, there, nbytes));
  settle(ctx, other);
  assert_holds(other, there, bytes, nbytes);

  expect_status(ctx, umem_set(ctx, adr, 0, 10), umemNotSupportedError);
  expect_status(ctx, umem_copy_to(other, there, ctx, adr, 10), umemNotSupportedError);
  expect_status(ctx, umem_copy_strided(other, there, ctx, adr, &layout), umemNotSupportedError);
  expect_status(ctx, umem_sync_from(ctx, adr, other, there, 10), umemNotSupportedError);
  umem_free(ctx, adr);
  expect_no_block(ctx, umem_calloc(ctx, 10, 10), umemNotSupportedError);
  assert_true(umem_is_ok(other));
  umem_free(other, there);
}

static void check_write_only(umemVirtual *ctx, umemVirtual *other) {
  unsigned char bytes[nbytes];
  fill_bytes(bytes, nbytes, 2);
  uintptr_t adr = new_block(ctx, nbytes), there = new_filled_block(other, nbytes, 2);
  umemLayout layout = {.size = sizeof layout, .item_size = 10};
  assert_ok(umem_copy_to(other, there, ctx, adr, nbytes));
  settle(ctx, other);
  expect_status(ctx, umem_copy_to(ctx, adr, other, there, 10), umemNotSupportedError);
  expect_status(ctx, umem_copy_strided(ctx, adr, other, there, &layout), umemNotSupportedError);
  assert_true(umem_connect(ctx, adr, nbytes, other, 1) == umem_null(other));
  expect_failure(ctx, umemNotSupportedError);
  assert_holds(other, there, bytes, nbytes);
  umem_free(ctx, adr);
  umem_free(other, there);
}

typedef void CheckFunction(umemVirtual *ctx, umemVirtual *other);

static void check_with_others(umemVirtual *ctx, CheckFunction *check) {
  char const *const names[] = {"host", "file", "mmap", "fake", "fake-offset", "fake-async"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (setting_leaves_out(names[i])) continue;
    Backend const *row = backend_by_name(names[i]);
    umemVirtual *other = backend_open(row);
    assert_non_null(other);
    check(ctx, other);
    backend_close(row, other);
  }
  assert_true(umem_is_ok(ctx));
}

/* That the file holds the bytes of this seed. */
static void expect_file(char const *path, uint64_t seed) {
  unsigned char bytes[nbytes], found[nbytes + 1];
  FILE *stream = fopen(path, "rb");
  assert_non_null(stream);
  assert_int_equal(fread(found, 1, nbytes + 1, stream), nbytes);
  fclose(stream);
  fill_bytes(bytes, nbytes, seed);
  assert_memory_equal(found, bytes, nbytes);
}

static void open_and_check(Backend const *row, char const *path, char const *mode,
                           void check(umemVirtual *ctx, umemVirtual *other)) {
  umemVirtual *ctx = backend_open_at(row, path, mode);
  assert_non_null(ctx);
  check_with_others(ctx, check);
  backend_close(row, ctx);
}

ONCE(what_may_only_be_read_is_never_written) {
  SCOPED(unlink_path) char path[BACKEND_PATH_SIZE];
  make_file(path);
  for (Backend const *row = backends; row < backends + backend_count; row++)
    if (row->at && !setting_leaves_out(row->name)) open_and_check(row, path, "r", check_read_only);
  expect_file(path, 1);
}

/* Some must open a file for reading too, whatever they allow afterwards. */
ONCE(what_may_only_be_written_is_never_read) {
  size_t checked = 0;
  for (Backend const *row = backends; row < backends + backend_count; row++) {
    char path[BACKEND_PATH_SIZE];
    if (!row->at || setting_leaves_out(row->name)) continue;
    assert_true(backend_temp_file(path));
    umemVirtual *ctx = backend_open_at(row, path, "w");
    assert_non_null(ctx);
    bool readable = ctx->capabilities & umemReadable;
    backend_close(row, ctx);
    if (!readable) {
      open_and_check(row, path, "w", check_write_only);
      expect_file(path, 2);
      checked++;
    }
    unlink(path);
  }
  assert_true(checked > 0);
}

SUITE(access)
