/* umem/c_array_numbers.hpp - conversion and random numbers of C, in C++, by the rules of C.
 *
 *     umem::Array<double, 2> u({100, 200}, umem::Cuda());
 *     umem::random_normal(u, 0, 1, 7);           // seed 7: the same numbers on every context
 *     umem::convert_elements(u, halves);                   // rounded once, to the nearest number
 *
 * Each function takes a umemArray, a umem::CArray, or any operand of a loop: a umem::Array, a part,
 * a view of host memory, a guard, on any context. Of an array or a part it uses the memory that
 * umem::copy would use; ghost cells keep their values. Random element number n in C order is the
 * same on every context, whatever the strides. The CPU does the work; on return it is complete.
 * umem::convert has the same results, and runs on the place of the arrays.
 *
 * Threads: as for writes to the elements. All functions throw what the functions of C record, and
 * umem::locked_error as umem::copy does. */
#ifndef UMEM_C_ARRAY_NUMBERS_HPP
#define UMEM_C_ARRAY_NUMBERS_HPP

#include <umem/c_array.hpp>
#include <umem/convert.hpp>

namespace umem {
namespace detail {

/* functor(array) with a umemArray over the elements of a part at this location. */
template <class Type, int Rank, class Function>
void with_c_array_at(Location const &at, Part<Type, Rank> const &part, Function const &functor) {
  static_assert(element_type<Type> != 0, "umemArray has no element type for the elements");
  ByteLayout<Type, Rank> const layout(part.extents(), part.strides());
  CArray const array(status_call(umemArray_borrow, at.context->c_context(), at.adr,
                                 element_type<Type>, Rank, layout.shape, layout.strides));
  functor(array.get());
}

/* functor(umemArray) with what has the elements, to read. */
template <class Function> void read_c_array(umemArray *array, Function const &functor) {
  functor(array);
}
template <class Function> void read_c_array(CArray const &array, Function const &functor) {
  functor(array.get());
}
template <class Operand, class Function, class = std::enable_if_t<is_operand<Operand>>>
void read_c_array(Operand const &elements, Function const &functor) {
  using Type = typename operand_t<Operand>::element_type;
  Part<Type const, rank_of<Operand>> const part = as_part(elements);
  with_c_array_at(PartMembers::memory(part).source(PartMembers::items(part)), part, functor);
}

/* Calls functor with an array to write; all: all elements. If f throws, the side that was current
 * before is so again, as after a copy. */
template <class Function> void write_c_array(umemArray *array, bool, Function const &functor) {
  functor(array);
}
template <class Function> void write_c_array(CArray const &array, bool, Function const &functor) {
  functor(array.get());
}
template <class Operand, class Function, class = std::enable_if_t<is_operand<Operand>>>
void write_c_array(Operand &elements, bool all, Function const &functor) {
  static_assert(is_written<Operand>, "the elements of a read-only array cannot be written");
  auto const part = as_part(elements);
  PartMemory const &memory = PartMembers::memory(part);
  ItemLayout const items = PartMembers::items(part);
  all = all && memory.mirror &&
        static_cast<std::size_t>(part.size()) * items.item_size == memory.mirror->nbytes();
  Location const at = memory.destination(items, all);
  try {
    with_c_array_at(at, part, functor);
  } catch (...) {
    if (memory.mirror) memory.mirror->undo_overwrite(at.side);
    throw;
  }
}

/* convert: umemArray_convert or umemArray_convert_wrapping. all: all elements, as many as both
 * have. */
template <class Operand, class Other, class Functor>
void convert_range(Operand const &in, index_t in_offset, Other &out, index_t out_offset,
                   index_t count, Functor *convert, bool all = false) {
  read_c_array(in, [&](umemArray *from) {
    write_c_array(out, all, [&](umemArray *to) {
      if (all) count = umemArray_elements(from);
      if (all && from && to && count != umemArray_elements(to))
        throw value_error(std::to_string(count) + " elements cannot become " +
                          std::to_string(umemArray_elements(to)));
      status_call(convert, to, from, out_offset, in_offset, count);
    });
  });
}

} // namespace detail

/* Converts count elements of in, from in_offset on, to those of out from out_offset on, counted in
 * C order: see umemArray_convert. Throws umem::type_error if there is no conversion,
 * umem::index_error for elements outside of an array, umem::not_supported_error for a read-only
 * out. */
template <class Operand, class Other>
void convert_elements(Operand const &in, index_t in_offset, Other &&out, index_t out_offset,
                      index_t count) {
  detail::convert_range(in, in_offset, out, out_offset, count, umemArray_convert);
}

/* Converts all elements. Throws umem::value_error, too, where the arrays do not have equally
 * many. */
template <class Operand, class Other> void convert_elements(Operand const &in, Other &&out) {
  detail::convert_range(in, 0, out, 0, 0, umemArray_convert, true);
}

/* With umem::wrapping, integers out of range wrap: see umemArray_convert_wrapping. */
template <class Operand, class Other>
void convert_elements(Operand const &in, index_t in_offset, Other &&out, index_t out_offset,
                      index_t count, wrapping_t) {
  detail::convert_range(in, in_offset, out, out_offset, count, umemArray_convert_wrapping);
}
template <class Operand, class Other>
void convert_elements(Operand const &in, Other &&out, wrapping_t) {
  detail::convert_range(in, 0, out, 0, 0, umemArray_convert_wrapping, true);
}

/* Sets all elements to numbers that are uniform in [low, high): see umemArray_random_uniform.
 * Throws umem::type_error for elements that are not floating-point numbers, umem::value_error for
 * bounds without numbers. */
template <class Operand>
void random_uniform(Operand &&array, double low, double high, std::uint64_t seed) {
  detail::write_c_array(array, true, [&](umemArray *to) {
    detail::status_call(umemArray_random_uniform, to, low, high, seed);
  });
}

/* Sets all elements to numbers of a normal distribution: see umemArray_random_normal. Throws as
 * random_uniform. */
template <class Operand>
void random_normal(Operand &&array, double mean, double deviation, std::uint64_t seed) {
  detail::write_c_array(array, true, [&](umemArray *to) {
    detail::status_call(umemArray_random_normal, to, mean, deviation, seed);
  });
}

} // namespace umem

#endif
