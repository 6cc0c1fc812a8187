/* dynamic_view.cpp - views of a rank known at run time. */
#include "typed.hpp"

using umem::DynamicView;
using umem::Shape;

template <class T> class DynamicViewOf : public testing::Test {};
TYPED_TEST_SUITE(DynamicViewOf, ElementTypes);

TYPED_TEST(DynamicViewOf, is_the_view_that_it_comes_from) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 1, 2, 2), ghosts = first_of<N>(1, 0, 2, 1, 1);
    std::vector<TypeParam> memory(7000);
    auto const view = View<TypeParam, N>::with_ghosts_from(memory.data(), extents, ghosts);
    DynamicView<TypeParam> dynamic = view;
    EXPECT_EQ(dynamic.rank(), N);
    EXPECT_EQ(dynamic.shape(), Shape(extents));
    EXPECT_EQ(dynamic.size(), view.size());
    for (int k = 0; k < N; k++) {
      EXPECT_EQ(dynamic.extent(k), view.extent(k));
      EXPECT_EQ(dynamic.stride(k), view.stride(k));
      EXPECT_EQ(dynamic.low(k), view.low(k));
      EXPECT_EQ(dynamic.high(k), view.high(k));
    }
    Extents<N> low, high;
    for (int k = 0; k < N; k++) {
      low[k] = -ghosts[k];
      high[k] = extents[k] + ghosts[k];
    }
    for_each_indices(low, high,
                     [&](Extents<N> const &at) { EXPECT_EQ(&dynamic.at(at), &view(at)); });
    for (int k = 0; k < N; k++) {
      Extents<N> at;
      at[k] = high[k];
      EXPECT_THROW(dynamic.at(at), umem::index_error);
      at[k] = low[k] - 1;
      EXPECT_THROW(dynamic.at(at), umem::index_error);
    }

    auto back = dynamic.template to<N>();
    EXPECT_EQ(back.data, view.data);
    EXPECT_EQ(back.extents, view.extents);
    EXPECT_EQ(back.strides, view.strides);
    EXPECT_EQ(back.ghosts, view.ghosts);
    EXPECT_THROW(dynamic.template to<N + 1>(), umem::type_error);
    DynamicView<TypeParam const> reader = view;
    EXPECT_EQ(reader.data, view.data);
  });
}

TEST(DynamicView, takes_a_shape) {
  int memory[24] = {};
  DynamicView<int> view(memory, Shape{2, 3, 4});
  EXPECT_EQ(&view.at({1, 2, 3}), memory + 23);
  DynamicView<int> fortran(memory, {2, 3}, {1, 2});
  EXPECT_EQ(&fortran.at({1, 2}), memory + 5);
  DynamicView<int> scalar(memory, Shape{});
  EXPECT_EQ(scalar.size(), 1);
  EXPECT_EQ(&scalar.at(Shape{}), memory);
  EXPECT_TRUE(DynamicView<int>().is_empty());
  EXPECT_FALSE(scalar.is_empty());
}

TEST(DynamicView, refuses_what_is_not_there) {
  int memory[24] = {};
  DynamicView<int> view(memory, {2, 3});
  EXPECT_THROWS(view.at({1}), umem::index_error, "1 indices for a view of rank 2");
  EXPECT_THROWS(view.at({1, 3}), umem::index_error,
                "index 3 is outside the range [0, 3) of dimension 1");
  EXPECT_THROWS(DynamicView<int>().at(Shape{}), umem::value_error, "an element of an empty view");
  EXPECT_THROWS(view.to<3>(), umem::type_error, "a view of rank 2 is none of rank 3");
  EXPECT_THROWS((DynamicView<int>(memory, {2, -3})), umem::value_error,
                "an extent of (2, -3) is negative");
  EXPECT_THROWS((DynamicView<int>(memory, {2, 3}, {1})), umem::value_error,
                "the shape (2, 3) and the strides (1,) are not of one rank");
  EXPECT_THROWS((DynamicView<int>(memory, {1, 1, 1, 1, 1, 1, 1, 1, 1})), umem::value_error,
                "the shape (1, 1, 1, 1, 1, 1, 1, 1, 1) has more than 8 dimensions");
}
