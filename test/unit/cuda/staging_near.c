/* staging_near.c - the threads that help with a copy run on the node of the GPU, and the caller's
 * own does not. */
#include "staging_help.h"

#include <pthread.h>
#include <time.h>

#include "unit/near_help.h"

static pthread_t caller;
static int helper_count, caller_count; /* processors; 0: not seen yet; atomic */

static int processors(void) {
  cpu_set_t mine;
  assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
  return CPU_COUNT(&mine);
}

static bool both_have_come(void) {
  return __atomic_load_n(&helper_count, __ATOMIC_RELAXED) &&
         __atomic_load_n(&caller_count, __ATOMIC_RELAXED);
}

/* The caller and a helper wait for each other, so that neither makes the whole copy. */
static int watch(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                 void *stream) {
  time_t const until = time(NULL) + 20;
  bool helps = !pthread_equal(caller, pthread_self());
  __atomic_store_n(helps ? &helper_count : &caller_count, processors(), __ATOMIC_RELAXED);
  while (!both_have_come() && time(NULL) < until) sched_yield();
  return rt->memcpy_async(dst, src, nbytes, direction, stream);
}

static void copy(Bench *bench) {
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  caller = pthread_self();
  helper_count = caller_count = 0;
  table.memcpy_async = watch;
  assert_true(umemCuda_stage(&bench->ctx.super, &bench->state, (uintptr_t)block.adr, block.bytes,
                             nbytes, umemCudaToDevice));
  table.memcpy_async = rt->memcpy_async;
  block_release(&block);
}

TEST_CASE_WITH(helpers_run_near_the_gpu, set_up, tear_down) {
  Bench bench;
  int count;
  unsigned first = near_first(&count);
  if (count < 2) skip();
  near_begin();
  near_write("bus/pci/devices/0000:a1:00.0/numa_node", "0\n");
  near_write_processor(0, first);
  bench_open(&bench, 1);
  copy(&bench);
  assert_int_equal(helper_count, 1);
  assert_int_equal(caller_count, count);
  bench_close(&bench);
  near_end();
  assert_int_equal(processors(), count);
}

TEST_CASE_WITH(without_a_node_they_run_anywhere, set_up, tear_down) {
  int count;
  near_first(&count);
  copy(*state);
  assert_int_equal(helper_count, count);
}

int main(void) { return run_cases(NULL, NULL); }
