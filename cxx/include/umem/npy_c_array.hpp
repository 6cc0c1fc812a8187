/* umem/npy_c_array.hpp - .npy files whose type and rank are known at run time.
 *
 *     umem::CArray u = umem::load_npy("u.npy", umem::Cuda());         // any type, any rank
 *     umem::CArray m = umem::map_npy("large.npy", umem::read);        // the file itself, no copy
 *     umem::load_npy_converted("floats.npy", doubles);                // into another type
 *     umem::visit(m, umem::read, [](auto const &view) { ... });       // a DynamicView of its type
 *     umem::save_npy("v.npy", u);
 *
 * A umem::CArray (c_array.hpp) knows its type, shape and strides: a file in Fortran order makes one
 * in Fortran order, without rearranging elements. Supported are the types of npy.hpp but long
 * double, which umemArray does not have. */
#ifndef UMEM_NPY_C_ARRAY_HPP
#define UMEM_NPY_C_ARRAY_HPP

#include <umem/c_array_numbers.hpp>
#include <umem/npy.hpp>

#include <complex>

namespace umem {
namespace detail {

/* The name of a type in NumPy. Throws umem::type_error if it has none. */
inline std::string npy_type_of(umemElementType type) {
  unsigned const bytes = umem_element_bits(type) / 8;
  std::string const size = std::to_string(bytes), order = bytes == 1 ? "|" : "<";
  if (umem_element_size(type) > 0 && umem_element_lanes(type) == 1) {
    switch (umem_element_code(type)) {
    case umemCodeBool:
      return "|b1";
    case umemCodeInt:
      return order + "i" + size;
    case umemCodeUInt:
      return order + "u" + size;
    case umemCodeFloat:
      if (bytes <= 8) return "<f" + size;
      break;
    case umemCodeComplex:
      if (bytes == 8 || bytes == 16) return "<c" + size;
      break;
    default:
      break;
    }
  }
  throw type_error(".npy files have no elements of type " + name_of(type));
}

/* What a file holds of which a umemArray can be made. */
struct NpyElements : NpyHeader {
  NpyElements(Context const &file, std::uint64_t size, address begin, bool may_be_big = false)
      : NpyHeader(read_npy_header(file, size, begin, may_be_big)) {
    if (!element_type)
      throw type_error("its type is '" + type + "', which umemArray does not have");
  }

  int rank() const noexcept { return static_cast<int>(shape.size()); }
};

/* A umemArray of the elements at adr in the memory of a block, which it keeps. */
inline CArray c_array_on(std::shared_ptr<Buffer> const &block, Context const &context, address adr,
                         NpyElements const &elements) {
  struct Kept {
    std::shared_ptr<Buffer> block; /* before the context, which must end last */
    Context context;
  };
  return owned_array(std::make_unique<Kept>(Kept{block, context}), context.c_context(), adr,
                     elements.element_type, elements.rank(), elements.shape.data(),
                     elements.strides.data());
}

/* A umemArray of elements of a file, borrowed. */
inline CArray c_array_in(Context const &file, NpyElements const &elements, address adr) {
  return CArray(status_call(umemArray_borrow, file.c_context(), adr, elements.element_type,
                            elements.rank(), elements.shape.data(), elements.strides.data()));
}

/* The bytes of a file as bools: those other than 0 become 1. */
inline void load_bools(File const &file, NpyElements const &elements, Context const &to,
                       address adr) {
  Extents<1> const extents(static_cast<index_t>(elements.nbytes));
  auto const bools =
      load_npy_bools(Part<unsigned char const, 1>(file, elements.data_offset, extents));
  copy(bools.context(), bools.adr(), to, adr, elements.nbytes);
  if (to.can(umemOrdered)) to.synchronize(); /* before the array of bools ends */
}

/* Copies the bytes of numbers to another context, in the other order of bytes. */
inline void copy_turned_bytes(Context const &from, address from_adr, Context const &to,
                              address to_adr, std::size_t nbytes, umemElementType type) {
  bool const is_complex = umem_element_code(type) == umemCodeComplex;
  std::size_t const number = umem_element_size(type) / (is_complex ? 2 : 1);
  Extents<1> const extents(static_cast<index_t>(nbytes));
  copy_changed(
      Part<unsigned char const, 1>(from, from_adr, extents),
      Part<unsigned char, 1>(to, to_adr, extents),
      [&](unsigned char *bytes, std::size_t count) { reverse_numbers(bytes, count, number); });
}

inline CArray load_elements(File const &file, Context const &context) {
  NpyElements const elements(file, file.info().capacity, 0, true);
  /* what exchange with other libraries needs: see umemArray_create */
  std::size_t const alignment = context.can(umemDeviceAccessible) ? 256 : 64;
  auto const block = std::make_shared<Buffer>(context, elements.nbytes, alignment);
  if (elements.element_type == umemBool && elements.nbytes > 0)
    load_bools(file, elements, context, block->adr());
  else if (elements.big_endian)
    copy_turned_bytes(file, elements.data_offset, context, block->adr(), elements.nbytes,
                      elements.element_type);
  else
    copy(file, elements.data_offset, context, block->adr(), elements.nbytes);
  if (context.can(umemOrdered)) context.synchronize();
  return c_array_on(block, context, block->adr(), elements);
}

} // namespace detail

/* Reads a file of any type and rank into a new array, in the order of the file; the array keeps a
 * handle of the context. Throws as load_npy<T, N>; umem::type_error for types that umemArray does
 * not have. */
inline CArray load_npy(std::string const &path, Context const &context = detail::pointers()) {
  File const file(path, "r");
  return detail::of_npy_file(path, [&] { return detail::load_elements(file, context); });
}

/* Reads a file into elements that exist, and converts them by the rules of umemArray_convert:
 * rounded to the nearest number, and numbers out of range become the nearest limit. elements: what
 * convert_elements takes. Throws umem::value_error if the shapes differ and umem::type_error if
 * there is no conversion; then the elements keep their values. A file that cannot be read to its
 * end may leave some written. A big-endian file is loaded into RAM first. */
template <class Operand> void load_npy_converted(std::string const &path, Operand &&elements) {
  File const file(path, "r");
  detail::of_npy_file(path, [&] {
    detail::NpyElements const held(file, file.info().capacity, 0, true);
    CArray const from = held.big_endian ? detail::load_elements(file, detail::pointers())
                                        : detail::c_array_in(file, held, held.data_offset);
    auto const check_shape = [&](Shape const &shape) {
      if (shape != held.shape)
        detail::raise_text(umemValueError, "its shape is %s, that of the elements %s",
                           detail::in_words(held.shape).text, detail::in_words(shape).text);
    };
    if constexpr (detail::is_operand<Operand>)
      check_shape(detail::extents_of(elements));
    else
      detail::read_c_array(elements, [&](umemArray *to) {
        if (to) check_shape(Shape(umemArray_shape(to), umemArray_shape(to) + umemArray_rank(to)));
      });
    convert_elements(from, elements);
  });
}

/* The elements of a file in place, in its order: an array on a umem::MMap of the file. Nothing is
 * read before it is used. umem::read opens the file to read, umem::write with mode "r+": writes to
 * the elements change the file, and are durable after a flush of the context. Elements of type bool
 * are the bytes of the file, whatever they are.
 *
 * Throws as map_npy<T, N>. */
template <class Access> CArray map_npy(std::string const &path, Access) {
  constexpr bool writes = std::is_same_v<Access, write_t>;
  static_assert(writes || std::is_same_v<Access, read_t>,
                "map_npy: the access is umem::read or umem::write");
  detail::MappedNpy const mapped(path, writes);
  return detail::of_npy_file(path, [&] {
    detail::NpyElements const elements(mapped.file, mapped.size, mapped.begin);
    std::size_t const size = umem_element_size(elements.element_type);
    bool const is_complex = umem_element_code(elements.element_type) == umemCodeComplex;
    detail::check_mapped(elements.data_offset, is_complex ? size / 2 : size);
    return detail::c_array_on(mapped.block(), mapped.file, mapped.begin + elements.data_offset,
                              elements);
  });
}

/* Writes the elements of an array, as save_npy of npy.hpp: in Fortran order if the array is so
 * without gaps, else in C order. Throws, besides, umem::type_error for types that NumPy does not
 * have, and umem::value_error for an empty handle. */
inline void save_npy(std::string const &path, CArray const &array,
                     umemByteOrder order = umemOrderOfArray) {
  umemArray *const from = array.get();
  if (!from) throw value_error("save_npy: the array is NULL");
  CArray const transposed(detail::status_call(umemArray_permute, from, nullptr));
  bool const fortran_order =
      !umemArray_is_c_contiguous(from) && umemArray_is_c_contiguous(transposed.get());
  Shape const shape(umemArray_shape(from), umemArray_shape(from) + umemArray_rank(from));
  umemElementType const type = umemArray_type(from);
  std::string const header = detail::make_npy_header(
      detail::npy_type_in(order, detail::npy_type_of(type)), shape, fortran_order);
  umemArray *const stored = fortran_order ? transposed.get() : from;
  File const file = File::replace(path);
  std::size_t const nbytes = umemArray_nbytes(from);
  address const adr = file.allocate(header.size() + nbytes);
  copy(header.data(), file, adr, header.size());
  address const data = adr + header.size();
  CArray const to(detail::status_call(umemArray_borrow, file.c_context(), data, type,
                                      umemArray_rank(from), umemArray_shape(stored), nullptr));
  detail::status_call(umemArray_assign, to.get(), stored);
  if (order == umemOrderBig) detail::copy_turned_bytes(file, data, file, data, nbytes, type);
  file.commit();
}

/* functor(view) with a DynamicView<T> of the elements for the CPU, where T is their type: functor
 * is compiled for each of bool, the integers, float, double and complex numbers of these. Access:
 * umem::read for views of T const, umem::write. Throws as dynamic_view, and umem::type_error for
 * other types, such as float16. */
template <class Access, class Function>
void visit(CArray const &array, Access, Function &&functor) {
  constexpr bool writes = std::is_same_v<Access, write_t>;
  umemElementType const type = umemArray_type(array.get());
  bool found = false;
  auto const look = [&](auto zero) {
    using Type = std::conditional_t<writes, decltype(zero), decltype(zero) const>;
    if (found || type != element_type<Type>) return;
    found = true;
    functor(dynamic_view<Type>(array));
  };
  look(bool()), look(std::int8_t()), look(std::int16_t()), look(std::int32_t());
  look(std::int64_t()), look(std::uint8_t()), look(std::uint16_t()), look(std::uint32_t());
  look(std::uint64_t()), look(float()), look(double()), look(std::complex<float>());
  look(std::complex<double>());
  if (!found) throw type_error("visit: C++ has no elements of type " + detail::name_of(type));
}

} // namespace umem

#endif
