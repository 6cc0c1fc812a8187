/* shape.cpp - extents, and shapes of a rank known at run time. */
#include "typed.hpp"

using umem::Shape;

static constexpr umem::index_t most = std::numeric_limits<umem::index_t>::max();

TEST(Extents, hold_one_number_per_dimension) {
  Extents<3> extents{2, std::size_t(3), short(4)};
  EXPECT_EQ(extents[0], 2);
  EXPECT_EQ(extents[1], 3);
  EXPECT_EQ(extents[2], 4);
  EXPECT_EQ(extents.product(), 24);
  EXPECT_EQ(std::vector<umem::index_t>(extents.begin(), extents.end()),
            (std::vector<umem::index_t>{2, 3, 4}));
  EXPECT_EQ(extents, Extents(2, 3, 4));
  EXPECT_NE(extents, Extents(2, 3, 5));
  EXPECT_EQ(Extents<2>(), Extents(0, 0));
}

TEST(Extents, of_rank_0_are_those_of_one_element) {
  Extents<0> const none;
  EXPECT_EQ(none.product(), 1);
  EXPECT_EQ(Extents<0>(), Extents<0>{});
  EXPECT_EQ(none.begin(), none.end());
  EXPECT_EQ(umem::checked_product(Extents<0>()), 1);
}

TEST(Extents, have_strides_in_c_order) {
  EXPECT_EQ(umem::c_strides(Extents{2, 3, 4}), Extents(12, 4, 1));
  EXPECT_EQ(umem::c_strides(Extents{7}), Extents(1));
  EXPECT_EQ(umem::c_strides(Extents{2, 0, 4}), Extents(4, 4, 1));
  EXPECT_EQ(umem::c_strides(Extents<0>()), Extents<0>());
}

TEST(Extents, have_a_product_that_is_checked) {
  EXPECT_EQ(umem::checked_product(Extents{2, 3, 4}), 24);
  EXPECT_EQ(umem::checked_product(Extents{2, 0, 4}), 0);
  EXPECT_EQ(umem::checked_product(Extents{most}), most);
  EXPECT_EQ(umem::checked_product(Extents{most, 1, 1}), most);
  EXPECT_EQ(umem::checked_product(Shape{2, 3}), 6);
  EXPECT_EQ(umem::checked_product(Shape{}), 1);
  EXPECT_THROWS(umem::checked_product(Extents{2, -1}), umem::value_error,
                "an extent of (2, -1) is negative");
  EXPECT_THROWS(umem::checked_product(Extents{-1}), umem::value_error,
                "an extent of (-1,) is negative");
  EXPECT_THROW(umem::checked_product(Extents{0, -1}), umem::value_error);
  EXPECT_THROW(umem::checked_product(Extents{most / 2 + 1, 2}), umem::value_error);
  EXPECT_THROW(umem::checked_product(Extents{most, 0, 2}), umem::value_error);
  EXPECT_THROW(umem::checked_product(Extents{std::numeric_limits<std::size_t>::max()}),
               umem::value_error);
  EXPECT_THROWS(umem::checked_product(Shape{umem::index_t(1) << 32, umem::index_t(1) << 32}),
                umem::value_error, "the product of the extents (4294967296, 4294967296) overflows");
}

TEST(Shape, is_a_vector_of_indices) {
  Shape shape{3, 4};
  EXPECT_EQ(shape.size(), 2u);
  EXPECT_FALSE(shape.empty());
  shape.push_back(5);
  shape[0] = 7;
  EXPECT_EQ(shape, (Shape{7, 4, 5}));
  EXPECT_NE(shape, (Shape{7, 4}));
  EXPECT_NE(shape, (Shape{7, 4, 6}));
  EXPECT_EQ(std::vector<umem::index_t>(shape.begin(), shape.end()),
            (std::vector<umem::index_t>{7, 4, 5}));
  shape.clear();
  EXPECT_TRUE(shape.empty());
  EXPECT_EQ(shape, Shape());
}

TEST(Shape, lies_within_itself_up_to_6_dimensions) {
  Shape shape;
  auto within = [&] {
    auto *at = reinterpret_cast<char const *>(shape.data());
    auto *self = reinterpret_cast<char const *>(&shape);
    return at >= self && at < self + sizeof shape;
  };
  for (umem::index_t n = 1; n <= 6; n++) {
    shape.push_back(n);
    EXPECT_TRUE(within()) << n;
  }
  shape.push_back(7);
  EXPECT_FALSE(within());
  for (umem::index_t n = 8; n <= 100; n++) shape.push_back(n);
  for (std::size_t k = 0; k < 100; k++) EXPECT_EQ(shape[k], static_cast<umem::index_t>(k + 1));
}

TEST(Shape, is_copied_and_moved_short_and_long) {
  for (Shape const &original : {Shape{}, Shape{1, 2}, Shape{1, 2, 3, 4, 5, 6, 7, 8}}) {
    Shape copy = original;
    EXPECT_EQ(copy, original);
    Shape moved = std::move(copy);
    EXPECT_EQ(moved, original);
    EXPECT_TRUE(copy.empty()); // NOLINT(bugprone-use-after-move): what it promises
    EXPECT_EQ(copy.capacity(), Shape::inline_capacity);
    copy.push_back(9);
    EXPECT_EQ(copy, Shape{9});
    copy = original;
    EXPECT_EQ(copy, original);
    Shape const &self = copy;
    copy = self;
    EXPECT_EQ(copy, original);
    copy = Shape{4};
    swap(copy, moved);
    EXPECT_EQ(copy, original);
    EXPECT_EQ(moved, Shape{4});
  }
}

TEST(Shape, comes_from_extents_and_becomes_them) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 4, 5, 6);
    Shape shape = extents;
    EXPECT_EQ(shape.size(), static_cast<std::size_t>(N));
    EXPECT_EQ(shape.template to<N>(), extents);
    EXPECT_THROW(shape.template to<N + 1>(), umem::type_error);
  });
  EXPECT_THROWS((Shape{3, 4}.to<3>()), umem::type_error,
                "the shape (3, 4) has 2 dimensions, not 3");
}
