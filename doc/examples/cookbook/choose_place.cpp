/* Choose the place when the program runs. */
#include <iostream>
#include <umem.hpp>
#include <umem/open.hpp>
#include <umem/print.hpp>

int main() {
  for (char const *place : {"host:", "file:numbers.bin?mode=w+"}) {
    auto u = umem::Array<int, 1>::full({4}, 7, umem::open(place));
    u.set(1, 0);
    u.flush();
    std::cout << u << '\n';
  }
}
