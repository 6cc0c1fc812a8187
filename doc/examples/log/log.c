/* What uses memory, and when? */
#include <stdio.h>
#include <umem.h>

/* [log] */
enum { chunk = 1 << 20, chunks = 4 };

/* Reads the file chunk by chunk into an array that grows. */
static uintptr_t load(void *file, uintptr_t from, void *ram) {
  uintptr_t array = umem_null(ram);
  for (size_t have = 0; have < (size_t)chunk * chunks; have += chunk) {
    uintptr_t buffer = umem_alloc(ram, chunk);
    umem_copy_to(file, from + have, ram, buffer, chunk);
    array = umem_realloc(ram, array, have, have + chunk);
    umem_copy_to(ram, buffer, ram, array + have, chunk);
    umem_free(ram, buffer);
  }
  return array;
}

int main(void) {
  umemHost host;
  umemFile scratch;
  umemHost_ctor(&host);
  umemFile_ctor(&scratch, NULL, "w+");

  umemLogOptions options = UMEM_LOG_OPTIONS_INIT;
  options.filename = "run.umem";
  umemLog ram, file; /* both write to run.umem */
  umemLog_ctor(&ram, &host, &options);
  umemLog_ctor(&file, &scratch, &options);

  uintptr_t stored = umem_calloc(&file, chunks, chunk);
  uintptr_t array = load(&file, stored, &ram);
  umem_free(&file, stored);
  umem_free(&ram, array);

  umem_dtor(&file);
  umem_dtor(&ram);
  /* [/log] */
  printf("%s\n", umem_get_status_name(umem_get_status(&ram)));
  umem_dtor(&scratch);
  umem_dtor(&host);
  return 0;
}
