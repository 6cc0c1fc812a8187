#include <stdio.h>
#include <umem.h>
#include <umem/formats.h>

int main(void) {
  umemHost ram;
  umemStatusType status = umemOK;
  float const one = 1.5f;
  umemHost_ctor(&ram);

  /* [save] */
  char const *const names[] = {"embed.weight", "head.bias"};
  umemArray *made[] = {umemArray_full(&ram, umemFloat, 2, (int64_t[]){4, 3}, NULL, &one, &status),
                       umemArray_zeros(&ram, umemBfloat16, 1, (int64_t[]){5}, NULL, &status)};
  umemArchive_save("model.safetensors", 2, names, made, NULL, &status);
  /* [/save] */

  /* [list] */
  umemArchive *model = umemArchive_open("model.safetensors", &status);
  for (size_t i = 0; i < umemArchive_count(model); i++) {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    umemArchive_info(model, i, &info, &status);
    printf("%s: %d bytes\n", info.name, (int)info.nbytes);
  }
  /* [/list] */

  /* [get] */
  umemArray *table = umemArchive_get(model, "embed.weight", &status); /* in the mapped file */
  umemArray *row = umemArray_select(table, 0, 2, &status);            /* a part of it */
  void *gpu = umem_open("cuda:0");
  void *where = gpu ? gpu : &ram;
  umemArray *there = umemArray_copy(row, where, umemOrderC, &status);
  umemArray *all[2];
  umemArchive_load(model, 2, names, where, all, NULL, &status); /* both, in one call */
  umemArchive_release(model);                                   /* table can be used on */
  /* [/get] */
  float const *elements = umemArray_host_pointer(table, false, &status);
  if (status == umemOK) printf("%g, %d elements\n", elements[3], (int)umemArray_elements(there));
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemArray *used[] = {made[0], made[1], table, row, there, all[0], all[1]};
  for (size_t i = 0; i < 7; i++) umemArray_release(used[i]);
  umem_close(gpu);
  umem_dtor(&ram);
  remove("model.safetensors");
  return status != umemOK;
}
