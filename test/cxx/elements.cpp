/* elements.cpp - iterators over the elements of views and guards. */
#include "typed.hpp"

#include <numeric>

using umem::elements;

template <class T> class ElementsOf : public testing::Test {};
TYPED_TEST_SUITE(ElementsOf, ElementTypes);

/* The addresses of the elements of a view in C order, by its indices. */
template <class T, int N> std::vector<T *> addresses(View<T, N> const &view) {
  std::vector<T *> found;
  for_each_indices({}, view.extents, [&](Extents<N> const &at) { found.push_back(&view(at)); });
  return found;
}

/* That iterators from begin to end reach these addresses, step by step and in steps of any
 * length. */
template <class I, class T>
void expect_addresses(I const &begin, I const &end, std::vector<T *> const &expected) {
  auto const count = static_cast<umem::index_t>(expected.size());
  ASSERT_EQ(end - begin, count);
  umem::index_t i = 0;
  I it = begin;
  for (; it != end; ++it, i++) ASSERT_EQ(&*it, expected[static_cast<std::size_t>(i)]);
  EXPECT_EQ(i, count);
  EXPECT_TRUE(it == end);
  while (i > 0) ASSERT_EQ(&*--it, expected[static_cast<std::size_t>(--i)]);
  EXPECT_TRUE(it == begin);
  EXPECT_TRUE(begin + count == end && end - count == begin);
  EXPECT_EQ(begin != end, count > 0);
  for (umem::index_t from = 0; from <= count; from += 5)
    for (umem::index_t to = 0; to < count; to += 3) {
      T *wanted = expected[static_cast<std::size_t>(to)];
      I start = begin + from;
      ASSERT_EQ(&start[to - from], wanted);
      ASSERT_EQ(&*(start + (to - from)), wanted);
      ASSERT_EQ(&*((to - from) + start), wanted);
      ASSERT_EQ(&*(start - (from - to)), wanted);
      ASSERT_EQ((begin + to) - start, to - from);
      ASSERT_EQ(start < begin + to, from < to);
      ASSERT_EQ(start <= begin + to, from <= to);
      ASSERT_EQ(start > begin + to, from > to);
      ASSERT_EQ(start >= begin + to, from >= to);
      ASSERT_EQ(start == begin + to, from == to);
    }
  if (count > 1) {
    it = begin;
    ASSERT_EQ(&*it++, expected[0]);
    ASSERT_EQ(&*it--, expected[1]);
    ASSERT_EQ(it.operator->(), expected[0]);
  }
}

/* Calls f(view) for layouts of one array with ghost cells: in order, reversed, with gaps,
 * broadcast. */
template <class T, int N, class F> void for_each_layout(View<T, N> const &view, F const &f) {
  f(view);
  f(view.with_ghosts());
  f(view.transpose());
  for (int k = 0; k < N; k++) {
    f(view.reversed(k));
    f(view.slice(k, 0, view.extent(k), 2));
    f(view.slice(k, 1, 1));
    View<T, N> same = view;
    same.strides[k] = 0;
    f(same);
  }
}

TYPED_TEST(ElementsOf, come_in_c_order) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 1, 2, 3), ghosts = first_of<N>(1, 0, 2, 1, 0);
    std::vector<TypeParam> memory(7000);
    auto const view = View<TypeParam, N>::with_ghosts_from(memory.data(), extents, ghosts);
    for_each_layout(view, [](auto const &layout) {
      auto const expected = addresses(layout);
      auto const range = elements(layout);
      EXPECT_EQ(range.size(), static_cast<umem::index_t>(expected.size()));
      expect_addresses(range.begin(), range.end(), expected);
      if constexpr (N > 0)
        expect_addresses(umem::ElementIterator<TypeParam, N>(layout),
                         umem::ElementIterator<TypeParam, N>(layout, layout.size()), expected);
      umem::visit_elements(layout, [&](auto first, auto last) {
        ASSERT_EQ(last - first, layout.size());
        for (umem::index_t i = 0; i < layout.size(); i++)
          ASSERT_EQ(&first[i], expected[static_cast<std::size_t>(i)]);
      });
    });
  });
}

TEST(Elements, of_rank_1_are_those_of_the_view_itself) {
  int memory[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  View<int, 2> const view(memory, {3, 4});
  auto const column = view.select(1, 1).reversed(0);
  std::vector<int> found;
  for (int x : column) found.push_back(x);
  EXPECT_EQ(found, (std::vector<int>{9, 5, 1}));
  for (int &x : column) x += 100;
  EXPECT_EQ(memory[5], 105);
  expect_addresses(column.begin(), column.end(), addresses(column));
  auto const inner = View<int, 1>::with_ghosts_from(memory, {10}, {1});
  EXPECT_EQ(&*inner.begin(), memory + 1); /* no ghost cells */
  EXPECT_EQ(inner.end() - inner.begin(), 10);
}

TEST(Elements, that_are_const_are_only_read) {
  double memory[6] = {0, 1, 2, 3, 4, 5};
  View<double, 2> const view(memory, {2, 3});
  View<double const, 2> const only_read = view;
  static_assert(std::is_same_v<decltype(*elements(only_read).begin()), double const &>);
  static_assert(std::is_same_v<decltype(*only_read.select(0, 0).begin()), double const &>);
  umem::ElementIterator<double const, 2> it = elements(view).begin() + 4;
  EXPECT_EQ(&*it, memory + 4);
  umem::StridedIterator<double const> strided = view.select(1, 1).begin() + 1;
  EXPECT_EQ(&*strided, memory + 4);
  static_assert(
      !std::is_convertible_v<umem::StridedIterator<double const>, umem::StridedIterator<double>>);
  static_assert(!std::is_convertible_v<umem::ElementIterator<double const, 2>,
                                       umem::ElementIterator<double, 2>>);
}

enum class Kind { pointer, strided, element };
template <class I> constexpr Kind kind_of() {
  if constexpr (std::is_pointer_v<I>) return Kind::pointer;
  using Value = typename std::iterator_traits<I>::value_type;
  return std::is_same_v<I, umem::StridedIterator<Value>> ? Kind::strided : Kind::element;
}

TEST(Elements, are_visited_by_the_fastest_iterators) {
  int memory[60] = {};
  View<int, 3> const view(memory, {3, 4, 5});
  auto kind = [](auto const &of) {
    return umem::visit_elements(of, [](auto first, auto) { return kind_of<decltype(first)>(); });
  };
  EXPECT_EQ(kind(view), Kind::pointer);
  EXPECT_EQ(kind(view.slice(0, 1, 3)), Kind::pointer);
  EXPECT_EQ(kind(view.slice(1, 1, 2)), Kind::element);
  EXPECT_EQ(kind(view.slice(2, 2, 3)), Kind::strided); /* one column */
  EXPECT_EQ(kind(view.reversed(0).reversed(1).reversed(2)), Kind::strided);
  EXPECT_EQ(kind(view.reversed(1)), Kind::element);
  EXPECT_EQ(kind(view.transpose()), Kind::element);
  EXPECT_EQ(kind(view.select(2, 0)), Kind::strided);
  EXPECT_EQ(kind(view.select(2, 0).select(1, 0)), Kind::strided);
  EXPECT_EQ(kind(View<int, 2>(memory, {2, 3}, {3, 0})), Kind::element);
  EXPECT_EQ(kind(View<int, 2>(memory, {2, 3}, {0, 0})), Kind::strided); /* all the same element */
  EXPECT_EQ(kind(View<int, 2>(memory, {1, 3}, {99, 1})), Kind::pointer);
  EXPECT_EQ(kind(View<int, 0>(memory, {})), Kind::pointer);
  EXPECT_EQ(kind(View<int, 2>()), Kind::pointer);
}

TEST(Elements, without_gaps_are_a_range_of_pointers) {
  int memory[12] = {};
  View<int, 2> const view(memory, {3, 4});
  auto const all = umem::contiguous_elements(view);
  EXPECT_EQ(all.data(), memory);
  EXPECT_EQ(all.size(), 12u);
  EXPECT_EQ(all.end(), memory + 12);
  EXPECT_THROWS(umem::contiguous_elements(view.transpose()), umem::value_error,
                "the elements of a view with gaps do not follow each other");
  EXPECT_EQ(umem::contiguous_elements(View<int, 0>()).size(), 0u);
}

TEST(Elements, go_to_algorithms) {
  std::vector<int> memory = {5, 9, 1, 7, 3, 8, 2, 6, 4, 0, 11, 10};
  View<int, 2> const view(memory.data(), {3, 4});
  auto const column = view.select(1, 1); /* 9, 8, 0 */
  std::sort(column.begin(), column.end());
  EXPECT_EQ(memory, (std::vector<int>{5, 0, 1, 7, 3, 8, 2, 6, 4, 9, 11, 10}));
  auto const by_columns = elements(view.transpose());
  std::sort(by_columns.begin(), by_columns.end());
  EXPECT_EQ(memory, (std::vector<int>{0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11}));
  std::stable_sort(by_columns.begin(), by_columns.end(), std::greater<>());
  EXPECT_EQ(view(0, 0), 11);
  EXPECT_TRUE(std::is_sorted(std::make_reverse_iterator(by_columns.end()),
                             std::make_reverse_iterator(by_columns.begin())));
  std::inclusive_scan(column.begin(), column.end(), column.begin());
  EXPECT_EQ(view(2, 1), 8 + 7 + 6);
  std::vector<int> copied(by_columns.begin(), by_columns.end());
  EXPECT_EQ(copied.size(), 12u);
  EXPECT_EQ(copied[1], view(1, 0));
}

TEST(Elements, of_a_guard_without_a_name_keep_it) {
  umem::Array<double, 2> array({2, 3}, umem::Host(), {{1, 0}});
  double next = 0;
  for (double &x : elements(array.host(umem::discard))) {
    EXPECT_THROW(static_cast<void>(array.host(umem::write)), umem::locked_error);
    x = next++;
  }
  EXPECT_EQ(array.get(1, 2), 5.0); /* no guard lives */
  auto guard = array.host(umem::write);
  for (double &x : elements(guard)) x += 1;
  EXPECT_EQ(guard(1, 2), 6.0);
  EXPECT_EQ(umem::visit_elements(guard, [](auto first, auto last) { return last - first; }), 6);
  guard.release();
  EXPECT_EQ(elements(guard).size(), 0);
  EXPECT_TRUE(elements(guard).begin() == elements(guard).end());

  umem::Array<double, 1> line({3});
  for (double &x : line.host(umem::discard)) x = 2;
  for (double &x : umem::guard_at(umem::on_host, line, umem::write)) x *= 2;
  double sum = 0;
  for (double x : line.host(umem::read)) sum += x;
  EXPECT_EQ(sum, 12.0);
}
