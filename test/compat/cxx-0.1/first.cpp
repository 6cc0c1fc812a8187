/* One array, three places to keep it. */
#include <cstdio>
#include <umem.hpp>

/* The squares of 0 to n - 1, in any place. */
static umem::Array<double, 1> squares(umem::Context const &place, umem::index n) {
  umem::Array<double, 1> array({n}, place);
  auto x = array.host(umem::discard); /* its elements, for the CPU */
  for (umem::index i = 0; i < n; i++) x(i) = static_cast<double>(i * i);
  return array;
}

int main() {
  try {
    umem::Context places[] = {umem::Host(), umem::File("squares.bin", "w+"),
                              umem::MMap("mapped.bin", "w+")}; /* from here on no line names one */
    for (umem::Context const &place : places)
      std::printf("%s: %g\n", place.name(), squares(place, 1000).get(999));
  } catch (umem::error const &failure) {
    std::fprintf(stderr, "%s\n", failure.message());
    return 1;
  }
}
