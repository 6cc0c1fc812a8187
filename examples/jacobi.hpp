/* jacobi.hpp - one step of point-Jacobi for the Laplace equation, for laplace.cpp and halo.cpp. */
#ifndef UMEM_EXAMPLE_JACOBI_HPP
#define UMEM_EXAMPLE_JACOBI_HPP

#include <umem.hpp>
#include <umem/functional.hpp>
#include <umem/sweep.hpp>

/* The mean of the four neighbours of a point, and its distance from the old value of the point. The
 * compiler can use vector registers, because the view says that the rows have no gaps. */
struct Jacobi {
  umem::View<double const, 2> u; /* rows without gaps */

  UMEM_FUNCTION double operator()(double &value, umem::index_t i, umem::index_t j) const {
    double const *at = &u(i, 0) + j;
    umem::index_t const row = u.stride(0);
    value = 0.25 * (at[row] + at[-row] + at[1] + at[-1]);
    double change = value - *at;
    return change < 0 ? -change : change;
  }
};

/* Computes the points of next that are in range from those of u, where the arrays are at home,
 * and returns the largest change. */
inline double jacobi_step(umem::Array<double, 2> const &u, umem::Array<double, 2> &next,
                          umem::Range<2> const &range) {
  auto from = umem::guard_at_home(u, umem::read);
  return umem::sweep(next, range, 0.0, umem::maximum(), Jacobi{*from});
}

#endif
