/* cuda.c - what the CUDA contexts promise beyond the contract: constructors, errors, whose GPU
 * is current. On a double of the runtime. Memory is tested in cuda_memory.c, order in
 * cuda_order.c, what becomes of a process in cuda_process.c. */
#include "cuda_help.h"

/* ---- constructors ---- */

static void expect_none(int kind, int device, umemStatusType type, char const *words) {
  Any any;
  expect_failure(construct(&any, kind, device), type, words);
  expect_failure(umem_alloc(&any, 8) ? umemOK : umem_thread_status(), type, "");
  DESTRUCT(&any, &any);
  umemAttempt attempt; /* which holds the failure, but not what the constructor returns */
  umemAttempt_begin(&attempt);
  umemStatusType status = construct(&any, kind, device);
  umem_dtor(&any);
  umemAttempt_end(&attempt);
  assert_int_equal(status, type);
}

CUDA_TEST(machines_without_cuda_are_reported) {
  for (int kind = 0; kind < kinds; kind++) {
    fake_cudart_machine()->driver_version = 0;
    expect_none(kind, 0, umemNotSupportedError, "there is no CUDA driver");
    fake_cudart_machine()->driver_version = 11080;
    expect_none(kind, 0, umemNotSupportedError, "serves CUDA 11.8, too old for the runtime 12.2");
    fake_cudart_machine()->driver_version = 12000; /* minor versions are compatible */
    fake_cudart_machine()->devices = 0;
    expect_none(kind, 0, umemNotSupportedError, "no CUDA-capable device");
    fake_cudart_machine()->devices = 3;
    expect_ok(close_one(opened_kind(kind, 0)));
  }
}

CUDA_TEST(only_devices_there_are_are_opened) {
  static int const none[] = {-1, 3, 63, 64, 99, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    expect_none(aCuda, none[i], umemValueError, "there is no GPU");
    expect_none(aManaged, none[i], umemValueError, "this machine has 0 to 2");
    expect_none(anAsync, none[i], umemValueError, "there is no GPU");
  }
  assert_false(fake_cudart_had_context(0));
}

CUDA_TEST(gpus_without_pools_use_plain_memory) {
  fake_cudart_machine()->device[0].no_pools = true;
  void *ctx = opened("cuda-async:0");
  uintptr_t adr = block_of(ctx, 100);
  assert_int_equal(fake_cudart_live().pools, 0);
  assert_int_equal(fake_cudart_calls_of("malloc"), 1);
  expect_ok(umem_set(ctx, adr, 7, 100));
  umem_free(ctx, adr); /* after the set */
  expect_ok(umem_trim(ctx, 0));
  umemInfo info = info_of(ctx);
  assert_int_equal(info.available, info.capacity);
  assert_int_equal(fake_cudart_live().blocks, 0);
  assert_int_equal(umem_thread_status(), umemOK);
}

/* The device says that it has pools, and the driver does not. */
CUDA_TEST(drivers_without_pools_too) {
  fake_cudart_fail_in("pool_create", 1, umemCudaNotSupported);
  void *ctx = opened("cuda-async:0");
  block_of(ctx, 100);
  assert_int_equal(fake_cudart_calls_of("malloc"), 1);
}

CUDA_TEST(gpus_without_managed_memory_are_reported) {
  fake_cudart_machine()->device[1].no_managed = true;
  expect_none(aManaged, 1, umemNotSupportedError, "GPU 1, Fake GPU 1, has no managed memory");
}

CUDA_TEST(streams_are_borrowed_and_of_the_same_gpu) {
  void *stream;
  umemCudaAsync ctx;
  enter(1);
  ok(rt->stream_create(&stream));
  expect_failure(umemCudaAsync_ctor(&ctx, 0, (uintptr_t)stream), umemValueError,
                 "the stream belongs to GPU 1, not 0");
  umem_dtor(&ctx);
  expect_ok(umemCudaAsync_ctor(&ctx, 1, (uintptr_t)stream));
  assert_int_equal(umemCudaAsync_stream(&ctx), (uintptr_t)stream);
  umemHost host;
  umemHost_ctor(&host);
  assert_int_equal(umemCudaAsync_stream(&host), 0);
  assert_int_equal(umem_get_status(&host), umemTypeError);
  umem_thread_clear();
  umem_dtor(&host);
  expect_ok(umem_set(&ctx, block_of(&ctx, 8), 1, 8));
  umem_dtor(&ctx);
  assert_int_equal(fake_cudart_live().streams, 1);
  ok(rt->stream_destroy(stream));
  leave(1);
  expect_failure(umemCudaAsync_ctor(&ctx, 0, (uintptr_t)stream), umemValueError, "is no stream");
  expect_misuse("a stream that is destroyed");
}

CUDA_TEST(streams_with_a_meaning) {
  SCOPED(umem_dtor) umemCudaAsync ctx;
  for (uintptr_t legacy = 0; legacy < 2; legacy++) {
    expect_ok(umemCudaAsync_ctor(&ctx, 0, legacy));
    assert_int_equal(umemCudaAsync_stream(&ctx), 0);
    assert_int_equal(fake_cudart_live().streams, 0);
    umem_dtor(&ctx);
  }
  expect_failure(umemCudaAsync_ctor(&ctx, 0, 2), umemNotSupportedError, "cudaStreamPerThread");
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  assert_int_equal(fake_cudart_live().streams, 1);
}

CUDA_TEST(pools_have_the_size_they_are_given) {
  umemCudaAsync ctx;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  options.maximum_size = 1000;
  expect_ok(umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, &options));
  uintptr_t adr = block_of(&ctx, 600);
  expect_report(umem_alloc(&ctx, 401), umemMemoryError, "cannot allocate 401 bytes: out of memory");
  umem_free(&ctx, adr);
  block_of(&ctx, 1000);
  umem_dtor(&ctx);
  options.size = offsetof(umemCudaAsyncOptions, maximum_size); /* of an older program */
  expect_ok(umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, &options));
  umem_free(&ctx, block_of(&ctx, 1001));
  umem_dtor(&ctx);
  options.size = 7;
  expect_failure(umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, &options), umemValueError,
                 "the size in the umemCudaAsyncOptions is 7");
}

static uint64_t available(void *ctx) { return info_of(ctx).available; }

CUDA_TEST(pools_keep_and_give_back) {
  SCOPED(umem_dtor) umemCudaAsync ctx;
  umemCudaAsyncOptions options = UMEM_CUDA_ASYNC_OPTIONS_INIT;
  void *plain = opened("cuda:0");
  uint64_t all = available(plain);
  expect_ok(umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, NULL));
  umem_free(&ctx, block_of(&ctx, 5000));
  expect_ok(umem_synchronize(&ctx));
  assert_int_equal(available(plain), all - 5000); /* in reserve */
  assert_int_equal(available(&ctx), all);
  expect_ok(umem_trim(&ctx, 2000));
  assert_int_equal(available(plain), all - 2000);
  expect_ok(umem_trim(&ctx, 0));
  assert_int_equal(available(plain), all);
  umem_dtor(&ctx);
  options.release_threshold = 1000;
  expect_ok(umemCudaAsync_ctor_with(&ctx, 0, UMEM_STREAM_NEW, &options));
  umem_free(&ctx, block_of(&ctx, 5000));
  expect_ok(umem_synchronize(&ctx));
  assert_int_equal(available(plain), all - 1000);
}

/* ---- errors ---- */

CUDA_TEST(exhausted_memory_is_reported_with_figures) {
  for (int device = 0; device < 2; device++)
    fake_cudart_machine()->device[device].capacity = 1000000;
  for (int kind = 0; kind < kinds; kind++) {
    if (kind == aHost) continue;
    void *any = opened_kind(kind, 1);
    uintptr_t adr = block_of(any, 1000);
    char const *figures =
        kind == aManaged ? "1000 bytes of managed memory for GPU 1, Fake GPU 1, which has 1000000"
                         : "999000 of 1000000 bytes are free on GPU 1, Fake GPU 1";
    expect_report(umem_alloc(any, 1000001), umemMemoryError, figures);
    assert_non_null(strstr(umem_get_message(any), "cannot allocate 1000001 bytes"));
    assert_int_equal(rt->last_error(), umemCudaSuccess);
    umem_free(any, adr);
  }
}

CUDA_TEST(freeing_what_is_not_live_is_reported) {
  Any any, other;
  for (int kind = 0; kind < kinds; kind++) {
    expect_ok(construct(&any, kind, 0));
    expect_ok(construct(&other, kind, 0));
    uintptr_t adr = block_of(&any, 64);
    expect_report(umem_free(&other, adr), umemValueError, "is not a live block of this Cuda");
    expect_report(umem_free(&any, adr + 1), umemValueError, "is not a live block");
    umem_free(&any, adr);
    expect_report(umem_free(&any, adr), umemValueError, "is not a live block");
    DESTRUCT(&any, &other);
  }
}

/* A free that CUDA refuses leaves the block as it was. */
CUDA_TEST(a_block_that_was_not_freed_lives_on) {
  static char const *const give[kinds] = {"free", "host_free", "free", "pool_free"};
  for (int kind = 0; kind < kinds; kind++) {
    void *any = opened_kind(kind, 0);
    uintptr_t adr = block_of(any, 64);
    fake_cudart_fail_in(give[kind], 1, umemCudaInvalidContext);
    expect_report(umem_free(any, adr), umemRuntimeError, "cannot free the block");
    umem_free(any, adr);
    assert_int_equal(umem_thread_status(), umemOK);
  }
}

CUDA_TEST(foreign_addresses_are_refused) {
  char bytes[8] = {0};
  void *ctx = opened("cuda:0"), *host = opened("host:");
  uintptr_t adr = block_of(ctx, 8);
  umem_free(ctx, adr);
  expect_failure(umem_set(ctx, adr, 0, 8), umemValueError, "cannot set 8 bytes at 0x");
  expect_misuse("in no live block");
  expect_failure(umem_copy_to(ctx, adr, host, (uintptr_t)bytes, 8), umemValueError,
                 "cannot copy 8 bytes from 0x");
  expect_misuse("in no live block");
  assert_int_equal(rt->last_error(), umemCudaSuccess);
}

CUDA_TEST(memory_of_other_origin_may_be_used) {
  umemCuda ctx;
  umemHost host;
  unsigned char bytes[8];
  void *adr;
  enter(0);
  ok(rt->malloc(&adr, 8));
  expect_ok(umemCuda_ctor(&ctx, 0));
  expect_ok(umemHost_ctor(&host));
  expect_ok(umem_set(&ctx, (uintptr_t)adr, 5, 8));
  expect_ok(umem_copy_to(&ctx, (uintptr_t)adr, &host, (uintptr_t)bytes, 8));
  assert_int_equal(bytes[7], 5);
  DESTRUCT(&ctx, &host);
  ok(rt->free(adr));
  leave(0);
}

static void expect_crash(void *ctx, int kind, uintptr_t adr, umemHost *host) {
  char const *words = "a kernel has crashed: CUDA works again only in a new process";
  umemInfo info = UMEM_INFO_INIT;
  unsigned char bytes[64] = {0};
  expect_report(umem_alloc(ctx, 64), umemRuntimeError, words);
  expect_report(umem_realloc(ctx, adr, 64, 128), umemRuntimeError, words);
  expect_report(umem_free(ctx, adr), umemRuntimeError, words);
  if (kind == aHost) return; /* the CPU does the rest */
  expect_failure(umem_set(ctx, adr, 1, 64), umemRuntimeError, words);
  expect_failure(umem_copy_to(ctx, adr, ctx, adr + 32, 32), umemRuntimeError, words);
  expect_failure(umem_get_info(ctx, &info), umemRuntimeError, words);
  if (kind == aManaged) return;
  expect_failure(umem_copy_to(ctx, adr, host, (uintptr_t)bytes, 64), umemRuntimeError, words);
  expect_failure(umem_copy_from(ctx, adr, host, (uintptr_t)bytes, 64), umemRuntimeError, words);
  expect_failure(umem_synchronize(ctx), umemRuntimeError, words);
  if (kind != anAsync) return;
  expect_failure(umem_trim(ctx, 0), umemRuntimeError, words);
}

CUDA_TEST(a_crashed_kernel_has_a_message_of_its_own) {
  void *host = opened("host:");
  for (int kind = 0; kind < kinds; kind++) {
    Any any, other;
    expect_ok(construct(&any, kind, 0));
    uintptr_t adr = block_of(&any, 64);
    fake_cudart_break(0, kind % 2 ? umemCudaLaunchFailure : umemCudaIllegalAddress);
    expect_crash(&any, kind, adr, host);
    if (kind == anAsync) {
      expect_failure(construct(&other, kind, 0), umemRuntimeError, "only in a new process");
      umem_dtor(&other);
    }
    umem_dtor(&any); /* ends */
    expect_first_gpu();
    umem_thread_clear();
    forget_all();
  }
}

/* ---- whose GPU is current ---- */

/* What a program does on a context; some of it fails. */
static void use(Any *any, int device, umemHost *host) {
  unsigned char bytes[64] = {0};
  umemInfo info = UMEM_INFO_INIT;
  for (int kind = 0; kind < kinds; kind++) {
    if (construct(any, kind, device) != umemOK) continue;
    uintptr_t adr = umem_alloc(any, 64), more = umem_calloc(any, 8, 8);
    umem_set(any, adr, 1, 64);
    umem_copy_from(any, adr, host, (uintptr_t)bytes, 64);
    umem_copy_to(any, adr, host, (uintptr_t)bytes, 64);
    umem_copy_to(any, adr, any, more, 64);
    umem_get_info(any, &info);
    umem_synchronize(any);
    umem_trim(any, 0);
    umem_alloc(any, (size_t)1 << 40);
    umem_free(any, adr + 1);
    adr = umem_realloc(any, adr, 64, 128);
    umem_disconnect(any, more, host, umem_connect(any, more, 64, host, 0), 0);
    umem_free(any, adr);
    umem_dtor(any);
  }
}

/* As after the first call of the runtime. */
CUDA_TEST(a_thread_without_a_context_gets_that_of_gpu_0) {
  Any any;
  CONTEXT(umemHost, host);
  use(&any, 0, &host);
  expect_first_gpu();
  umemCuda other; /* the runtime would take its GPU for the chosen one */
  expect_ok(umemCuda_ctor(&other, 1));
  umem_free(&other, block_of(&other, 100));
  umem_dtor(&other);
  assert_null(current_context());
  assert_true(fake_cudart_is_clean());
}

/* Such a thread makes calls of the driver beside umem's, as CCCL's streams do. */
CUDA_TEST(calls_of_the_driver_need_no_other_call_first) {
  umemCudaAsync ctx;
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  unsigned long const pushes = fake_cudart_calls_of("context_push");
  ok(rt->stream_synchronize((void *)umemCudaAsync_stream(&ctx)));
  umem_free(&ctx, block_of(&ctx, 100)); /* whose context is current already */
  assert_true(fake_cudart_calls_of("context_push") == pushes);
  umem_dtor(&ctx);
  assert_true(fake_cudart_is_clean());
}

CUDA_TEST(the_caller_s_place_is_untouched) {
  umemHost host;
  Any any;
  expect_ok(umemHost_ctor(&host));
  use(&any, 2, &host);
  expect_first_gpu(); /* which pinned memory uses */
  assert_false(fake_cudart_had_context(1));
  assert_true(fake_cudart_is_clean());
  forget_all();
  fake_cudart_set_device(1);
  void *mine = current_context();
  int device = -1;
  for (unsigned long nth = 1; nth < 400; nth += 3) { /* also where a call fails */
    fake_cudart_fail(nth, umemCudaNotSupported);
    use(&any, 2, &host);
    fake_cudart_fail(0, 0);
    assert_ptr_equal(current_context(), mine);
  }
  ok(rt->get_device(&device));
  assert_int_equal(device, 1);
  assert_false(fake_cudart_had_context(0)); /* nobody named it */
  umem_dtor(&host);
  umem_thread_clear();
  forget_all(); /* a destroyer that failed left something: see the faults */
}

/* Each call, with another GPU current, for a context of each kind, as the capture mode is. */
CUDA_TEST(the_capture_mode_is_untouched) {
  Any any;
  int mode = 1;
  void *host = opened("host:");
  fake_cudart_set_device(1); /* with a context, which CUDA would make for the next call */
  ok(rt->exchange_capture_mode(&mode));
  use(&any, 0, host);
  mode = 0;
  ok(rt->exchange_capture_mode(&mode));
  assert_int_equal(mode, 1);
  forget_all(); /* the device that the caller has set */
}

/* What was called since the last time: so often these functions, and no other. Without counts
 * nothing is expected. */
static void expect_calls(char const *const names[], unsigned const counts[],
                         size_t kinds_of_calls) {
  static unsigned long before[8], all_before;
  unsigned long all = fake_cudart_calls(), sum = 0;
  for (size_t i = 0; i < kinds_of_calls; i++) {
    unsigned long now = fake_cudart_calls_of(names[i]);
    if (counts && now - before[i] != counts[i])
      fail_msg("%lu calls of %s, not %u", now - before[i], names[i], counts[i]);
    before[i] = now;
    sum += counts ? counts[i] : 0;
  }
  if (counts && all - all_before != sum)
    fail_msg("%lu calls in all, not %lu", all - all_before, sum);
  all_before = all;
}

/* Each asks which context is current, sets the capture mode and resets it, and asks whether the
 * stream is captured. In the caller's mode CUDA would break captures, by a free as well as by an
 * allocation. */
CUDA_TEST(blocks_of_a_stream_take_few_calls) {
  enum { functions = 5 };
  static char const *const names[functions] = {"context_current", "exchange_capture_mode",
                                               "stream_capture", "pool_malloc", "pool_free"};
  void *ctx = opened("cuda-async:0");
  void *context = NULL;
  ok(rt->primary_retain(&context, 0));
  ok(rt->context_push(context));
  expect_calls(names, NULL, functions);
  uintptr_t adr = block_of(ctx, 100);
  expect_calls(names, (unsigned[]){1, 2, 1, 1, 0}, functions);
  umem_free(ctx, adr);
  expect_calls(names, (unsigned[]){1, 2, 1, 0, 1}, functions);
  umem_free(ctx, adr); /* no live block */
  expect_failure(umem_thread_status(), umemValueError, "not a live block");
  expect_calls(names, (unsigned[]){1, 2, 1, 0, 0}, functions);
  ok(rt->context_pop(&context));
  ok(rt->primary_release(0));
}

/* While the program captures another stream, in whatever mode: such calls break no capture. */
static void leave_captures_whole(bool pools) {
  void *stream, *graph;
  fake_cudart_machine()->device[0].no_pools = !pools;
  umemCudaAsync ctx;
  enter(0);
  ok(rt->stream_create(&stream));
  expect_ok(umemCudaAsync_ctor(&ctx, 0, UMEM_STREAM_NEW));
  uintptr_t early = block_of(&ctx, 100);
  for (int mode = 0; mode < 3; mode++) {
    ok(fake_cudart_begin_capture_in(stream, mode));
    umem_free(&ctx, block_of(&ctx, 100));
    assert_int_equal(umem_alloc(&ctx, SIZE_MAX / 4), 0);
    umem_free(&ctx, early + 1);
    ok(fake_cudart_end_capture(stream, &graph));
    umem_thread_clear();
  }
  umem_free(&ctx, early);
  assert_int_equal(umem_thread_status(), umemOK);
  umem_dtor(&ctx);
  ok(rt->stream_destroy(stream));
  leave(0);
}

CUDA_TEST(blocks_of_a_stream_leave_captures_whole) {
  leave_captures_whole(true);
  leave_captures_whole(false);
}

CUDA_TEST(pinned_memory_takes_the_caller_s_gpu) {
  umemCudaHost ctx;
  expect_ok(umemCudaHost_ctor(&ctx, 0));
  umem_dtor(&ctx);
  assert_true(fake_cudart_had_context(0));
  fake_cudart_reset();
  fake_cudart_set_device(2);
  expect_ok(umemCudaHost_ctor(&ctx, 0));
  umem_free(&ctx, block_of(&ctx, 100));
  umem_dtor(&ctx);
  assert_false(fake_cudart_had_context(0));
  forget_all(); /* the device that the caller has set */
}
