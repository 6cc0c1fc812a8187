/* with_kokkos.cpp - views and guards as views of Kokkos, and back. */
#include "typed.hpp"

#include <umem/with/kokkos.hpp>

using OnCpu = Kokkos::DefaultHostExecutionSpace;

struct WithKokkos : testing::Test {
  static void SetUpTestSuite() { Kokkos::initialize(); }
  static void TearDownTestSuite() { Kokkos::finalize(); }
};

TEST_F(WithKokkos, views_have_the_same_elements) {
  std::vector<double> memory(300);
  auto const view = View<double, 3>::with_ghosts_from(memory.data(), {3, 4, 2}, {1, 1, 0});
  for (auto const &layout :
       {view, view.with_ghosts(), view.transpose(), view.slice(1, 0, 4, 2), view.slice(0, 1, 1)}) {
    auto const found = umem::to_kokkos(layout);
    for_each_indices({}, layout.extents,
                     [&](auto const &at) { EXPECT_EQ(&found(at[0], at[1], at[2]), &layout(at)); });
    auto const back = umem::from_kokkos(found);
    static_assert(std::is_same_v<std::remove_const_t<decltype(back)>, View<double, 3>>);
    EXPECT_EQ(back.data, layout.data);
    EXPECT_EQ(back.extents, layout.extents);
    EXPECT_EQ(back.strides, layout.strides);
  }
  EXPECT_THROWS(umem::to_kokkos(view.reversed(1)), umem::value_error,
                "a view of Kokkos has no negative strides");
  EXPECT_EQ(umem::to_kokkos(view.slice(1, 0, 1).reversed(1)).extent(1), 1u);
  double one = 7;
  EXPECT_EQ(umem::to_kokkos(View<double, 0>(&one, {}))(), 7);
}

TEST_F(WithKokkos, loops_run_over_guards) {
  umem::Array<int, 2> array({3, 4}, umem::Host(), {{1, 2}});
  {
    auto guard = array.host(umem::discard);
    auto const all = umem::to_kokkos(guard);
    Kokkos::parallel_for(Kokkos::RangePolicy<OnCpu>(0, 3), [=](int i) {
      for (int j = 0; j < 4; j++) all(i, j) = 10 * i + j;
    });
    Kokkos::fence();
  }
  auto const guard = array.host(umem::read);
  auto const only_read = umem::to_kokkos(guard);
  static_assert(std::is_same_v<typename decltype(only_read)::value_type, int const>);
  int sum = 0;
  Kokkos::parallel_reduce(
      Kokkos::RangePolicy<OnCpu>(0, 3), [=](int i, int &part) { part += only_read(i, 3); }, sum);
  EXPECT_EQ(sum, 39);
}

TEST_F(WithKokkos, views_of_any_layout_are_views) {
  Kokkos::View<float **, Kokkos::LayoutLeft, Kokkos::HostSpace> left("left", 2, 3);
  left(1, 2) = 5;
  auto const view = umem::from_kokkos(left);
  EXPECT_EQ(view(1, 2), 5);
  EXPECT_EQ(view.strides[0], 1);
  Kokkos::View<float const *, Kokkos::HostSpace> const only_read =
      Kokkos::subview(left, Kokkos::ALL, 1);
  using Known = View<float const, 1, umem::UnitStride>;
  static_assert(std::is_same_v<decltype(umem::from_kokkos(only_read)), Known>);
}

TEST_F(WithKokkos, layouts_are_those_of_the_type_of_a_view) {
  int memory[12] = {};
  View<int, 2, umem::RowMajor> const rows(memory, {3, 4});
  auto const right = umem::to_kokkos(rows);
  auto const found = umem::to_kokkos(View<int, 2>(rows));
  auto const left = umem::to_kokkos(rows.transpose());
  static_assert(std::is_same_v<decltype(right)::array_layout, Kokkos::LayoutRight>);
  static_assert(std::is_same_v<decltype(left)::array_layout, Kokkos::LayoutLeft>);
  static_assert(std::is_same_v<decltype(found)::array_layout, Kokkos::LayoutStride>);
  EXPECT_EQ(&right(2, 1), memory + 9);
  EXPECT_EQ(&left(1, 2), memory + 9);
  auto const back = umem::from_kokkos(right);
  static_assert(
      std::is_same_v<std::remove_const_t<decltype(back)>, View<int, 2, umem::UnitStride>>);
  EXPECT_EQ(&back(2, 1), memory + 9);
}
