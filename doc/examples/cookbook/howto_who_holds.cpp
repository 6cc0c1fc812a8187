/* Lists the contexts of a program, with what each of them holds, and asks whose address one is. */
#include <iostream>
#include <umem.hpp>
#include <umem/adaptors.hpp>

int main() {
  umem::Track fields{umem::Host()}, particles{umem::Host()};
  fields.set_label("fields");
  particles.set_label("particles");

  umem::Buffer velocity(fields, 3000000), pressure(fields, 1000000), positions(particles, 240000);

  std::cout << umem::describe_contexts() << '\n'; // those that hold most come first
  if (auto found = umem::find(pressure.adr() + 999))
    std::cout << "the address is in a block of \"" << found->label << "\"\n";
}
