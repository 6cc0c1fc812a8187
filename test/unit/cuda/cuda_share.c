/* cuda_share.c - memory of GPUs for other processes, on a double of the runtime: what is shared and
 * refused, and how attachments are counted. Handles of this process are made to look as those of
 * another one (cuda_processes.c has two processes). */
#include "cuda_help.h"

#include <sys/socket.h>

enum { nbytes = 5000 };

static void *cuda, *other, *async, *host;
static unsigned char bytes[nbytes];

/* Of each test. */
static umemHandle handle;

static void open_all(void **state) {
  cuda_set_up(state);
  fake_cudart_machine()->shares_with_itself = true;
  host = opened("host:");
  cuda = opened("cuda:0");
  other = opened("cuda:0");
  async = opened("cuda-async:0?share=yes");
}

/* As if another process had made it. */
static umemHandle of_another_process(void *ctx, uintptr_t adr, size_t n, int *fd) {
  umemHandle changed;
  expect_ok(umem_share_with(ctx, adr, n, &changed, fd));
  changed.identity[0] ^= 1;
  return changed;
}

static uintptr_t filled(void *ctx, unsigned seed) {
  uintptr_t adr = block_of(ctx, nbytes);
  put_bytes(ctx, adr, nbytes, seed);
  return adr;
}

static void expect_filled(void *ctx, uintptr_t adr, unsigned seed) {
  assert_true(has_bytes(ctx, adr, nbytes, seed));
}

#define SHARE_TEST(name) TEST_CASE_WITH(name, open_all, cuda_tear_down)

/* ---- in one process ---- */

SHARE_TEST(the_sharer_gets_the_original_address) {
  void *const contexts[] = {cuda, async};
  for (int i = 0; i < 2; i++) {
    uintptr_t adr = block_of(contexts[i], nbytes);
    expect_ok(umem_share(contexts[i], adr + 8, 100, &handle));
    assert_int_equal(handle.offset, 8);
    assert_int_equal(handle.size, nbytes);
    assert_true(umem_attach(&handle, contexts[i]) == adr + 8);
    assert_true(umem_attach(&handle, other) == adr + 8); /* it is on the same GPU */
    expect_ok(umem_detach(other, adr + 9));
    expect_ok(umem_detach(contexts[i], adr));
    expect_failure(umem_detach(contexts[i], adr), umemValueError, "nothing is attached");
    assert_true(umem_attach(&handle, contexts[i]) == adr + 8); /* the refusal has not counted */
    expect_ok(umem_detach(contexts[i], adr));
    expect_failure(umem_detach(other, adr), umemValueError, "nothing is attached");
    umem_free(contexts[i], adr);
    expect_report(umem_attach(&handle, contexts[i]), umemIOError, "its block is freed");
    adr = block_of(contexts[i], nbytes); /* another one, wherever it is */
    expect_report(umem_attach(&handle, contexts[i]), umemIOError, "its block is freed");
    umem_free(contexts[i], adr);
  }
}

SHARE_TEST(a_context_that_ends_shares_nothing) {
  umemCuda short_lived;
  expect_ok(umemCuda_ctor(&short_lived, 0));
  expect_ok(umem_share(&short_lived, block_of(&short_lived, 8), 8, &handle));
  umem_dtor(&short_lived);
  expect_report(umem_attach(&handle, cuda), umemIOError, "its block is freed");
}

SHARE_TEST(stacks_share_what_is_below) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.memory = umemPoolChunks;
  CONTEXT(umemPool, pool, cuda, &options);
  uintptr_t adr = block_of(&pool, 100);
  expect_ok(umem_share(&pool, adr, 100, &handle));
  assert_true(umem_attach(&handle, &pool) == adr);
  expect_ok(umem_detach(&pool, adr));
  umem_free(&pool, adr);
}

SHARE_TEST(what_is_in_no_block_is_refused) {
  uintptr_t adr = block_of(cuda, 100);
  expect_failure(umem_share(cuda, adr + 90, 11, &handle), umemIndexError, "more than the block");
  expect_failure(umem_share(cuda, adr - 8, 8, &handle), umemIndexError, "in no live block");
  assert_int_equal(handle.kind, 0);
  umem_free(cuda, adr);
  expect_failure(umem_share(cuda, adr, 8, &handle), umemIndexError, "in no live block");
}

SHARE_TEST(what_cannot_be_shared_is_refused) {
  static struct {
    char const *name, *words;
  } const cases[] = {{"cuda-managed:0", "CudaManaged"},
                     {"cuda-host:", "CudaHost"},
                     {"cuda-async:0", "the option share"},
                     {"pool+cuda:0", "memory=chunks"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    void *ctx = opened("%s", cases[i].name);
    expect_failure(umem_share(ctx, block_of(ctx, 100), 8, &handle), umemNotSupportedError,
                   cases[i].words);
  }
}

SHARE_TEST(other_contexts_cannot_attach) {
  void *managed = opened("cuda-managed:0"), *shm = opened("shm:?size=64K");
  expect_ok(umem_share(cuda, block_of(cuda, 100), 100, &handle));
  expect_report(umem_attach(&handle, host), umemTypeError, "attach them to a Cuda");
  expect_report(umem_attach(&handle, managed), umemTypeError, "attach them to a Cuda");
  expect_ok(umem_share(shm, block_of(shm, 100), 100, &handle));
  expect_report(umem_attach(&handle, cuda), umemTypeError, "attach them to a Host");
  expect_failure(umem_detach(cuda, 4096), umemValueError, "nothing is attached");
}

SHARE_TEST(captures_are_left_whole) {
  void *stream = (void *)umemCudaAsync_stream(async), *graph = NULL;
  umemHandle second;
  uintptr_t adr = block_of(async, nbytes), block = block_of(cuda, nbytes);
  expect_ok(umem_share(async, adr, nbytes, &handle));
  second = of_another_process(cuda, block, nbytes, &(int){0});
  uintptr_t there = umem_attach(&second, async);
  ok(fake_cudart_begin_capture(stream));
  expect_failure(umem_share(async, adr, nbytes, &second), umemNotSupportedError, "captured");
  expect_report(umem_attach(&handle, async), umemNotSupportedError, "captured");
  expect_failure(umem_detach(async, there), umemNotSupportedError, "captured");
  ok(fake_cudart_end_capture(stream, &graph));
  expect_ok(umem_detach(async, there));
}

/* Of the program's own stream, in each mode: a call succeeds or is refused, and the capture goes
 * on. */
SHARE_TEST(captures_of_the_program_are_left_whole) {
  void *const consumers[] = {cuda, other, async};
  uintptr_t adr = filled(cuda, 3);
  umemHandle const good = of_another_process(cuda, adr, nbytes, &(int){0});
  void *streams[2] = {NULL, NULL}, *graph = NULL;
  enter(0);
  ok(rt->stream_create(&streams[0]));           /* does not wait for the legacy stream */
  ok(fake_cudart_create_blocking(&streams[1])); /* does: it is refused there */
  for (unsigned i = 0; i < 2 * 3 * 3; i++) {
    void *consumer = consumers[i % 3];
    umemHandle shared;
    ok(fake_cudart_begin_capture_in(streams[i / 9], (int)(i / 3 % 3)));
    uintptr_t there = umem_attach(&good, consumer);
    if (there)
      (void)umem_detach(consumer, there);
    else
      assert_int_equal(umem_thread_status(), umemNotSupportedError);
    if (umem_share(cuda, adr, nbytes, &shared) != umemOK)
      assert_int_equal(umem_thread_status(), umemNotSupportedError);
    ok(fake_cudart_end_capture(streams[i / 9], &graph));
    umem_thread_clear();
    if (there) umem_detach(consumer, there); /* unless it is done */
    FORGET(consumer, cuda);
  }
  assert_int_equal(fake_cudart_calls_of("ipc_open"), fake_cudart_calls_of("ipc_close"));
  for (unsigned i = 0; i < 2; i++) ok(rt->stream_destroy(streams[i]));
  leave(0);
}

SHARE_TEST(options_are_checked) {
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  umemCudaAsync one;
  options.share = 2;
  expect_failure(umemCudaAsync_ctor_with(&one, 0, 0, &options), umemValueError, "share is 0 or 1");
  options.share = 1;
  fake_cudart_machine()->device[1].no_shared_pools = true;
  expect_failure(umemCudaAsync_ctor_with(&one, 1, UMEM_STREAM_NEW, &options), umemNotSupportedError,
                 "cannot share memory pools of GPU 1");
}

/* ---- of another process ---- */

SHARE_TEST(one_block_is_opened_once) {
  uintptr_t adr = filled(cuda, 3);
  handle = of_another_process(cuda, adr, nbytes, &(int){0});
  uintptr_t one = umem_attach(&handle, other);
  handle.offset = 100;
  handle.length = 50;
  uintptr_t two = umem_attach(&handle, other), three = umem_attach(&handle, async);
  assert_true(one && one != adr && two == one + 100 && three == two);
  assert_int_equal(fake_cudart_calls_of("ipc_open"), 1);
  expect_filled(other, one, 3);
  expect_ok(umem_set(other, one, 9, nbytes));
  expect_ok(umem_synchronize(other));
  expect_ok(umem_copy_to(cuda, adr, host, (uintptr_t)bytes, nbytes));
  assert_true(bytes[0] == 9 && bytes[nbytes - 1] == 9);
  expect_ok(umem_detach(other, one));
  expect_ok(umem_detach(async, two));
  assert_int_equal(fake_cudart_calls_of("ipc_close"), 0);
  expect_ok(umem_detach(other, one + nbytes - 1));
  assert_int_equal(fake_cudart_calls_of("ipc_close"), 1);
  expect_failure(umem_detach(other, one), umemValueError, "nothing is attached");
}

SHARE_TEST(an_attachment_outlives_its_context) {
  umemCuda short_lived;
  uintptr_t adr = filled(cuda, 4);
  handle = of_another_process(cuda, adr, nbytes, &(int){0});
  expect_ok(umemCuda_ctor(&short_lived, 0));
  uintptr_t there = umem_attach(&handle, &short_lived);
  umem_dtor(&short_lived);
  expect_filled(other, there, 4);
  expect_ok(umem_detach(other, there));
}

static umemHandle for_threads[2]; /* of another process, and of this one */

static void *attach_and_detach(void *unused UNUSED) {
  umemCuda mine;
  bool good = umemCuda_ctor(&mine, 0) == umemOK;
  for (unsigned i = 0; i < 200; i++) {
    uintptr_t adr = umem_attach(&for_threads[i & 1], &mine);
    good &= adr && umem_detach(&mine, adr) == umemOK;
  }
  umem_dtor(&mine);
  return good ? NULL : for_threads;
}

/* The block is opened and closed again and again, and never twice at a time. */
SHARE_TEST(threads_attach_one_block) {
  uintptr_t adr = filled(cuda, 3);
  for_threads[0] = of_another_process(cuda, adr, nbytes, &(int){0});
  expect_ok(umem_share(cuda, adr, nbytes, &for_threads[1]));
  run_at_once(4, attach_and_detach, NULL, 0);
  assert_true(fake_cudart_calls_of("ipc_open") > 0);
  assert_int_equal(fake_cudart_calls_of("ipc_open"), fake_cudart_calls_of("ipc_close"));
  expect_failure(umem_detach(cuda, adr), umemValueError, "nothing is attached");
}

SHARE_TEST(pools_pass_by_their_descriptor) {
  int fd = -1, again = -1;
  uintptr_t adr = filled(async, 5), more = filled(async, 6);
  handle = of_another_process(async, adr, nbytes, &fd);
  umemHandle second = of_another_process(async, more, nbytes, &again);
  assert_int_equal(handle.kind, umemHandleCudaPool);
  assert_true(fd >= 0 && fd == again && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
  expect_report(umem_attach(&handle, other), umemValueError, "it needs its descriptor");
  expect_report(umem_attach_with(&handle, open("/dev/null", O_RDONLY), other), umemValueError,
                "cannot open a memory pool");
  uintptr_t one = umem_attach_with(&handle, dup(fd), other);
  uintptr_t two = umem_attach(&second, other); /* the pool is open */
  assert_true(one && two);
  assert_int_equal(fake_cudart_calls_of("pool_import"), 2);
  expect_filled(other, one, 5);
  expect_filled(other, two, 6);
  expect_ok(umem_detach(other, one));
  expect_filled(other, two, 6);
  expect_ok(umem_detach(other, two));
  expect_ok(umem_synchronize(other));
}

SHARE_TEST(sockets_pass_both) {
  int ends[2];
  uintptr_t adr = filled(async, 5);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  expect_ok(umem_send(ends[0], async, adr, nbytes));
  assert_true(umem_receive(ends[1], async, &handle) == adr);
  expect_ok(umem_detach(async, adr));
  close(ends[0]);
  close(ends[1]);
}

SHARE_TEST(changed_handles_are_refused) {
  uintptr_t adr = filled(cuda, 3);
  umemHandle const good = of_another_process(cuda, adr, nbytes, &(int){0});
  umemHandle bad = good;
#define REFUSED(change, type, words)                                                               \
  do {                                                                                             \
    change;                                                                                        \
    expect_report(umem_attach(&bad, other), type, words);                                          \
    bad = good;                                                                                    \
  } while (0)
  REFUSED(bad.size = nbytes + 1, umemValueError, "not in its memory");
  REFUSED(bad.gpu[1] = 77, umemNotSupportedError, "a GPU that this process cannot use");
  REFUSED(bad.memory[2]++, umemValueError, "has its process freed");
  REFUSED(bad.event[2]++, umemValueError, "cannot open the event");
  REFUSED(bad.flags = UMEM_HANDLE_READ_ONLY, umemValueError, "never read-only");
  REFUSED(bad.kind = umemHandleFile, umemValueError, "names a GPU");
  REFUSED(bad.reserved[4] = 1, umemValueError, "newer umem");
  uintptr_t there = umem_attach(&good, other);
  assert_true(there);
  REFUSED(bad.size++, umemValueError, "not in its memory"); /* of a block that is open */
#undef REFUSED
  expect_ok(umem_detach(other, there));
}

SHARE_TEST(only_gpus_that_reach_the_memory_attach_it) {
  uintptr_t adr = filled(cuda, 3);
  handle = of_another_process(cuda, adr, nbytes, &(int){0});
  void *far = opened("cuda:2");
  expect_report(umem_attach(&handle, far), umemNotSupportedError,
                "GPU 2 cannot reach the memory of GPU 0");
  void *peer = opened("cuda:1");
  uintptr_t there = umem_attach(&handle, peer);
  assert_true(there);
  expect_filled(peer, there, 3);
  expect_ok(umem_detach(peer, there));
  handle.identity[0] ^= 1; /* of this process: its address is of GPU 0 */
  expect_report(umem_attach(&handle, peer), umemTypeError, "on another GPU");
}

SHARE_TEST(work_of_the_sharer_comes_first) {
  int fd;
  void *stream = (void *)umemCudaAsync_stream(async);
  uintptr_t adr = block_of(async, nbytes);
  expect_ok(umem_set(async, adr, 8, nbytes));
  handle = of_another_process(async, adr, nbytes, &fd);
  assert_true(fake_cudart_is_late(stream));
  uintptr_t there = umem_attach_with(&handle, dup(fd), other);
  assert_true(there && fake_cudart_is_late(stream)); /* nobody has waited */
  expect_ok(umem_copy_to(other, there, host, (uintptr_t)bytes, nbytes));
  assert_true(bytes[0] == 8 && bytes[nbytes - 1] == 8);
  expect_ok(umem_detach(other, there));
}

SHARE_TEST(without_pools_blocks_pass_as_those_of_a_cuda) {
  int fd = 0;
  close_opened();
  fake_cudart_machine()->device[0].no_pools = true;
  host = opened("host:");
  other = opened("cuda:0");
  void *one = opened("cuda-async:0?share=yes");
  uintptr_t adr = filled(one, 2);
  handle = of_another_process(one, adr, nbytes, &fd);
  assert_true(handle.kind == umemHandleCuda && fd == -1);
  uintptr_t there = umem_attach(&handle, other);
  expect_filled(other, there, 2);
  expect_ok(umem_detach(other, there));
}
