/* An array goes to another library as a DLPack tensor, and comes back. */
#include <stdio.h>
#include <umem.h>

/* [consumer] */
/* Stands for another library: it adds, and calls the deleter. */
static double add_up(umemDLManagedTensorVersioned *tensor) {
  umemDLTensor const *dl = &tensor->dl_tensor;
  double sum = 0;
  for (int64_t i = 0; i < dl->shape[0]; i++) sum += ((double *)dl->data)[i * dl->strides[0]];
  if (tensor->deleter) tensor->deleter(tensor);
  return sum;
}
/* [/consumer] */

int main(void) {
  umemHost ram;
  umemStatusType status = umemOK;
  int64_t const shape[] = {8};
  double const half = 0.5;
  umemHost_ctor(&ram);

  /* [export] */
  umemArray *a = umemArray_full(&ram, umemDouble, 1, shape, NULL, &half, &status);
  umemArray *even = umemArray_slice(a, 0, 0, 4, 2, &status);
  umemDLManagedTensorVersioned *tensor = umemArray_to_dlpack(even, NULL, &status);
  umemArray_release(even); /* the tensor has its own reference */
  if (tensor) printf("sum %g\n", add_up(tensor));
  /* [/export] */

  /* [import] */
  tensor = umemArray_to_dlpack(a, NULL, &status);
  umemArray *b = umemArray_from_dlpack(&ram, tensor, &status);
  if (!b && tensor && tensor->deleter) tensor->deleter(tensor); /* it is still ours */
  umemArray_clear(b, &status);                                  /* the same memory */
  umemArray_release(b);                                         /* calls the deleter */
  /* [/import] */

  double const *x = umemArray_host_pointer(a, false, &status);
  if (status == umemOK) printf("first %g\n", x[0]);

  /* [copy] */
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.device = umemDLCPU;
  options.copy = umemDLCopyIfNeeded; /* a is in RAM: no copy is needed */
  tensor = umemArray_to_dlpack(a, &options, &status);
  /* [/copy] */
  if (tensor) printf("sum %g\n", add_up(tensor));
  umemArray_release(a);
  umem_dtor(&ram);
  return status != umemOK;
}
