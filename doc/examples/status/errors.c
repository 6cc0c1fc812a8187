/* The three ways to learn of a failure. */
#include <stdio.h>
#include <umem.h>

int main(void) {
  umemHost ram;
  umemFile file;
  umemHost_ctor(&ram);
  char buffer[80];

  /* [call] */
  umemStatusType status = umemFile_ctor(&file, "absent/a.bin", "r");
  if (status != umemOK) printf("call:    %s\n", umem_get_status_name(status));
  /* [/call] */

  /* [thread] */
  umem_thread_clear();
  uintptr_t block = umem_calloc(&ram, SIZE_MAX, sizeof(double));
  if (block == umem_null(&ram)) printf("thread:  %s\n", umem_thread_message());
  /* [/thread] */

  /* [context] */
  umem_clear_status(&ram);
  umemFile_ctor(&file, "a.bin", "w+");
  uintptr_t array = umem_alloc(&file, sizeof buffer);
  umem_set(&file, array, 0, sizeof buffer);
  umem_copy_to(&file, array + 40, &ram, (uintptr_t)buffer, sizeof buffer); /* 40 bytes too far */
  umem_free(&file, array);
  if (!umem_is_ok(&file)) printf("context: %s\n", umem_get_message(&file));
  umem_clear_status(&file); /* handled; the file can still be used */
  /* [/context] */

  umem_dtor(&file);
  umem_dtor(&ram);
  return 0;
}
