/* gds.c - copies by GPUDirect Storage between files and GPUs: bytes, order, what is short, what
 * fails; on doubles of the runtime and of cuFile. gds_refusal.c has what cuFile does not do. */
#include "gds_help.h"
#include "child.h"
#include "settings.h"

#include <pthread.h>
#include <sys/wait.h>

/* ---- content ---- */

static void check_content(int kind, bool mapped) {
  Pair pair;
  size_t const sizes[] = {from, from + 1, from + page, 3 * piece - 7, 5 * piece};
  open_pair_on(&pair, kind, 0, mapped, umemDirectOn);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size_t before = moved(), offset = i * 1237;
    size_t whole = (sizes[i] - (-offset % page)) / page * page;
    there_and_back(&pair, offset, sizes[i], (unsigned)i);
    assert_int_equal(moved() - before, 2 * whole);
  }
  close_pair(&pair);
}

static void all_bytes_arrive(void **state) {
  (void)state;
  for (int mapped = 0; mapped < 2; mapped++) {
    if (!setting_small() || !mapped) check_content(aCuda, mapped);
    if (!setting_small() || mapped) check_content(anAsync, mapped);
  }
}

/* The pinned chunks of staging have no part in it. */
static void whole_pages_touch_no_host_memory(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
  write_file(&pair, 0, from, 1);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 1);
  FakeCudartLive live = fake_cudart_live();
  assert_int_equal(live.pinned + live.registered, 0);
  assert_int_equal(fake_cudart_calls_of("memcpy_async") + fake_cudart_calls_of("memcpy"), 0);
  close_pair(&pair);
}

/* Bytes beside those of the copy stay, on either side. */
static void neighbours_are_untouched(void **state) {
  (void)state;
  Pair pair;
  size_t const offset = 5000, nbytes = from + 777;
  open_pair(&pair);
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
  close_pair(&pair);
}

static void several_threads_take_pieces(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
  there_and_back(&pair, 0, 5 * piece, 1);
  FakeCufileDone done = fake_cufile_done();
  assert_int_equal(done.reads, 5);
  assert_int_equal(done.writes, 5);
  assert_int_equal(done.registered, 2);
  umem_parallel_set(1);
  there_and_back(&pair, 0, 5 * piece, 2);
  assert_true(fake_cufile_done().threads <= threads);
  close_pair(&pair);
}

/* What was written is what programs read through the cache. */
static void readers_through_the_cache_see_it(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
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
  close_pair(&pair);
}

/* Bytes that were written through the cache, and are not on the disk yet. */
static void writers_through_the_cache_are_seen(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
  int fd = open(pair.path, O_WRONLY);
  assert_true(fd >= 0);
  put(bytes, from, 4);
  assert_int_equal(pwrite(fd, bytes, from, (off_t)pair.near), from);
  assert_int_equal(close(fd), 0);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 4);
  assert_int_equal(fake_cufile_done().bytes_read, from);
  close_pair(&pair);
}

/* umem/blocks.h cuts blocks into pieces, which would be too short for it. */
static void blocks_of_files_are_read_by_it(void **state) {
  (void)state;
  Pair pair;
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  open_pair(&pair);
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
  close_pair(&pair);
}

static void an_adaptor_passes_the_copy_on(void **state) {
  (void)state;
  Pair pair;
  umemStats stats;
  open_pair(&pair);
  expect_ok(umemStats_ctor(&stats, &pair.store));
  write_file(&pair, 0, from, 5);
  expect_ok(umem_copy_to(&stats, pair.near, &pair.gpu, pair.far, from));
  expect_gpu(&pair, 0, from, 5);
  assert_int_equal(moved(), from);
  umem_dtor(&stats);
  close_pair(&pair);
}

static void two_gpus(void **state) {
  (void)state;
  Pair pairs[2];
  for (int d = 0; d < 2; d++) open_pair_on(&pairs[d], d ? anAsync : aCuda, d, false, umemDirectOn);
  for (unsigned d = 0; d < 2; d++) there_and_back(&pairs[d], 100, from + 5000, d);
  assert_int_equal(fake_cufile_done().opened, 1);
  assert_false(fake_cudart_had_context(2));
  for (int d = 0; d < 2; d++) close_pair(&pairs[d]);
}

/* cuFile keeps memory in a context, so that it must not end. */
static void contexts_outlive_their_last_user(void **state) {
  (void)state;
  Pair pair;
  for (int round = 0; round < 2; round++) {
    open_pair(&pair);
    there_and_back(&pair, 0, from, 1);
    close_pair(&pair);
    assert_int_equal(fake_cudart_live().primaries, 1);
  }
  assert_int_equal(fake_cufile_done().opened, 1);
}

/* ---- order ---- */

typedef struct Kernel {
  Pair *pair;
  int value; /* what the block is set to; -1: it is only looked at */
  unsigned char seen;
} Kernel;

static void run_kernel(void *argument) {
  Kernel *kernel = argument;
  unsigned char *all = fake_cudart_at(kernel->pair->far, from);
  kernel->seen = all[from - 1];
  if (kernel->value >= 0) memset(all, kernel->value, from);
}

/* What was queued before is done before the copy, what is queued later comes after it. */
static void check_order(int kind) {
  Pair pair;
  open_pair_on(&pair, kind, 0, false, umemDirectOn);
  umemInfo info = UMEM_INFO_INIT;
  expect_ok(umem_get_info(&pair.gpu, &info));
  void *stream = kind == anAsync ? (void *)(uintptr_t)info.stream : NULL;
  enter(0);
  Kernel first = {&pair, 6, 0};
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &first), 0);
  assert_true(fake_cudart_is_late(stream));
  expect_ok(to_file(&pair, from));
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.host, (uintptr_t)back, from));
  assert_true(back[0] == 6 && !memcmp(back, back + 1, from - 1));

  Kernel second = {&pair, 7, 0}, third = {&pair, -1, 0};
  memset(bytes, 9, from);
  expect_ok(umem_copy_from(&pair.store, pair.near, &pair.host, (uintptr_t)bytes, from));
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &second), 0);
  expect_ok(to_gpu(&pair, from));
  assert_int_equal(second.seen, 6);
  assert_int_equal(fake_cudart_launch(stream, run_kernel, &third), 0);
  expect_ok(umem_synchronize(&pair.gpu));
  assert_int_equal(third.seen, 9);
  assert_int_equal(moved(), 2 * from);
  leave(0);
  close_pair(&pair);
}

static void order_on_a_stream(void **state) {
  (void)state;
  check_order(anAsync);
}

static void order_on_the_legacy_stream(void **state) {
  (void)state;
  check_order(aCuda);
}

/* The legacy stream waits for blocking streams: so does the copy. */
static void order_after_blocking_streams(void **state) {
  (void)state;
  Pair pair;
  void *blocking;
  open_pair(&pair);
  enter(0);
  assert_int_equal(fake_cudart_create_blocking(&blocking), 0);
  Kernel kernel = {&pair, 6, 0};
  assert_int_equal(fake_cudart_launch(blocking, run_kernel, &kernel), 0);
  expect_ok(to_file(&pair, from));
  expect_ok(umem_copy_to(&pair.store, pair.near, &pair.host, (uintptr_t)back, from));
  assert_true(back[0] == 6 && !memcmp(back, back + 1, from - 1));
  assert_int_equal(moved(), from);
  assert_int_equal(rt->stream_destroy(blocking), 0);
  leave(0);
  close_pair(&pair);
}

/* ---- short transfers and failures ---- */

static void short_transfers_go_on(void **state) {
  (void)state;
  Pair pair;
  size_t const limits[] = {page, 3 * page + 1, (1 << 20) + 100, piece};
  open_pair(&pair);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    size_t before = moved();
    fake_cufile_machine()->most = limits[i];
    there_and_back(&pair, 0, from, (unsigned)i);
    assert_true(moved() - before >= 2 * from);
  }
  close_pair(&pair);
}

static void signals_interrupt_nothing(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
  fake_cufile_fail_in("read", 2, EINTR, false);
  write_file(&pair, 0, from, 1);
  expect_ok(to_gpu(&pair, from));
  expect_gpu(&pair, 0, from, 1);
  assert_int_equal(moved(), from);
  close_pair(&pair);
}

typedef struct Failure {
  int code;
  umemStatusType type;
  bool of_gpu;
  char const *words;
} Failure;

static void check_failure(Pair *pair, Failure const *failure, bool reads) {
  write_file(pair, 0, 3 * piece, 1);
  fake_cufile_fail_in(reads ? "read" : "write", 2, failure->code, false);
  umemStatusType result = reads ? to_gpu(pair, 3 * piece) : to_file(pair, 3 * piece);
  assert_string_equal(fake_cufile_failed(), reads ? "read" : "write");
  assert_int_equal(umem_get_status(&pair->gpu), failure->of_gpu ? failure->type : umemOK);
  assert_int_equal(umem_get_status(&pair->store), failure->of_gpu ? umemOK : failure->type);
  assert_non_null(strstr(umem_thread_message(), "umem_copy_to: "));
  assert_non_null(strstr(umem_thread_message(), reads ? "cuFileRead" : "cuFileWrite"));
  assert_non_null(strstr(umem_thread_message(), pair->path));
  expect_failure(result, failure->type, failure->words);
  umem_clear_status(&pair->store);
  umem_clear_status(&pair->gpu);
  there_and_back(pair, 0, 3 * piece, 3);
}

/* In the middle of a copy: function, file and cause. */
static void failures_name_their_cause(void **state) {
  (void)state;
  Failure const failures[] = {
      {EIO, umemIOError, false, "Input/output error"},
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
  Pair pair;
  open_pair(&pair);
  for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
    for (int reads = 0; reads < 2; reads++) check_failure(&pair, &failures[i], reads);
  close_pair(&pair);
}

static void cut_file(void *path) { assert_int_equal(truncate(path, 2 * piece + 100), 0); }

/* Another process cuts the file before a transfer: the status is that of other routes. */
static void a_file_that_is_cut_in_the_middle(void **state) {
  (void)state;
  umem_parallel_set(1); /* others could be through with their pieces before the cut */
  for (int mapped = 0; mapped < 2; mapped++) {
    Pair pair;
    open_pair_on(&pair, aCuda, 0, mapped, umemDirectOn);
    write_file(&pair, 0, most, 1);
    fake_cufile_before(2, cut_file, pair.path);
    expect_failure(to_gpu(&pair, 4 * piece), umemIOError, "truncated by another process");
    assert_int_equal(umem_get_status(&pair.store), umemIOError);
    assert_int_equal(umem_get_status(&pair.gpu), umemOK);
    umem_clear_status(&pair.store);
    assert_true(moved() > 0);
    close_pair(&pair);
  }
}

/* ---- the route ---- */

static umemStatusType copy_with_route(Pair *pair, bool reads, size_t offset, size_t nbytes,
                                      umemRoute *route) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  *route = (umemRoute)UMEM_ROUTE_INIT;
  options.route = route;
  uintptr_t near = pair->near + offset;
  return reads ? umem_copy_to_with(&pair->store, near, &pair->gpu, pair->far, nbytes, &options)
               : umem_copy_to_with(&pair->gpu, pair->far, &pair->store, near, nbytes, &options);
}

static void expect_text(umemRoute const *route, char const *expected) {
  char text[300];
  umemRoute_text(route, text, sizeof text);
  assert_string_equal(text, expected);
}

static void the_route_names_it(void **state) {
  (void)state;
  Pair pair;
  umemRoute route;
  open_pair(&pair);
  expect_ok(copy_with_route(&pair, true, 0, from, &route));
  expect_text(&route, "file -> 2 workers, GPUDirect Storage -> cuda:0");
  assert_int_equal(route.legs[0].bytes, from);
  assert_int_equal(route.legs[0].calls, 2);
  expect_ok(copy_with_route(&pair, false, 0, from, &route));
  expect_text(&route, "cuda:0 -> 2 workers, GPUDirect Storage -> file");
  assert_int_equal(route.legs[0].bytes, from);
  close_pair(&pair);
}

static void the_route_names_the_ends_beside_it(void **state) {
  (void)state;
  Pair pair;
  umemRoute route;
  open_pair(&pair);
  expect_ok(copy_with_route(&pair, true, 96, from + page, &route));
  expect_text(&route, "file -> 2 workers, GPUDirect Storage -> cuda:0; "
                      "file -> page cache -> pinned -> cuda:0");
  assert_int_equal(route.legs[0].bytes, from);
  assert_int_equal(route.legs[1].bytes, page);
  assert_int_equal(route.legs[2].bytes, page);
  assert_int_equal(route.legs[1].calls, 2);
  close_pair(&pair);
}

/* What cuFile has begun and refused is copied by other routes; only what it has moved is its
 * own. */
static void the_route_after_a_refusal(void **state) {
  (void)state;
  Pair pair;
  umemRoute route;
  open_pair(&pair);
  write_file(&pair, 0, from, 1);
  umem_parallel_set(1);
  fake_cufile_fail_in("read", 1, EINVAL, false);
  expect_ok(copy_with_route(&pair, true, 0, from, &route));
  expect_gpu(&pair, 0, from, 1);
  for (uint32_t i = 0; i < route.leg_count; i++)
    assert_string_not_equal(route.legs[i].way, "GPUDirect Storage");
  close_pair(&pair);
  open_pair(&pair);
  write_file(&pair, 0, from, 1);
  fake_cufile_fail_in("read", 1, EIO, false);
  assert_int_equal(copy_with_route(&pair, true, 0, from, &route), umemIOError);
  expect_text(&route, "file -> GPUDirect Storage -> cuda:0");
  assert_int_equal(route.legs[0].bytes, 0);
  umem_clear_status(&pair.store);
  umem_thread_clear();
  close_pair(&pair);
}

/* ---- threads and processes ---- */

static void *copy_often(void *argument) {
  Pair *pair = argument;
  for (int i = 0; i < 3; i++)
    if (to_gpu(pair, from) != umemOK || to_file(pair, from) != umemOK) return pair;
  return NULL;
}

/* The first copies of all threads find the driver closed. */
static void many_threads_copy(void **state) {
  (void)state;
  Pair pairs[3];
  pthread_t ids[3];
  for (unsigned i = 0; i < 3; i++) {
    open_pair_on(&pairs[i], aCuda, (int)i % 2, i == 1, umemDirectOn);
    write_file(&pairs[i], 0, from, i);
  }
  for (unsigned i = 0; i < 3; i++)
    assert_int_equal(pthread_create(&ids[i], NULL, copy_often, &pairs[i]), 0);
  for (unsigned i = 0; i < 3; i++) {
    void *failed;
    assert_int_equal(pthread_join(ids[i], &failed), 0);
    assert_null(failed);
    expect_file(&pairs[i], 0, from, i);
  }
  assert_int_equal(fake_cufile_done().opened, 1);
  for (unsigned i = 0; i < 3; i++) close_pair(&pairs[i]);
}

/* The child gets the status of CUDA, and leaves cuFile alone. */
static void a_child_of_fork_does_not_use_it(void **state) {
  (void)state;
  Pair pair;
  open_pair(&pair);
  there_and_back(&pair, 0, from, 1);
  FakeCufileDone before = fake_cufile_done();
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    bool refused = to_gpu(&pair, from) == umemNotSupportedError;
    FakeCufileDone done = fake_cufile_done();
    _exit(refused && done.registered == before.registered && done.reads == before.reads ? 0 : 1);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  there_and_back(&pair, 0, from, 2);
  close_pair(&pair);
}

int main(void) {
  struct CMUnitTest const tests[] = {
      cmocka_unit_test_setup_teardown(several_threads_take_pieces, set_up_gds,
                                      tear_down_gds), /* the first three are about threads */
      cmocka_unit_test_setup_teardown(many_threads_copy, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(a_child_of_fork_does_not_use_it, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(all_bytes_arrive, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(whole_pages_touch_no_host_memory, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(neighbours_are_untouched, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(readers_through_the_cache_see_it, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(writers_through_the_cache_are_seen, set_up_gds,
                                      tear_down_gds),
      cmocka_unit_test_setup_teardown(blocks_of_files_are_read_by_it, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(an_adaptor_passes_the_copy_on, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(two_gpus, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(contexts_outlive_their_last_user, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(order_on_a_stream, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(order_on_the_legacy_stream, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(order_after_blocking_streams, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(short_transfers_go_on, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(signals_interrupt_nothing, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(failures_name_their_cause, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(a_file_that_is_cut_in_the_middle, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(the_route_names_it, set_up_gds, tear_down_gds),
      cmocka_unit_test_setup_teardown(the_route_names_the_ends_beside_it, set_up_gds,
                                      tear_down_gds),
      cmocka_unit_test_setup_teardown(the_route_after_a_refusal, set_up_gds, tear_down_gds),
  };
  if (!has_direct()) {
    print_message("the file system of /tmp has no direct I/O: nothing is tested\n");
    return 0;
  }
  size_t count = UNDER_THREAD_SANITIZER ? 3 : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("gds", tests, count, NULL, NULL);
}
