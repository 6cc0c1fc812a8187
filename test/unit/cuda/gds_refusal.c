/* gds_refusal.c - when umem does not use GPUDirect Storage, and copies through pinned memory as
 * without it, with no message: on doubles of the runtime and of cuFile. */
#include "gds_help.h"

/* Copies arrive, nothing is recorded, and cuFile has not moved a byte. */
static void expect_other_route(size_t nbytes) {
  size_t before = moved();
  there_and_back(&pair, 4096, nbytes, 7);
  assert_int_equal(moved(), before);
  assert_int_equal(umem_get_status(&pair.gpu), umemOK);
  assert_int_equal(umem_get_status(&pair.store), umemOK);
}

/* ---- the driver ---- */

static void expect_no_session(void) {
  umemCudaGds_end(); /* as in a process that has not asked yet */
  reopen_pair(aCuda, 0, false, umemDirectOn);
  expect_other_route(from);
  expect_other_route(from);
  assert_int_equal(fake_cufile_done().registered, 0);
  close_pair(&pair);
  assert_int_equal(fake_cudart_live().primaries, 0);
}

PAIR_TEST(where_cufile_is_not_installed) {
  fake_cufile_machine()->installed = false;
  expect_no_session();
  assert_int_equal(fake_cufile_done().opened, 0);
}

PAIR_TEST(where_the_driver_does_not_open) {
  fake_cufile_fail_in("driver_open", 1, umemCufileNoDriver, true);
  expect_no_session();
  assert_int_equal(fake_cufile_done().closed, 0);
}

PAIR_TEST(where_the_driver_does_not_answer) {
  fake_cufile_fail_in("driver_properties", 1, umemCufileInternal, true);
  expect_no_session();
}

PAIR_TEST(where_the_module_is_not_loaded) {
  fake_cufile_machine()->properties.major = fake_cufile_machine()->properties.minor = 0;
  expect_no_session();
}

PAIR_TEST(where_no_storage_has_a_path) {
  fake_cufile_machine()->properties.file_systems = 0;
  expect_no_session();
}

/* cuFile would serve every file then, through host memory. */
PAIR_TEST(where_detours_are_allowed) {
  unsigned const controls[] = {umemCufileAllowsCompat, umemCufilePosixIO, umemCufileFallback, ~0U};
  for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
    fake_cufile_machine()->properties.controls = controls[i];
    expect_no_session();
    FakeCufileDone done = fake_cufile_done();
    assert_int_equal(done.opened, i + 1);
    assert_int_equal(done.closed, i + 1); /* by umem: nobody else uses it */
  }
}

PAIR_TEST(a_driver_of_the_program_remains_open) {
  fake_cufile_machine()->open_by_program = 1;
  fake_cufile_machine()->properties.controls = umemCufileAllowsCompat;
  expect_no_session();
  umemCudaGds_end();
  fake_cufile_machine()->properties.controls = 1;
  reopen_pair(aCuda, 0, false, umemDirectOn);
  there_and_back(&pair, 0, from, 1);
  assert_int_equal(moved(), 2 * from);
  close_pair(&pair);
  umemCudaGds_end();
  FakeCufileDone done = fake_cufile_done();
  assert_int_equal(done.opened + done.closed, 0);
}

/* The question costs time: once, by the first copy that might gain. */
PAIR_TEST(the_driver_is_asked_once_and_late) {
  fake_cufile_machine()->installed = false;
  there_and_back(&pair, 0, from - 1, 1);
  assert_int_equal(fake_cufile_done().asked, 0);
  for (unsigned i = 0; i < 3; i++) there_and_back(&pair, 0, from, i);
  assert_int_equal(fake_cufile_done().asked, 1);
  close_pair(&pair);
  reopen_pair(anAsync, 1, true, umemDirectOn);
  there_and_back(&pair, 0, from, 2);
  assert_int_equal(fake_cufile_done().asked, 1);
}

/* The context could end under cuFile. */
PAIR_TEST(where_the_context_cannot_be_kept) {
  fake_cudart_fail_in("primary_retain", 1, umemCudaOutOfMemory);
  write_file(&pair, 0, from, 1);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 1);
  assert_int_equal(moved(), 0);
  expect_ok(to_gpu(&pair, from));
  assert_int_equal(moved(), from);
}

/* ---- the file and the copy ---- */

PAIR_TEST(short_copies) {
  there_and_back(&pair, 0, from, 1); /* the driver is open */
  expect_other_route(from - 1);
}

PAIR_TEST(files_without_a_path) {
  fake_cufile_machine()->refuses_files = true;
  expect_other_route(from);
  assert_int_equal(fake_cufile_done().opened, 1);
}

/* direct=off: everything goes through the page cache. */
PAIR_TEST(files_with_direct_off) {
  for (int mapped = 0; mapped < 2; mapped++) {
    reopen_pair(aCuda, 0, mapped, umemDirectOff);
    expect_other_route(from);
    assert_int_equal(fake_cufile_done().registered, 0);
  }
}

/* Whether the page cache has a page of the file. Asks without a read, which would start another one
 * ahead. */
static bool is_any_cached(int fd) {
  unsigned char pages[most / page + 1];
  void *all = mmap(NULL, most, PROT_READ, MAP_SHARED, fd, 0);
  assert_true(all != MAP_FAILED);
  assert_int_equal(mincore(all, most, pages), 0);
  assert_int_equal(munmap(all, most), 0);
  for (size_t i = 0; i < sizeof pages; i++)
    if (pages[i] & 1) return true;
  return false;
}

/* Leaves the bytes of the file out of the page cache. Whether the system has done so. */
static bool drop_cache(void) {
  int fd = open(pair.path, O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(fdatasync(fd), 0);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  bool dropped = !is_any_cached(fd);
  assert_int_equal(close(fd), 0);
  return dropped;
}

/* direct=auto: cuFile reads what is not cached, and writes nothing. */
PAIR_TEST(files_that_are_cached) {
  reopen_pair(aCuda, 0, false, umemDirectAuto);
  expect_other_route(from);
  write_file(&pair, 0, from, 3);
  if (drop_cache()) {
    expect_ok(to_gpu(&pair, from));
    expect_gpu(&pair, 0, from, 3);
    assert_int_equal(moved(), from);
  }
  int fd = open(pair.path, O_RDONLY); /* a plain read, after which it is cached again */
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, back, from, (off_t)pair.near), from);
  assert_int_equal(close(fd), 0);
  size_t before = moved();
  expect_ok(to_gpu(&pair, from));
  assert_int_equal(moved(), before);
}

/* A program that reads the file again and again gets it into the cache. */
PAIR_TEST(files_that_are_read_again) {
  reopen_pair(aCuda, 0, false, umemDirectAuto);
  write_file(&pair, 0, most, 3);
  for (int i = 0; i < 5 && drop_cache(); i++) expect_ok(to_gpu(&pair, most - page));
  assert_true(fake_cufile_done().registered <= 2);
}

/* What cuFile was to read, and has not, does not count as read once. And it is asked about a file
 * once. */
PAIR_TEST(a_file_that_cufile_refuses) {
  reopen_pair(aCuda, 0, false, umemDirectOn);
  write_file(&pair, 0, from, 3);
  fake_cufile_fail_in("read", 1, EINVAL, false);
  for (int i = 0; i < 3; i++) {
    expect_ok(to_gpu(&pair, from));
    expect_gpu(&pair, 0, from, 3);
  }
  assert_int_equal(fake_cufile_done().registered, 1);
  assert_int_equal(moved(), 0);
}

/* Ends a loan of the whole file, of which the device has read so many bytes. */
static void lend_once(size_t nbytes) {
  umemDirectFile file;
  assert_true(pair.store.super.vptr->direct_file(&pair.store.super, pair.near, most - page,
                                                 umemReadable, &file));
  assert_int_equal(file.moved, 0);
  assert_false(file.refused);
  file.moved = nbytes;
  file.release(&pair.store.super, &file);
}

PAIR_TEST(only_what_was_read_counts) {
  umemDirectFile file;
  reopen_pair(aCuda, 0, false, umemDirectAuto);
  write_file(&pair, 0, most, 3);
  if (drop_cache()) {
    for (int i = 0; i < 3; i++) lend_once(0);
    for (int i = 0; i < 2; i++) lend_once(most - page);
    assert_false(pair.store.super.vptr->direct_file(&pair.store.super, pair.near, most - page,
                                                    umemReadable, &file));
  }
}

PAIR_TEST(what_is_in_no_block) {
  uintptr_t beyond = pair.near + most - from / 2;
  expect_failure(umem_copy_to(&pair.gpu, pair.far, &pair.store, beyond, from), umemIndexError, "");
  assert_int_equal(umem_get_status(&pair.store), umemIndexError);
  umem_clear_status(&pair.store);
  expect_failure(umem_copy_to(&pair.store, beyond, &pair.gpu, pair.far, from), umemIndexError,
                 "past the end");
  umem_clear_status(&pair.store);
  assert_int_equal(fake_cufile_done().registered, 0);
}

PAIR_TEST(a_file_that_is_only_read) {
  SCOPED(umem_dtor) Store reader;
  write_file(&pair, 0, from, 1);
  expect_ok(open_store(&reader, pair.path, "r", false, umemDirectOn));
  expect_ok(umem_copy_to(&reader, pair.near, &pair.gpu, pair.far, from));
  expect_gpu(&pair, 0, from, 1);
  assert_int_equal(moved(), from);
  expect_failure(umem_copy_to(&pair.gpu, pair.far, &reader, pair.near, from), umemNotSupportedError,
                 "is not writable");
  assert_int_equal(moved(), from);
}

/* Managed and pinned memory have routes of their own, and so have strided copies. */
PAIR_TEST(other_memory_and_other_shapes) {
  Any other;
  for (int kind = aHost; kind <= aManaged; kind++) {
    expect_ok(construct(&other, kind, 0));
    uintptr_t adr = block_of(&other, from);
    expect_ok(umem_copy_to(&pair.store, pair.near, &other, adr, from));
    umem_free(&other, adr);
    umem_dtor(&other);
  }
  size_t const extents[] = {2};
  ptrdiff_t const strides[] = {from + page}, packed[] = {from};
  umemLayout layout = {.size = sizeof layout,
                       .rank = 1,
                       .item_size = from,
                       .extents = extents,
                       .src_strides = strides,
                       .dst_strides = packed};
  write_file(&pair, 0, 2 * from + page, 3);
  expect_ok(umem_copy_strided(&pair.store, pair.near, &pair.gpu, pair.far, &layout));
  expect_gpu(&pair, 0, from, 3);
}

/* ---- streams ---- */

PAIR_TEST(captured_streams) {
  void *graph;
  reopen_pair(anAsync, 0, false, umemDirectOn);
  void *stream = stream_of_pair();
  for (int opened = 0; opened < 2; opened++) {
    unsigned long before = fake_cufile_done().registered;
    assert_int_equal(fake_cudart_begin_capture(stream), 0);
    expect_failure(to_gpu(&pair, from), umemNotSupportedError, "captured into a graph");
    expect_failure(to_file(&pair, from), umemNotSupportedError, "captured into a graph");
    assert_int_equal(fake_cufile_done().registered, before);
    assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
    umem_clear_status(&pair.gpu);
    there_and_back(&pair, 0, from, 1);
  }
}

static void begin_capture(void *stream) {
  assert_int_equal(fake_cudart_begin_capture_in(stream, 2), 0);
}

/* Another thread begins to capture the stream after umem has looked. */
PAIR_TEST(streams_that_are_captured_meanwhile) {
  void *graph;
  reopen_pair(anAsync, 0, false, umemDirectOn);
  void *stream = stream_of_pair();
  there_and_back(&pair, 0, from, 1);
  size_t before = moved();
  fake_cudart_before("event_record", 1, begin_capture, stream);
  expect_failure(to_gpu(&pair, from), umemNotSupportedError, "captured into a graph");
  assert_int_equal(moved(), before);
  assert_int_equal(fake_cudart_end_capture(stream, &graph), 0);
  umem_clear_status(&pair.gpu);
  there_and_back(&pair, 0, from, 1);
}

/* ---- in the middle ---- */

/* cuFile stops with an answer that says what it cannot do: umem copies again, through pinned
 * memory. */
PAIR_TEST(transfers_that_are_refused) {
  int const codes[] = {umemCufileNoDriver,
                       umemCufileDriverClosing,
                       umemCufileNoPlatform,
                       umemCufileNoFile,
                       umemCufileNoDevice,
                       umemCufileBadMemory,
                       umemCufileMappingSize,
                       umemCufileMappingRange,
                       umemCufileBadFileType,
                       umemCufileBadFlags,
                       umemCufileNoDirectIO,
                       umemCufileDisabled,
                       umemCufileNoPinning,
                       umemCufileNoMemory,
                       EINVAL,
                       EOPNOTSUPP,
                       ENOSYS,
                       ENODEV};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    for (int reads = 0; reads < 2; reads++) {
      reopen_pair(aCuda, 0, false, umemDirectOn);
      fake_cufile_fail_in(reads ? "read" : "write", 1 + i % 2, codes[i], true);
      there_and_back(&pair, 100, from + piece, (unsigned)i);
      assert_non_null(fake_cufile_failed());
      fake_cufile_fail(0, 0, false);
      assert_int_equal(umem_get_status(&pair.gpu), umemOK);
    }
}

PAIR_TEST(transfers_of_parts_of_pages) {
  fake_cufile_machine()->most = page - 1; /* no progress by whole pages */
  there_and_back(&pair, 0, from, 1);
}

/* What fails before the first transfer is not recorded. */
PAIR_TEST(a_runtime_that_fails_before) {
  char const *const functions[] = {"event_create", "event_record", "event_synchronize"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    reopen_pair(aCuda, 0, false, umemDirectOn);
    write_file(&pair, 0, from, 1);
    fake_cudart_fail_in(functions[i], 1, umemCudaInvalidValue);
    expect_ok(to_gpu(&pair, from));
    expect_gpu(&pair, 0, from, 1);
    assert_int_equal(moved(), 0);
    close_pair(&pair);
    umemCudaGds_end();
  }
}

int main(void) { return run_pair_tests(0); }
