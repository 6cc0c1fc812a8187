/* Copies a file to a GPU, and its first bytes back. On a machine without a GPU, to RAM. */
#include <stdio.h>
#include <umem.h>

static void *open_gpu(void) {
  void *gpu = umem_open("cuda:0");
  if (gpu) return gpu;
  fprintf(stderr, "no GPU: %s\n", umem_thread_message());
  return umem_open("host:");
}

int main(int argc, char **argv) {
  char const *name = argc > 1 ? argv[1] : "data.bin";
  umemFile file;
  if (umemFile_ctor(&file, name, "r") != umemOK) return puts(umem_thread_message()), 1;
  umemInfo info = UMEM_INFO_INIT;
  umem_get_info(&file, &info);
  size_t const nbytes = info.capacity; /* the length of the file */

  void *gpu = open_gpu();
  uintptr_t bytes = umem_alloc(&file, nbytes); /* the first block of a file is its first bytes */
  uintptr_t there = umem_alloc(gpu, nbytes);
  if (umem_copy_to(&file, bytes, gpu, there, nbytes) != umemOK)
    return puts(umem_thread_message()), 1;

  umemHost ram;
  umemHost_ctor(&ram);
  char first[5] = "";
  umem_copy_to(gpu, there, &ram, (uintptr_t)first, 4);
  printf("%zu bytes, the first are %s\n", nbytes, first);

  umem_free(gpu, there);
  umem_close(gpu);
  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
