/* Loops over elements and indices: on the CPU here, and as kernels on a GPU if nvcc compiles it. */
#include <cmath>
#include <iostream>
#include <umem.hpp>
#include <umem/convert.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

/* [functors] */
struct Halve {
  UMEM_FUNCTION void operator()(double &x) const { x /= 2; }
};
struct Sum {
  UMEM_FUNCTION double operator()(double x, double y) const { return x + y; }
};
struct Square {
  UMEM_FUNCTION double operator()(double x) const { return x * x; }
};
/* [/functors] */

/* [range_functors] */
struct SetTo {
  double value;
  UMEM_FUNCTION void operator()(double &x) const { x = value; }
};
struct SetToIndices {
  UMEM_FUNCTION void operator()(double &x, umem::index i, umem::index j) const {
    x = static_cast<double>(10 * i + j);
  }
};
/* [/range_functors] */

/* [sweep] */
struct Jacobi {
  umem::View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, umem::index i, umem::index j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    return std::fabs(value - u(i, j));
  }
};

/* One step of Laplace's equation from u to next; returns the largest change. */
static double step(umem::View<double const, 2> u, umem::View<double, 2> next) {
  return umem::sweep(umem::on_host, next, umem::interior(next), 0.0, umem::maximum(), Jacobi{u});
}
/* [/sweep] */

int main() {
  /* [elements] */
  umem::Array<double, 2> x({2, 3}), y({2, 3}), z({2, 3});
  umem::fill(x, 1);
  umem::iota(y, 0, 2);             /* 0, 2, 4, ... */
  umem::for_each(y, Halve());      /* 0, 1, 2, ... */
  umem::transform(x, y, z, Sum()); /* z = x + y */
  std::cout << z << '\n';
  /* [/elements] */

  /* [range] */
  auto grid = umem::Array<double, 2>::zeros({3, 4}, umem::Host(), {{1, 1}, {}, 0});
  umem::for_each(grid, umem::interior(grid, -1), SetTo{7}); /* also ghost cells */
  umem::for_each(grid, grid.extents(), SetTo{0});
  umem::for_each_indexed(grid, umem::interior(grid), SetToIndices());
  umem::for_each_indexed(grid, {{0, -1}, {3, 0}}, SetToIndices()); /* a face */
  std::cout << grid.host(umem::read)->with_ghosts() << '\n';
  /* [/range] */

  /* [reduce] */
  std::cout << umem::sum(z) << ' ' << umem::min(z) << ' ' << umem::max(z) << '\n';
  std::cout << std::sqrt(umem::transform_reduce(z, 0.0, umem::plus(), Square())) << '\n';

  umem::Array<double, 1> sums({3});
  umem::sum_along(z, 0, sums); /* over the rows, for each column */
  std::cout << sums << '\n';
  /* [/reduce] */

  /* [convert] */
  umem::Array<int, 2> integers({2, 3});
  umem::convert(z, integers);
  std::cout << integers << '\n';

  umem::Array<float, 2> in_file({2, 3}, umem::File("z.bin", "w+"));
  umem::convert(z, in_file);
  /* [/convert] */

  /* [place] */
  auto to_sum = z.host(umem::read);
  std::cout << umem::sum(umem::on_host_threads(2), to_sum) << '\n';
  /* [/place] */
  to_sum.release();

  /* [run] */
  auto u = umem::Array<double, 2>::zeros({4, 4}), next = u;
  u.set(16, 0, 1);
  next.set(16, 0, 1); /* both arrays have this boundary */
  double change = step(*u.host(umem::read), *next.host(umem::write));
  std::cout << change << '\n' << next << '\n';
  /* [/run] */
}
