/* cuda_gds.h - whether cuFile (GPUDirect Storage) moves bytes between files and GPUs without host memory. */
#ifndef UMEM_CUDA_GDS_H
#define UMEM_CUDA_GDS_H

#include "cuda/cuda_gpu.h"
#include "cuda/cufile_rt.h"

/* Returns cuFile's functions if its driver is open and all its paths are real, and NULL otherwise. Records nothing.
 * The first call in the process opens the driver, which stays open; it costs milliseconds where nvidia-fs is loaded.
 * The primary context of gpu stays for the life of the process then, because cuFile has memory in it. In no scope. */
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

/* For tests: closes the driver, releases the contexts, and lets the next call ask again. No copy may run. */
void umemCudaGds_end(void);

#endif
