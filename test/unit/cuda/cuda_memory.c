/* cuda_memory.c - the memory of the CUDA contexts: between two GPUs, managed, pinned, of several
 * threads. On a double of the runtime. */
#include "cuda_help.h"

/* ---- peers ---- */

/* Copies from one GPU to the other and back; whether they were direct. */
static bool copies_are_direct(void *one, void *two) {
  enum { n = 3000 };
  FakeCudartDone before = fake_cudart_done();
  uintptr_t a = block_of(one, n), b = block_of(two, n);
  put_bytes(one, a, n, 3);
  expect_ok(umem_copy_to(one, a, two, b, n));
  expect_ok(umem_synchronize(two));
  expect_ok(umem_set(one, a, 0, n));
  expect_ok(umem_copy_from(one, a, two, b, n));
  expect_ok(umem_wait(one, two));
  assert_true(has_bytes(one, a, n, 3));
  umem_free(one, a);
  umem_free(two, b);
  FakeCudartDone after = fake_cudart_done();
  unsigned long direct = after.direct_peer - before.direct_peer;
  assert_int_equal(direct + after.indirect_peer - before.indirect_peer, 2);
  assert_true(direct == 0 || direct == 2);
  return direct;
}

CUDA_TEST(peers_copy_directly) {
  void *zero = opened("cuda:0");
  CONTEXT(umemCuda, one, 1);
  void *two = opened("cuda:2");
  assert_true(copies_are_direct(zero, &one));
  assert_true(copies_are_direct(&one, zero));
  assert_int_equal(fake_cudart_calls_of("enable_peer_access"), 2); /* once each way */
  assert_false(copies_are_direct(zero, two));
  assert_false(copies_are_direct(two, &one));
  assert_int_equal(fake_cudart_calls_of("enable_peer_access"), 2);
  umem_dtor(&one);
  expect_ok(umemCuda_ctor(&one, 1)); /* another context of the same GPU: to be asked again */
  FakeCudartDone before = fake_cudart_done();
  expect_ok(umem_copy_to(&one, block_of(&one, 8), zero, block_of(zero, 8), 8));
  assert_int_equal(fake_cudart_done().direct_peer, before.direct_peer + 1);
  assert_true(copies_are_direct(zero, &one));
}

CUDA_TEST(peers_that_the_program_enabled_are_direct) {
  void *zero = opened("cuda:0"), *one = opened("cuda:1");
  enter(1);
  ok(rt->enable_peer_access(0));
  assert_true(copies_are_direct(zero, one));
  assert_int_equal(rt->last_error(), umemCudaSuccess);
  leave(1);
}

CUDA_TEST(pools_let_peers_in) {
  void *zero = opened("cuda-async:0"), *one = opened("cuda-async:1");
  void *two = opened("cuda-async:2"), *plain = opened("cuda:1");
  assert_true(copies_are_direct(zero, one));
  assert_true(copies_are_direct(zero, one));
  assert_int_equal(fake_cudart_calls_of("pool_allow"), 2);
  assert_true(copies_are_direct(plain, zero));
  assert_false(copies_are_direct(two, one));
  assert_int_equal(fake_cudart_calls_of("pool_allow"), 2);
}

/* ---- memory ---- */

CUDA_TEST(managed_memory_follows_its_hints) {
  umemCudaManaged ctx;
  unsigned all = UMEM_PREFER_DEVICE | UMEM_READ_MOSTLY | UMEM_ACCESSED_BY_DEVICE | UMEM_PREFETCH;
  expect_ok(umemCudaManaged_ctor(&ctx, 0, all));
  assert_true(ctx.super.capabilities & umemCpuReadable);
  block_of(&ctx, 100);
  assert_int_equal(fake_cudart_calls_of("advise"), 3);
  assert_int_equal(fake_cudart_calls_of("prefetch"), 1);
  umem_dtor(&ctx);
  fake_cudart_machine()->device[0].no_concurrent_managed = true; /* hints would be errors */
  expect_ok(umemCudaManaged_ctor(&ctx, 0, all));
  assert_false(ctx.super.capabilities & (umemCpuReadable | umemCpuWritable));
  uintptr_t adr = block_of(&ctx, 100);
  assert_int_equal(fake_cudart_calls_of("advise"), 3);
  umemHost host;
  unsigned char bytes[100];
  expect_ok(umemHost_ctor(&host));
  expect_ok(umem_set(&ctx, adr, 4, 100));
  expect_ok(umem_copy_to(&ctx, adr, &host, (uintptr_t)bytes, 100));
  assert_int_equal(bytes[99], 4);
  uintptr_t there = umem_connect(&ctx, adr, 100, &host, 0);
  assert_int_not_equal(there, adr);
  umem_disconnect(&ctx, adr, &host, there, 0);
  DESTRUCT(&ctx, &host);
  expect_failure(umemCudaManaged_ctor(&ctx, 0, 32), umemValueError, "flags 0x20");
}

static unsigned flags_seen;

static int see_flags(void **adr, size_t nbytes, unsigned flags) {
  flags_seen = flags;
  return fake_cudart()->host_alloc(adr, nbytes, flags);
}

CUDA_TEST(write_combined_memory_is_asked_for) {
  umemCudaRt table = *fake_cudart();
  table.host_alloc = see_flags;
  umemCudaRt_replace(&table);
  static size_t const sizes[] = {100, 3 << 20};
  CONTEXT(umemCudaHost, ctx, UMEM_WRITE_COMBINED);
  for (int i = 0; i < 2; i++) {
    flags_seen = 0;
    uintptr_t adr = block_of(&ctx, sizes[i]);
    assert_true(flags_seen & umemCudaWriteCombined);
    assert_true(flags_seen & umemCudaPortable);
    umem_free(&ctx, adr);
  }
  umem_dtor(&ctx);
  expect_ok(umemCudaHost_ctor(&ctx, 0));
  umem_free(&ctx, block_of(&ctx, 100));
  assert_false(flags_seen & umemCudaWriteCombined);
}

CUDA_TEST(contexts_know_their_gpu) {
  for (int kind = 0; kind < kinds; kind++) {
    void *any = opened_kind(kind, 1);
    if (kind != aManaged && kind != aHost) block_of(any, 1000);
    umemInfo info = info_of(any);
    assert_int_equal(info.alignment, 256);
    if (kind != aHost) {
      assert_string_equal(info.name, "Fake GPU 1");
      assert_int_equal(info.ordinal, 1);
      assert_int_equal(info.capacity, 1 << 30);
      assert_int_equal(info.available, (1 << 30) - (kind == aManaged ? 0 : 1000));
    }
    expect_ok(close_one(any));
  }
}

CUDA_TEST(blocks_grow_and_shrink) {
  for (int kind = 0; kind < kinds; kind++) {
    void *any = opened_kind(kind, 0);
    uintptr_t adr = block_of(any, 3000);
    put_bytes(any, adr, 3000, 1);
    adr = umem_realloc(any, adr, 3000, 5000);
    assert_true(has_bytes(any, adr, 3000, 1));
    adr = umem_realloc(any, adr, 5000, 10);
    assert_true(has_bytes(any, adr, 10, 1));
    expect_report(umem_realloc(any, adr + 1, 9, 20), umemValueError, "is not a live block");
    expect_report(umem_realloc(any, adr, 10, (size_t)1 << 50), umemMemoryError, "");
    umem_free(any, adr); /* is as it was */
    assert_int_equal(umem_thread_status(), umemOK);
  }
}

CUDA_TEST(nothing_is_left_of_a_context) {
  for (int kind = 0; kind < kinds; kind++) {
    Any any;
    expect_ok(construct(&any, kind, 0));
    for (size_t n = 1; n < 100; n++) block_of(&any, n * n);
    block_of(&any, 3 << 20);
    umem_dtor(&any);
    assert_int_equal(umem_thread_status(), umemOK);
    assert_true(fake_cudart_is_clean());
  }
}

/* ---- threads ---- */

static void *work(void *argument) {
  Any *any = argument;
  umemHost host;
  unsigned char bytes[512], back[512];
  bool good = umemHost_ctor(&host) == umemOK;
  for (unsigned i = 0; i < 50 && good; i++) {
    fill(bytes, sizeof bytes, i);
    uintptr_t adr = umem_alloc(any, sizeof bytes), copy = umem_calloc(any, 1, sizeof bytes);
    good = adr && copy && !umem_copy_from(any, adr, &host, (uintptr_t)bytes, sizeof bytes) &&
           !umem_copy_to(any, adr, any, copy, sizeof bytes) &&
           !umem_copy_to(any, copy, &host, (uintptr_t)back, sizeof bytes) &&
           !umem_synchronize(any) && is_filled(back, sizeof back, i) &&
           umem_alloc(any, (size_t)1 << 50) == 0 && umem_thread_status() == umemMemoryError;
    FREE(any, adr, copy);
    umem_thread_clear();
  }
  umem_dtor(&host);
  return good && current_context() ? NULL : argument;
}

CUDA_TEST(threads_share_a_context) {
  for (int kind = 0; kind < kinds; kind++) {
    void *any = opened_kind(kind, 0);
    run_at_once(4, work, any, 0);
  }
}

/* ---- memory of others ---- */

CUDA_TEST(memory_of_other_libraries_is_described) {
  umemFound found = UMEM_FOUND_INIT;
  void *device = NULL, *pinned = NULL;
  int local = 0;
  assert_false(umem_find(4096, &found)); /* CUDA is not asked while no context lives */
  void *ctx = opened("cuda:1");
  enter(1);
  ok(rt->malloc(&device, 1000));
  ok(rt->host_alloc(&pinned, 100, umemCudaPortable));
  leave(1);
  assert_false(umem_find((uintptr_t)device + 10, &found));
  assert_int_equal(found.foreign, umemForeignGpu);
  assert_true(!found.ctx && found.adr == (uintptr_t)device && found.nbytes == 1000);
  assert_int_equal(found.device, 1);
  assert_string_equal(found.name, "device memory");
  assert_false(umem_find((uintptr_t)pinned, &found));
  assert_int_equal(found.foreign, umemForeignPinned);
  assert_false(umem_find((uintptr_t)pinned, NULL));
  found = (umemFound)UMEM_FOUND_INIT;
  assert_false(umem_find((uintptr_t)&local, &found));
  assert_true(found.foreign == umemForeignNone && found.device == -1);
  fake_cudart_fail_in("pointer", 1, umemCudaInvalidValue);
  assert_false(umem_find((uintptr_t)device, &found));
  assert_int_equal(found.foreign, umemForeignNone);
  fake_cudart_fail_in("range", 1, umemCudaInvalidValue);
  assert_false(umem_find((uintptr_t)device, &found));
  assert_true(found.foreign == umemForeignGpu && !found.nbytes);
  uintptr_t own = block_of(ctx, 100);
  assert_true(umem_find(own + 1, &found) && found.ctx == ctx);
  assert_true(found.foreign == umemForeignNone && found.device == -1);
  assert_int_equal(umem_thread_status(), umemOK);
  assert_null(current_context());
  enter(1);
  ok(rt->free(device));
  ok(rt->host_free(pinned));
  leave(1);
}
