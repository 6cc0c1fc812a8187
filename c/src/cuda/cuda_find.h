/* cuda_find.h - what CUDA knows of memory that other libraries have allocated. */
#ifndef UMEM_CUDA_FIND_H
#define UMEM_CUDA_FIND_H

#include "core/find.h"

/* A umemFindForeign. False while no context for GPUs lives. */
bool umemCuda_find_foreign(uintptr_t adr, umemFound *found);

#endif
