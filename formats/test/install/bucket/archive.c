/* archive.c - copies a file of arrays to a bucket, and loads an array of the object by S3 and by
 * the web server's URL. Prints the same as archive.cpp. */
#include <stdio.h>
#include <umem.h>
#include <umem/formats.h>

static void *open_place(char const *name, umemStatusType *status) {
  void *place = *status == umemOK ? umem_open(name) : NULL;
  if (!place) *status = umem_thread_status();
  return place;
}

static void copy_file(char const *path, char const *name, umemStatusType *status) {
  umemFile file;
  umemInfo info = UMEM_INFO_INIT;
  umemFile_ctor(&file, path, "r");
  umem_get_info(&file, &info);
  void *place = open_place(name, status);
  if (!place) return;
  umem_copy_to(&file, 0, place, umem_alloc(place, info.capacity), info.capacity);
  if (umem_close(place) != umemOK) *status = umem_thread_status();
  umem_dtor(&file);
}

static void print(char const *name, umemHost *ram, umemStatusType *status) {
  umemInfo info = UMEM_INFO_INIT;
  umemArray *w = NULL;
  void *place = open_place(name, status);
  if (place) umem_get_info(place, &info);
  umemArchive *archive = umemArchive_read(place, 0, info.capacity, status);
  umemArchive_load(archive, 1, (char const *[]){"w"}, ram, &w, NULL, status);
  float const *numbers = umemArray_host_pointer(w, false, status);
  if (numbers) printf("%.1f %.1f\n", numbers[0], numbers[5]);
  umemArray_release(w);
  umemArchive_release(archive);
  umem_close(place);
}

/* Its arguments are a file to make, the names of the object to write and to read, and its URL. */
int main(int count, char **names) {
  umemHost ram;
  umemStatusType status = umemOK;
  float const value = 2.5F;
  if (count != 5 || umemHost_ctor(&ram) != umemOK) return 2;
  umemArray *w = umemArray_full(&ram, umemFloat, 2, (int64_t[]){2, 3}, NULL, &value, &status);
  umemArchive_save(names[1], 1, (char const *[]){"w"}, &w, NULL, &status);
  copy_file(names[1], names[2], &status);
  for (int k = 3; k < 5; k++) print(names[k], &ram, &status);
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemArray_release(w);
  umem_dtor(&ram);
  return status != umemOK;
}
