/* kernels_units.cpp - with kernels_units.cu: a unit that the C++ compiler compiles and one that
 * nvcc compiles, without optimisation so that the linker sees all functions and keeps one of each
 * name. Whichever comes first, each unit must keep its own. Runs without a GPU. */
#include "kernels_units.hpp"

#include <cstdio>

extern "C" {
#include "fake/doubles.h"
}

Outcome call_from_cpp(umem::Place const &place, Numbers &numbers) {
  return call_all(place, numbers);
}

std::vector<int> call_at_home_from_cpp() { return call_at_home(); }

static bool wrong = false;

static void check(bool good, char const *unit, char const *what) {
  if (good) return;
  std::printf("%s: %s\n", unit, what);
  wrong = true;
}

using Calls = Outcome (*)(umem::Place const &, Numbers &);

static void check_host(char const *unit, Calls call_from) {
  Numbers numbers;
  Outcome outcome = call_from(umem::on_host, numbers);
  for (std::string const &said : outcome.said)
    check(said.back() == ' ', unit, ("on the host " + said).c_str());
  /* Of x = 12, 60, 126, 144, y = 3, 5, 7, 9, and indices. */
  std::vector<int> const results = {342, 342, 12, 144, 48, 164, 6, -2};
  check(outcome.results == results, unit, "other results on the host");
  int const x[] = {6, -1, -2, 12}, y[] = {0, 10, 20, 30};
  double const real[] = {26, 40, 58, 80};
  for (int i = 0; i < 4; i++) {
    check(numbers.first[i] == x[i] && numbers.second[i] == y[i], unit, "other elements");
    check(numbers.real[i] == real[i], unit, "other sums of products");
  }
  check(numbers.sums[0] == 20 && numbers.sums[1] == 52, unit, "other sums of rows");
}

static void check_device(char const *unit, Calls call_from, umem::Place const &place,
                         std::string const &expected) {
  Numbers numbers;
  Outcome outcome = call_from(place, numbers);
  for (std::string const &said : outcome.said)
    check(said.substr(said.find(": ") + 2) == expected, unit, ("on a GPU " + said).c_str());
  check(outcome.results.empty() && numbers.first[3] == 4, unit, "something was done");
}

int main() {
  check_host("C++", call_from_cpp);
  check_host("nvcc", call_from_cu);
  check_device("C++", call_from_cpp, umem::on_device(), "not supported");
  /* No such GPU: whatever the machine has, it is CUDA that says so. */
  check_device("nvcc", call_from_cu, umem::on_device(0, 4711), "from CUDA");
  std::vector<int> const results = {2 * (3 + 8 + 15), 0, 30};
  check(call_at_home_from_cpp() == results, "C++", "other results where arrays live");
  check(call_at_home_from_cu() == results, "nvcc", "other results where arrays live");
  doubles_use(); /* umem's own calls of CUDA succeed; the launches are the real runtime's */
  std::string lost = outputs_of_failed_launches();
  check(lost.empty(), "nvcc", lost.c_str());
  char const *complaint = doubles_complaint();
  check(!complaint, "the double of CUDA", complaint);
  return wrong;
}
