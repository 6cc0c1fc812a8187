/* Make an array of numbers in braces, of a vector, of a set */
#include <iostream>
#include <set>
#include <umem.hpp>
#include <umem/array_of.hpp>
#include <umem/print.hpp>
#include <vector>

int main() {
  auto matrix = umem::array_of({{1., 2.}, {3., 4.}});
  std::vector<float> const samples = {1, 2, 3, 4, 5, 6};
  auto in_file = umem::array_of(samples, umem::Extents{2, 3}, umem::File::scratch());
  std::set<int> const primes = {7, 2, 5, 3};
  auto sorted = umem::array_of(primes.begin(), primes.end());
  std::cout << matrix << '\n' << in_file << '\n' << sorted << '\n';
}
