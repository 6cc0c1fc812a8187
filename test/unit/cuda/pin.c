/* pin.c - page-locked host memory: which blocks the runtime allocates and which are registered, and
 * that each goes back the way it came, on a double of the runtime. The linker leads the library's
 * mmap and munmap here. */
#include "cuda_help.h"
#include "wrap.h"

#include <stdatomic.h>

#include "cuda/cuda_pinned.h"

static size_t const large = (5u << 20) + 4321;

/* ---- the system's memory ---- */

static atomic_ptrdiff_t mapped; /* bytes */

WRAPPED(void *, mmap, (void *adr, size_t length, int access, int flags, int file, off_t offset)) {
  void *start = __real_mmap(adr, length, access, flags, file, offset);
  if (start != MAP_FAILED) mapped += (ptrdiff_t)length;
  return start;
}

WRAPPED(int, munmap, (void *adr, size_t length)) {
  mapped -= (ptrdiff_t)length;
  return __real_munmap(adr, length);
}

/* ---- a GPU ---- */

static void open_gpu(void **state) {
  cuda_set_up(state);
  mapped = 0;
  enter(0);
}

static void close_gpu(void **state) {
  leave(0);
  assert_int_equal(mapped, 0);
  cuda_tear_down(state);
}

static void assert_live(size_t pinned, size_t registered) {
  assert_int_equal(fake_cudart_live().pinned, pinned);
  assert_int_equal(fake_cudart_live().registered, registered);
}

#define PIN_TEST(name) TEST_CASE_WITH(name, open_gpu, close_gpu)

/* ---- which way ---- */

PIN_TEST(small_blocks_are_the_runtimes) {
  void *adr = NULL;
  ok(umemCuda_pin(rt, &adr, 100, umemCudaPortable));
  memset(adr, 1, 100);
  assert_live(1, 0);
  ok(umemCuda_unpin(rt, adr, 100, umemCudaPortable));
  assert_live(0, 0);
}

PIN_TEST(large_blocks_are_registered) {
  void *adr = NULL;
  ok(umemCuda_pin(rt, &adr, large, umemCudaPortable | umemCudaMapped));
  assert_live(0, 1);
  assert_int_equal((uintptr_t)adr % (2u << 20), 0);
  memset(adr, 1, large);
  umemCudaMemory kind;
  int device;
  ok(rt->pointer((char *)adr + large - 1, &kind, &device));
  assert_int_equal(kind, umemCudaPinned);
  ok(umemCuda_unpin(rt, adr, large, umemCudaPortable | umemCudaMapped));
  assert_live(0, 0);
}

/* Large enough for several threads. */
PIN_TEST(very_large_blocks_are_zero) {
  size_t nbytes = (size_t)70 << 20;
  void *adr = NULL;
  ok(umemCuda_pin(rt, &adr, nbytes, umemCudaPortable));
  for (size_t i = 0; i < nbytes; i += 4096) assert_int_equal(((char *)adr)[i], 0);
  assert_int_equal(((char *)adr)[nbytes - 1], 0);
  ok(umemCuda_unpin(rt, adr, nbytes, umemCudaPortable));
}

/* More than any machine has, less than any address space: not a page of it may be touched. */
PIN_TEST(more_than_the_machine_has_is_a_memory_error) {
  void *adr = NULL;
  unsigned long before = fake_cudart_calls();
  assert_int_equal(umemCuda_pin(rt, &adr, (size_t)1 << 45, umemCudaPortable), umemCudaOutOfMemory);
  assert_int_equal(umemCuda_pin(rt, &adr, (size_t)1 << 45, umemCudaWriteCombined),
                   umemCudaOutOfMemory);
  assert_int_equal(fake_cudart_calls(), before);
  assert_int_equal(mapped, 0);
  assert_null(adr);
}

PIN_TEST(write_combined_blocks_are_the_runtimes) {
  void *adr = NULL;
  ok(umemCuda_pin(rt, &adr, large, umemCudaWriteCombined));
  assert_live(1, 0);
  ok(umemCuda_unpin(rt, adr, large, umemCudaWriteCombined));
  assert_live(0, 0);
}

/* ---- failures ---- */

PIN_TEST(a_refused_registration_leaves_nothing) {
  int const errors[] = {umemCudaOutOfMemory, umemCudaNotSupported, umemCudaIllegalAddress};
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    void *adr = NULL;
    fake_cudart_fail_in("host_register", 1, errors[i]);
    assert_int_equal(umemCuda_pin(rt, &adr, large, umemCudaPortable), errors[i]);
    assert_int_equal(mapped, 0);
    assert_null(adr);
    rt->last_error();
  }
}

PIN_TEST(impossible_sizes_are_memory_errors) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, SIZE_MAX, umemCudaPortable), umemCudaOutOfMemory);
  assert_int_equal(umemCuda_pin(rt, &adr, SIZE_MAX / 2, umemCudaPortable), umemCudaOutOfMemory);
  assert_null(adr);
}

PIN_TEST(pages_that_remain_registered_remain_mapped) {
  void *adr = NULL;
  ok(umemCuda_pin(rt, &adr, large, umemCudaPortable));
  fake_cudart_fail_in("host_unregister", 1, umemCudaInvalidValue);
  assert_int_equal(umemCuda_unpin(rt, adr, large, umemCudaPortable), umemCudaInvalidValue);
  memset(adr, 1, large);
  rt->last_error();
  ok(umemCuda_unpin(rt, adr, large, umemCudaPortable));
}
