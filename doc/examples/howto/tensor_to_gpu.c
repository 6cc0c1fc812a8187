/* One tensor of a safetensors file on a GPU. On a machine without a GPU, in RAM. */
#include <stdio.h>
#include <umem.h>
#include <umem/formats.h>

static void *open_gpu(void) {
  void *gpu = umem_open("cuda:0");
  if (gpu) return gpu;
  fprintf(stderr, "no GPU: %s\n", umem_thread_message());
  return umem_open("host:");
}

/* A small file, which stands for one of 50 GB. */
static void save_model(umemStatusType *status) {
  void *ram = umem_open("host:");
  float const seven = 7;
  char const *const name = "layer.0.weight";
  umemArray *array = umemArray_full(ram, umemFloat, 2, (int64_t[]){4, 3}, NULL, &seven, status);
  umemArchive_save("model.safetensors", 1, &name, &array, NULL, status);
  umemArray_release(array);
  umem_close(ram);
}

int main(void) {
  umemStatusType status = umemOK;
  save_model(&status);
  void *gpu = open_gpu();
  umemArchive *model = umemArchive_open("model.safetensors", &status); /* reads the header */
  umemArray *mapped = umemArchive_get(model, "layer.0.weight", &status);
  umemArray *weight = umemArray_copy(mapped, gpu, umemOrderC, &status); /* reads these bytes */
  umemArchive_release(model);
  if (status == umemOK) printf("%d elements\n", (int)umemArray_elements(weight));
  if (status != umemOK) fprintf(stderr, "%s\n", umem_thread_message());
  umemArray_release(mapped);
  umemArray_release(weight);
  umem_close(gpu);
  remove("model.safetensors");
  return status != umemOK;
}
