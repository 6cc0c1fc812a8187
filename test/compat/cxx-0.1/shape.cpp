/* Shape, for a number of dimensions that is known only at run time. */
#include <cstdio>
#include <cstdlib>
#include <umem.hpp>

/* [parse] */
/* The extents in a text such as "3x4x5". */
static umem::Shape parse(char const *words) {
  umem::Shape shape;
  for (char *end = nullptr;; words = end + 1) {
    shape.push_back(std::strtol(words, &end, 10));
    if (*end != 'x') return shape;
  }
}
/* [/parse] */

int main() {
  /* [to] */
  umem::Shape shape = parse("3x4x5");
  std::printf("%zu dimensions, %td elements\n", shape.size(), umem::checked_product(shape));

  umem::Array<float, 3> u(shape.to<3>());
  std::printf("%td\n", u.extent(2));
  try {
    shape.to<2>();
  } catch (umem::type_error const &failure) {
    std::printf("%s\n", failure.message());
  }
  /* [/to] */
}
