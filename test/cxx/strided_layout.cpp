/* strided_layout.cpp - View and Part do the same: each operation, with each argument near its
 * limits, gives the same extents, strides, ghost cells and elements of both, or the same
 * exception. */
#include "tests.hpp"

namespace {

using umem::index_t;
using umem::Part;

/* What copies of an array's elements hold, as Part copies them and as View shows them. */
template <int N> std::vector<int> elements_of(Part<int, N> const &part) {
  std::vector<int> values(static_cast<std::size_t>(part.size()));
  umem::copy(part, umem::part(View<int, N>(values.data(), part.extents())));
  return values;
}

template <class T, int N> std::vector<int> elements_of(View<T, N> const &view) {
  std::vector<int> values;
  umem::for_indexer(view.extents, [&](auto indexer) {
    for (index_t n = 0; n < indexer.size(); n++)
      values.push_back(view(indexer.indices(static_cast<typename decltype(indexer)::integer>(n))));
  });
  return values;
}

struct Tally {
  int good = 0, refused = 0;
};

/* operation(view) and operation(part). Calls next(view, part) with the results. */
template <class T, int N, class Operation, class Next>
void compare(Tally &tally, View<T, N> const &view, Part<int, N> const &part,
             Operation const &operation, Next const &next) {
  std::string of_view = thrown_by([&] { operation(view); });
  std::string of_part = thrown_by([&] { operation(part); });
  ASSERT_EQ(of_view, of_part);
  if (!of_view.empty()) {
    tally.refused++;
    return;
  }
  auto to_view = operation(view);
  auto to_part = operation(part);
  ASSERT_EQ(to_view.extents, to_part.extents());
  ASSERT_EQ(to_view.strides, to_part.strides());
  ASSERT_EQ(to_view.ghosts, to_part.ghosts());
  ASSERT_EQ(elements_of(to_view), elements_of(to_part));
  tally.good++;
  next(to_view, to_part);
}

/* All operations on both, and those on the results, `depth` deep. */
template <class T, int N>
void compare_all(Tally &tally, View<T, N> const &view, Part<int, N> const &part, int depth) {
  auto next = [&](auto const &v, auto const &p) {
    if (depth > 1 && !testing::Test::HasFatalFailure()) compare_all(tally, v, p, depth - 1);
  };
  auto each = [&](auto const &operation) { compare(tally, view, part, operation, next); };
  each([](auto const &v) { return v.interior(); });
  each([](auto const &v) { return v.with_ghosts(); });
  umem::Ghosts<N> wanted;
  for (int k = 0; k < N; k++) wanted.above[k] = 1 + k;
  each([=](auto const &v) { return v.with_ghosts(wanted); });
  each([](auto const &v) { return v.transpose(); });
  for (int k = -1; k <= N; k++) {
    each([=](auto const &v) { return v.reversed(k); });
    for (index_t begin : {-3, -2, 0, 1, 3})
      for (index_t end : {-2, 0, 2, 3, 5, 6})
        for (index_t step : {0, 1, 2, 7})
          each([=](auto const &v) { return v.slice(k, begin, end, step); });
    if constexpr (N > 0)
      for (index_t i : {-3, -1, 0, 2, 4, 6}) each([=](auto const &v) { return v.select(k, i); });
  }
  if constexpr (N == 2) {
    using umem::range;
    umem::IndexRange const ranges[] = {range(0, 2), range(-1, umem::end),
                                       range(umem::end - 1, -1, -2)};
    for (auto const &rows : ranges)
      for (index_t i : {-2, 0, 5}) {
        each([=](auto const &v) { return v.part(rows, i); });
        each([=](auto const &v) { return v.part(umem::end - i, rows); });
        each([=](auto const &v) { return v.part(rows, umem::full_extent); });
      }
    for (umem::Order order : {umem::row_major, umem::column_major})
      for (Extents<1> const &shape : {Extents<1>{6}, {12}})
        each([=](auto const &v) { return v.reshape(shape, order); });
  }
  if constexpr (N == 2)
    for (Extents<2> order : {Extents<2>{0, 1}, {1, 0}, {0, 0}, {1, 2}, {-1, 0}})
      each([=](auto const &v) { return v.permute(order); });
}

TEST(StridedLayout, IsTheSameForViewAndPart) {
  umem::ArrayOptions<2> options{{{1, 2}, {2, 1}}};
  umem::Array<int, 2> array({3, 4}, umem::Host(), options);
  {
    auto guard = array.host(umem::write);
    View<int, 2> all = View<int, 2>(*guard).with_ghosts();
    for (index_t n = 0; n < all.size(); n++) all[n] = static_cast<int>(n) + 1;
  }
  auto guard = array.host(umem::read);
  View<int const, 2> view = *guard;
  Tally tally;
  compare_all(tally, view, array.part(), 2);
  EXPECT_GT(tally.good, 1000);
  EXPECT_GT(tally.refused, 1000);
}

} // namespace
