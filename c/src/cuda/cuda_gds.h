/* cuda_gds.h - copies between files and GPUs by cuFile (GPUDirect Storage), without host memory. */
#ifndef UMEM_CUDA_GDS_H
#define UMEM_CUDA_GDS_H

#include "cuda/cuda_scope.h"
#include "cuda/cuda_state.h"

/* Returns cuFile's functions if its driver is open and all its paths are real, and NULL otherwise.
 * Records nothing. The first call in the process opens the driver, which stays open; it costs
 * milliseconds where nvidia-fs is loaded. The primary context of gpu stays for the life of the
 * process then, because cuFile has memory in it. In no scope. */
umemCufileRt const *umemCudaGds_open(umemCudaGpu *gpu);

/* What a negative result of a transfer means. */
typedef struct umemCudaGdsWords {
  bool refusal;        /* cuFile cannot do this here: another route may */
  umemStatusType type; /* the status that stands for it otherwise */
  bool of_gpu;         /* it is about the GPU, not about the file */
  char const *words;   /* static */
} umemCudaGdsWords;

/* code: positive, greater than umemCufileBase. */
umemCudaGdsWords umemCudaGds_words(int code);

/* For tests: closes the driver, releases the contexts, and lets the next call ask again. No copy
 * may run. */
void umemCudaGds_end(void);

/* ==== copies ==== */

/* Bytes of the shortest copy, of which the registration of the file is a small part. */
enum { umemCudaGdsFrom = 8 << 20 };

/* Copies nbytes between device memory of ctx and other by cuFile, after the work that is queued on
 * ctx's stream and before what is queued on it later. Complete on return. direction:
 * umemCudaToDevice or umemCudaToHost. Returns true: done, or failed with a status on the context
 * that has failed. Returns false, with nothing recorded, where cuFile has no direct path between
 * the two, other lends no file, the stream is being captured, or cuFile stops: bytes of the
 * destination may be written then. In no scope. */
bool umemCudaGds_copy(umemVirtual *ctx, uintptr_t device_adr, umemVirtual *other,
                      uintptr_t other_adr, size_t nbytes, umemCudaDirection direction);

#endif
