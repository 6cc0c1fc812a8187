/* with_thrust.cpp - Thrust's algorithms and containers on memory of umem. As Thrust for the CPU:
 * what needs a GPU is in kernels_thrust.cu. */
#include "places.h"

#include <umem/pool.hpp>
#include <umem/with/thrust.hpp>

#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

template <class T> using Vector = thrust::device_vector<T, umem::ThrustAllocator<T>>;

TEST(WithThrust, algorithms_take_the_elements_of_views) {
  std::vector<int> memory = {5, 9, 1, 7, 3, 9, 2, 7, 4, 0, 1, 1};
  View<int, 2> const view(memory.data(), {3, 4});
  auto const by_columns = umem::elements(view.transpose());
  thrust::sort(thrust::host, by_columns.begin(), by_columns.end());
  EXPECT_EQ(memory, (std::vector<int>{0, 1, 4, 7, 1, 2, 5, 9, 1, 3, 7, 9}));
  auto const column = view.select(1, 3).reversed(0); /* 9 9 7 */
  EXPECT_EQ(thrust::unique(thrust::host, column.begin(), column.end()) - column.begin(), 2);
  thrust::inclusive_scan(thrust::host, column.begin(), column.end(), column.begin());
  EXPECT_EQ(view(0, 3), 23);
  EXPECT_EQ(thrust::reduce(thrust::host, by_columns.begin(), by_columns.end()), 72);
}

/* Memory that Thrust uses as that of the device: here the CPU's. */
TEST(WithThrust, containers_use_the_memory_of_a_context) {
  umem::Pool pool{umem::Host()};
  Vector<double> one(1000, 2.5, pool);
  std::size_t const used = pool.stats().used;
  EXPECT_GE(used, 8000u);
  Vector<double> two(one), three{umem::ThrustAllocator<double>(umem::Host())};
  EXPECT_GE(pool.stats().used, 16000u);
  two[999] = 1;
  EXPECT_EQ(one[999], 2.5);
  double const *where = two.data().get();
  three = std::move(two); /* no copy: the allocator goes along */
  EXPECT_EQ(three.data().get(), where);
  EXPECT_TRUE(three.get_allocator() == one.get_allocator());
  EXPECT_TRUE(umem::ThrustAllocator<float>(one.get_allocator()) !=
              umem::ThrustAllocator<double>(umem::Host()));
  one.clear();
  one.shrink_to_fit();
  EXPECT_LT(pool.stats().used, 16000u);
  struct alignas(4096) Page {
    char bytes[4096];
  };
  umem::ThrustAllocator<Page> pages(pool);
  auto block = pages.allocate(2);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 4096, 0u);
  pages.deallocate(block, 2);
  EXPECT_THROW(static_cast<void>(pages.allocate(SIZE_MAX / 4096 + 1)), umem::memory_error);
  umem_clear_status(pool.c_context());
  EXPECT_THROW(umem::ThrustAllocator<int>{umem::Context()}, umem::value_error);
  EXPECT_THROW(umem::ThrustAllocator<int>{umem::File::scratch()}, umem::not_supported_error);
}

ON_EACH_PLACE(ThrustMemory);

TEST_P(ThrustMemory, is_taken_and_given_back) {
  if (place.can(umemOffsets)) {
    EXPECT_THROW(umem::ThrustAllocator<int>{place}, umem::not_supported_error);
    return;
  }
  umem::ThrustAllocator<int> allocator(place);
  auto block = allocator.allocate(100);
  EXPECT_NE(reinterpret_cast<umem::address>(block.get()), place.null());
  allocator.deallocate(block, 100);
  umem::ThrustScratch scratch(place);
  char *bytes = scratch.allocate(77);
  EXPECT_NE(bytes, nullptr);
  scratch.deallocate(bytes, 77);
}
