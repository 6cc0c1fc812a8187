/* cuda_rt.h - the table of CUDA's functions that is in use. */
#ifndef UMEM_CUDA_RT_H
#define UMEM_CUDA_RT_H

#include "cuda/cuda_calls.h"

/* The table in use: CUDA's or the driver's, or what a test has put in its place; NULL in a build without CUDA. */
umemCudaRt const *umemCudaRt_get(void);

/* For tests: uses table, which must outlive its use, until called with NULL. No context may live. */
void umemCudaRt_replace(umemCudaRt const *table);

#endif
