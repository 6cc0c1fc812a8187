/* gds.c - copies by GPUDirect Storage between files and GPUs: bytes, order, what is short, what
 * fails; on doubles of the runtime and of cuFile. gds_refusal.c has what cuFile does not do. */
#include "gds_help.h"
#include "settings.h"

/* ---- threads and processes ---- */

PAIR_TEST(several_threads_take_pieces) {
  there_and_back(&pair, 0, 5 * piece, 1);
  FakeCufileDone done = fake_cufile_done();
  assert_int_equal(done.reads, 5);
  assert_int_equal(done.writes, 5);
  assert_int_equal(done.registered, 2);
  umem_parallel_set(1);
  there_and_back(&pair, 0, 5 * piece, 2);
  assert_true(fake_cufile_done().threads <= threads);
}

/* The first copies of all threads find the driver closed. */
PAIR_TEST(many_threads_copy) {
  check_threads((int const[]){0, 1, 0}, umemDirectOn, from);
  assert_int_equal(fake_cufile_done().opened, 1);
}

/* The child gets the status of CUDA, and leaves cuFile alone. */
PAIR_TEST(a_child_of_fork_does_not_use_it) {
  there_and_back(&pair, 0, from, 1);
  FakeCufileDone before = fake_cufile_done();
  IN_CHILD {
    bool refused = to_gpu(&pair, from) == umemNotSupportedError;
    FakeCufileDone done = fake_cufile_done();
    EXPECT(refused && done.registered == before.registered && done.reads == before.reads);
  }
  there_and_back(&pair, 0, from, 2);
}

/* ---- content ---- */

static void check_content(int kind, bool mapped) {
  size_t const sizes[] = {from, from + 1, from + page, 3 * piece - 7, 5 * piece};
  reopen_pair(kind, 0, mapped, umemDirectOn);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t before = moved(), offset = i * 1237;
    size_t whole = (sizes[i] - (-offset % page)) / page * page;
    there_and_back(&pair, offset, sizes[i], (unsigned)i);
    assert_int_equal(moved() - before, 2 * whole);
  }
}

PAIR_TEST(all_bytes_arrive) {
  for (int mapped = 0; mapped < 2; mapped++) {
    if (!setting_small() || !mapped) check_content(aCuda, mapped);
    if (!setting_small() || mapped) check_content(anAsync, mapped);
  }
}

/* The pinned chunks of staging have no part in it. */
PAIR_TEST(whole_pages_touch_no_host_memory) {
  write_file(&pair, 0, from, 1);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 1);
  FakeCudartLive live = fake_cudart_live();
  assert_int_equal(live.pinned + live.registered, 0);
  assert_int_equal(fake_cudart_calls_of("memcpy_async") + fake_cudart_calls_of("memcpy"), 0);
}

/* Bytes beside those of the copy stay, on either side. */
PAIR_TEST(neighbours_are_untouched) {
  size_t const offset = 5000, nbytes = from + 777;
  write_file(&pair, 0, most, 3);
  memset(bytes, 9, most);
  assert_true(fake_cudart_poke(pair.far, bytes, most));
  expect_ok(umem_copy_to(&pair.gpu, pair.far, &pair.store, pair.near + offset, nbytes));
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.host, (uintptr_t)back, most));
  put(bytes, most, 3);
  memset(bytes + offset, 9, nbytes);
  assert_memory_equal(back, bytes, most);
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.gpu, pair.far + 100, offset + from));
  unsigned char edge[2];
  assert_true(fake_cudart_peek(pair.far + 99, &edge[0], 1));
  assert_true(fake_cudart_peek(pair.far + 100 + offset + from, &edge[1], 1));
  assert_true(edge[0] == 9 && edge[1] == 9);
}

/* What was written is what programs read through the cache. */
PAIR_TEST(readers_through_the_cache_see_it) {
  write_file(&pair, 0, from, 1);
  int fd = open(pair.path, O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(pread(fd, back, from, (off_t)pair.near), from); /* its pages are cached now */
  put(bytes, from, 2);
  assert_true(fake_cudart_poke(pair.far, bytes, from));
  expect_ok(to_file(&pair, from));
  assert_int_equal(pread(fd, back, from, (off_t)pair.near), from);
  assert_true(holds(back, from, 2));
  assert_int_equal(close(fd), 0);
  assert_int_equal(fake_cufile_done().bytes_written, from);
}

/* Bytes that were written through the cache, and are not on the disk yet. */
PAIR_TEST(writers_through_the_cache_are_seen) {
  int fd = open(pair.path, O_WRONLY);
  assert_true(fd >= 0);
  put(bytes, from, 4);
  assert_int_equal(pwrite(fd, bytes, from, (off_t)pair.near), from);
  assert_int_equal(close(fd), 0);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 4);
  assert_int_equal(fake_cufile_done().bytes_read, from);
}

/* umem/blocks.h cuts blocks into pieces, which would be too short for it. */
PAIR_TEST(blocks_of_files_are_read_by_it) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  write_file(&pair, 0, 2 * from, 5);
  options.source = (umemRows){&pair.store, pair.near, from, 0};
  options.count = 2;
  options.rows = 1;
  options.place = &pair.gpu;
  expect_ok(umemBlocks_ctor(&blocks, &options));
  for (size_t i = 0; umemBlocks_next(&blocks, &block); i++) {
    assert_true(fake_cudart_peek(block.adr, back, from));
    assert_memory_equal(back, bytes + i * from, from);
  }
  expect_ok(umemBlocks_end(&blocks));
  assert_int_equal(fake_cufile_done().bytes_read, 2 * from);
}

PAIR_TEST(an_adaptor_passes_the_copy_on) {
  CONTEXT(umemStats, stats, &pair.store);
  write_file(&pair, 0, from, 5);
  expect_ok(umem_copy_to(&stats, pair.near, &pair.gpu, pair.far, from));
  expect_gpu(&pair, 0, from, 5);
  assert_int_equal(moved(), from);
}

PAIR_TEST(two_gpus) {
  Pair pairs[2];
  for (int d = 0; d < 2; d++) open_pair(&pairs[d], d ? anAsync : aCuda, d, false, umemDirectOn);
  for (unsigned d = 0; d < 2; d++) there_and_back(&pairs[d], 100, from + 5000, d);
  assert_int_equal(fake_cufile_done().opened, 1);
  assert_false(fake_cudart_had_context(2));
  for (int d = 0; d < 2; d++) close_pair(&pairs[d]);
}

/* cuFile keeps memory in a context, so that it must not end. */
PAIR_TEST(contexts_outlive_their_last_user) {
  for (int round = 0; round < 2; round++) {
    reopen_pair(aCuda, 0, false, umemDirectOn);
    there_and_back(&pair, 0, from, 1);
    close_pair(&pair);
    assert_int_equal(fake_cudart_live().primaries, 1);
  }
  assert_int_equal(fake_cufile_done().opened, 1);
}

/* ---- order ---- */

PAIR_TEST(order_on_a_stream) {
  check_order(anAsync, umemDirectOn, from);
  assert_int_equal(moved(), 2 * from);
}

PAIR_TEST(order_on_the_legacy_stream) {
  check_order(aCuda, umemDirectOn, from);
  assert_int_equal(moved(), 2 * from);
}

/* The legacy stream waits for blocking streams: so does the copy. */
PAIR_TEST(order_after_blocking_streams) {
  void *blocking;
  enter(0);
  ok(fake_cudart_create_blocking(&blocking));
  expect_copy_after_kernel(blocking, from);
  assert_int_equal(moved(), from);
  ok(rt->stream_destroy(blocking));
  leave(0);
}

/* ---- short transfers and failures ---- */

PAIR_TEST(short_transfers_go_on) {
  size_t const limits[] = {page, 3 * page + 1, (1 << 20) + 100, piece};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    size_t before = moved();
    fake_cufile_machine()->most = limits[i];
    there_and_back(&pair, 0, from, (unsigned)i);
    assert_true(moved() - before >= 2 * from);
  }
}

PAIR_TEST(signals_interrupt_nothing) {
  fake_cufile_fail_in("read", 2, EINTR, false);
  write_file(&pair, 0, from, 1);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 1);
  assert_int_equal(moved(), from);
}

typedef struct Failure {
  int code;
  umemStatusType type;
  bool of_gpu;
  char const *words;
} Failure;

static void check_failure(Failure const *failure, bool reads) {
  write_file(&pair, 0, 3 * piece, 1);
  fake_cufile_fail_in(reads ? "read" : "write", 2, failure->code, false);
  umemStatusType result = reads ? to_gpu(&pair, 3 * piece) : to_file(&pair, 3 * piece);
  assert_string_equal(fake_cufile_failed(), reads ? "read" : "write");
  assert_int_equal(umem_get_status(&pair.gpu), failure->of_gpu ? failure->type : umemOK);
  assert_int_equal(umem_get_status(&pair.store), failure->of_gpu ? umemOK : failure->type);
  assert_non_null(strstr(umem_thread_message(), "umem_copy_to: "));
  assert_non_null(strstr(umem_thread_message(), reads ? "cuFileRead" : "cuFileWrite"));
  assert_non_null(strstr(umem_thread_message(), pair.path));
  expect_failure(result, failure->type, failure->words);
  umem_clear_status(&pair.store);
  umem_clear_status(&pair.gpu);
  there_and_back(&pair, 0, 3 * piece, 3);
}

/* In the middle of a copy: function, file and cause. */
PAIR_TEST(failures_name_their_cause) {
  Failure const failures[] = {
      {EIO, umemIOError, false, strerror(EIO)},
      {ENOSPC, umemIOError, false, "No space left on device"},
      {umemCufileIOError, umemIOError, false, "input/output error (cuFile error 5044)"},
      {umemCufileNvfsError, umemIOError, false, "nvidia-fs has failed (cuFile error 5010)"},
      {umemCufileNvfsInternal, umemIOError, false, "nvidia-fs"},
      {umemCufileNoPermission, umemIOError, false, "permission denied"},
      {umemCufileInternal, umemIOError, false, "an error of cuFile (cuFile error 5030)"},
      {umemCufileCudaError, umemRuntimeError, true, "CUDA's driver"},
      {umemCufileBadPointer, umemValueError, true, "not in memory of a GPU"},
      {umemCufilePointerRange, umemValueError, true, "exceed a block"},
      {umemCufileContextMismatch, umemRuntimeError, true, "another context"},
      {umemCufileBadContext, umemRuntimeError, true, "another context"},
  };
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
    for (int reads = 0; reads < 2; reads++) check_failure(&failures[i], reads);
}

static void cut_file(void *path) { assert_int_equal(truncate(path, 2 * piece + 100), 0); }

/* Another process cuts the file before a transfer: the status is that of other routes. */
PAIR_TEST(a_file_that_is_cut_in_the_middle) {
  umem_parallel_set(1); /* others could be through with their pieces before the cut */
  for (int mapped = 0; mapped < 2; mapped++) {
    reopen_pair(aCuda, 0, mapped, umemDirectOn);
    write_file(&pair, 0, most, 1);
    fake_cufile_before(2, cut_file, pair.path);
    expect_cut(to_gpu(&pair, 4 * piece));
    assert_true(moved() > 0);
  }
}

/* ---- the route ---- */

static umemStatusType copy_with_route(bool reads, size_t offset, size_t nbytes, umemRoute *route) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  *route = (umemRoute)UMEM_ROUTE_INIT;
  options.route = route;
  uintptr_t near = pair.near + offset;
  return reads ? umem_copy_to_with(&pair.store, near, &pair.gpu, pair.far, nbytes, &options)
               : umem_copy_to_with(&pair.gpu, pair.far, &pair.store, near, nbytes, &options);
}

static void expect_text(umemRoute const *route, char const *expected) {
  char text[300];
  umemRoute_text(route, text, sizeof text);
  assert_string_equal(text, expected);
}

PAIR_TEST(the_route_names_it) {
  umemRoute route;
  expect_ok(copy_with_route(true, 0, from, &route));
  expect_text(&route, "file -> 2 workers, GPUDirect Storage -> cuda:0");
  assert_int_equal(route.legs[0].bytes, from);
  assert_int_equal(route.legs[0].calls, 2);
  expect_ok(copy_with_route(false, 0, from, &route));
  expect_text(&route, "cuda:0 -> 2 workers, GPUDirect Storage -> file");
  assert_int_equal(route.legs[0].bytes, from);
}

PAIR_TEST(the_route_names_the_ends_beside_it) {
  umemRoute route;
  expect_ok(copy_with_route(true, 96, from + page, &route));
  expect_text(&route, "file -> 2 workers, GPUDirect Storage -> cuda:0; "
                      "file -> page cache -> pinned -> cuda:0");
  assert_int_equal(route.legs[0].bytes, from);
  assert_int_equal(route.legs[1].bytes, page);
  assert_int_equal(route.legs[2].bytes, page);
  assert_int_equal(route.legs[1].calls, 2);
}

/* What cuFile has begun and refused is copied by other routes; only what it has moved is its
 * own. */
PAIR_TEST(the_route_after_a_refusal) {
  umemRoute route;
  write_file(&pair, 0, from, 1);
  umem_parallel_set(1);
  fake_cufile_fail_in("read", 1, EINVAL, false);
  expect_ok(copy_with_route(true, 0, from, &route));
  expect_gpu(&pair, 0, from, 1);
  for (uint32_t i = 0; i < route.leg_count; i++)
    assert_string_not_equal(route.legs[i].way, "GPUDirect Storage");
  reopen_pair(aCuda, 0, false, umemDirectOn);
  write_file(&pair, 0, from, 1);
  fake_cufile_fail_in("read", 1, EIO, false);
  assert_int_equal(copy_with_route(true, 0, from, &route), umemIOError);
  expect_text(&route, "file -> GPUDirect Storage -> cuda:0");
  assert_int_equal(route.legs[0].bytes, 0);
  FORGET(&pair.store);
}

/* With a sanitizer of threads only the first ones, which are about threads. */
int main(void) { return run_pair_tests(UNDER_THREAD_SANITIZER ? 3 : 0); }
