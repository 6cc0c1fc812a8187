/* with_xtensor.cpp - views and guards as tensors of xtensor, and back. */
#include "typed.hpp"

#include <umem/with/xtensor.hpp>

#if __has_include(<xtensor/xview.hpp>)
#include <xtensor/xview.hpp>
#else
#include <xtensor/views/xview.hpp>
#endif

TEST(WithXtensor, tensors_have_the_elements_of_views_of_any_strides) {
  std::vector<double> memory(300);
  auto const view = View<double, 3>::with_ghosts_from(memory.data(), {3, 4, 2}, {1, 1, 0});
  for (auto const &layout :
       {view, view.with_ghosts(), view.transpose(), view.reversed(0), view.reversed(1).transpose(),
        view.slice(1, 0, 4, 2), view.slice(0, 1, 1), view.slice(0, 1, 2).reversed(2)}) {
    double next = 1;
    for (double &x : memory) x = next++;
    std::vector<double> expected = memory;
    auto tensor = umem::to_xtensor(layout);
    for_each_indices({}, layout.extents, [&](auto const &at) {
      EXPECT_EQ(&tensor(at[0], at[1], at[2]), &layout(at));
      expected[static_cast<std::size_t>(&layout(at) - memory.data())] = 2 * layout(at) + 1;
    });
    auto const back = umem::from_xtensor(tensor);
    static_assert(std::is_same_v<std::remove_const_t<decltype(back)>, View<double, 3>>);
    EXPECT_EQ(back.extents, layout.extents);
    if (layout.size() > 0) {
      EXPECT_EQ(&back(0, 0, 0), &layout(0, 0, 0));
    }
    auto moved = std::move(tensor);
    moved = 2 * moved + 1; /* writes these elements and no others */
    EXPECT_EQ(memory, expected);
  }
}

TEST(WithXtensor, tensors_and_their_parts_are_views) {
  xt::xtensor<double, 2> tensor = {{1, 2, 3}, {4, 5, 6}};
  auto view = umem::from_xtensor(tensor);
  static_assert(std::is_same_v<decltype(view), View<double, 2>>);
  EXPECT_EQ(&view(1, 2), &tensor(1, 2));
  auto part = xt::view(tensor, xt::all(), xt::range(1, 3));
  EXPECT_EQ(&umem::from_xtensor(part)(1, 0), &tensor(1, 1));
  xt::xarray<float> array = {{1, 2}, {3, 4}};
  EXPECT_EQ(&umem::from_xtensor<2>(array)(1, 0), &array(1, 0));
  EXPECT_THROWS(umem::from_xtensor<3>(array), umem::value_error,
                "from_xtensor: an array of rank 2 is no view of rank 3");
  xt::xarray<float> const &only_read = array;
  static_assert(std::is_same_v<decltype(umem::from_xtensor<2>(only_read)), View<float const, 2>>);
}

TEST(WithXtensor, guards_of_the_cpu_are_tensors) {
  umem::Array<double, 2> array({2, 2}, umem::Host(), {{1, 1}});
  {
    auto guard = array.host(umem::discard);
    umem::to_xtensor(guard) = xt::xtensor<double, 2>{{1, 2}, {3, 4}};
  }
  auto const guard = array.host(umem::read);
  auto const tensor = umem::to_xtensor(guard);
  EXPECT_EQ(xt::sum(tensor * tensor)(), 30);
  xt::xtensor<double, 1> const columns = xt::sum(tensor, {0});
  EXPECT_EQ(columns(1), 6);
}
