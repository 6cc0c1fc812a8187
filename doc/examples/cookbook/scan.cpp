/* Running sums (a scan) along the rows of a matrix. */
#include <iostream>
#include <numeric>
#include <umem.hpp>
#include <umem/print.hpp>

int main() {
  auto u = umem::Array<int, 2>::full({2, 5}, 1);
  u.set(10, 1, 0);
  auto guard = u.host(umem::write);
  for (int i = 0; i < 2; i++) {
    auto row = guard->select(0, i);
    std::inclusive_scan(row.begin(), row.end(), row.begin());
  }
  std::cout << *guard << '\n';
}
