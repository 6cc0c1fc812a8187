/* asserts.cpp - with UMEM_CHECKS, unchecked access is checked: also where NDEBUG is defined and with
 * optimisation. */
#include <umem/array.hpp>
#include <umem/dynamic_view.hpp>
#include <umem/indexer.hpp>
#include <umem/shape.hpp>
#include <umem/view.hpp>

#include <gtest/gtest.h>

#if !UMEM_CHECKS
#error "this test needs UMEM_CHECKS"
#endif

using umem::Extents;
using umem::View;

TEST(AssertsDeathTest, indices_are_in_range) {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  EXPECT_DEATH(view(3, 0) = 1, "contains");
  EXPECT_DEATH(view(0, -1) = 1, "contains");
  EXPECT_DEATH(view(Extents{0, 4}) = 1, "contains");
  EXPECT_DEATH(view[12] = 1, "size");
  EXPECT_DEATH(view.transpose()[0] = 1, "is_contiguous");
  EXPECT_DEATH((View<int, 1>()(0) = 1), "contains");
  EXPECT_DEATH(view(3, 0) = 1,
               "view.hpp:[0-9]+: operator\\(\\): the check 'contains.*' of umem failed");
}

TEST(AssertsDeathTest, indices_of_guards_are_in_range) {
  umem::Array<int, 2> array({3, 4});
  auto guard = array.host(umem::write);
  EXPECT_DEATH(guard(3, 0) = 1, "contains");
  EXPECT_DEATH(guard[12] = 1, "size");
}

TEST(AssertsDeathTest, ghost_cells_are_in_range) {
  int memory[20] = {};
  auto view = View<int, 1>::with_ghosts_from(memory, {6}, {2});
  view(-2) = view(7) = 1;
  EXPECT_DEATH(view(-3) = 1, "contains");
  EXPECT_DEATH(view(8) = 1, "contains");
}

TEST(AssertsDeathTest, dimensions_are_in_range) {
  Extents<2> extents{3, 4};
  umem::Shape shape{3, 4};
  EXPECT_DEATH(extents[2] = 1, "is_dimension");
  EXPECT_DEATH(extents[-1] = 1, "is_dimension");
  EXPECT_DEATH(shape[2] = 1, "size_");
  int memory[12] = {};
  umem::DynamicView<int> const view(memory, shape);
  EXPECT_DEATH(view.extent(2), "is_dimension");
  EXPECT_DEATH(view.stride(2), "is_dimension");
  EXPECT_DEATH(view.low(-1), "is_dimension");
}

TEST(AssertsDeathTest, numbers_of_elements_are_in_range) {
  umem::Indexer<2, std::int32_t> indexer(Extents{3, 4});
  EXPECT_DEATH(indexer.offset(3, 0), "extents_");
  EXPECT_DEATH(indexer.indices(12), "size_");
  EXPECT_DEATH((umem::Indexer<2, std::int32_t>(Extents{65536, 65536})), "fits");
}
