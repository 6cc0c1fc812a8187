/* log_sample.c - writes the log that log_trace.py checks umem-trace with: log_sample FILE. */
#include <stdio.h>
#include <umem.h>

int main(int argc, char **argv) {
  umemHost host;
  umemLimit limit;
  umemFile file;
  umemLog ram, disk;
  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  if (argc != 2) return 2;
  options.filename = argv[1];
  umemHost_ctor(&host);
  umemLimit_ctor(&limit, &host, 10000);
  umemFile_ctor(&file, NULL, "w+");
  umemLog_ctor(&ram, &limit, &options);
  umemLog_ctor(&disk, &file, &options);

  uintptr_t one = umem_calloc(&ram, 10, 100), other = umem_aligned_alloc(&disk, 64, 2000);
  umem_set(&disk, other, 7, 2000);
  umem_copy_to(&disk, other, &ram, one, 500);
  umem_copy_to(&ram, one, &disk, other + 1000, 300);
  uintptr_t moved = umem_realloc(&ram, one, 1000, 4000);
  uintptr_t none = umem_alloc(&ram, 20000); /* too many */
  bool as_expected = !none && umem_get_status(&ram) == umemMemoryError;
  umem_free(&ram, moved);
  printf("%ju %ju %ju\n", (uintmax_t)one, (uintmax_t)other, (uintmax_t)moved);
  umem_clear_status(&ram); /* one block of the file stays */

  umem_dtor(&disk);
  umem_dtor(&ram);
  umem_dtor(&file);
  as_expected = as_expected && umem_is_ok(&ram) && umem_is_ok(&disk);
  umem_dtor(&limit);
  umem_dtor(&host);
  return as_expected ? 0 : 1;
}
