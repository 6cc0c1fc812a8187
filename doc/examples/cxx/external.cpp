/* A resource of the standard library as a place. */
#include <cstdio>
#include <memory_resource>
#include <umem.hpp>
#include <umem/adaptors.hpp>
#include <umem/external.hpp>

int main() {
  /* [pmr] */
  std::pmr::unsynchronized_pool_resource pool; /* of the application */
  umem::External place(&pool, umem::Host(), umem::External::serial);
  umem::Stats stats{umem::Context(place)};
  {
    auto u = umem::Array<double, 1>::full({1000}, 1.5, stats); /* in the memory of the pool */
    std::printf("%lld bytes live\n", static_cast<long long>(stats.figures().current_bytes));
  }
  std::printf("%lld bytes live\n", static_cast<long long>(stats.figures().current_bytes));
  /* [/pmr] */
}
