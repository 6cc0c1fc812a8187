/* compile_program.cpp - a program of 70 lines whose time to compile bench/compile_time.py measures:
 * heat on a square plate. */
#include <umem.hpp>
#include <umem/functional.hpp>
#include <umem/npy.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/sweep.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

using Grid = umem::Array<double, 2>;

struct Step {
  umem::View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};

struct Scale {
  double factor;
  UMEM_FUNCTION double operator()(double x) const { return factor * x; }
};

struct Square {
  UMEM_FUNCTION double operator()(double x) const { return x * x; }
};

static void set_sides(Grid &grid) {
  auto u = grid.host(umem::discard);
  umem::index_t last = u.extent(0) - 1;
  umem::for_each_indexed(umem::on_host, *u, [=](double &x, umem::index_t i, umem::index_t j) {
    x = i == last ? std::sin(0.1 * static_cast<double>(j)) : 0;
  });
}

static double step(umem::Place const &place, Grid const &u, Grid &next) {
  umem::Range<2> inside({1, 1}, {u.extent(0) - 1, u.extent(1) - 1});
  auto from = umem::guard_at(place, u, umem::read);
  return umem::sweep(place, next, inside, 0.0, umem::maximum(), Step{*from});
}

int main(int argc, char **argv) {
  umem::index_t n = argc > 1 ? std::stol(argv[1]) : 51;
  try {
    umem::Context context =
        argc > 2 ? umem::Context(umem::MMap(argv[2], "w+")) : umem::Context(umem::Host());
    umem::Place place(context);
    Grid u({n, n}, context);
    set_sides(u);
    Grid next = u;
    int steps = 0;
    while (step(place, u, next) >= 1e-3) std::swap(u, next), steps++;
    umem::transform(u, u, Scale{2});
    double norm = umem::transform_reduce(u, 0.0, umem::plus(), Square());
    umem::copy(u.part().select(0, n - 1), next.part().select(0, 0));
    std::printf("%d steps, norm %g, %g\n", steps, std::sqrt(norm), next.get(0, 1));
    umem::save_npy("plate.npy", u);
    std::cout << next.part().extents()[0] << '\n';
    std::cout << *u.host(umem::read) << '\n';
  } catch (umem::error const &failure) {
    std::fprintf(stderr, "%s\n", failure.message());
    return 1;
  }
}
