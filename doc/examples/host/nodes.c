/* An array that all threads use is spread over the nodes; the part of each thread is on the node
 * where it runs. */
#include <pthread.h>
#include <stdio.h>
#include <umem.h>

enum { threads = 4, rows = 1 << 16 };

static double *parts; /* rows of each thread */

/* [fill] */
static void *fill(void *first) {
  double *part = first;
  for (int i = 0; i < rows; i++)
    part[i] = i; /* the first touch: the pages are near this thread from now on */
  return NULL;
}
/* [/fill] */

int main(void) {
  /* [spread] */
  void *spread = umem_open("host:?policy=interleave");
  void *near = umem_open("host:?policy=first-touch");
  if (!spread || !near) {
    fprintf(stderr, "%s\n",
            umem_thread_message()); /* no NUMA in this kernel, or a container forbids it */
    umem_thread_clear();
    umem_close(spread);
    umem_close(near);
    spread = umem_open("host:");
    near = umem_open("host:");
  }
  double *table = (double *)umem_calloc(spread, rows, sizeof(double));
  parts = (double *)umem_calloc(near, (size_t)threads * rows, sizeof(double)); /* touches no page */
  /* [/spread] */
  if (!table || !parts) return puts(umem_thread_message()), 1;
  pthread_t running[threads];
  for (int t = 0; t < threads; t++) pthread_create(&running[t], NULL, fill, parts + t * rows);
  for (int t = 0; t < threads; t++) pthread_join(running[t], NULL);
  double sum = table[rows - 1];
  for (int i = 0; i < threads * rows; i++) sum += parts[i];
  printf("the sum is %.0f\n", sum);
  umem_free(spread, (uintptr_t)table);
  umem_free(near, (uintptr_t)parts);
  umem_close(spread);
  umem_close(near);
  return 0;
}
