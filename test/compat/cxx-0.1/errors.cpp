/* Failures are exceptions. */
#include <cstdio>
#include <stdexcept>
#include <utility>
#include <umem.hpp>

int main() {
  /* [kinds] */
  try {
    umem::File file("absent/a.bin", "r");
  } catch (umem::io_error const &failure) { /* by its kind */
    std::printf("%s\n", umem_get_status_name(failure.status()));
  }

  umem::Array<double, 2> u({3, 4});
  try {
    u.set(1.0, 3, 0);
  } catch (std::out_of_range const &failure) { /* by the class of the standard library */
    std::printf("%s\n", failure.what());
  }

  try {
    umem::Array<double, 2> huge({umem::index(1) << 40, umem::index(1) << 40});
  } catch (umem::error const &failure) { /* any failure of umem */
    std::printf("%s\n", failure.message());
  }
  /* [/kinds] */

  /* [array] */
  auto guard = u.host(umem::write);
  try {
    u.set(1.0, 0, 0);
  } catch (umem::locked_error const &failure) {
    std::printf("%s\n", failure.message());
  }

  umem::Array<double, 2> v = std::move(u);
  try {
    u.get(0, 0);
  } catch (umem::moved_from_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/array] */
}
