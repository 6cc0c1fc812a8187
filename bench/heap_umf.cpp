/* heap_umf.cpp - the disjoint pool of UMF, the Unified Memory Framework, over memory of the
 * system. */
#include "heaps.h"

#include <umf.h>
#include <umf/memory_pool.h>
#include <umf/pools/pool_disjoint.h>
#include <umf/providers/provider_os_memory.h>

#include <stdexcept>

namespace bench {
namespace {

/* Alive until the end. */
umf_memory_pool_handle_t pool;

void check_umf(umf_result_t result, char const *call) {
  if (result != UMF_RESULT_SUCCESS) throw std::runtime_error(std::string("UMF: ") + call);
}

/* With the parameters that it has by default. */
void create_pool() {
  umf_os_memory_provider_params_handle_t system = nullptr;
  umf_memory_provider_handle_t provider = nullptr;
  check_umf(umfOsMemoryProviderParamsCreate(&system), "umfOsMemoryProviderParamsCreate");
  check_umf(umfMemoryProviderCreate(umfOsMemoryProviderOps(), system, &provider),
            "umfMemoryProviderCreate");
  umfOsMemoryProviderParamsDestroy(system);

  umf_disjoint_pool_params_handle_t options = nullptr;
  check_umf(umfDisjointPoolParamsCreate(&options), "umfDisjointPoolParamsCreate");
  check_umf(umfPoolCreate(umfDisjointPoolOps(), provider, options,
                          UMF_POOL_CREATE_FLAG_OWN_PROVIDER, &pool),
            "umfPoolCreate");
  umfDisjointPoolParamsDestroy(options);
}

void *allocate(std::size_t size) { return umfPoolMalloc(pool, size); }
void release(void *address) { umfPoolFree(pool, address); }
void *allocate_zeros(std::size_t count, std::size_t size) {
  return umfPoolCalloc(pool, count, size);
}

} // namespace

Other umf_heap() {
  if (!pool) create_pool();
  return {std::string("UMF ") + UMEM_BENCH_UMF + " disjoint pool", allocate, release,
          allocate_zeros};
}

} // namespace bench
