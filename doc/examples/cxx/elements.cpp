/* The elements of views for loops and algorithms. */
#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <umem.hpp>

int main() {
  /* [range_for] */
  umem::Array<double, 1> line({4});
  for (double &x : line.host(umem::discard)) x = 1; /* the guard lives as long as the loop */

  umem::Array<double, 2> u({3, 4});
  double next = 0;
  for (double &x : umem::elements(u.host(umem::discard))) x = next++;
  /* [/range_for] */

  /* [algorithms] */
  auto guard = u.host(umem::write);
  auto column = guard->select(1, 2);
  std::inclusive_scan(column.begin(), column.end(), column.begin());

  umem::visit_elements(guard,
                       [](auto first, auto last) { std::sort(first, last, std::greater<>()); });

  auto by_columns = umem::elements(guard->transpose());
  double sum = std::accumulate(by_columns.begin(), by_columns.end(), 0.0);
  /* [/algorithms] */
  std::printf("largest %g, sum %g\n", guard(0, 0), sum);

  /* [pointers] */
  auto all =
      umem::contiguous_elements(*guard); /* begin(), end(), data(), size(): std::span takes it */
  std::printf("%zu elements, the last is %g\n", all.size(), all.data()[all.size() - 1]);
  /* [/pointers] */
}
