/* staging_near.c - the threads that help with a copy run on the node of the GPU, and the caller's
 * own does not. */
#include "staging_help.h"

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

static void copy(Bench *one) {
  size_t nbytes = 2 * from;
  Block block = block_make(nbytes);
  caller = pthread_self();
  helper_count = caller_count = 0;
  table.memcpy_async = watch;
  assert_true(stage(one, block.adr, block.bytes, nbytes, umemCudaToDevice));
  table.memcpy_async = rt->memcpy_async;
  block_release(&block);
}

BENCH_TEST(helpers_run_near_the_gpu) {
  Bench other;
  int count;
  unsigned first = near_first(&count);
  if (count < 2) skip();
  near_begin();
  near_write("bus/pci/devices/0000:a1:00.0/numa_node", "0\n");
  near_write_processor(0, first);
  bench_open(&other, 1);
  copy(&other);
  assert_int_equal(helper_count, 1);
  assert_int_equal(caller_count, count);
  bench_close(&other);
  near_end();
  assert_int_equal(processors(), count);
}

BENCH_TEST(without_a_node_they_run_anywhere) {
  int count;
  near_first(&count);
  copy(&bench);
  assert_int_equal(helper_count, count);
}
