/* dlpack_device.h - where memory of a context is, in the words of DLPack. */
#ifndef UMEM_DLPACK_DEVICE_H
#define UMEM_DLPACK_DEVICE_H

#include <umem/dlpack.h>

/* The device of tensors in memory of ctx, with the number of the GPU also for managed memory. Its code is umemDLDefault
 * if there can be none. Asks no driver. */
umemDLDevice umem_dlpack_device(umemVirtual *ctx);

/* Whether tensors with this code are used on streams of CUDA. */
static inline bool umem_dlpack_has_streams(int32_t code) {
  return code == umemDLCUDA || code == umemDLCUDAManaged;
}

#endif
