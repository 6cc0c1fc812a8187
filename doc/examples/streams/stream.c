/* Two queues of a GPU: while one copies a part of an array, the other works on the part before. */
#include <stdbool.h>
#include <stdio.h>
#include <umem.h>

/* [open] */
typedef union Queue {
  umemCudaAsync stream;
  umemHost ram;
} Queue;

typedef union Memory {
  umemCudaHost pinned;
  umemHost ram;
} Memory;

static bool open_gpu(Queue *bring, Queue *work, Memory *host) {
  return umemCudaAsync_ctor(&bring->stream, 0, UMEM_STREAM_NEW) == umemOK &&
         umemCudaAsync_ctor(&work->stream, 0, UMEM_STREAM_NEW) == umemOK &&
         umemCudaHost_ctor(&host->pinned, 0) == umemOK;
}
/* [/open] */

static void close_all(Queue *bring, Queue *work, Memory *host) {
  umem_dtor(host);
  umem_dtor(work);
  umem_dtor(bring);
}

/* Without a GPU both contexts are RAM, and nothing is queued. */
static void open_all(Queue *bring, Queue *work, Memory *host) {
  if (open_gpu(bring, work, host)) return;
  fprintf(stderr, "in RAM: %s\n", umem_thread_message());
  close_all(bring, work, host);
  umemHost_ctor(&bring->ram);
  umemHost_ctor(&work->ram);
  umemHost_ctor(&host->ram);
}

enum { parts = 8, items = 100000, half = items / 2, item = sizeof(double) };

/* [thin] */
/* Copies every second number of array, which is in host, to result. */
static umemStatusType thin(void *bring, void *work, void *host, uintptr_t array, uintptr_t result) {
  umemLayout const every_second = {
      sizeof(umemLayout), item, 1, (size_t[]){half}, (ptrdiff_t[]){2 * item}, (ptrdiff_t[]){item}};
  size_t const part = (size_t)items * item, thinned = (size_t)half * item;
  uintptr_t blocks[2] = {umem_alloc(bring, part), umem_alloc(bring, part)};
  uintptr_t all = umem_alloc(work, parts * thinned);

  umem_copy_to(host, array, bring, blocks[0], part);
  for (size_t i = 0; i < parts; i++) {
    umem_wait(work, bring); /* part i has arrived */
    umem_wait(bring, work); /* part i - 1, in the other block, is no longer needed */
    umem_copy_strided(work, blocks[i % 2], work, all + i * thinned, &every_second);
    if (i + 1 < parts) umem_copy_to(host, array + (i + 1) * part, bring, blocks[(i + 1) % 2], part);
  }
  umem_copy_to(work, all, host, result, parts * thinned);
  umem_synchronize(work); /* only now the program may read the result */

  umem_free(work, all);
  umem_free(bring, blocks[1]);
  umem_free(bring, blocks[0]);
  return umem_is_ok(bring) ? umem_get_status(work) : umem_get_status(bring);
}
/* [/thin] */

int main(void) {
  Queue bring = {0}, work = {0};
  Memory host = {0};
  open_all(&bring, &work, &host);
  uintptr_t array = umem_alloc(&host, (size_t)parts * items * item);
  uintptr_t result = umem_alloc(&host, (size_t)parts * half * item);
  bool good = umem_is_ok(&host);
  if (good) {
    double *x = (double *)array, *y = (double *)result;
    for (int i = 0; i < parts * items; i++) x[i] = i;
    good = thin(&bring, &work, &host, array, result) == umemOK;
    if (good) printf("%d numbers from %g to %g\n", parts * half, y[0], y[parts * half - 1]);
  }
  if (!good) fprintf(stderr, "%s\n", umem_thread_message());
  umem_free(&host, result);
  umem_free(&host, array);
  close_all(&bring, &work, &host);
  return !good;
}
