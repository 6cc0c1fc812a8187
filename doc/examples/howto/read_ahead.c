/* Adds up the numbers of four files. While it works on one, the next is read. */
#include <stdio.h>
#include <umem.h>

enum { files = 4, count = 1 << 20 };

static char const *name_of(int number) {
  static char name[20];
  snprintf(name, sizeof name, "part%d.bin", number);
  return name;
}

/* Writes file number k, full of ones. */
static int write_file(umemHost *ram, int number, float *numbers) {
  umemFile file;
  for (int i = 0; i < count; i++) numbers[i] = 1;
  if (umemFile_ctor(&file, name_of(number), "w") != umemOK) return 1;
  uintptr_t adr = umem_alloc(&file, count * sizeof(float));
  umemStatusType status = umem_copy_to(ram, (uintptr_t)numbers, &file, adr, count * sizeof(float));
  umem_dtor(&file);
  return status != umemOK;
}

/* Begins to read a file. NULL after a failure. */
static umemTransfer *start_read(umemFile *file, int number, umemHost *ram, float *numbers) {
  umemTransfer *read = NULL;
  if (umemFile_ctor(file, name_of(number), "r") != umemOK) return NULL;
  uintptr_t adr = umem_alloc(file, count * sizeof(float));
  umem_start(file, adr, ram, (uintptr_t)numbers, count * sizeof(float), NULL, &read);
  return read;
}

int main(void) {
  umemHost ram;
  umemHost_ctor(&ram);
  float *numbers[2]; /* the numbers of one file, and those of the next */
  for (int i = 0; i < 2; i++) numbers[i] = (float *)umem_alloc(&ram, count * sizeof(float));
  for (int k = 0; k < files; k++)
    if (write_file(&ram, k, numbers[0])) return puts(umem_thread_message()), 1;

  double sum = 0;
  umemFile file[2];
  umemTransfer *read[2];
  read[0] = start_read(&file[0], 0, &ram, numbers[0]);
  for (int k = 0; k < files; k++) {
    int now = k % 2, next = 1 - now;
    if (umemTransfer_wait(read[now]) != umemOK) return puts(umem_thread_message()), 1;
    umemTransfer_release(read[now]);
    if (k + 1 < files) read[next] = start_read(&file[next], k + 1, &ram, numbers[next]);
    for (int i = 0; i < count; i++) sum += numbers[now][i];
    umem_dtor(&file[now]);
  }
  printf("%d files, the sum is %.0f\n", files, sum);

  for (int i = 0; i < 2; i++) umem_free(&ram, (uintptr_t)numbers[i]);
  umem_dtor(&ram);
  return 0;
}
