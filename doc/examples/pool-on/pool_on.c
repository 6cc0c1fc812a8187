/* Memory for the steps of two queues of a GPU, from one pool: a free does not wait. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <umem.h>

enum { queues = 2, steps = 8, size = 100000 };

typedef union Place {
  umemCuda gpu;
  umemCudaAsync stream;
  umemHost ram;
} Place;

/* Without a GPU everything is in RAM, and nothing is queued. */
static void open_all(Place *memory, Place *queue) {
  bool has_gpu = umemCuda_ctor(&memory->gpu, 0) == umemOK;
  if (!has_gpu) {
    fprintf(stderr, "in RAM: %s\n", umem_thread_message());
    umem_thread_clear();
    umemHost_ctor(&memory->ram);
  }
  for (int i = 0; i < queues; i++)
    if (has_gpu)
      umemCudaAsync_ctor(&queue[i].stream, 0, UMEM_STREAM_NEW);
    else
      umemHost_ctor(&queue[i].ram);
}

int main(void) {
  Place memory = {0}, queue[queues] = {0};
  open_all(&memory, queue);

  /* [open] */
  umemPool pool;
  umemPoolOn view[queues];
  umemPool_ctor(&pool, &memory, NULL);
  for (int i = 0; i < queues; i++) umemPoolOn_ctor(&view[i], &pool, &queue[i]);
  /* [/open] */

  uintptr_t results[queues];
  for (int i = 0; i < queues; i++) results[i] = umem_alloc(&view[i], steps);

  /* [steps] */
  for (int i = 0; i < steps; i++) {
    umemPoolOn *on = &view[i % queues];
    uintptr_t scratch = umem_alloc(on, size); /* usually memory that an earlier step has freed */
    umem_set(on, scratch, 10 * i, size);      /* only queued, as kernels on the stream would be */
    umem_copy_to(on, scratch + size - 1, on, results[i % queues] + (uintptr_t)i, 1);
    umem_free(on, scratch); /* at once, even if this step has not begun */
  }
  /* [/steps] */

  /* [stats] */
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&pool, &stats);
  printf("%" PRIu64 " blocks in all, out of %" PRIu64 " chunk\n", stats.allocations, stats.chunks);
  /* [/stats] */

  umemHost host;
  umemHost_ctor(&host);
  unsigned char bytes[steps];
  for (int i = 0; i < queues; i++) {
    umem_copy_to(&view[i], results[i], &host, (uintptr_t)bytes, steps);
    umem_synchronize(&view[i]);
    for (int j = i; j < steps; j += queues) printf("step %d: %d\n", j, bytes[j]);
  }

  /* [end] */
  umem_free(&view[0], results[0]);
  umem_free(&view[1], results[1]);
  for (int i = 0; i < queues; i++) umem_dtor(&view[i]);
  umem_dtor(&pool);
  for (int i = 0; i < queues; i++) umem_dtor(&queue[i]);
  umem_dtor(&memory);
  /* [/end] */
  umem_dtor(&host);
  return umem_thread_status() != umemOK;
}
