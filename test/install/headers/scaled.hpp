/* scaled.hpp - what the two units of this program share. */
#ifndef SCALED_HPP
#define SCALED_HPP

#include <umem.hpp>

/* An array on a scratch file with the elements of from, each multiplied. */
umem::Array<double, 2> scaled(umem::Array<double, 2> &from, double factor);

#endif
