/* Eight processes add up one array in shared memory; none of them copies it. */
#define _GNU_SOURCE /* fork */
#include <stdio.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

enum { n = 1 << 20, workers = 8 };

int main(void) {
  umemShm shm; /* without a name: the children inherit it */
  if (umemShm_ctor(&shm, NULL, 16 << 20) != umemOK) return puts(umem_thread_message()), 1;
  double *x = (double *)umem_alloc(&shm, n * sizeof *x);
  double *sums = (double *)umem_calloc(&shm, workers, sizeof *sums);
  for (int i = 0; i < n; i++) x[i] = 0.5;

  for (int w = 0; w < workers; w++)
    if (fork() == 0) {
      for (int i = w * (n / workers); i < (w + 1) * (n / workers); i++) sums[w] += x[i];
      _exit(0);
    }
  while (wait(NULL) > 0) continue;

  double sum = 0;
  for (int w = 0; w < workers; w++) sum += sums[w];
  printf("%g\n", sum);
  umem_free(&shm, (uintptr_t)sums);
  umem_free(&shm, (uintptr_t)x);
  umem_dtor(&shm);
  return 0;
}
