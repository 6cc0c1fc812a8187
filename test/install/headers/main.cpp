/* main.cpp - a user's program: an array is multiplied onto a file, and an exception says what is
 * wrong. */
#include "scaled.hpp"

#include <cstdio>
#include <umem/print.hpp>

int main() {
  auto array = umem::Array<double, 2>::full({3, 4}, 2.0);
  auto tripled = scaled(array, 3.0);
  bool right = tripled.get(2, 3) == 6.0;
  try {
    tripled.get(3, 0);
    right = false;
  } catch (umem::index_error const &error) {
    std::printf("as it should be: %s\n", error.what());
  }
  return right ? 0 : 1;
}
