/* umem.hpp - the door of the C++ headers: includes those that most programs want. C++17.
 *
 * Ten things to begin with, and their headers; those with a * are included by their own names:
 *
 *     umem::Array<double, 2> u({51, 51});              // array.hpp: elements, and where they are
 *     umem::Array<double, 2> v({51, 51}, umem::Cuda()); // context.hpp, open.hpp*: places
 *     auto x = u.host(umem::write);                    // array_guard.hpp: the CPU uses them
 *     auto y = v.device(umem::read);                   // array_guard.hpp: kernels use them
 *     umem::View<double, 2> view = x;                  // view.hpp: what functions take
 *     auto row = view.part(3, umem::range(1, 50));     // slice.hpp: some of the elements
 *     umem::for_each(u, [](double &e) { e *= 2; });    // for_each.hpp: loops, also on a GPU
 *     double total = umem::sum(u);                     // reduce.hpp*: reductions
 *     umem::copy(u, v);                                // copy.hpp: between any two places
 *     umem::save_npy("u.npy", u);                      // npy.hpp*: files of NumPy
 *
 * umem/adaptors.hpp, umem/array_of.hpp, umem/blas.hpp, umem/c_array.hpp, umem/c_array_numbers.hpp,
 * umem/arrow.hpp, umem/compare.hpp, umem/decomposition.hpp, umem/dlpack.hpp, umem/exchange.hpp,
 * umem/external.hpp, umem/fill_ghosts.hpp, umem/format.hpp, umem/ledger.hpp, umem/mdspan.hpp,
 * umem/memory_resource.hpp, umem/npy.hpp, umem/npy_c_array.hpp, umem/open.hpp, umem/pool.hpp,
 * umem/print.hpp, umem/reduce.hpp (reduce.cuh with nvcc), umem/reduce_along.hpp,
 * umem/reductions.hpp, umem/reductions_along.hpp, umem/sweep.hpp, umem/transfer.hpp and those for
 * libraries of others in the folder umem/with are apart, since they include what takes long to
 * compile or what not every standard library has, or are for some programs only. */
#ifndef UMEM_HPP
#define UMEM_HPP

#include <umem.h>

#include <umem/allocator.hpp>
#include <umem/array.hpp>
#include <umem/array_guard.hpp>
#include <umem/array_lock.hpp>
#include <umem/buffer.hpp>
#include <umem/config.hpp>
#include <umem/connection.hpp>
#include <umem/context.hpp>
#include <umem/convert.hpp>
#include <umem/copy.hpp>
#include <umem/default_context.hpp>
#include <umem/dynamic_view.hpp>
#include <umem/elements.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/fill.hpp>
#include <umem/find.hpp>
#include <umem/for_each.hpp>
#include <umem/ghosts.hpp>
#include <umem/handle.hpp>
#include <umem/indexer.hpp>
#include <umem/iterator.hpp>
#include <umem/part.hpp>
#include <umem/place.hpp>
#include <umem/place_guard.hpp>
#include <umem/range.hpp>
#include <umem/scalar.hpp>
#include <umem/shape.hpp>
#include <umem/slice.hpp>
#include <umem/transform.hpp>
#include <umem/vector.hpp>
#include <umem/view.hpp>

#endif
