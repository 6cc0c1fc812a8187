/* umem/c_array_numbers.hpp - conversion and random numbers of C, in C++, by the rules of C.
 *
 *     umem::Array<double, 2> u({100, 200}, umem::Cuda());
 *     umem::random_normal(u, 0, 1, 7);                     // seed 7: the same numbers on every context
 *     umem::convert_elements(u, halves);                   // rounded once, to the nearest number
 *
 * Each function takes a umemArray, a umem::CArray, or any operand of a loop: a umem::Array, a part, a view of host
 * memory, a guard, on any context. Of an array or a part it uses the memory that umem::copy would use; ghost cells keep
 * their values. Random element number n in C order is the same on every context, whatever the strides. The CPU does the
 * work; on return it is complete. umem::convert differs: it runs on the place of the arrays, and converts by static_cast.
 *
 * Threads: as for writes to the elements. All functions throw what the functions of C record, and
 * umem::locked_error as umem::copy does. */
#ifndef UMEM_C_ARRAY_NUMBERS_HPP
#define UMEM_C_ARRAY_NUMBERS_HPP

#include <umem/array_convert.h>
#include <umem/array_random.h>
#include <umem/c_array.hpp>
#include <umem/detail/operand.hpp>
#include <umem/part.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace umem {
namespace detail {

/* f(array) with a umemArray over the elements of a part at this location. */
template <class T, int N, class F>
void with_c_array_at(Location const &at, Part<T, N> const &part, F const &f) {
  static_assert(element_type<T> != 0, "umemArray has no element type for the elements");
  std::int64_t shape[slots<N>] = {}, strides[slots<N>] = {};
  for (int k = 0; k < N; k++) {
    shape[k] = part.extents().at[k];
    strides[k] = part.strides().at[k] * static_cast<index_t>(sizeof(T));
  }
  umemStatusType status = umemOK;
  CArray const array(umemArray_borrow(at.context->c_context(), at.adr, element_type<T>, N, shape,
                                      strides, &status));
  check(status);
  f(array.get());
}

/* f(umemArray) with what has the elements, to read. */
template <class F> void read_c_array(umemArray *array, F const &f) { f(array); }
template <class F> void read_c_array(CArray const &array, F const &f) { f(array.get()); }
template <class A, class F, class = std::enable_if_t<is_operand<A>>>
void read_c_array(A const &elements, F const &f) {
  using T = typename operand_t<A>::element_type;
  Part<T const, rank_of<A>> const part = as_part(elements);
  with_c_array_at(PartMembers::memory(part).source(PartMembers::items(part)), part, f);
}

/* The same to write; all: all elements. If f throws, the side that was current before is so again, as after a copy. */
template <class F> void write_c_array(umemArray *array, bool, F const &f) { f(array); }
template <class F> void write_c_array(CArray const &array, bool, F const &f) { f(array.get()); }
template <class A, class F, class = std::enable_if_t<is_operand<A>>>
void write_c_array(A &elements, bool all, F const &f) {
  static_assert(is_written<A>, "the elements of a read-only array cannot be written");
  auto const part = as_part(elements);
  PartMemory const &memory = PartMembers::memory(part);
  ItemLayout const items = PartMembers::items(part);
  all = all && memory.mirror &&
        static_cast<std::size_t>(part.size()) * items.item_size == memory.mirror->nbytes();
  Location const at = memory.destination(items, all);
  try {
    with_c_array_at(at, part, f);
  } catch (...) {
    if (memory.mirror) memory.mirror->undo_overwrite(at.side);
    throw;
  }
}

} // namespace detail

/* Converts count elements of in, from in_offset on, to those of out from out_offset on, counted in C order: see
 * umemArray_convert. Throws umem::type_error if there is no conversion, umem::index_error for elements outside of an
 * array, umem::not_supported_error for a read-only out. */
template <class A, class B>
void convert_elements(A const &in, index_t in_offset, B &&out, index_t out_offset, index_t count) {
  detail::read_c_array(in, [&](umemArray *from) {
    detail::write_c_array(out, false, [&](umemArray *to) {
      umemStatusType status = umemOK;
      umemArray_convert(to, from, out_offset, in_offset, count, &status);
      detail::check(status);
    });
  });
}

/* The same for all elements. Throws umem::value_error, too, where the arrays do not have equally many. */
template <class A, class B> void convert_elements(A const &in, B &&out) {
  detail::read_c_array(in, [&](umemArray *from) {
    detail::write_c_array(out, true, [&](umemArray *to) {
      umemStatusType status = umemOK;
      std::int64_t const count = umemArray_elements(from);
      if (from && to && count != umemArray_elements(to))
        throw value_error(std::to_string(count) + " elements cannot become " +
                          std::to_string(umemArray_elements(to)));
      umemArray_convert(to, from, 0, 0, count, &status);
      detail::check(status);
    });
  });
}

/* Sets all elements to numbers that are uniform in [low, high): see umemArray_random_uniform. Throws umem::type_error
 * for elements that are not floating-point numbers, umem::value_error for bounds without numbers. */
template <class A> void random_uniform(A &&array, double low, double high, std::uint64_t seed) {
  detail::write_c_array(array, true, [&](umemArray *to) {
    umemStatusType status = umemOK;
    umemArray_random_uniform(to, low, high, seed, &status);
    detail::check(status);
  });
}

/* Sets all elements to numbers of a normal distribution: see umemArray_random_normal. Throws as random_uniform. */
template <class A>
void random_normal(A &&array, double mean, double deviation, std::uint64_t seed) {
  detail::write_c_array(array, true, [&](umemArray *to) {
    umemStatusType status = umemOK;
    umemArray_random_normal(to, mean, deviation, seed, &status);
    detail::check(status);
  });
}

} // namespace umem

#endif
