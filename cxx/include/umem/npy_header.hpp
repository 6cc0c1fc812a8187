/* umem/npy_header.hpp - the headers of NumPy's .npy files. Programs include npy.hpp.
 *
 *     "\x93NUMPY"  major  minor  length of the text (2 bytes, from version 2.0 on 4)  text  data
 *
 * The text is a Python dictionary: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } .
 * Files can come from anywhere, so every part of a header is checked before it is used. */
#ifndef UMEM_NPY_HEADER_HPP
#define UMEM_NPY_HEADER_HPP

#include <umem/context.hpp>
#include <umem/element.hpp>
#include <umem/error.hpp>
#include <umem/extents.hpp>
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
  std::string type; /* for example "<f8" */
  bool fortran_order = false;
  Shape shape;
  std::size_t data_offset = 0; /* in bytes, from the beginning of the file */
};

/* Longer texts are refused: 32 dimensions need much less. */
inline constexpr std::size_t npy_max_text = 65536;

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

/* Parses the text of a header, word by word. */
class NpyText {
public:
  explicit NpyText(std::string const &text) : at_(text.data()), end_(at_ + text.size()) {}

  /* The whole dictionary. */
  void read(NpyHeader &header) {
    bool has_type = false, has_order = false, has_shape = false, comma = true;
    expect('{');
    while (!take('}')) {
      if (!comma) raise("its header is no dictionary: ',' is missing");
      std::string key = word();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        header.type = type();
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = truth();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        shape(header.shape);
      } else
        raise("its header has the key '" + key + "', which is unknown or there twice");
      comma = take(',');
    }
    if (!has_type || !has_order || !has_shape)
      raise("its header lacks descr, fortran_order or shape");
    skip_space();
    if (at_ != end_) raise("its header goes on after the dictionary");
  }

private:
  [[noreturn]] static void raise(std::string const &why) { throw value_error(why); }

  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n')) at_++;
  }

  /* If the next character is c, moves past it and returns true. */
  bool take(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    at_++;
    return true;
  }

  bool take(char const *word) {
    std::size_t length = std::strlen(word);
    skip_space();
    if (static_cast<std::size_t>(end_ - at_) < length || std::memcmp(at_, word, length) != 0)
      return false;
    at_ += length;
    return true;
  }

  void expect(char c) {
    if (!take(c)) raise(std::string("its header is no dictionary: '") + c + "' is missing");
  }

  /* A quoted word of printable ASCII. */
  std::string word() {
    char quote = take('\'') ? '\'' : take('"') ? '"' : '\0';
    if (!quote) raise("its header is no dictionary: a quoted word is missing");
    std::string result;
    for (; at_ < end_ && result.size() < 64; at_++) {
      if (*at_ == quote) {
        at_++;
        return result;
      }
      if (*at_ < ' ' || *at_ > '~' || *at_ == '\\') break;
      result += *at_;
    }
    raise("its header has a word that is too long, not closed or not plain ASCII");
  }

  std::string type() {
    if (take('[')) throw type_error("its elements are records");
    return word();
  }

  bool truth() {
    if (take("True")) return true;
    if (!take("False")) raise("its fortran_order is neither True nor False");
    return false;
  }

  /* (), (3,), (3, 4), ... : a comma may follow the last number, and must follow a single number. */
  void shape(Shape &shape) {
    bool comma = true;
    if (!take('(')) raise("its shape is no tuple");
    while (!take(')')) {
      if (!comma) raise("its shape is not a tuple of whole numbers");
      if (shape.size() == UMEM_MAX_RANK) raise("its shape has too many dimensions");
      shape.push_back(number());
      comma = take(',');
    }
    if (shape.size() == 1 && !comma) raise("its shape is a number, not a tuple");
  }

  /* A whole number as Python writes it: digits without a leading zero. */
  index_t number() {
    skip_space();
    char const *first = at_;
    index_t value = 0;
    for (; at_ < end_ && *at_ >= '0' && *at_ <= '9'; at_++) {
      index_t digit = *at_ - '0';
      if (value > (largest<index_t> - digit) / 10)
        raise("its shape has a number that is too large");
      value = value * 10 + digit;
    }
    if (at_ == first || (*first == '0' && at_ - first > 1))
      raise("its shape is not a tuple of whole numbers");
    return value;
  }

  char const *at_;
  char const *end_;
};

/* The header at the beginning of a file of file_size bytes, whose first byte is at begin. Reads only the header. Throws
 * umem::io_error if the file ends before its header does, umem::value_error if it is no .npy
 * file or an impossible one, and umem::type_error if the elements are records. */
inline NpyHeader read_npy_header(Context const &file, std::uint64_t file_size, address begin = 0) {
  unsigned char start[12] = {};
  if (file_size == 0) throw io_error("it is empty");
  copy(file, begin, start, file_size < sizeof start ? file_size : sizeof start);
  if (std::memcmp(start, "\x93NUMPY", file_size < 6 ? file_size : 6) != 0)
    throw value_error("it is no .npy file: it does not start with \\x93NUMPY");
  if (file_size < 10) throw io_error("it is truncated: it ends inside of its header");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    throw value_error("its format version " + std::to_string(start[6]) + "." +
                      std::to_string(start[7]) + " is unknown; known are 1.0, 2.0 and 3.0");

  bool is_long = start[6] > 1;
  std::size_t text_offset = is_long ? 12 : 10;
  std::size_t length = start[8] | std::size_t(start[9]) << 8;
  if (is_long) length |= std::size_t(start[10]) << 16 | std::size_t(start[11]) << 24;
  if (file_size < text_offset || file_size - text_offset < length)
    throw io_error("it is truncated: it ends inside of its header");
  if (length > npy_max_text)
    throw value_error("its header has " + std::to_string(length) + " bytes, more than the " +
                      std::to_string(npy_max_text) + " that are read");

  NpyHeader header;
  header.data_offset = text_offset + length;
  std::string text(length, ' ');
  copy(file, begin + text_offset, &text[0], length);
  NpyText(text).read(header);
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
