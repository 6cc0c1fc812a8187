// refused: of structs, save each member as an array of its own
#include <umem/npy.hpp>

struct Point {
  float x, y;
};

void use(umem::Array<Point, 1> const &points, umem::Array<float, 1> const &numbers) {
#ifdef REFUSED
  umem::save_npy("points.npy", points);
#else
  umem::save_npy("numbers.npy", numbers);
#endif
  static_cast<void>(points);
  static_cast<void>(numbers);
}
