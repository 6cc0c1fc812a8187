/* handle_check.h - whether a handle can be one. */
#ifndef UMEM_HANDLE_CHECK_H
#define UMEM_HANDLE_CHECK_H

#include <stdbool.h>
#include <umem/handle.h>

/* NULL, or what is wrong with it. Looks at nothing but the handle. */
char const *umemHandle_check(umemHandle const *handle);

/* Whether the bytes are memory of a GPU. */
static inline bool umemHandle_is_of_gpu(umemHandle const *handle) {
  return handle->kind == umemHandleCuda || handle->kind == umemHandleCudaPool;
}

/* Whether umem_send passes a descriptor with it. */
static inline bool umemHandle_needs_descriptor(umemHandle const *handle) {
  return handle->kind == umemHandleUnnamed || handle->kind == umemHandleFile ||
         handle->kind == umemHandleCudaPool;
}

#endif
