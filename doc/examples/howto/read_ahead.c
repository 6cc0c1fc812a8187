/* Adds up the numbers of four files. While it works on one, the next is read. */
#include <stdio.h>
#include <umem.h>

enum { files = 4, count = 1 << 20, nbytes = count * sizeof(float) };

static double sum_of(float const *numbers) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += numbers[i];
  return sum;
}

int main(void) {
  umemHost ram;
  umemFile file[files];
  umemHost_ctor(&ram);
  float *now = (float *)umem_alloc(&ram, nbytes), *next = (float *)umem_alloc(&ram, nbytes);
  for (int i = 0; i < count; i++) now[i] = 1;
  for (int k = 0; k < files; k++) { /* without a name: put that of yours in place of NULL */
    umemFile_ctor(&file[k], NULL, "w+");
    umem_alloc(&file[k], nbytes); /* its address is 0: the first byte of the file */
    umem_copy_to(&ram, (uintptr_t)now, &file[k], 0, nbytes);
  }

  double sum = 0;
  umemTransfer *read;
  umem_start(&file[0], 0, &ram, (uintptr_t)now, nbytes, NULL, &read);
  for (int k = 0; k < files; k++) {
    if (umemTransfer_wait(read) != umemOK) return puts(umem_thread_message()), 1;
    umemTransfer_release(read);
    if (k + 1 < files) umem_start(&file[k + 1], 0, &ram, (uintptr_t)next, nbytes, NULL, &read);
    sum += sum_of(now); /* while the next one is read */
    float *other = now;
    now = next, next = other;
  }
  printf("%d files, the sum is %.0f\n", files, sum);

  for (int k = 0; k < files; k++) umem_dtor(&file[k]);
  umem_free(&ram, (uintptr_t)now), umem_free(&ram, (uintptr_t)next), umem_dtor(&ram);
}
