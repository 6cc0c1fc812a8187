/* slices.cpp - parts of views by one slice per dimension, and other extents of the same
 * elements. */
#include "typed.hpp"

#include <optional>
#include <tuple>

namespace {

using umem::full_extent;
using umem::range;

constexpr umem::index_t most = std::numeric_limits<umem::index_t>::max();

/* A view of 4 x 5 x 6 ints, each its own number in memory. */
struct Numbered {
  std::vector<int> memory = std::vector<int>(4 * 5 * 6);
  View<int, 3> view{memory.data(), {4, 5, 6}};

  Numbered() {
    for (std::size_t n = 0; n < memory.size(); n++) memory[n] = static_cast<int>(n);
  }
};

/* All elements in C order. */
template <class T, int N> std::vector<int> elements_of(View<T, N> const &view) {
  std::vector<int> values;
  for_each_indices({}, view.extents, [&](auto const &at) { values.push_back(view(at)); });
  return values;
}

/* ---- slices ---- */

TEST(Slices, that_are_integers_drop_their_dimension) {
  Numbered u;
  auto face = u.view.part(full_extent, range(1, 4), 3);
  static_assert(std::is_same_v<decltype(face), View<int, 2>>);
  EXPECT_EQ(face.extents, Extents(4, 3));
  for_each_indices({}, face.extents, [&](Extents<2> const &at) {
    EXPECT_EQ(&face(at), &u.view(at[0], at[1] + 1, 3));
  });
  auto row = u.view.part(1, std::size_t(2), range(0, umem::end));
  static_assert(std::is_same_v<decltype(row), View<int, 1>>);
  EXPECT_EQ(elements_of(row), (std::vector<int>{42, 43, 44, 45, 46, 47}));
  auto one = u.view.part(3, 4, 5);
  static_assert(std::is_same_v<decltype(one), View<int, 0>>);
  EXPECT_EQ(one(), 119);
  EXPECT_EQ(one.part()(), 119);
}

TEST(Slices, count_from_the_end_with_a_word_of_their_own) {
  Numbered u;
  EXPECT_EQ(u.view.part(umem::end - 1, umem::end - 2, umem::end - 6)(), 3 * 30 + 3 * 6);
  EXPECT_EQ(elements_of(u.view.part(0, 0, range(1, umem::end - 1))),
            (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(elements_of(u.view.part(0, 0, range(umem::end - 2, umem::end))),
            (std::vector<int>{4, 5}));
  EXPECT_EQ(elements_of(u.view.part(0, 0, range(umem::end - 1, 0, -2))),
            (std::vector<int>{5, 3, 1}));
  EXPECT_EQ(elements_of(u.view.part(0, 0, range(umem::end - 1, -1, -1))),
            (std::vector<int>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(u.view.select(2, umem::end - 1)(0, 0), 5);
  EXPECT_EQ(u.view.slice(2, umem::end - 2, umem::end).extents, Extents(4, 5, 2));
  EXPECT_THROW(u.view.select(0, umem::end), umem::index_error);
}

TEST(Slices, of_ghost_cells_have_negative_indices_or_follow_the_end) {
  std::vector<int> memory(7);
  for (int i = 0; i < 7; i++) memory[static_cast<std::size_t>(i)] = i - 2;
  auto const view = View<int, 1>::with_ghosts_from(memory.data(), {4}, {{2}, {1}});
  EXPECT_EQ(elements_of(view.part(range(-2, umem::end + 1))),
            (std::vector<int>{-2, -1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(view.part(-1)(), -1);
  EXPECT_EQ(view.part(umem::end)(), 4);
  EXPECT_EQ(elements_of(view.part(range(umem::end, -3, -3))), (std::vector<int>{4, 1, -2}));
  EXPECT_TRUE(view.part(range(-2, 5)).ghosts.is_empty()) << "they are elements now";
  EXPECT_EQ(view.part(full_extent).ghosts, view.ghosts);
  EXPECT_EQ(view.part(full_extent)(-2), -2);
  EXPECT_THROW(view.part(-3), umem::index_error);
  EXPECT_THROW(view.part(umem::end + 1), umem::index_error);
  EXPECT_THROW(view.part(range(-3, 0)), umem::index_error);
  EXPECT_THROW(view.part(range(0, umem::end + 2)), umem::index_error);
  EXPECT_THROW(view.part(range(umem::end + 1, 0, -1)), umem::index_error);
  EXPECT_THROW(view.part(range(0, -4, -1)), umem::index_error);
}

/* The slices of std::submdspan, as far as they need no header of mdspan. */
struct StridedSlice {
  std::integral_constant<int, 1> offset;
  umem::index_t extent;
  short stride;
};
TEST(Slices, are_those_of_submdspan) {
  Numbered u;
  std::integral_constant<int, 3> const three;
  auto part = u.view.part(three, std::pair{1, 3}, StridedSlice{{}, 5, 2});
  static_assert(std::is_same_v<decltype(part), View<int, 2>>);
  EXPECT_EQ(elements_of(part), (std::vector<int>{97, 99, 101, 103, 105, 107}));
  EXPECT_EQ(elements_of(u.view.part(0, 0, StridedSlice{{}, 4, 2})), (std::vector<int>{1, 3}));
  EXPECT_EQ(u.view.part(0, 0, StridedSlice{{}, 0, 2}).size(), 0);
  EXPECT_THROW(u.view.part(0, 0, StridedSlice{{}, 6, 2}), umem::index_error);
  EXPECT_THROW(u.view.part(0, 0, StridedSlice{{}, most, 1}), umem::index_error);
  EXPECT_EQ(elements_of(u.view.part(0, 0, std::pair{umem::end - 2, umem::end})),
            (std::vector<int>{4, 5}));
}

/* Each range near the limits of each small dimension, against a loop. */
TEST(Slices, hold_what_a_loop_visits_or_throw) {
  int memory[8] = {};
  int good = 0, refused = 0;
  for (umem::index_t n = 0; n <= 3; n++)
    for (umem::index_t below = 0; below <= 2; below++)
      for (umem::index_t above = 0; above <= 2; above++) {
        View<int, 1> const view(memory + below, {n}, {1}, {{below}, {above}});
        for (umem::index_t first = -4; first <= 6; first++)
          for (umem::index_t last = -4; last <= 6; last++)
            for (umem::index_t step : {-7, -3, -2, -1, 1, 2, 3, 7}) {
              std::vector<umem::index_t> expected;
              for (umem::index_t i = first; step > 0 ? i < last : i > last; i += step)
                expected.push_back(i);
              umem::index_t const end = n + above;
              bool const fits =
                  step > 0 ? first >= -below && last <= end : first < end && last >= -below - 1;
              if (!expected.empty() && !fits) {
                EXPECT_THROW(view.part(range(first, last, step)), umem::index_error);
                refused++;
                continue;
              }
              auto const part = view.part(range(first, last, step));
              ASSERT_EQ(part.extents[0], static_cast<umem::index_t>(expected.size()));
              for (umem::index_t i = 0; i < part.extents[0]; i++)
                ASSERT_EQ(&part(i), view.data + expected[static_cast<std::size_t>(i)]);
              ASSERT_EQ(elements_of(
                            view.part(range(umem::end + (first - n), umem::end + (last - n), step)))
                            .size(),
                        expected.size());
              good++;
            }
      }
  EXPECT_GT(good, 1000);
  EXPECT_GT(refused, 1000);
}

TEST(Slices, of_extreme_numbers_do_not_overflow) {
  int memory[3] = {};
  View<int, 1> const view(memory, {3});
  EXPECT_EQ(&view.part(range(1, 3, most))(0), memory + 1);
  EXPECT_EQ(view.part(range(2, -1, -most - 1)).extents, Extents(1));
  EXPECT_EQ(view.part(range(most, -most - 1)).size(), 0) << "it is empty, wherever";
  EXPECT_THROW(view.part(range(-most - 1, most)), umem::index_error);
  EXPECT_THROW(view.part(range(most, -most - 1, -1)), umem::index_error);
  EXPECT_THROW(view.part(umem::end + most), umem::index_error);
  EXPECT_THROW(view.part(umem::end - most), umem::index_error);
  EXPECT_THROW(view.part(umem::end - (-most - 1)), umem::index_error);
  EXPECT_THROW(view.part(umem::end - std::numeric_limits<std::size_t>::max()), umem::index_error);
}

TEST(Slices, say_what_they_cannot_take) {
  Numbered u;
  EXPECT_THROWS(u.view.part(0, range(1, 7, 2), 0), umem::index_error,
                "part: the range 1 to 7 with step 2 leaves the range [0, 5) of dimension 1 of the "
                "extents (4, 5, 6)");
  EXPECT_THROWS(
      u.view.part(0, 0, umem::end), umem::index_error,
      "part: index 6 is outside the range [0, 6) of dimension 2 of the extents (4, 5, 6)");
  EXPECT_THROWS(u.view.part(-1, 0, 0), umem::index_error,
                "part: index -1 is outside the range [0, 4) of dimension 0 of the extents (4, 5, "
                "6)");
  EXPECT_THROWS(u.view.part(0, range(1, umem::end, 0), 0), umem::value_error,
                "part: the step of the range 1 to 5 in dimension 1 is 0");
}

TEST(Slices, are_constants_of_the_compiler) {
  constexpr View<int, 2> none(nullptr, {4, 6});
  constexpr auto part = none.part(range(0, 2), umem::end - 1);
  static_assert(part.rank == 1);
  EXPECT_EQ(part.extents, Extents(2));
}

/* ---- other extents ---- */

/* The strides that a view of these extents of elements at these addresses in C order has, if there
 * are any. Strides of dimensions that have one index are 0. */
template <int M>
std::optional<Extents<M>> strides_for(std::vector<int *> const &elements, Extents<M> const &shape) {
  Extents<M> strides, numbers = umem::c_strides(shape);
  for (int k = 0; k < M; k++)
    if (shape[k] > 1) strides[k] = elements[static_cast<std::size_t>(numbers[k])] - elements[0];
  std::size_t n = 0;
  bool all = true;
  for_each_indices({}, shape, [&](Extents<M> const &at) {
    all = all && elements[n++] - elements[0] == umem::detail::distance(at, strides);
  });
  return all ? std::optional(strides) : std::nullopt;
}

struct Tally {
  int views = 0, refused = 0;
};

template <int N, int M>
void expect_reshaped(Tally &tally, View<int, N> const &view, Extents<M> const &shape) {
  std::vector<int *> elements;
  for_each_indices({}, view.extents, [&](auto const &at) { elements.push_back(&view(at)); });
  auto const strides = strides_for(elements, shape);
  if (!strides) {
    EXPECT_THROW(view.reshape(shape), umem::value_error);
    EXPECT_THROW(view.transpose().reshape(umem::View<int, M>(nullptr, shape).transpose().extents,
                                          umem::column_major),
                 umem::value_error);
    tally.refused++;
    return;
  }
  auto const expect = [&](View<int, M> const &reshaped) {
    ASSERT_EQ(reshaped.extents, shape);
    ASSERT_EQ(reshaped.data, view.data);
    for (int k = 0; k < M; k++) {
      if (shape[k] == 1) continue; /* its stride is never used */
      ASSERT_EQ(reshaped.strides[k], (*strides)[k]);
    }
  };
  expect(view.reshape(shape));
  expect(view.transpose()
             .reshape(View<int, M>(nullptr, shape).transpose().extents, umem::column_major)
             .transpose());
  tally.views++;
}

template <int N> void expect_all_reshaped(Tally &tally, View<int, N> const &view) {
  umem::index_t const size = view.size();
  expect_reshaped(tally, view, Extents(size));
  for (umem::index_t a = 1; a <= size; a++) {
    if (size % a) continue;
    expect_reshaped(tally, view, Extents(a, size / a));
    for (umem::index_t b = 1; b <= size / a; b++) {
      if (size / a % b) continue;
      expect_reshaped(tally, view, Extents(a, b, size / a / b));
      expect_reshaped(tally, view, Extents(a, 1, b, size / a / b));
    }
  }
}

/* Each shape of each of these views is there exactly if there are strides for it. */
TEST(Reshape, is_a_view_if_there_are_strides_for_it) {
  Numbered u;
  Tally tally;
  using Ranges = std::initializer_list<umem::IndexRange>;
  for (auto const &rows :
       Ranges{range(0, 4), range(0, 2), range(3, -1, -1), range(0, 4, 2), range(1, 2)})
    for (auto const &columns : Ranges{range(0, 5), range(0, 4), range(1, 5, 2), range(2, 3)})
      for (auto const &layers :
           Ranges{range(0, 6), range(0, 6, 2), range(5, -1, -1), range(0, 1)}) {
        auto const view = u.view.part(rows, columns, layers);
        expect_all_reshaped(tally, view);
        expect_all_reshaped(tally, view.transpose());
        expect_all_reshaped(tally, view.permute({1, 0, 2}));
      }
  View<int, 2> const repeated(u.memory.data(), {6, 4}, {0, 1});
  expect_all_reshaped(tally, repeated);
  expect_all_reshaped(tally, repeated.transpose());
  EXPECT_GT(tally.views, 1000);
  EXPECT_GT(tally.refused, 1000);
}

TEST(Reshape, of_columns_counts_in_their_order) {
  int memory[12];
  for (int i = 0; i < 12; i++) memory[i] = i;
  View<int, 2> const columns(memory, {3, 4}, umem::column_major);
  EXPECT_EQ(columns.strides, Extents(1, 3));
  auto const other = columns.reshape(Extents{2, 3, 2}, umem::column_major);
  EXPECT_EQ(other.strides, Extents(1, 2, 6));
  EXPECT_EQ(elements_of(columns.reshape(Extents{12}, umem::column_major))[5], 5);
  EXPECT_THROWS(columns.reshape(Extents{12}), umem::value_error,
                "reshape: elements with extents (3, 4) and strides (1, 3) cannot get the extents "
                "(12,) in row-major order without a copy: copy them to an array first");
  EXPECT_THROWS((View<int, 2>(memory, {3, 4}).reshape(Extents{12}, umem::column_major)),
                umem::value_error,
                "reshape: elements with extents (3, 4) and strides (4, 1) cannot get the extents "
                "(12,) in column-major order without a copy: copy them to an array first");
}

TEST(Reshape, leaves_ghost_cells_out) {
  int memory[20] = {};
  auto const view = View<int, 2>::with_ghosts_from(memory, {2, 3}, {1, 1});
  EXPECT_THROW(view.reshape(Extents{6}), umem::value_error);
  auto const rows = view.reshape(Extents{2, 1, 3});
  EXPECT_TRUE(rows.ghosts.is_empty());
  EXPECT_EQ(&rows(1, 0, 2), &view(1, 2));
  EXPECT_EQ(&view.with_ghosts().reshape(Extents{20})(19), memory + 19);
}

} // namespace
