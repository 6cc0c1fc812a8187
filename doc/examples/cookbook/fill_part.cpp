/* Set a row and a column of an array in a file */
#include <cstdint>
#include <iostream>
#include <umem.hpp>
#include <umem/ledger.hpp>
#include <umem/print.hpp>

int main() {
  auto u = umem::Array<int, 2>::zeros({4, 6}, umem::File::scratch());
  umem::Ledger ledger; /* counts the bytes of copies */
  umem::fill(u.part().select(0, 1), 7);
  umem::fill(u.part().select(1, 5), 9);

  std::uint64_t bytes = 0;
  for (auto const &record : umem::Ledger::read()) bytes += record.bytes;
  std::cout << bytes << " bytes for 10 elements\n" << u << '\n';
}
