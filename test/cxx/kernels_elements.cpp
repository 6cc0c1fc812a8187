/* kernels_elements.cpp - for_each, transform, fill, iota and convert on the host, against plain
 * loops. */
#include "kernels.hpp"
#include "kernels_functors.hpp"

#include <umem/sweep.hpp>

namespace {

using umem::index_t; /* here, since POSIX has a function of that name */

template <class T> class Elements : public testing::Test {};
TYPED_TEST_SUITE(Elements, NumberTypes);

/* Does one thing with umem and the same plainly on a copy; all memory must come out equal, what no
 * view shows too. */
template <class T, class Umem, class Plain>
void expect_same(Umem const &do_umem, Plain const &plain) {
  with_everything<T>([&](auto place, auto view, std::vector<T> &memory) {
    std::vector<T> expected = memory;
    plainly(like(view, memory, expected), plain);
    do_umem(place, view);
    EXPECT_EQ(memory, expected);
  });
}

TYPED_TEST(Elements, ForEach) {
  using T = TypeParam;
  expect_same<T>(
      [](auto place, auto view) {
        umem::for_each(place, view, [](T &x) { x = static_cast<T>(x * 2 + 1); });
      },
      [](T &x, auto const &) { x = static_cast<T>(x * 2 + 1); });
}

TYPED_TEST(Elements, ForEachIndexed) {
  using T = TypeParam;
  auto plain = [](T &x, auto const &at) { x = static_cast<T>(x + static_cast<T>(sum_of(at))); };
  expect_same<T>([](auto place, auto view) { umem::for_each_indexed(place, view, AddIndex()); },
                 plain);
  expect_same<T>(
      [](auto place, auto view) { umem::for_each_indexed<std::int32_t>(place, view, AddIndex()); },
      plain);
}

/* Ranges of indices of a view: its interior, what is inside of that, all that it has, the upper
 * half and the first cell of each dimension, nothing. */
template <class T, int N> std::vector<umem::Range<N>> some_ranges(umem::View<T, N> const &view) {
  umem::Extents<N> low, high, middle, first;
  for (int k = 0; k < N; k++) {
    low[k] = view.low(k);
    high[k] = view.high(k);
    middle[k] = (low[k] + high[k]) / 2;
    first[k] = std::min(low[k] + 1, high[k]);
  }
  return {umem::interior(view, 0), umem::interior(view), {low, high},
          {middle, high},          {low, first},         {high, low}};
}

/* As expect_same, for do_umem(place, view, range) and each of some ranges. */
template <class T, class Umem, class Plain>
void expect_same_in_ranges(Umem const &do_umem, Plain const &plain) {
  with_everything<T>([&](auto place, auto view, std::vector<T> &memory) {
    for (auto const &range : some_ranges(view)) {
      SCOPED_TRACE(std::string("from ") + umem::detail::in_words(range.begin).text + " to " +
                   umem::detail::in_words(range.end).text);
      std::vector<T> expected = memory;
      auto other = like(view, memory, expected);
      for_each_indices(range.begin, range.end, [&](auto const &at) { plain(other(at), at); });
      do_umem(place, view, range);
      EXPECT_EQ(memory, expected);
    }
  });
}

template <class T> void expect_for_each_in_ranges() {
  auto change = [](T &x) { x = static_cast<T>(1 - x); };
  expect_same_in_ranges<T>(
      [&](auto place, auto view, auto const &range) { umem::for_each(place, view, range, change); },
      [&](T &x, auto const &) { change(x); });
}

TEST(Ranges, OfForEach) {
  expect_for_each_in_ranges<std::int32_t>();
  expect_for_each_in_ranges<double>();
}

template <class T, class Index> void expect_for_each_indexed_in_ranges() {
  expect_same_in_ranges<T>(
      [](auto place, auto view, auto const &range) {
        umem::for_each_indexed<Index>(place, view, range, AddIndex());
      },
      [](T &x, auto const &at) { x += static_cast<T>(sum_of(at)); });
}

TEST(Ranges, OfForEachIndexed) {
  expect_for_each_indexed_in_ranges<index_t, index_t>();
  expect_for_each_indexed_in_ranges<float, std::int32_t>();
}

TYPED_TEST(Elements, Fill) {
  using T = TypeParam;
  expect_same<T>([](auto place, auto view) { umem::fill(place, view, 42); },
                 [](T &x, auto const &) { x = 42; });
}

TYPED_TEST(Elements, Iota) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &memory) {
    std::vector<T> expected = memory;
    index_t n = 0;
    if (static_cast<double>(3 + 2 * (view.size() - 1)) > double(std::numeric_limits<T>::max())) {
      EXPECT_THROW(umem::iota(place, view, 3, 2), umem::value_error);
    } else {
      plainly(like(view, memory, expected),
              [&](T &x, auto const &) { x = static_cast<T>(3 + 2 * static_cast<T>(n++)); });
      umem::iota(place, view, 3, 2);
    }
    EXPECT_EQ(memory, expected);
  });
}

TYPED_TEST(Elements, TransformOne) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &memory) {
    std::vector<double> results(static_cast<std::size_t>(view.size()), -1);
    umem::View<double, decltype(view)::rank> out(results.data(), view.extents);
    umem::transform(place, view, out, [](T const &x) { return 0.5 * static_cast<double>(x); });
    plainly(view, [&](T &x, auto const &at) { EXPECT_EQ(out(at), 0.5 * static_cast<double>(x)); });
    std::vector<T> before = memory;
    umem::transform(place, out, view, [](double x) { return x * 4; });
    plainly(like(view, memory, before), [](T &x, auto const &) { x = static_cast<T>(x * 2); });
    EXPECT_EQ(memory, before);
  });
}

TYPED_TEST(Elements, TransformTwoInPlace) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &memory) {
    std::vector<float> others(static_cast<std::size_t>(view.size()));
    umem::View<float, decltype(view)::rank> other(others.data(), view.extents);
    umem::iota(place, other, 1);
    std::vector<T> expected = memory;
    plainly(like(view, memory, expected), [&](T &x, auto const &at) {
      x = static_cast<T>(static_cast<float>(x) +
                         static_cast<float>(static_cast<int>(other(at)) % 50));
    });
    umem::transform(place, view, other, view, [](T const &x, float y) {
      return static_cast<float>(x) + static_cast<float>(static_cast<int>(y) % 50);
    });
    EXPECT_EQ(memory, expected);
  });
}

/* Three operands: the view, one without gaps and one whose rows are all the same. */
TYPED_TEST(Elements, ThreeOfDifferentLayouts) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &memory) {
    constexpr int N = decltype(view)::rank;
    auto numbers = some_numbers<T>(view.size() + 1);
    umem::View<T const, N> const one(numbers.data(), view.extents);
    umem::View<T const, N> shared(numbers.data(), view.extents);
    if constexpr (N > 0) shared.strides[N - 1] = 0;
    auto f = [](T &x, T const &y, T const &z) { x = static_cast<T>(x + 2 * y - z); };
    std::vector<T> expected = memory;
    auto plain = [&](T &x, auto const &at) { f(x, one(at), shared(at)); };
    plainly(like(view, memory, expected), plain);
    umem::for_each(place, f, view, one, shared);
    EXPECT_EQ(memory, expected);
    auto indexed = [](T &x, T const &y, auto... i) {
      x = static_cast<T>(y + static_cast<T>((index_t(i) + ... + index_t(0))));
    };
    plainly(like(view, memory, expected), [&](T &x, auto const &at) {
      x = static_cast<T>(one(at) + static_cast<T>(sum_of(at)));
    });
    umem::for_each_indexed(place, indexed, umem::discard(view), one);
    EXPECT_EQ(memory, expected);
  });
}

struct Large {
  double value, more[3];
};

/* Rows longer and shorter than a strip, of one element for all, and of elements that are not
 * copied. */
template <class T> void expect_shared_elements() {
  for (index_t n : {1, 255, 256, 257, 1000}) {
    std::vector<T> to(static_cast<std::size_t>(3 * n)), from(3);
    for (int i = 0; i < 3; i++) from[static_cast<std::size_t>(i)].value = i + 1;
    umem::View<T, 2> out(to.data(), {3, n});
    umem::View<T const, 2> column(from.data(), {3, n}, {1, 0}), row(to.data(), {3, n}, {0, 1});
    umem::for_each(
        umem::on_host, [](T &x, T const &y) { x.value = 2 * y.value; }, out, column);
    for (index_t i = 0; i < 3; i++)
      for (index_t j = 0; j < n; j++) ASSERT_EQ(out(i, j).value, 2 * static_cast<double>(i + 1));
    umem::for_each(
        umem::on_host, [](T &x, T const &y) { x.value += y.value; }, out.slice(0, 1, 3),
        row.slice(0, 1, 3));
    ASSERT_EQ(out(2, n - 1).value, 8);
  }
}
TEST(Elements, ThatWholeRowsShare) {
  struct Small {
    double value;
  };
  expect_shared_elements<Small>();
  expect_shared_elements<Large>();
}

TYPED_TEST(Elements, Convert) {
  using T = TypeParam;
  with_everything<T>([](auto place, auto view, std::vector<T> &) {
    std::vector<std::int16_t> results(static_cast<std::size_t>(view.size()), -1);
    umem::View<std::int16_t, decltype(view)::rank> out(results.data(), view.extents);
    umem::convert(place, view, out);
    plainly(view, [&](T &x, auto const &at) { EXPECT_EQ(out(at), static_cast<std::int16_t>(x)); });
  });
}

TEST(Elements, AreUsersTypesToo) {
  std::vector<Item> items(10), others(10);
  umem::View<Item, 1> view(items.data(), {10}), other(others.data(), {10});
  umem::for_each_indexed(umem::on_host, view, [](Item &x, index_t i) { x = element<Item>(i); });
  umem::transform(umem::on_host, view, other, [](Item const &x) { return x; });
  for (index_t i = 0; i < 10; i++) EXPECT_EQ(other(i), element<Item>(i));
}

TEST(Elements, ThatAreConstAreOnlyRead) {
  std::vector<int> numbers = {1, 2, 3};
  int sum = 0;
  umem::for_each(umem::on_host, umem::View<int const, 1>(numbers.data(), {3}),
                 [&](int const &x) { sum = sum * 10 + x; });
  EXPECT_EQ(sum, 123);
}

TEST(Indices, AreVisitedOnceInCOrder) {
  std::vector<index_t> seen;
  umem::for_each_index(
      umem::on_host, umem::Range<3>({-1, 2, 5}, {1, 4, 7}),
      [&](index_t i, index_t j, index_t k) { seen.push_back(i * 100 + j * 10 + k); });
  EXPECT_EQ(seen, (std::vector<index_t>{-75, -74, -65, -64, 25, 26, 35, 36}));
}

TEST(Indices, AreVisitedOnceByThreads) {
  with_extents<double>([](auto extents) {
    using Extents = decltype(extents);
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(extents.product()));
    umem::View<std::atomic<int>, Extents::size()> view(seen.data(), extents);
    umem::for_each_index(umem::on_host_threads(4), extents, [&](auto... i) { view(i...)++; });
    for (auto const &times : seen) EXPECT_EQ(times, 1);
  });
}

TEST(Indices, OfAnEmptyRangeAreNone) {
  umem::for_each_index(umem::on_host, umem::Range<2>({3, 5}, {4, 5}),
                       [](index_t, index_t) { ADD_FAILURE(); });
  umem::for_each_index(umem::on_host_threads(2), umem::Range<2>({3, 5}, {1, 9}),
                       [](index_t, index_t) { ADD_FAILURE(); });
}

/* Without captures and templates they are refused: see refused/loops.txt. */
TEST(Elements, ByValueAreCopies) {
  auto array = umem::Array<double, 1>::full({3}, 2);
  double const factor = 5;
  umem::for_each(array, [factor](double x) { return x *= factor; });
  umem::for_each(array, [](auto x) { return x = 1; });
  double sum = 0;
  umem::for_each(array, [&](double x) { sum += x; });
  EXPECT_EQ(sum, 6);
}

TEST(Indices, OfTheInterior) {
  umem::View<int, 2> view(nullptr, {10, 20});
  umem::Range<2> range = umem::interior(view, 2);
  EXPECT_EQ(range.begin, (umem::Extents<2>(2, 2)));
  EXPECT_EQ(range.end, (umem::Extents<2>(8, 18)));
  umem::Range<2> outside = umem::interior(view, -1);
  EXPECT_EQ(outside.begin, (umem::Extents<2>(-1, -1)));
  EXPECT_EQ(outside.end, (umem::Extents<2>(11, 21)));
}

TEST(Indices, ThatDoNotFitTheirTypeAreRefused) {
  umem::Range<1> range({index_t(1) << 40}, {(index_t(1) << 40) + 2});
  EXPECT_THROW(umem::for_each_index<std::int32_t>(umem::on_host, range, [](std::int32_t) {}),
               umem::value_error);
  index_t sum = 0;
  umem::for_each_index(umem::on_host, range, [&](index_t i) { sum += i; });
  EXPECT_EQ(sum, (index_t(1) << 41) + 1);
}

TEST(Ranges, MayBeExtentsOrBraces) {
  std::vector<int> numbers(6 * 7);
  auto view = umem::View<int, 2>::with_ghosts_from(numbers.data(), {4, 5}, {1, 1});
  auto count = [&] {
    int visits = 0;
    for (int &x : numbers) visits += std::exchange(x, 0);
    return visits;
  };
  auto visit = [](int &x) { x++; };
  auto visit_at = [](int &x, index_t, index_t) { x++; };
  umem::HostPlace const here = umem::on_host;
  umem::for_each(here, view, {{-1, 0}, {4, 6}}, visit);
  EXPECT_EQ(count(), 5 * 6);
  umem::for_each(here, view, view.extents, visit);
  EXPECT_EQ(count(), 4 * 5);
  umem::for_each(here, view, umem::Range(umem::Extents(2, 3)), visit);
  EXPECT_EQ(count(), 2 * 3);
  umem::for_each_indexed(here, view, {{1, 1}, {3, 3}}, visit_at);
  EXPECT_EQ(count(), 2 * 2);
  umem::for_each_indexed<int>(umem::on_host_threads(2), view, {{2, 4}}, visit_at);
  EXPECT_EQ(count(), 2 * 4);
  umem::View<int, 1> row = view.select(0, -1);
  umem::for_each(here, row, {-1, 3}, visit);
  EXPECT_EQ(count(), 4);
  auto set = [](int &value, index_t, index_t) { return value = 1; };
  EXPECT_EQ(umem::sweep(here, view, {{1, 1}, {3, 4}}, 0, umem::plus(), set), 2 * 3);
  EXPECT_EQ(count(), 2 * 3);
}

TEST(Ranges, AreVisitedInCOrderOrByColumns) {
  std::vector<char> bytes(24);
  umem::View<char, 2> view(bytes.data(), {4, 6});
  umem::View<char const, 2> other = view;
  std::vector<index_t> seen;
  auto see = [&](char &, index_t i, index_t j) { seen.push_back(10 * i + j); };
  auto see_both = [&](char &, char const &, index_t i, index_t j) { seen.push_back(10 * i + j); };
  umem::Range<2> const range({2, 1}, {4, 4});
  std::vector<index_t> const rows{21, 22, 23, 31, 32, 33}, columns{21, 31, 22, 32, 23, 33};
  umem::for_each_indexed(umem::on_host, view, range, see);
  EXPECT_EQ(std::exchange(seen, {}), rows);
  umem::for_each_indexed(umem::on_host, view.transpose(), range, see);
  EXPECT_EQ(std::exchange(seen, {}), columns);
  auto const square = view.slice(1, 0, 4), every_second = view.slice(1, 0, 6, 2);
  umem::for_each_indexed(umem::on_host, see_both, range, square.transpose(), other.slice(1, 0, 4));
  EXPECT_EQ(std::exchange(seen, {}), rows) << "the operands differ";
  umem::for_each_indexed(umem::on_host, every_second.transpose(), {{1, 1}, {3, 3}}, see);
  EXPECT_EQ(std::exchange(seen, {}), (std::vector<index_t>{11, 12, 21, 22})) << "no stride is 1";
}

TEST(Ranges, ThatLeaveTheViewAreRefused) {
  std::vector<int> numbers(5 * 4);
  auto view = umem::View<int, 2>::with_ghosts_from(numbers.data(), {3, 4}, {1, 0});
  umem::HostPlace const here = umem::on_host;
  auto visit = [](int &x) { x = 1; };
  auto visit_at = [](int &x, index_t, index_t) { x = 1; };
  EXPECT_THROWS(umem::for_each(here, view, {{-2, 0}, {3, 4}}, visit), umem::index_error,
                "index -2 is outside the range [-1, 4) of dimension 0");
  EXPECT_THROWS(umem::for_each(here, view, {{0, 0}, {5, 4}}, visit), umem::index_error,
                "index 4 is outside the range [-1, 4) of dimension 0");
  EXPECT_THROWS(umem::for_each_indexed(here, view, {{0, 0}, {3, 5}}, visit_at), umem::index_error,
                "index 4 is outside the range [0, 4) of dimension 1");
  EXPECT_THROWS(umem::for_each_indexed(here, view, {{0, -1}, {3, 4}}, visit_at), umem::index_error,
                "index -1 is outside the range [0, 4) of dimension 1");
  EXPECT_THROW(umem::for_each_indexed<std::int8_t>(here, umem::View<int, 1>(nullptr, {1000}),
                                                   {100, 200}, [](int &, std::int8_t) {}),
               umem::value_error);
  umem::for_each(here, view, {{-9, 3}, {9, 3}}, visit); /* empty: wherever it is */
  umem::for_each_indexed(here, view, {{2, 0}, {1, 99}}, visit_at);
  EXPECT_EQ(numbers, std::vector<int>(20));
}

TEST(Threads, HandOnWhatIsThrown) {
  for (unsigned threads : {1u, 4u}) {
    auto const loop = [&] {
      umem::for_each_index(umem::on_host_threads(threads), umem::Extents<1>(1000), [](index_t i) {
        if (i >= 10) throw std::runtime_error("from " + std::to_string(i));
      });
    };
    EXPECT_EQ(thrown_by<std::runtime_error>(loop), "from 10"); /* that of the first part */
  }
}

TEST(Threads, ShareWhatThereIs) {
  for (index_t count : {1, 5, 63, 64, 65, 1000, 1001}) {
    umem::detail::Cut cut{0, count, 64, 7};
    index_t next = 0;
    for (index_t n = 0; n < 7; n++) {
      EXPECT_EQ(cut.begin(n), next);
      next = cut.begin(n + 1);
      EXPECT_TRUE(next == count || next % 64 == 0);
    }
    EXPECT_EQ(next, count);
  }
}

/* Calls f(view, memory) with views of extents whose dimensions are in every order in memory, any of
 * them backwards. */
template <int N, class F>
void with_all_orders(umem::Extents<N> const &extents, umem::Extents<N> const &ghosts, F const &f) {
  umem::Extents<N> order, all = extents;
  for (int k = 0; k < N; k++) {
    order[k] = k;
    all[k] += 2 * ghosts[k];
  }
  do {
    for (int backwards = 0; backwards < 1 << N; backwards++) {
      auto memory = some_numbers<int>(all.product());
      auto view = umem::View<int, N>::with_ghosts_from(memory.data(), extents, ghosts);
      for (int k = 0; k < N; k++)
        if (backwards >> k & 1) view = view.reversed(k);
      f(view.permute(order), memory);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

template <int N> void expect_loops_over_all(umem::Extents<N> const &extents) {
  SCOPED_TRACE(std::string("extents ") + umem::detail::in_words(extents).text);
  for (index_t cells : {0, 1, 2}) { /* none; in the first dimension; in the last one */
    umem::Extents<N> ghosts;
    if (cells) ghosts[cells == 1 ? 0 : N - 1] = 1;
    with_all_orders(extents, ghosts, [](auto view, std::vector<int> &memory) {
      std::vector<int> expected = memory, results(static_cast<std::size_t>(view.size()), -1);
      umem::View<int, N> out(results.data(), view.extents);
      umem::transform(umem::on_host, view, out, [](int x) { return 3 * x; });
      plainly(view, [&](int &x, auto const &at) { ASSERT_EQ(out(at), 3 * x); });
      plainly(like(view, memory, expected), [](int &x, auto const &) { x = 2 * x + 1; });
      umem::for_each(umem::on_host, view, [](int &x) { x = 2 * x + 1; });
      ASSERT_EQ(memory, expected);
    });
  }
}

TEST(Loops, GoOverViewsOfHighRank) {
  expect_loops_over_all(umem::Extents<3>(2, 3, 4));
  expect_loops_over_all(umem::Extents<3>(2, 1, 3));
  expect_loops_over_all(umem::Extents<3>(1, 1, 1));
  expect_loops_over_all(umem::Extents<4>(3, 2, 2, 3));
  expect_loops_over_all(umem::Extents<4>(3, 1, 1, 2));
  expect_loops_over_all(umem::Extents<4>(2, 1, 3, 1));
}

template <int N>
umem::Extents<N> loops_over(umem::Extents<N> const &extents, umem::Extents<N> const &ghosts) {
  auto loops =
      umem::detail::loops_of(umem::View<int, N>::with_ghosts_from(nullptr, extents, ghosts));
  umem::detail::simplify(loops);
  return loops.extents;
}

TEST(Loops, AreAsFewAsPossible) {
  using E3 = umem::Extents<3>;
  using E4 = umem::Extents<4>;
  EXPECT_EQ(loops_over(E3(2, 3, 4), E3()), E3(1, 1, 24));
  EXPECT_EQ(loops_over(E3(2, 1, 4), E3()), E3(1, 1, 8));
  EXPECT_EQ(loops_over(E4(2, 3, 4, 5), E4()), E4(1, 1, 1, 120));
  EXPECT_EQ(loops_over(E3(2, 3, 4), E3(1, 0, 0)), E3(1, 1, 24));
  EXPECT_EQ(loops_over(E3(2, 3, 4), E3(0, 1, 0)), E3(1, 2, 12));
  EXPECT_EQ(loops_over(E3(2, 3, 4), E3(0, 0, 1)), E3(1, 6, 4));
  EXPECT_EQ(loops_over(E4(2, 3, 4, 5), E4(0, 0, 1, 0)), E4(1, 1, 6, 20));
  with_all_orders(E3(2, 3, 4), E3(), [](auto view, std::vector<int> &) {
    auto loops = umem::detail::loops_of(view);
    umem::detail::simplify(loops);
    if (view.strides[0] > 0 && view.strides[1] > 0 && view.strides[2] > 0) {
      EXPECT_TRUE(loops.is_contiguous());
    }
    EXPECT_EQ(loops.extents.product(), 24);
  });
}

TEST(Divider, DividesAsDivisionDoes) {
  constexpr std::uint32_t most = 0x7fffffff;
  for (std::uint32_t d : {1u, 2u, 3u, 5u, 7u, 10u, 255u, 256u, 641u, 65535u, 65537u, 1000003u,
                          0x3fffffffu, 0x40000000u, 0x40000001u, most - 1, most}) {
    umem::detail::Divider divider(d);
    for (std::uint32_t n :
         {0u, 1u, d - 1, d, most / d * d, most / d * d - 1, most / 2, most - 1, most}) {
      std::uint32_t rest = n;
      EXPECT_EQ(divider.take_remainder(rest), n % d) << n << " / " << d;
      EXPECT_EQ(rest, n / d) << n << " / " << d;
    }
    for (std::uint32_t n = 0; n < most - 9999991; n += 9999991)
      ASSERT_EQ(divider.quotient(n), n / d) << n << " / " << d;
  }
}

TEST(Refusals, NameTheExtents) {
  umem::View<int, 2> a(nullptr, {2, 3}), b(nullptr, {3, 2});
  EXPECT_THROWS(umem::transform(umem::on_host, a, b, [](int x) { return x; }), umem::value_error,
                "transform: the extents (3, 2) and (2, 3) differ");
}

TEST(Refusals, OfKernelsSayWhatIsMissing) {
  int number = 1;
  umem::View<int, 1> view(&number, {1});
  EXPECT_THROWS(umem::for_each(umem::on_device(), view, [](int &x) { x = 2; }),
                umem::not_supported_error,
                "work on a GPU needs kernels: compile this file with nvcc, or name umem::on_host");
  EXPECT_THROW(umem::for_each(umem::Place(umem::on_device()), view, [](int &x) { x = 2; }),
               umem::not_supported_error);
  EXPECT_THROW(umem::for_each(umem::on_device(), view, {0, 0}, [](int &x) { x = 2; }),
               umem::not_supported_error);
  EXPECT_THROW(umem::for_each_indexed(umem::on_device(), view, {0, 1}, AddIndex()),
               umem::not_supported_error);
  EXPECT_EQ(number, 1);
  umem::for_each(umem::Place(umem::on_host), view, [](int &x) { x = 2; });
  EXPECT_EQ(number, 2);
}

} // namespace
