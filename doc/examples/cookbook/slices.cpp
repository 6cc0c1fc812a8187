/* Name the interior, a face, and every second element. */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  using umem::end, umem::full_extent, umem::range;
  umem::Array<int, 2> u = umem::Array<int, 2>::zeros({4, 6});
  umem::fill(u.part(range(1, end - 1), range(1, end - 1)), 1); /* the interior */
  umem::fill(u.part(end - 1, full_extent), 2);                 /* the last row */
  umem::fill(u.part(0, range(0, end, 2)), 3);                  /* every second of the first */
  umem::copy(u.part(0, range(end - 1, -1, -1)), u.part(1, full_extent)); /* the first, reversed */
  std::cout << u << '\n';
}
