/* Compute a dot product, and a norm of a difference */
#include <cmath>
#include <iostream>
#include <umem.hpp>
#include <umem/reduce.hpp>

int main() {
  umem::Array<float, 1> x({1000}), y({1000});
  umem::fill(x, 0.5f);
  umem::iota(y, 0);
  double const dot =
      umem::transform_reduce(x, y, 0.0, umem::plus(), [](double a, double b) { return a * b; });
  double const squares = umem::transform_reduce(
      x, y, 0.0, umem::plus(), [](double a, double b) { return (a - b) * (a - b); });
  std::cout << dot << ' ' << std::lround(std::sqrt(squares)) << '\n';
}
