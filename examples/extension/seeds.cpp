/* seeds.cpp - functions of C++ for Python without a line between the two: nanobind binds each by
 * its name, and umem/with/nanobind.hpp gives it arrays.
 *
 *   add_index    the kernel of "A Memory Array Between C++, CUDA and Python": adds the sum of its
 *                indices to each element
 *   solve_cpp    the Laplace equation of "SimpleArray between Python and C++": the solution, the
 *                steps and the last change
 *   vector_add   a processing function of "ska-sdp-func": works in memory of others, wherever it is
 *
 * use.py calls them. */
#include "../jacobi.hpp"

#include <umem/for_each.hpp>

#include <nanobind/stl/tuple.h>

#include <umem/with/nanobind.hpp>

struct AddIndex {
  template <class T, class... I> UMEM_FUNCTION void operator()(T &element, I... i) const {
    element += static_cast<T>((i + ...));
  }
};

template <class T, int N> void add_index(umem::Array<T, N> array) {
  umem::for_each_indexed(array, AddIndex());
}

/* start: a grid with the values on its sides; it is only read. */
std::tuple<umem::Array<double, 2>, int, double> solve_cpp(umem::View<double const, 2> start) {
  umem::Array<double, 2> u(start.extents, umem::Host());
  umem::copy(start, *u.host(umem::discard));
  umem::Array<double, 2> next = u;
  int steps = 0;
  double change;
  do {
    change = jacobi_step(u, next, umem::interior(u));
    std::swap(u, next);
    steps++;
  } while (change >= 1e-5);
  return {std::move(u), steps, change};
}

void vector_add(umem::Array<double const, 1> one, umem::Array<double const, 1> other,
                umem::Array<double, 1> out) {
  umem::for_each([](double &sum, double x, double y) { sum = x + y; }, out, one, other);
}

NB_MODULE(seeds, m) {
  m.def("add_index", &add_index<float, 1>, nanobind::arg("array"));
  m.def("add_index", &add_index<float, 2>, nanobind::arg("array"));
  m.def("add_index", &add_index<double, 3>, nanobind::arg("array"));
  m.def("solve_cpp", &solve_cpp, nanobind::arg("start"));
  m.def("vector_add", &vector_add, nanobind::arg("one"), nanobind::arg("other"),
        nanobind::arg("out"));
}
