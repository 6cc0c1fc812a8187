/* Find where the largest element is. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/reductions.hpp>

int main() {
  umem::Array<int, 2> u({3, 4});
  umem::iota(u, 0);
  u.set(50, 1, 2);
  umem::Extents<2> at = umem::argmax(u);
  std::cout << u.get(at) << " at " << at[0] << ", " << at[1] << '\n';
  auto [low, high] = umem::minmax(u);
  std::cout << "from " << low << " to " << high << '\n';
}
