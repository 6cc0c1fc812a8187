/* view_parts.cpp - slices, selections, permutations, reversals and other shapes of views: which
 * element of the view each index of the result means. */
#include "typed.hpp"

/* A view of 0 ghost cells in even dimensions and 2 in odd ones, on memory of its own. */
template <class T, int N> struct Subject {
  std::vector<T> memory = std::vector<T>(40000);
  View<T, N> view = View<T, N>::with_ghosts_from(memory.data(), first_of<N>(4, 3, 5, 2, 3),
                                                 first_of<N>(0, 2, 0, 2, 0));
};

/* That each index of part, ghost cells too, is the element of view that source(index) names. */
template <class T, int M, int N, class Source>
void expect_same(View<T, M> const &part, View<T, N> const &view, Source const &source) {
  Extents<M> low, high;
  for (int k = 0; k < M; k++) {
    low[k] = part.low(k);
    high[k] = part.high(k);
  }
  for_each_indices(low, high,
                   [&](Extents<M> const &at) { EXPECT_EQ(&part(at), &view.at(source(at))); });
}

template <class T> class PartsOf : public testing::Test {};
TYPED_TEST_SUITE(PartsOf, ElementTypes);

TYPED_TEST(PartsOf, slice) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    Subject<TypeParam, N> subject;
    auto const &view = subject.view;
    for (int k = 0; k < N; k++) {
      umem::index_t const low = view.low(k), high = view.high(k);
      for (umem::index_t begin = low; begin <= high; begin++)
        for (umem::index_t end = begin; end <= high; end++)
          for (umem::index_t step = 1; step <= 3; step++) {
            auto part = view.slice(k, begin, end, step);
            umem::index_t count = 0;
            for (umem::index_t i = begin; i < end; i += step) count++;
            EXPECT_EQ(part.extent(k), count);
            EXPECT_EQ(part.low(k), 0);
            EXPECT_EQ(part.high(k), part.extent(k));
            if (count == 0) continue;
            Extents<N> first, last; /* all of them takes long */
            last[k] = count - 1;
            Extents<N> source = first;
            source[k] = begin;
            EXPECT_EQ(&part(first), &view.at(source));
            source[k] = begin + (count - 1) * step;
            EXPECT_EQ(&part(last), &view.at(source));
          }
      expect_same(view.slice(k, 1, 2), view, [&](Extents<N> at) {
        at[k] += 1;
        return at;
      });
    }
  });
}

TYPED_TEST(PartsOf, select) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    if constexpr (N > 0) {
      Subject<TypeParam, N> subject;
      auto const &view = subject.view;
      for (int k = 0; k < N; k++)
        for (umem::index_t i = view.low(k); i < view.high(k); i++)
          expect_same(view.select(k, i), view, [&](Extents<N - 1> const &at) {
            Extents<N> source;
            for (int j = 0, from = 0; j < N; j++) source[j] = j == k ? i : at[from++];
            return source;
          });
    }
  });
}

TYPED_TEST(PartsOf, reversed) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    Subject<TypeParam, N> subject;
    auto const &view = subject.view;
    for (int k = 0; k < N; k++) {
      expect_same(view.reversed(k), view, [&](Extents<N> at) {
        at[k] = view.extent(k) - 1 - at[k];
        return at;
      });
      EXPECT_EQ(view.reversed(k).reversed(k).data, view.data);
    }
  });
}

TYPED_TEST(PartsOf, transpose_and_permute) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    Subject<TypeParam, N> subject;
    auto const &view = subject.view;
    expect_same(view.transpose(), view, [&](Extents<N> const &at) {
      Extents<N> source;
      for (int k = 0; k < N; k++) source[N - 1 - k] = at[k];
      return source;
    });

    Extents<N> turned; /* 1, 2, ..., 0 */
    for (int k = 0; k < N; k++) turned[k] = k + 1 < N ? k + 1 : 0;
    auto part = view.permute(turned);
    for (int k = 0; k < N; k++)
      EXPECT_EQ(part.extent(k), view.extents[static_cast<int>(turned[k])]);
    expect_same(part, view, [&](Extents<N> const &at) {
      Extents<N> source;
      for (int k = 0; k < N; k++) source[static_cast<int>(turned[k])] = at[k];
      return source;
    });
  });
}

TYPED_TEST(PartsOf, reshape) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    std::vector<TypeParam> memory(360);
    View<TypeParam, N> view(memory.data(), first_of<N>(4, 3, 5, 2, 3));
    auto flat = view.reshape(Extents<1>{view.size()});
    EXPECT_EQ(flat.data, view.data);
    EXPECT_EQ(flat.extent(0), view.size());
    EXPECT_EQ(flat.stride(0), 1);
    auto back = flat.reshape(view.extents);
    EXPECT_EQ(back.extents, view.extents);
    EXPECT_EQ(back.strides, view.strides);
    EXPECT_THROW(view.reshape(Extents<1>{view.size() + 1}), umem::value_error);
  });
}

TEST(Parts, unit_stride_is_the_same_view) {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  EXPECT_EQ(view.unit_stride().strides, view.strides);
  EXPECT_EQ(&view.unit_stride()(2, 3), &view(2, 3));
  EXPECT_THROWS(view.transpose().unit_stride(), umem::value_error,
                "the stride of the last dimension is not 1");
  View<int, 2> column(memory, {3, 1}, {4, 4});
  EXPECT_EQ(&column.unit_stride()(2, 0), &column(2, 0));
  View<int, 0> scalar(memory, {});
  EXPECT_EQ(&scalar.unit_stride()(), memory);
}

TEST(Parts, refuse_what_is_not_there) {
  int memory[60] = {};
  View<int, 2> view(memory, {3, 4});
  EXPECT_THROWS(view.slice(0, 0, 4), umem::index_error,
                "the slice [0, 4) is outside the range [0, 3) of dimension 0");
  EXPECT_THROWS(view.slice(1, 3, 2), umem::index_error,
                "the slice [3, 2) is outside the range [0, 4) of dimension 1");
  EXPECT_THROWS(view.slice(1, -1, 2), umem::index_error,
                "the slice [-1, 2) is outside the range [0, 4) of dimension 1");
  EXPECT_THROWS(view.slice(1, 0, 2, 0), umem::value_error, "the step 0 of a slice is not positive");
  EXPECT_THROWS(view.slice(2, 0, 1), umem::index_error,
                "there is no dimension 2 in a view of rank 2");
  EXPECT_THROWS(view.select(0, 3), umem::index_error,
                "index 3 is outside the range [0, 3) of dimension 0");
  EXPECT_THROWS(view.select(-1, 0), umem::index_error,
                "there is no dimension -1 in a view of rank 2");
  EXPECT_THROWS(view.reversed(2), umem::index_error, "there is no dimension 2 in a view of rank 2");
  char const *no_order = "the order of dimensions is no permutation of 0, 1, ...";
  EXPECT_THROWS(view.permute({0, 0}), umem::value_error, no_order);
  EXPECT_THROWS(view.permute({0, 2}), umem::value_error, no_order);
  EXPECT_THROWS(view.permute({-1, 0}), umem::value_error, no_order);
  EXPECT_THROWS(view.transpose().reshape(Extents{12}), umem::value_error,
                "reshape: elements with extents (4, 3) and strides (1, 4) cannot get the extents "
                "(12,) in row-major order without a copy: copy them to an array first");
  EXPECT_THROWS(view.reshape(Extents{3, 5}), umem::value_error,
                "reshape: the extents (3, 4) and (3, 5) have different numbers of elements");
  EXPECT_THROWS(view.reshape(Extents{-3, -4}), umem::value_error,
                "reshape: the extents (3, 4) and (-3, -4) have different numbers of elements");
  umem::index_t const huge = umem::index_t(1) << 62;
  EXPECT_THROW(view.reshape(Extents{huge, 4, 12}), umem::value_error);
  EXPECT_THROW(view.reshape(Extents{huge + 3, 4}), umem::value_error); /* 12 modulo 2^64 */
  EXPECT_THROW((View<int, 1>(memory, {0}).reshape(Extents{-1, 0})), umem::value_error);
}

TEST(Parts, empty_views_have_empty_parts) {
  View<int, 2> none(nullptr, {0, 4});
  EXPECT_TRUE(none.slice(1, 1, 3).is_empty());
  EXPECT_TRUE(none.reversed(1).reversed(0).is_empty());
  EXPECT_TRUE(none.select(1, 3).is_empty());
  EXPECT_TRUE(none.transpose().is_empty());
  EXPECT_TRUE(none.reshape(Extents{7, 0}).is_empty());
}

TEST(Parts, slices_take_any_step) {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  auto part = view.slice(0, 1, 3, std::numeric_limits<umem::index_t>::max());
  EXPECT_EQ(part.extents, Extents(1, 4));
  EXPECT_EQ(&part(0, 0), &view(1, 0));
}

TEST(Parts, ghost_cells_are_there_without_elements) {
  int cells[2] = {};
  for (umem::Ghosts<1> const &ghosts : {umem::Ghosts<1>({2}, {0}), umem::Ghosts<1>({0}, {2})}) {
    auto none = View<int, 1>::with_ghosts_from(cells, {0}, ghosts);
    auto backwards = none.reversed(0);
    EXPECT_EQ(backwards.low(0), -none.ghosts.above[0]);
    EXPECT_EQ(&backwards(backwards.low(0)), cells + 1);
    EXPECT_EQ(&backwards.with_ghosts()(1), cells);
    EXPECT_EQ(backwards.reversed(0).data, none.data);
  }
  int memory[4] = {};
  auto view = View<int, 1>::with_ghosts_from(memory, {0}, {2});
  EXPECT_EQ(&view(-2), memory);
  EXPECT_EQ(&view.reversed(0)(-2), memory + 3);
  EXPECT_EQ(&view.reversed(0)(1), memory);
  EXPECT_EQ(&view.slice(0, 1, 2)(0), memory + 3);
  EXPECT_EQ(view.with_ghosts().size(), 4);
}
