/* cuda_gpu.h - what umem knows of a GPU. */
#ifndef UMEM_CUDA_GPU_H
#define UMEM_CUDA_GPU_H

#include <umem/base.h>

#include "base/lock.h"
#include "base/near.h"
#include "cuda/cuda_rt.h"

enum {
  umemCudaMostDevices = 64,
  umemCudaIdleEvents = 8,
  umemCudaCaptureTries = 8 /* how often umem repeats what a capture has disturbed */
};

/* One GPU of this process. There is one struct for each GPU; it does not move while a context of umem uses it,
 * so pointers to it can be compared. */
typedef struct umemCudaGpu {
  umemCudaRt const *rt;
  int device;
  int devices;                      /* how many GPUs there are; at most umemCudaMostDevices */
  void *context;                    /* its primary context, retained */
  void *events[umemCudaIdleEvents]; /* that nobody is using; NULL: none; atomic */
  unsigned lineage;                 /* umem_fork_count() when it was opened */
  uint64_t peers;    /* bit d: copies reach the memory of device d directly; atomic */
  uint64_t no_peers; /* bit d: they do not; atomic. Neither bit: not asked yet */
  uint64_t managed;  /* bytes of live managed memory of all contexts; atomic */
  bool has_pools, has_managed, concurrent_managed;
  size_t page_size; /* of memory that is mapped page by page; 0: there is none */
  bool has_near;    /* some processors are nearer than others: */
  cpu_set_t near;
  char name[128];
} umemCudaGpu;

/* Whether this process is a child of fork of the one that opened gpu: CUDA does not work in it. */
static inline bool umemCudaGpu_is_inherited(umemCudaGpu const *gpu) {
  return gpu->lineage != umem_fork_count();
}

#endif
