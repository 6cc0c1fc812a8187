/* kernels_units.cpp - with kernels_units.cu: a unit that the C++ compiler compiles and one that
 * nvcc compiles, without optimisation so that the linker sees all functions and keeps one of each
 * name. Whichever comes first, each unit must keep its own. Runs without a GPU. */
#include "kernels_units.hpp"

#include <cstdio>

std::string call_from_cpp(umem::Place const &place, umem::View<int, 1> const &view) {
  return call_on(place, view);
}

static bool is(std::string const &found, std::string const &expected, char const *what) {
  if (found != expected)
    std::printf("%s: \"%s\", not \"%s\"\n", what, found.c_str(), expected.c_str());
  return found == expected;
}

int main() {
  int numbers[] = {1, 2, 3, 4};
  umem::View<int, 1> view(numbers, {4});
  bool good = is(call_from_cpp(umem::on_host, view), "none", "host, C++");
  good = is(call_from_cu(umem::on_host, view), "none", "host, nvcc") && good;
  good = good && numbers[0] == 10 && numbers[1] == -1 && numbers[2] == -2 && numbers[3] == 22;
  good = is(call_from_cpp(umem::on_device(), view), "not supported", "device, C++") && good;
  /* No such GPU: whatever the machine has, it is CUDA that says so. */
  good = is(call_from_cu(umem::on_device(0, 4711), view), "from CUDA", "device, nvcc") && good;
  return good ? 0 : 1;
}
