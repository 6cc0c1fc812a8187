/* Extents, for a number of dimensions that the compiler knows. */
#include <cstdio>
#include <umem.hpp>

int main() {
  /* [extents] */
  umem::Extents three{2, 3, 4}; /* Extents<3> */
  umem::Extents<3> strides = umem::c_strides(three);
  std::printf("%td elements; steps of %td, %td, %td\n", three.product(), strides[0], strides[1],
              strides[2]);

  try {
    umem::checked_product(umem::Extents{3, -1}); /* of numbers that come from outside */
  } catch (umem::value_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/extents] */
}
