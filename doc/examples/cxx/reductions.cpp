/* Questions about whole arrays, and about each row of one. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/print.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>

int main() {
  /* [whole] */
  umem::Array<double, 2> u({2, 3});
  umem::iota(u, -1.0);
  umem::Extents<2> at = umem::argmax(u);
  auto [low, high] = umem::minmax(u);
  std::cout << "at " << at[0] << ", " << at[1] << "; from " << low << " to " << high << '\n';
  std::cout << umem::count_if(u, [](double x) { return x > 1; }) << " above 1, "
            << (umem::all(u) ? "none" : "one") << " is zero\n";
  std::cout << umem::dot(u, u) << ", " << umem::norm(u) << '\n';
  /* [/whole] */
  /* [along] */
  umem::Array<umem::index_t, 1> where({2});
  umem::Array<double, 1> lengths({2});
  umem::argmin_along(u, 1, where); /* for each row, the column of its smallest element */
  umem::norm_along(u, 1, lengths); /* for each row, its norm */
  std::cout << where << ' ' << lengths << '\n';
  /* [/along] */
}
