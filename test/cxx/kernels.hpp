/* kernels.hpp - what the tests of umem's loops share: views of all kinds over memory whose every
 * element can be compared with what plain loops make of it. */
#pragma once

#include "typed.hpp"

/* Arithmetic types, as the loops compute with them. One is enough where only accesses to memory
 * matter. */
#if defined(UMEM_TEST_ONE_TYPE)
using NumberTypes = testing::Types<double>;
#elif defined(UMEM_TEST_FEW_TYPES)
using NumberTypes = testing::Types<std::int8_t, double>;
#else
using NumberTypes = testing::Types<std::int8_t, std::int32_t, std::int64_t, float, double>;
#endif

/* Elements of memory, small numbers none of which is like its neighbours. */
template <class T> std::vector<T> some_numbers(umem::index_t count) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (std::size_t n = 0; n < numbers.size(); n++) numbers[n] = static_cast<T>((n * 7 + 3) % 11);
  return numbers;
}

/* Calls f(view, memory) with views of extents in memory of many kinds. */
template <class T, int N, class F> void with_views(umem::Extents<N> const &extents, F const &f) {
  using View = umem::View<T, N>;
  {
    SCOPED_TRACE("contiguous");
    auto memory = some_numbers<T>(extents.product() + 1);
    f(View(memory.data() + 1, extents), memory);
  }
  {
    SCOPED_TRACE("with ghost cells");
    umem::Ghosts<N> ghosts;
    for (int k = 0; k < N; k++) {
      ghosts.below[k] = k + 1;
      ghosts.above[k] = 2 - k % 2;
    }
    auto memory = some_numbers<T>(umem::detail::all_cells(extents, ghosts).product());
    f(View::with_ghosts_from(memory.data(), extents, ghosts), memory);
  }
  {
    SCOPED_TRACE("transposed");
    auto memory = some_numbers<T>(extents.product());
    f(View(memory.data(), extents).transpose(), memory);
  }
  if constexpr (N > 0) {
    SCOPED_TRACE("backwards");
    auto memory = some_numbers<T>(extents.product());
    f(View(memory.data(), extents).reversed(N - 1), memory);
  }
  if constexpr (N > 0) {
    SCOPED_TRACE("every second");
    auto memory = some_numbers<T>(extents.product());
    View view(memory.data(), extents);
    for (int k = 0; k < N; k++) view = view.slice(k, 0, extents[k], 2);
    f(view, memory);
  }
}

/* Whether tests with views of T go over this rank. Each rank of each type is compiled by itself: of
 * few types the integers have the ranks 1 and 3; where only accesses to memory matter, which
 * compilers take long to instrument, all have the ranks 0, 1 and 3. */
template <class T> constexpr bool has_rank(int rank) {
#ifdef UMEM_TEST_FEW_TYPES
  if (std::is_integral_v<T>) return rank == 1 || rank == 3;
#endif
#ifdef UMEM_TEST_ONE_TYPE
  if (rank == 2 || rank == 4) return false;
#endif
  return rank <= 4;
}

/* Calls f(extents) for some extents of the ranks that tests with views of T go over. */
template <class T, class F> void with_extents(F const &f) {
  if constexpr (has_rank<T>(0)) f(umem::Extents<0>());
  f(umem::Extents<1>(0));
  f(umem::Extents<1>(1));
  f(umem::Extents<1>(2500));
  if constexpr (has_rank<T>(2)) {
    f(umem::Extents<2>(3, 0));
    f(umem::Extents<2>(7, 301));
    f(umem::Extents<2>(301, 1));
  }
  f(umem::Extents<3>(5, 1, 70));
  f(umem::Extents<3>(4, 5, 6));
  if constexpr (has_rank<T>(4)) f(umem::Extents<4>(3, 4, 2, 5));
}

/* The places of the host. */
template <class F> void with_places(F const &f) {
  {
    SCOPED_TRACE("on_host");
    f(umem::on_host);
  }
  {
    SCOPED_TRACE("on_host_threads");
    f(umem::on_host_threads(3));
  }
}

/* All of it at once: f(place, view, memory). */
template <class T, class F> void with_everything(F const &f) {
  with_places([&](auto place) {
    with_extents<T>([&](auto extents) {
      SCOPED_TRACE(std::string("extents ") + umem::detail::in_words(extents).text);
      with_views<T>(extents, [&](auto view, std::vector<T> &memory) { f(place, view, memory); });
    });
  });
}

/* The view of a copy of the memory that a view is of. */
template <class T, int N>
umem::View<T, N> like(umem::View<T, N> const &view, std::vector<T> const &memory,
                      std::vector<T> &copy) {
  umem::View<T, N> other = view;
  other.data = copy.data() + (view.data - memory.data());
  return other;
}

/* Calls f(element, indices) for all elements of the interior, by a loop that is not umem's. */
template <class T, int N, class F> void plainly(umem::View<T, N> const &view, F const &f) {
  for_each_indices(umem::Extents<N>(), view.extents,
                   [&](umem::Extents<N> const &at) { f(view(at), at); });
}

template <int N> umem::index_t sum_of(umem::Extents<N> const &at) {
  umem::index_t sum = 0;
  for (umem::index_t i : at) sum += i;
  return sum;
}
