/* buffers.c - the umemHost that CUDA contexts have for intermediate buffers, on a double of the
 * runtime; and what fork leaves of staging. */

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

#include "fake/cudart.h"
#include "core/context.h"
#include "cuda/cuda_pinned.h"
#include "cuda/cuda_scope.h"
#include "cases.h"

enum { count = 8 };

static umemCudaRt table; /* the double */

/* ---- the buffers of a GPU ---- */

static umemHost ctx; /* that failures are recorded on */
static umemCudaGpu *gpu;
static umemCudaBuffers buffers;

static int set_up(void **state) {
  (void)state;
  fake_cudart_reset();
  table = *fake_cudart();
  umemCudaRt_replace(&table);
  umemHost_ctor(&ctx);
  gpu = umemCudaGpu_open(&ctx.super, 0);
  assert_non_null(gpu);
  umemCudaBuffers_ctor(&buffers, gpu);
  return 0;
}

static void close_buffers(void) {
  umem_dtor(&buffers);
  umemCudaGpu_close(gpu);
}

static int tear_down(void **state) {
  (void)state;
  close_buffers();
  umem_dtor(&ctx);
  umemCuda_set_staging(0, 0);
  assert_int_equal(umem_thread_status(), umemOK);
  char const *misuse = fake_cudart_misuse();
  if (misuse) print_error("%s\n", misuse);
  assert_null(misuse);
  assert_true(fake_cudart_is_clean());
  umemCudaRt_replace(NULL);
  return 0;
}

static bool is_pinned(uintptr_t adr) {
  umemCudaMemory kind = umemCudaUnregistered;
  int device;
  umemCudaRt const *rt = fake_cudart();
  return !rt->pointer((void *)adr, &kind, &device) && kind == umemCudaPinned;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* ---- blocks ---- */

CASE(test_it_is_a_plain_host) {
  umemHost other;
  umemHost_ctor(&other);
  assert_true(umem_is_plain_host(&buffers.host.super));
  assert_string_equal(umem_get_device_name(&buffers), "Host");
  assert_true(umem_is_same_device(&buffers, &other));
  umem_dtor(&other);
}

CASE(test_sizes_that_chunks_serve) {
  size_t const sizes[] = {1, umemStagingBufferFrom - 1, umemStagingBufferFrom, umemStagingChunk,
                          umemStagingChunk + 1};
  bool const pinned[] = {false, false, true, true, false};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uintptr_t adr = umem_alloc(&buffers, sizes[i]);
    assert_int_not_equal(adr, 0);
    assert_int_equal(adr % buffers.host.super.alignment, 0);
    assert_int_equal(is_pinned(adr), pinned[i]);
    assert_int_equal(umem_set(&buffers, adr, 1, sizes[i]), umemOK);
    umem_free(&buffers, adr);
  }
}

CASE(test_all_ways_to_allocate) {
  size_t nbytes = umemStagingChunk / 2;
  uintptr_t adr = umem_alloc(&buffers, nbytes);
  umem_set(&buffers, adr, 1, nbytes);
  umem_free(&buffers, adr);
  adr = umem_calloc(&buffers, nbytes, 1);
  for (size_t i = 0; i < nbytes; i++) assert_int_equal(((char *)adr)[i], 0);
  ((char *)adr)[77] = 7;
  adr = umem_realloc(&buffers, adr, nbytes, 4 * nbytes);
  assert_int_equal(((char *)adr)[77], 7);
  umem_free(&buffers, adr);
  adr = umem_aligned_alloc(&buffers, 4096, nbytes);
  assert_int_equal(adr % 4096, 0);
  assert_int_equal(umem_set(&buffers, adr, 1, nbytes), umemOK);
  umem_aligned_free(&buffers, adr);
}

CASE(test_beyond_the_bound_memory_is_plain) {
  assert_int_equal(umemCuda_set_staging(64 << 10, 2), umemOK);
  uintptr_t adr[4];
  for (int i = 0; i < 4; i++) {
    adr[i] = umem_alloc(&buffers, 64 << 10);
    assert_int_equal(is_pinned(adr[i]), i < 2);
    memset((void *)adr[i], i, 64 << 10);
  }
  umem_free(&buffers, adr[1]);
  uintptr_t again = umem_alloc(&buffers, 64 << 10);
  assert_int_equal(again, adr[1]);
  umem_free(&buffers, again);
  for (int i = 0; i < 4; i++)
    if (i != 1) umem_free(&buffers, adr[i]);
}

CASE(test_where_nothing_can_be_pinned_memory_is_plain) {
  assert_int_equal(umemCuda_set_staging(64 << 10, 0), umemOK);
  char const *const functions[] = {"host_alloc", "context_push", "context_current"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    fake_cudart_fail_in(functions[i], 1, umemCudaNotPermitted);
    uintptr_t adr = umem_alloc(&buffers, 64 << 10);
    fake_cudart_fail(0, 0);
    assert_int_not_equal(adr, 0);
    assert_false(is_pinned(adr));
    umem_free(&buffers, adr);
    assert_int_equal(umem_thread_status(), umemOK);
    assert_int_equal(umem_get_status(&buffers), umemOK);
  }
  assert_int_equal(fake_cudart()->last_error(), 0);
}

/* ---- threads ---- */

static void *use_buffers(void *argument) {
  unsigned char value = *(unsigned char *)argument;
  for (unsigned i = 0; i < 200; i++) {
    size_t nbytes = (size_t)(1 + i % 5) << 16;
    unsigned char *bytes = (unsigned char *)umem_alloc(&buffers, nbytes);
    if (!bytes) return NULL;
    bytes[0] = bytes[nbytes - 1] = value;
    if (i % 16 == 0) umem_aligned_free(&buffers, umem_aligned_alloc(&buffers, 64, nbytes));
    bool kept = bytes[0] == value && bytes[nbytes - 1] == value;
    umem_free(&buffers, (uintptr_t)bytes);
    if (!kept) return NULL;
  }
  return argument;
}

CASE(test_threads) {
  assert_int_equal(umemCuda_set_staging(256 << 10, count / 2), umemOK);
  pthread_t threads[count];
  unsigned char values[count];
  for (unsigned i = 0; i < count; i++) {
    values[i] = (unsigned char)i;
    assert_int_equal(pthread_create(&threads[i], NULL, use_buffers, &values[i]), 0);
  }
  for (unsigned i = 0; i < count; i++) {
    void *result;
    assert_int_equal(pthread_join(threads[i], &result), 0);
    assert_ptr_equal(result, &values[i]);
  }
}

/* ---- fork ---- */

static int use_in_child(uintptr_t inherited) {
  size_t nbytes = umemStagingChunk;
  uintptr_t adr = umem_alloc(&buffers, nbytes);
  if (!adr || adr == inherited) return 1;
  memset((void *)adr, 1, nbytes);
  umem_free(&buffers, adr);
  umem_free(&buffers, inherited);
  if (umemCuda_set_staging(64 << 10, 0) != umemOK) return 2;
  close_buffers();
  return 0;
}

CASE(test_a_child_of_fork_calls_nothing) {
  uintptr_t idle = umem_alloc(&buffers, umemStagingChunk);
  uintptr_t lent = umem_alloc(&buffers, umemStagingChunk);
  umem_free(&buffers, idle);
  pid_t child = fork();
  assert_int_not_equal(child, -1);
  if (!child) {
    memset(&table, 0, sizeof table); /* whatever is called there ends it */
    _exit(use_in_child(lent));
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_true(is_pinned(lent));
  umem_free(&buffers, lent);
}

int main(void) { return run_cases(NULL, NULL); }
