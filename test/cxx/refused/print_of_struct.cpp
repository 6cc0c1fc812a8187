// refused: elements that are printed must be numbers
#include <umem/print.hpp>

struct Point {
  float x, y;
};

void use(std::ostream &stream, umem::View<Point, 1> points, umem::View<float, 1> numbers) {
#ifdef REFUSED
  stream << points;
#else
  stream << numbers;
#endif
  static_cast<void>(points);
  static_cast<void>(numbers);
}
