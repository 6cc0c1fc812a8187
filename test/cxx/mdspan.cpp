/* mdspan.cpp - views as mdspan, where there is one. */
#include "typed.hpp"

#include <umem/mdspan.hpp>

#if UMEM_HAS_MDSPAN

/* Files that choose another mdspan call another function. */
#if defined(__cpp_lib_mdspan) && !defined(__CUDACC__)
namespace chosen = umem::with_std_mdspan;
#else
namespace chosen = umem::with_cuda_mdspan;
#endif
static_assert(&umem::to_mdspan<int, 1> == &chosen::to_mdspan<int, 1>);
static_assert(std::is_same_v<umem::mdspan<int, 1>, chosen::mdspan<int, 1>>);

template <class T> class MdspanOf : public testing::Test {};
TYPED_TEST_SUITE(MdspanOf, ElementTypes);

TYPED_TEST(MdspanOf, is_the_interior_of_the_view) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 1, 2, 2), ghosts = first_of<N>(1, 0, 2, 1, 1);
    std::vector<TypeParam> memory(7000);
    auto const view = View<TypeParam, N>::with_ghosts_from(memory.data(), extents, ghosts);
    auto span = umem::to_mdspan(view);
    static_assert(decltype(span)::rank() == N);
    for_each_indices({}, extents, [&](Extents<N> const &at) {
      auto offset = call_with([&](auto... i) { return span.mapping()(i...); }, at);
      EXPECT_EQ(span.data_handle() + offset, &view(at));
    });
    auto const back = umem::from_mdspan(span);
    static_assert(std::is_same_v<std::remove_const_t<decltype(back)>, View<TypeParam, N>>);
    EXPECT_EQ(back.data, view.data);
    EXPECT_EQ(back.extents, view.extents);
    EXPECT_EQ(back.strides, view.strides);
    for (int k = 0; k < N; k++) {
      EXPECT_EQ(span.extent(static_cast<std::size_t>(k)), extents[k]);
      EXPECT_THROW(umem::to_mdspan(view.reversed(k)), umem::value_error);
    }
  });
}

#if defined(__cpp_lib_mdspan) && !defined(__CUDACC__)
namespace library = std;
#else
namespace library = cuda::std;
#endif

TEST(Mdspan, of_other_layouts_is_a_view) {
  int memory[12] = {};
  library::mdspan<int const, library::extents<int, 3, library::dynamic_extent>,
                  library::layout_left> const left(memory, 4);
  auto const view = umem::from_mdspan(left);
  using Known = View<int const, 2, umem::ColumnMajor>;
  static_assert(std::is_same_v<std::remove_const_t<decltype(view)>, Known>);
  EXPECT_EQ(view.extents, (Extents<2>{3, 4}));
  EXPECT_EQ(view.strides, (Extents<2>{1, 3}));
  EXPECT_EQ(&view(2, 3), memory + 11);
}

TEST(Mdspan, has_the_layout_of_the_type_of_a_view) {
  using umem::dynamic;
  int memory[12] = {};
  View<int, 2, umem::RowMajor> const rows(memory, {3, 4});
  View<int, 2, umem::FixedExtents<dynamic, 4>> const fixed = rows;
  auto const right = umem::to_mdspan(rows);
  static_assert(std::is_same_v<decltype(right)::layout_type, library::layout_right>);
  static_assert(std::is_same_v<decltype(umem::to_mdspan(rows.transpose()))::layout_type,
                               library::layout_left>);
  auto const known = umem::to_mdspan(fixed);
  static_assert(decltype(known)::static_extent(1) == 4);
  EXPECT_EQ(known.mapping()(2, 3), 11);
  static_assert(std::is_same_v<decltype(umem::from_mdspan(right)), View<int, 2, umem::RowMajor>>);
  static_assert(std::is_same_v<decltype(umem::from_mdspan(known)),
                               View<int, 2, umem::FixedExtents<dynamic, 4>>>);
  EXPECT_EQ(&umem::from_mdspan(known)(2, 3), memory + 11);
}

TEST(Mdspan, has_the_layout_of_its_order) {
  int memory[12] = {};
  View<int, 2> const columns(memory, {3, 4}, umem::column_major), rows(memory, {3, 4});
  auto const left = umem::to_mdspan<library::layout_left>(columns);
  static_assert(std::is_same_v<decltype(left)::layout_type, library::layout_left>);
  EXPECT_EQ(left.mapping()(2, 3), 11);
  EXPECT_EQ(left.mapping()(1, 0), 1);
  EXPECT_EQ(left.extent(1), 4);
  EXPECT_EQ(umem::from_mdspan(left).strides, columns.strides);
  EXPECT_EQ(umem::to_mdspan<library::layout_right>(rows).mapping()(1, 0), 4);
  EXPECT_THROWS(umem::to_mdspan<library::layout_left>(rows), umem::value_error,
                "to_mdspan: the elements are not in column-major order without gaps, as "
                "layout_left is");
  EXPECT_THROWS(umem::to_mdspan<library::layout_right>(columns), umem::value_error,
                "to_mdspan: the elements are not in row-major order without gaps, as layout_right "
                "is");
}

#if defined(__cpp_lib_submdspan) || __has_include(<cuda/std/__mdspan/submdspan_helper.h>)
TEST(Mdspan, has_slices_that_are_those_of_views) {
  int memory[12] = {};
  View<int, 2> const view(memory, {3, 4});
  auto const part = view.part(library::full_extent, library::strided_slice<int, int, int>{0, 4, 3});
  EXPECT_EQ(part.extents, Extents(3, 2));
  EXPECT_EQ(&part(2, 1), &view(2, 3));
}
#endif

TEST(Mdspan, refuses_other_than_positive_strides) {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  char const *complaint = "an mdspan has only positive strides";
  EXPECT_THROWS(umem::to_mdspan(view.reversed(1)), umem::value_error, complaint);
  EXPECT_THROWS(umem::to_mdspan(View<int, 1>(memory, {3}, {0})), umem::value_error, complaint);
  EXPECT_EQ(umem::to_mdspan(view.reversed(1).reversed(1)).data_handle(), memory);
}

#else

TEST(Mdspan, is_not_here) { GTEST_SKIP() << "neither <mdspan> nor <cuda/std/mdspan>"; }

#endif
