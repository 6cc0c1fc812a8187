/* Parts of an array in one call, and the same elements with other extents. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  using umem::full_extent, umem::range;
  umem::Array<int, 3> u({2, 4, 5});
  umem::iota(u, 0);

  /* [part] */
  auto face = u.part(0, full_extent, umem::end - 1); /* two integers: the part has rank 1 */
  auto inner = u.part(1, range(1, umem::end - 1), range(1, umem::end - 1));
  auto odd = u.part(0, 2, range(1, umem::end, 2));
  auto backwards = u.part(0, 2, range(umem::end - 1, -1, -1));
  std::cout << face << '\n' << inner << '\n' << odd << '\n' << backwards << '\n';
  /* [/part] */

  /* [loop] */
  umem::fill(inner, 0); /* on a GPU, if u is there */
  auto guard = u.host(umem::write);
  for (int &x : guard.part(1, 0, range(0, umem::end, 2))) x = -x;
  /* [/loop] */
  guard.release();
  std::cout << u.part(1, full_extent, full_extent) << '\n';

  /* [ghosts] */
  umem::Array<int, 1> line = umem::Array<int, 1>::full({4}, 7, umem::Host(), {{1}});
  std::cout << line.part(range(0, umem::end)).extents()[0] << ' '
            << line.part(range(-1, umem::end + 1)).extents()[0] << '\n';
  try {
    static_cast<void>(line.part(range(-2, 2)));
  } catch (umem::index_error const &failure) {
    std::cout << failure.message() << '\n';
  }
  /* [/ghosts] */

  /* [reshape] */
  auto rows = u.part().reshape(umem::Extents{8, 5}); /* the same memory */
  auto pairs = u.part(full_extent, full_extent, range(0, 4)).reshape(umem::Extents{8, 2, 2});
  std::cout << rows.part(7, full_extent) << '\n' << pairs.part(7, full_extent, full_extent) << '\n';
  try {
    static_cast<void>(u.part(full_extent, full_extent, range(0, 4)).reshape(umem::Extents{32}));
  } catch (umem::value_error const &failure) {
    std::cout << failure.message() << '\n';
  }
  /* [/reshape] */
}
