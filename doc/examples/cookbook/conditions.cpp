/* Ask whether a condition holds, and how often. */
#include <iostream>
#include <umem.hpp>
#include <umem/fill.hpp>
#include <umem/reductions.hpp>

int main() {
  umem::Array<double, 1> u({10});
  umem::iota(u, -2.0);
  auto is_negative = [](double x) { return x < 0; };
  std::cout << umem::count_if(u, is_negative) << " of " << u.size() << " are negative\n"
            << std::boolalpha << "any: " << umem::any(u, is_negative)
            << ", all: " << umem::all(u, is_negative) << ", all nonzero: " << umem::all(u) << '\n';
}
