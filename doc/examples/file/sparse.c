/* A sparse file: blocks get disk space when they are written. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemFile file;
  /* [sparse] */
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  options.reserve = umemReserveNone;
  umemFile_ctor_with(&file, "sparse.bin", "w+", &options);
  uintptr_t adr = umem_calloc(&file, (size_t)1 << 40, 1); /* 1 TiB, but no bytes on the disk */
  umem_set(&file, adr, 1, 4096);                          /* this fails if the disk is full */
  /* [/sparse] */
  printf("%s\n", umem_is_ok(&file) ? "written" : umem_get_message(&file));
  umem_dtor(&file);
  return 0;
}
