/* A program in C++ that calls a processing function of C. */
#include "processing.h"

#include <cstdio>
#include <umem.hpp>
#include <umem/c_array.hpp>

int main() {
  /* [call] */
  auto u = umem::Array<double, 1>::full({4}, 1.5);
  auto v = umem::Array<float, 1>::full({4}, 2.25F);
  {
    umemStatusType status = umemOK;
    umem::CArray out = umem::c_array(u, umem::write);
    umem::CArray in = umem::c_array(v, umem::read);
    vector_add(out.get(), out.get(), in.get(), &status);
    if (status != umemOK) std::puts(umem_thread_message());
  } // now u and v may be used again
  std::printf("%g\n", u.get(3));
  /* [/call] */
}
