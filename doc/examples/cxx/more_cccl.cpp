/* Sorts and scans of Thrust, a part of CCCL, over arrays of umem on the CPU. */
#include <cstdio>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <umem.hpp>

int main() {
  /* [cccl] */
  umem::Array<double, 1> keys({1000}, umem::File::scratch());
  umem::Array<int, 1> values({1000});
  umem::for_each_indexed(keys, [](double &x, umem::index_t i) { x = double(i * 7 % 1000); });
  umem::iota(values, 0);
  {
    auto key = keys.host(umem::write);
    auto value = values.host(umem::write);
    thrust::sort_by_key(thrust::host, key.begin(), key.end(), value.begin());
    thrust::inclusive_scan(thrust::host, key.begin(), key.end(), key.begin());
  }
  /* [/cccl] */
  std::printf("%g %d\n", keys.get(999), values.get(7));
}
