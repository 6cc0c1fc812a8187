/* main.c - a user's program: an array goes to a file and comes back, with the library of the
 * headers. */
#include <stdio.h>
#include <string.h>

#include <umem.h>

int main(void) {
  umemHost host;
  umemFile file;
  umemHost_ctor(&host);
  umemFile_ctor(&file, NULL, "w+");

  double numbers[10], back[10] = {0};
  for (int i = 0; i < 10; i++) numbers[i] = i / 2.0;
  uintptr_t adr = umem_alloc(&file, sizeof numbers);
  umem_copy_to(&host, (uintptr_t)numbers, &file, adr, sizeof numbers);
  umem_copy_to(&file, adr, &host, (uintptr_t)back, sizeof numbers);
  umem_free(&file, adr);

  int same =
      memcmp(numbers, back, sizeof numbers) == 0 && strcmp(umem_version(), UMEM_VERSION) == 0;
  if (!same || !umem_is_ok(&file)) printf("failed: %s\n", umem_get_message(&file));
  umem_dtor(&file);
  umem_dtor(&host);
  return same ? 0 : 1;
}
