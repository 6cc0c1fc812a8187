/* durable.c - what umem_flush asks of the system: the bytes of the file, and once the name of a new
 * one. */
#include "fault/trial.h"

typedef umemStatusType Construct(void *ctx, char const *path, char const *mode);

static umemStatusType construct_file(void *ctx, char const *path, char const *mode) {
  return umemFile_ctor(ctx, path, mode);
}

static umemStatusType construct_mmap(void *ctx, char const *path, char const *mode) {
  return umemMMap_ctor(ctx, path, mode);
}

/* How often a flush syncs the data, and the folder. */
static void expect_syncs(void *ctx, unsigned long data, unsigned long name) {
  inject_count();
  assert_int_equal(umem_flush(ctx), umemOK);
  inject_off();
  assert_int_equal(inject_calls(callDataSync), data);
  assert_int_equal(inject_calls(callSync), name);
}

static void flush_in(char const *path, Construct *construct) {
  Any ctx;
  assert_int_equal(construct(&ctx, path, "w+"), umemOK);
  assert_int_not_equal(umem_calloc(&ctx, 100, 1), umem_null(&ctx));
  expect_syncs(&ctx, 1, 1);
  expect_syncs(&ctx, 1, 0); /* the name is durable */
  umem_dtor(&ctx);
  assert_int_equal(construct(&ctx, path, "r+"), umemOK);
  expect_syncs(&ctx, 1, 0);
  umem_dtor(&ctx);
  assert_int_equal(construct(&ctx, path, "r"), umemOK);
  expect_syncs(&ctx, 0, 0);
  umem_dtor(&ctx);
}

TEST_CASE(the_name_of_a_new_file_is_flushed_once) {
  Construct *const constructs[] = {construct_file, construct_mmap};
  for (size_t i = 0; i < sizeof constructs / sizeof *constructs; i++) {
    char folder[400], path[420];
    assert_true(temporary_folder(folder, sizeof folder));
    snprintf(path, sizeof path, "%s/new", folder);
    flush_in(path, constructs[i]);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
  }
}
