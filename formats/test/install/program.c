/* program.c - writes a file of an array, and reads it. */
#include <stdio.h>
#include <umem/formats.h>
#include <umem/host.h>

int main(int count, char **arguments) {
  umemHost host;
  umemStatusType status = umemOK;
  int64_t const shape[] = {2, 3};
  if (count != 2 || umemHost_ctor(&host) != umemOK) return 2;
  umemArray *w = umemArray_zeros(&host, umemFloat, 2, shape, NULL, &status);
  umemArchive_save(arguments[1], 1, (char const *[]){"w"}, &w, NULL, &status);
  umemArchive *archive = umemArchive_open(arguments[1], &status);
  umemArray *read = umemArchive_get(archive, "w", &status);
  printf("\"w\" has %d elements\n", (int)umemArray_elements(read));
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemArray_release(read);
  umemArchive_release(archive);
  umemArray_release(w);
  umem_dtor(&host);
  return status != umemOK;
}
