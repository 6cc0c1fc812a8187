/* ratio_gpu.cpp - which groups of GPUs there are, and whether there is a GPU. In every build. */
#include "ratio.h"

#ifdef UMEM_BENCH_CUDA
#include "ratio_gpu.h"
#endif

#include <umem.h>

namespace bench {

/* The first group must be that of peers: once somebody lets one GPU reach the memory of another,
 * all copies of the process gain by it. */
std::vector<Group> gpu_groups() {
  std::vector<Group> groups;
#ifdef UMEM_BENCH_CUDA
  for (auto measure : {measure_gpu_peer, measure_gpu_alloc, measure_gpu_set, measure_gpu_small,
                       measure_gpu_copy, measure_gpu_strided, measure_gpu_stage})
    groups.push_back({"gpu", measure});
  groups.push_back({"gpu-file", measure_gpu_file});
  for (auto measure :
       {measure_gpu_ordered, measure_gpu_pool, measure_gpu_pool_large, measure_gpu_pool_many})
    groups.push_back({"gpu-pool", measure});
#endif
  return groups;
}

std::string why_no_gpu() {
  umemCuda gpu;
  umemStatusType status = umemCuda_ctor(&gpu, 0);
  std::string why = status == umemOK ? "" : umem_thread_message();
  if (status == umemOK) umem_dtor(&gpu);
  return why;
}

} // namespace bench
