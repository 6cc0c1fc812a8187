/* view.cpp - elements of views: order in memory, ghost cells, checked access. */
#include "typed.hpp"

/* Memory of count elements, each different. */
template <class T> std::vector<T> numbered(umem::index_t count) {
  std::vector<T> memory;
  memory.reserve(static_cast<std::size_t>(count));
  for (umem::index_t n = 0; n < count; n++) memory.push_back(element<T>(n));
  return memory;
}

template <class T> class ViewOf : public testing::Test {};
TYPED_TEST_SUITE(ViewOf, ElementTypes);

TYPED_TEST(ViewOf, elements_lie_in_c_order) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 4, 1, 5);
    auto memory = numbered<TypeParam>(extents.product());
    View<TypeParam, N> view(memory.data(), extents);

    EXPECT_EQ(view.size(), extents.product());
    EXPECT_TRUE(view.is_contiguous());
    EXPECT_FALSE(view.is_empty());
    umem::index_t n = 0;
    for_each_indices({}, extents, [&](Extents<N> const &at) {
      EXPECT_EQ(view(at), element<TypeParam>(n));
      EXPECT_EQ(&call_with(view, at), &memory[static_cast<std::size_t>(n)]);
      EXPECT_EQ(&view.at(at), &view(at));
      EXPECT_EQ(&call_with([&](auto... i) -> TypeParam & { return view.at(i...); }, at), &view(at));
      EXPECT_EQ(&view[n], &view(at));
      EXPECT_TRUE(view.contains(at));
      n++;
    });
    EXPECT_EQ(n, view.size());
  });
}

TYPED_TEST(ViewOf, ghost_cells_are_before_0_and_behind_the_last) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 1, 2, 2);
    umem::Ghosts<N> const ghosts(first_of<N>(1, 0, 2, 1, 1), first_of<N>(2, 1, 0, 1, 0));
    Extents<N> low, high, all;
    for (int k = 0; k < N; k++) {
      low[k] = -ghosts.below[k];
      high[k] = extents[k] + ghosts.above[k];
      all[k] = high[k] - low[k];
    }
    auto memory = numbered<TypeParam>(all.product());
    auto view = View<TypeParam, N>::with_ghosts_from(memory.data(), extents, ghosts);

    umem::index_t n = 0;
    for_each_indices(low, high, [&](Extents<N> const &at) {
      EXPECT_EQ(&view(at), &memory[static_cast<std::size_t>(n++)]);
      EXPECT_EQ(&call_with(view, at), &view(at));
      EXPECT_EQ(&view.at(at), &view(at));
    });
    EXPECT_EQ(n, all.product());
    EXPECT_EQ(view.size(), extents.product());

    auto every = view.with_ghosts();
    EXPECT_EQ(every.extents, all);
    EXPECT_EQ(every.ghosts, Extents<N>());
    EXPECT_EQ(&every(Extents<N>()), memory.data());
    auto again = every.with_ghosts(ghosts);
    EXPECT_EQ(again.extents, extents);
    EXPECT_EQ(again.ghosts, ghosts);
    EXPECT_EQ(again.data, view.data);
    EXPECT_TRUE(every.is_contiguous());
    EXPECT_EQ(view.interior().extents, extents);
    EXPECT_EQ(view.interior().data, view.data);

    for (int k = 0; k < N; k++) {
      Extents<N> at;
      EXPECT_TRUE(view.contains(at));
      for (umem::index_t outside : {low[k] - 1, high[k]}) {
        at[k] = outside;
        EXPECT_FALSE(view.contains(at));
        EXPECT_THROW(view.at(at), umem::index_error);
      }
      at[k] = -1;
      EXPECT_FALSE(view.interior().contains(at));
      EXPECT_THROW(view.interior().at(at), umem::index_error);
    }
  });
}

TEST(View, makes_outer_cells_ghost_cells) {
  int memory[6] = {0, 1, 2, 3, 4, 5};
  View<int, 1> view(memory, {6});
  auto ghosted = view.with_ghosts({{2}, {1}});
  EXPECT_EQ(ghosted.extents, Extents<1>(3));
  EXPECT_EQ(ghosted.low(0), -2);
  EXPECT_EQ(ghosted.high(0), 4);
  EXPECT_EQ(ghosted(-2), 0);
  EXPECT_EQ(ghosted(3), 5);
  auto fewer = ghosted.with_ghosts(1);
  EXPECT_EQ(fewer.extents, Extents<1>(4));
  EXPECT_EQ(fewer(-1), 0);
  auto backwards = ghosted.reversed(0);
  EXPECT_EQ(backwards.ghosts, umem::Ghosts<1>(1, 2));
  EXPECT_EQ(backwards(-1), 5);
  EXPECT_EQ(backwards(4), 0);
  EXPECT_EQ(view.with_ghosts({{6}, {0}}).size(), 0);
  EXPECT_EQ(view.with_ghosts({{6}, {0}})(-6), 0);
  EXPECT_THROWS(view.with_ghosts({{4}, {3}}), umem::value_error,
                "4 and 3 ghost cells are more than the 6 cells of dimension 0");
  EXPECT_THROWS(view.with_ghosts({{0}, {-1}}), umem::value_error,
                "a number of ghost cells, -1, is negative");
}

TYPED_TEST(ViewOf, elements_are_written_through_it) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(3, 2, 2, 1, 2);
    std::vector<TypeParam> memory(static_cast<std::size_t>(extents.product()));
    View<TypeParam, N> const view(memory.data(), extents);
    umem::index_t n = 0;
    for_each_indices({}, extents,
                     [&](Extents<N> const &at) { view(at) = element<TypeParam>(n++); });
    EXPECT_EQ(memory, numbered<TypeParam>(extents.product()));
  });
}

TYPED_TEST(ViewOf, read_only_view_sees_the_same_elements) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 2, 1, 3, 2), ghosts = first_of<N>(1, 1, 1, 1, 1);
    auto memory = numbered<TypeParam>(7000);
    auto view = View<TypeParam, N>::with_ghosts_from(memory.data(), extents, ghosts);
    View<TypeParam const, N> reader = view;
    EXPECT_EQ(reader.data, view.data);
    EXPECT_EQ(reader.extents, view.extents);
    EXPECT_EQ(reader.strides, view.strides);
    EXPECT_EQ(reader.ghosts, view.ghosts);
  });
}

TEST(View, takes_indices_of_any_integer_type) {
  std::vector<int> memory{0, 1, 2, 3, 4, 5};
  View<int, 2> view(memory.data(), {std::size_t(2), 3});
  EXPECT_EQ(view(1u, std::int8_t(2)), 5);
  EXPECT_EQ(view.at(std::size_t(1), 0L), 3);
  auto ghosted = View<int, 1>::with_ghosts_from(memory.data(), {4}, {1});
  EXPECT_EQ(ghosted(std::int8_t(-1)), 0);
}

TEST(View, checked_access_names_index_dimension_and_range) {
  int memory[24] = {};
  View<int, 2> view(memory, {3, 4});
  EXPECT_THROWS(view.at(3, 0), umem::index_error,
                "index 3 is outside the range [0, 3) of dimension 0");
  EXPECT_THROWS(view.at(0, -1), umem::index_error,
                "index -1 is outside the range [0, 4) of dimension 1");
  auto ghosted = View<int, 2>::with_ghosts_from(memory, {2, 3}, {0, 2});
  EXPECT_THROWS(ghosted.at(0, 5), umem::index_error,
                "index 5 is outside the range [-2, 5) of dimension 1");
  EXPECT_THROWS((View<int, 2>().at(0, 0)), umem::value_error, "an element of an empty view");
  EXPECT_THROWS((View<int, 0>().at()), umem::value_error, "an element of an empty view");
}

TEST(View, without_elements_is_empty) {
  int memory[1];
  EXPECT_TRUE((View<int, 2>().is_empty()));
  EXPECT_TRUE((View<int, 0>().is_empty()));
  EXPECT_FALSE((View<int, 0>(memory, {}).is_empty()));
  View<int, 3> none(memory, {2, 0, 3});
  EXPECT_TRUE(none.is_empty());
  EXPECT_EQ(none.size(), 0);
  EXPECT_TRUE(none.is_contiguous());
  EXPECT_TRUE(none.fits_32_bits());
  EXPECT_THROW(none.at(0, 0, 0), umem::index_error);
  auto ghosted = View<int, 2>::with_ghosts_from(nullptr, {2, 3}, {1, 1});
  EXPECT_EQ(ghosted.data, nullptr);
  EXPECT_TRUE(ghosted.with_ghosts().is_empty());
}

TEST(View, knows_whether_it_is_contiguous) {
  int memory[60] = {};
  EXPECT_TRUE((View<int, 2>(memory, {3, 4}, {4, 1}).is_contiguous()));
  EXPECT_FALSE((View<int, 2>(memory, {3, 4}, {5, 1}).is_contiguous()));
  EXPECT_FALSE((View<int, 2>(memory, {3, 4}, {1, 3}).is_contiguous()));
  EXPECT_TRUE((View<int, 2>(memory, {1, 4}, {77, 1}).is_contiguous()));
  EXPECT_TRUE((View<int, 2>(memory, {4, 1}, {1, 77}).is_contiguous()));
  EXPECT_FALSE((View<int, 1>(memory + 4, {4}, {-1}).is_contiguous()));
  EXPECT_TRUE((View<int, 2>::with_ghosts_from(memory, {3, 4}, {1, 0}).is_contiguous()));
  EXPECT_FALSE((View<int, 2>::with_ghosts_from(memory, {3, 4}, {0, 1}).is_contiguous()));
}

TEST(View, knows_whether_its_offsets_fit_32_bits) {
  umem::index_t const most = 2147483647;
  char cell;
  EXPECT_TRUE((View<char, 0>(&cell, {}).fits_32_bits()));
  EXPECT_TRUE((View<char, 1>(&cell, {most}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {most + 1}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {4}, {most}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {4}, {-most}).fits_32_bits()));
  EXPECT_TRUE((View<char, 2>(&cell, {30000, 30000}).fits_32_bits()));
  EXPECT_FALSE((View<char, 2>(&cell, {70000, 70000}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {most}, {1}, {1}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {most + 1}, {0}).fits_32_bits()));
  EXPECT_TRUE((View<char, 1>(&cell, {1}, {4 * most}).fits_32_bits())); /* no step is taken */
  EXPECT_FALSE((View<char, 1>(&cell, {1}, {4 * most}, {1}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {0}, {4 * most}, {1}).fits_32_bits()));
  EXPECT_TRUE((View<char, 1>(&cell, {2}, {most}).fits_32_bits()));
  EXPECT_FALSE((View<char, 1>(&cell, {2}, {most + 1}).fits_32_bits()));
  EXPECT_FALSE((View<char, 2>(&cell, {2, 2}, {most, 1}).fits_32_bits()));
}
