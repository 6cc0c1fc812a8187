/* ranges.cpp - views and their iterators with the concepts of C++20. Compiled, not run. */
#include <umem/elements.hpp>
#include <umem/view.hpp>

#include <version>
#if defined(__cpp_lib_ranges)
#include <algorithm>
#include <iterator>
#include <ranges>
#include <span>

template <class I> constexpr bool is_random_access = std::random_access_iterator<I>;
static_assert(is_random_access<umem::StridedIterator<int>>);
static_assert(is_random_access<umem::StridedIterator<int const>>);
static_assert(is_random_access<umem::ElementIterator<int, 3>>);
static_assert(
    std::sized_sentinel_for<umem::ElementIterator<int, 0>, umem::ElementIterator<int, 0>>);
static_assert(std::ranges::random_access_range<umem::View<int, 1>>);
static_assert(std::ranges::sized_range<umem::View<int, 1>>);
static_assert(!std::ranges::range<umem::View<int, 2>>);
static_assert(std::ranges::random_access_range<umem::Elements<int, 2>>);
static_assert(std::ranges::contiguous_range<umem::ContiguousElements<int>>);

void use(umem::View<int, 1> line, umem::View<int, 2> view) {
  std::ranges::sort(line);
  auto all = umem::elements(view);
  std::ranges::sort(all);
  auto pointers = umem::contiguous_elements(view);
  std::span<int> span(pointers);
  for (int &x : line) x = span[0];
}
#endif
