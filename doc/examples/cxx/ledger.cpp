/* Shows the route of a copy, and the ledger of the process, from C++. */
#include <cstdio>
#include <umem.hpp>
#include <umem/ledger.hpp>
#include <vector>

int main() {
  umem::Host ram;
  umem::File file = umem::File::scratch();
  std::vector<double> values(100, 1.0);
  auto from = reinterpret_cast<umem::address>(values.data());
  std::size_t nbytes = values.size() * sizeof(double);
  umem::Buffer array(file, nbytes);

  /* [ledger] */
  {
    umem::Ledger ledger; // on until the end of the scope
    umemRoute route = umem::copy_with_route(ram, from, file, array.adr(), nbytes);
    std::printf("%s\n", umem::text(route).c_str());
  }
  for (umemLedgerRecord const &record : umem::Ledger::read())
    std::printf("%s to %s: %d copy, %d bytes\n", record.src.kind, record.dst.kind,
                static_cast<int>(record.calls), static_cast<int>(record.bytes));
  umem::Ledger::print(); // the table, to stderr
  /* [/ledger] */
}
