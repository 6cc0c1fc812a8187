/* umem/c_array_numbers.hpp - conversion and random numbers of C, in C++, by the rules of C.
 *
 *     umem::Array<double, 2> u({100, 200}, umem::Cuda());
 *     umem::random_normal(u, 0, 1, 7);                     // seed 7: the same numbers on every context
 *     umem::convert_elements(u, halves);                   // rounded once, to the nearest number
 *
 * convert_elements takes a umemArray, a umem::CArray or a umem::Array, which lends its device side for the call, as
 * umem::c_array does, without its ghost cells; its context must have pointers. For arrays in files take a umem::CArray.
 * Random numbers go to these and to whatever loops take: arrays in files, parts, views, guards. The CPU does the work; on
 * return it is complete. umem::convert differs: it runs on the place of the arrays, and converts by static_cast.
 *
 * Threads: as for writes to the elements. All functions throw what the functions of C record, and what
 * Array::device throws. */
#ifndef UMEM_C_ARRAY_NUMBERS_HPP
#define UMEM_C_ARRAY_NUMBERS_HPP

#include <umem/array_convert.h>
#include <umem/array_random.h>
#include <umem/c_array.hpp>
#include <umem/detail/operand.hpp>

#include <cstdint>

namespace umem {
namespace detail {

inline CArray c_array_of(umemArray *array) { return CArray::share(array); }
inline CArray c_array_of(CArray const &array) { return array; }
template <class T, int N> CArray c_array_of(Array<T, N> const &array) { return c_array(array); }
template <class T, int N> CArray c_array_of(Array<T, N> &array) { return c_array(array, write); }

template <class A> inline constexpr bool is_array = false;
template <class T, int N> inline constexpr bool is_array<Array<T, N>> = true;

/* call(a umemArray over memory of the host, status). */
template <class T, class Call>
void call_on_host(T *data, int rank, std::int64_t const *shape, std::int64_t const *strides,
                  Call const &call) {
  static_assert(element_type<T> != 0, "umem: umemArray has no element type for T");
  umemStatusType status = umemOK;
  CArray array(umemArray_borrow(pointers().c_context(), reinterpret_cast<address>(data),
                                element_type<T>, rank, shape, strides, &status));
  if (array) call(array.get(), &status);
  check(status);
}

/* call(a umemArray of the elements in the memory of the host, status), for whatever loops take. */
template <class A, class Call> void write_from_host(A &operand, Call const &call) {
  using T = value_of<A>;
  constexpr int N = rank_of<A>;
  std::int64_t shape[std::size_t(N) + 1] = {0}, strides[std::size_t(N) + 1];
  call_on_host<T>(nullptr, 1, shape, nullptr,
                  call); /* wrong arguments fail before anything changes */
  auto const used = use(operand, discard);
  auto const on_view = [&](auto const &view) {
    for (int k = 0; k < N; k++) {
      shape[k] = view.extents.at[k];
      strides[k] = view.strides.at[k] * static_cast<index>(sizeof(T));
    }
    call_on_host<T>(view.data, N, shape, strides, call);
  };
  with_views(settled(on_host, used), on_view, used);
}

/* call(the umemArray, status), which writes all elements: in their memory where C can. */
template <class A, class Call> void write_as_c_array(A &array, Call const &call) {
  if constexpr (is_array<A>) {
    if (array.context().can(umemOffsets)) return write_from_host(array, call);
  } else if constexpr (is_operand<A>) {
    return write_from_host(array, call);
  }
  if constexpr (is_array<A> || !is_operand<A>) {
    umemStatusType status = umemOK;
    call(c_array_of(array).get(), &status);
    check(status);
  }
}

} // namespace detail

/* Converts count elements of in, from in_offset on, to those of out from out_offset on, counted in C order: see
 * umemArray_convert. Throws umem::type_error if there is no conversion, umem::index_error for elements outside of an
 * array, umem::not_supported_error for a read-only out. */
template <class A, class B>
void convert_elements(A const &in, index in_offset, B &&out, index out_offset, index count) {
  umemStatusType status = umemOK;
  CArray from = detail::c_array_of(in), to = detail::c_array_of(out);
  umemArray_convert(to.get(), from.get(), out_offset, in_offset, count, &status);
  detail::check(status);
}

/* The same for all elements. Throws umem::value_error, too, where the arrays do not have equally many. */
template <class A, class B> void convert_elements(A const &in, B &&out) {
  umemStatusType status = umemOK;
  CArray from = detail::c_array_of(in), to = detail::c_array_of(out);
  std::int64_t const count = umemArray_elements(from.get());
  if (from && to && count != umemArray_elements(to.get()))
    throw value_error(std::to_string(count) + " elements cannot become " +
                      std::to_string(umemArray_elements(to.get())));
  umemArray_convert(to.get(), from.get(), 0, 0, count, &status);
  detail::check(status);
}

/* Sets all elements to numbers that are uniform in [low, high): see umemArray_random_uniform. Throws umem::type_error
 * for elements that are not floating-point numbers, umem::value_error for bounds without numbers. */
template <class A> void random_uniform(A &&array, double low, double high, std::uint64_t seed) {
  detail::write_as_c_array(array, [=](umemArray *to, umemStatusType *status) {
    umemArray_random_uniform(to, low, high, seed, status);
  });
}

/* Sets all elements to numbers of a normal distribution: see umemArray_random_normal. Throws as random_uniform. */
template <class A>
void random_normal(A &&array, double mean, double deviation, std::uint64_t seed) {
  detail::write_as_c_array(array, [=](umemArray *to, umemStatusType *status) {
    umemArray_random_normal(to, mean, deviation, seed, status);
  });
}

} // namespace umem

#endif
