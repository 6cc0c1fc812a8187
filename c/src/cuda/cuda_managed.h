/* cuda_managed.h - managed memory. */
#ifndef UMEM_CUDA_MANAGED_H
#define UMEM_CUDA_MANAGED_H

#include <umem/base.h>

/* The table of umemCudaManaged, by which it is known. */
extern struct umemVtbl const umemCudaManaged_vtbl;

#endif
