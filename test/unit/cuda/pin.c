/* pin.c - page-locked host memory: which blocks the runtime allocates and which are registered, and
 * that each goes back the way it came, on a double of the runtime. The linker leads the library's
 * mmap and munmap here. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake/cudart.h"
#include "cuda/cuda_pinned.h"
#include "cases.h"

static size_t const large = (5u << 20) + 4321;

static umemCudaRt const *rt;

/* ---- the system's memory ---- */

void *__real_mmap(void *adr, size_t length, int access, int flags, int file, off_t offset);
int __real_munmap(void *adr, size_t length);

void *__wrap_mmap(void *adr, size_t length, int access, int flags, int file, off_t offset);
int __wrap_munmap(void *adr, size_t length);

static ptrdiff_t mapped; /* bytes */

void *__wrap_mmap(void *adr, size_t length, int access, int flags, int file, off_t offset) {
  void *start = __real_mmap(adr, length, access, flags, file, offset);
  if (start != MAP_FAILED) mapped += (ptrdiff_t)length;
  return start;
}

int __wrap_munmap(void *adr, size_t length) {
  mapped -= (ptrdiff_t)length;
  return __real_munmap(adr, length);
}

/* ---- a GPU ---- */

static int set_up(void **state) {
  (void)state;
  fake_cudart_reset();
  mapped = 0;
  rt = fake_cudart();
  void *context;
  return rt->primary_retain(&context, 0) || rt->context_push(context);
}

static int tear_down(void **state) {
  (void)state;
  void *context;
  assert_int_equal(rt->context_pop(&context), 0);
  assert_int_equal(rt->primary_release(0), 0);
  assert_null(fake_cudart_misuse());
  assert_true(fake_cudart_is_clean());
  assert_int_equal(mapped, 0);
  return 0;
}

static void assert_live(size_t pinned, size_t registered) {
  assert_int_equal(fake_cudart_live().pinned, pinned);
  assert_int_equal(fake_cudart_live().registered, registered);
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* ---- which way ---- */

CASE(test_small_blocks_are_the_runtimes) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, 100, umemCudaPortable), 0);
  memset(adr, 1, 100);
  assert_live(1, 0);
  assert_int_equal(umemCuda_unpin(rt, adr, 100, umemCudaPortable), 0);
  assert_live(0, 0);
}

CASE(test_large_blocks_are_registered) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, large, umemCudaPortable | umemCudaMapped), 0);
  assert_live(0, 1);
  assert_int_equal((uintptr_t)adr % (2u << 20), 0);
  memset(adr, 1, large);
  umemCudaMemory kind;
  int device;
  assert_int_equal(rt->pointer((char *)adr + large - 1, &kind, &device), 0);
  assert_int_equal(kind, umemCudaPinned);
  assert_int_equal(umemCuda_unpin(rt, adr, large, umemCudaPortable | umemCudaMapped), 0);
  assert_live(0, 0);
}

/* Large enough for several threads. */
static void pin_very_large(void) {
  size_t nbytes = (size_t)70 << 20;
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, nbytes, umemCudaPortable), 0);
  for (size_t i = 0; i < nbytes; i += 4096) assert_int_equal(((char *)adr)[i], 0);
  assert_int_equal(((char *)adr)[nbytes - 1], 0);
  assert_int_equal(umemCuda_unpin(rt, adr, nbytes, umemCudaPortable), 0);
}

CASE(test_very_large_blocks_are_zero) { pin_very_large(); }

/* More than any machine has, less than any address space: not a page of it may be touched. */
CASE(test_more_than_the_machine_has_is_a_memory_error) {
  void *adr = NULL;
  unsigned long before = fake_cudart_calls();
  assert_int_equal(umemCuda_pin(rt, &adr, (size_t)1 << 45, umemCudaPortable), umemCudaOutOfMemory);
  assert_int_equal(umemCuda_pin(rt, &adr, (size_t)1 << 45, umemCudaWriteCombined),
                   umemCudaOutOfMemory);
  assert_int_equal(fake_cudart_calls(), before);
  assert_int_equal(mapped, 0);
  assert_null(adr);
}

CASE(test_write_combined_blocks_are_the_runtimes) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, large, umemCudaWriteCombined), 0);
  assert_live(1, 0);
  assert_int_equal(umemCuda_unpin(rt, adr, large, umemCudaWriteCombined), 0);
  assert_live(0, 0);
}

/* ---- failures ---- */

CASE(test_a_refused_registration_leaves_nothing) {
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

CASE(test_impossible_sizes_are_memory_errors) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, SIZE_MAX, umemCudaPortable), umemCudaOutOfMemory);
  assert_int_equal(umemCuda_pin(rt, &adr, SIZE_MAX / 2, umemCudaPortable), umemCudaOutOfMemory);
  assert_null(adr);
}

CASE(test_pages_that_stay_registered_stay_mapped) {
  void *adr = NULL;
  assert_int_equal(umemCuda_pin(rt, &adr, large, umemCudaPortable), 0);
  fake_cudart_fail_in("host_unregister", 1, umemCudaInvalidValue);
  assert_int_equal(umemCuda_unpin(rt, adr, large, umemCudaPortable), umemCudaInvalidValue);
  memset(adr, 1, large);
  rt->last_error();
  assert_int_equal(umemCuda_unpin(rt, adr, large, umemCudaPortable), 0);
}

int main(void) { return run_cases(NULL, NULL); }
