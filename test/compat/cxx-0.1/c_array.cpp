/* Arrays of C++ for functions of C, and arrays of C in C++. */
#include <cstdio>
#include <umem.hpp>
#include <umem/c_array.hpp>

/* [function] */
/* A function for C and other languages. Exceptions do not leave it. */
extern "C" void scale(umemArray *array, double factor, umemStatusType *status) {
  if (*status != umemOK) return;
  try {
    auto x =
        umem::view<double, 2>(array); // the type, the rank, the place and the access are checked
    umem::transform(umem::on_host, x, x, [=](double value) { return factor * value; });
  } catch (umem::error const &error) {
    *status = umem_set_status(nullptr, error.status(), error.message());
  }
}
/* [/function] */

int main() {
  /* [give] */
  auto u = umem::Array<double, 2>::full({2, 3}, 1.5);
  umemStatusType status = umemOK;
  {
    umem::CArray c = umem::c_array(u, umem::write); // the elements of u, no copy
    scale(c.get(), 2, &status);
  } // now u may be used again
  std::printf("%g\n", u.get(1, 2));
  /* [/give] */

  /* [take] */
  umem::CArray made = umem::c_array(u, umem::read); // stands for an array of another language
  auto v = umem::to_array<double const, 2>(made);   // an umem::Array that keeps it alive
  std::printf("%g\n", v.get(0, 0));
  /* [/take] */

  scale(made.get(), 2, &status); // it is read-only
  std::printf("%s\n", umem_thread_message());
}
