/* umem/npy_header.hpp - the headers of NumPy's .npy files, which umem/npy.h reads. Programs include npy.hpp. */
#ifndef UMEM_NPY_HEADER_HPP
#define UMEM_NPY_HEADER_HPP

#include <umem/context.hpp>
#include <umem/element.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/npy.h>
#include <umem/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "umem/npy.hpp writes the bytes of numbers as they are, for little endian machines"
#endif

namespace umem {
namespace detail {

/* The contents of a header. */
struct NpyHeader {
  std::string type;                 /* for example "<f8" */
  umemElementType element_type = 0; /* 0: umemArray has none */
  bool fortran_order = false;
  Shape shape, strides;        /* strides in bytes */
  std::size_t nbytes = 0;      /* of all elements */
  std::size_t data_offset = 0; /* in bytes, from the beginning of the file */
};

/* The name of Type in NumPy: byte order, kind, size. */
template <class Type> std::string npy_type() {
  std::string size = std::to_string(sizeof(Type));
  char const *order = sizeof(Type) == 1 ? "|" : "<";
  if constexpr (std::is_same_v<Type, bool>)
    return "|b" + size;
  else if constexpr (std::is_integral_v<Type>)
    return order + std::string(std::is_signed_v<Type> ? "i" : "u") + size;
  else if constexpr (is_half<Type>)
    return "<f2";
  else if constexpr (is_complex<Type>) {
    npy_type<complex_part_t<Type>>();
    return "<c" + size;
  } else {
    static_assert(
        std::is_floating_point_v<Type> &&
            (sizeof(Type) != 2 || std::numeric_limits<Type>::digits == 11),
        "npy: NumPy has bool, integers, floats and complex numbers; of structs, save each "
        "member as an array of its own");
    return "<f" + size;
  }
}

/* The header at the beginning of a file of file_size bytes, whose first byte is at begin. Reads only the header. Throws
 * umem::value_error if it is no .npy file, an impossible or a truncated one, and umem::type_error if umem has no such
 * elements. */
inline NpyHeader read_npy_header(Context const &file, std::uint64_t file_size, address begin = 0) {
  umemNpyHeader found = UMEM_NPY_HEADER_INIT;
  umemStatusType const status = umem_npy_read_header(file.c_context(), begin, file_size, &found);
  if (status != umemOK) { /* the caller puts the name of the file before what is wrong */
    std::string const text = umem_thread_message(), function = "umem_npy_read_header: ";
    bool const named = text.compare(0, function.size(), function) == 0;
    raise(status, text.substr(named ? function.size() : 0).c_str());
  }
  NpyHeader header;
  header.type = found.descr;
  header.element_type = found.type;
  header.fortran_order = found.fortran_order;
  header.shape = Shape(found.shape, found.shape + found.rank);
  header.strides = Shape(found.strides, found.strides + found.rank);
  header.nbytes = found.nbytes;
  header.data_offset = found.offset;
  return header;
}

/* As Python writes a tuple. */
inline std::string shape_text(Shape const &shape) {
  std::string text = "(";
  for (index_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + (shape.size() == 1 ? ",)" : ")");
}

/* A header of version 1.0, as NumPy writes it: the data begin at a multiple of 64. */
inline std::string make_npy_header(std::string const &type, Shape const &shape,
                                   bool fortran_order = false) {
  std::string text = "{'descr': '" + type +
                     "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                     ", 'shape': " + shape_text(shape) + ", }";
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(text.size() & 0xff);
  start += static_cast<char>(text.size() >> 8);
  return start + text;
}

} // namespace detail
} // namespace umem

#endif
