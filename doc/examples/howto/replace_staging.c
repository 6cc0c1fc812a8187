/* Loads a file to a GPU, or to RAM where there is none. Replaces malloc, pread, cudaMemcpy and free,
 * in pieces and in threads by hand. */
#include <stdio.h>
#include <umem.h>

/* Reads nbytes at offset of a file to gpu memory at to. Prints the way that the bytes went. */
static umemStatusType load(char const *name, size_t offset, void *gpu, uintptr_t to,
                           size_t nbytes) {
  umemFile file;
  umemStatusType status = umemFile_ctor(&file, name, "r");
  if (status != umemOK) return status;
  uintptr_t bytes = umem_alloc(&file, offset + nbytes);

  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.route = &route;
  status = umem_copy_to_with(&file, bytes + offset, gpu, to, nbytes, &options);

  char text[200];
  umemRoute_text(&route, text, sizeof text);
  fprintf(stderr, "%s\n",
          text); /* with a GPU: file -> 16 workers, page cache -> pinned -> cuda:0 */
  umem_dtor(&file);
  return status;
}

int main(int argc, char **argv) {
  void *gpu = umem_open("cuda:0");
  if (!gpu) gpu = umem_open("host:");
  uintptr_t there = umem_alloc(gpu, 4);
  umemStatusType status = load(argc > 1 ? argv[1] : "data.bin", 4, gpu, there, 4);
  printf("%s\n", status == umemOK ? "4 bytes are loaded" : umem_thread_message());
  umem_free(gpu, there);
  umem_close(gpu);
  return status != umemOK;
}
