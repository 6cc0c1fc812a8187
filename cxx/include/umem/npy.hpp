/* umem/npy.hpp - arrays to and from NumPy's .npy files.
 *
 *     umem::save_npy("u.npy", array);
 *     auto u = umem::load_npy<double, 2>("u.npy", umem::Cuda());
 *     umem::load_npy_into("u.npy", array.part().slice(0, 0, 3));      // into elements that exist
 *     auto m = umem::map_npy<double const, 2>("large.npy");      // the file itself, without a copy
 *
 * npy_c_array.hpp has the same for types and ranks that are known at run time.
 *
 * Elements are copied directly between the file and the context. Supported are bool, integers,
 * floats (half too) and complex numbers, in versions 1.0, 2.0 and 3.0 of the format. Big-endian
 * files are loaded, and written on request; they cannot be mapped. */
#ifndef UMEM_NPY_HPP
#define UMEM_NPY_HPP

#include <umem/array.hpp>
#include <umem/detail/operand.hpp>
#include <umem/element.hpp>
#include <umem/shape.hpp>

#include <algorithm>

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
  bool big_endian = false;
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

/* The header at the beginning of a file of file_size bytes, whose first byte is at begin. Reads
 * only the header. Throws umem::value_error if it is no .npy file, an impossible or a truncated
 * one, and umem::type_error if umem has no such elements, or they are big endian and may not be. */
inline NpyHeader read_npy_header(Context const &file, std::uint64_t file_size, address begin = 0,
                                 bool may_be_big = false) {
  umemNpyHeader found = UMEM_NPY_HEADER_INIT;
  found.big_endian = may_be_big;
  umemStatusType const status = umem_npy_read_header(file.c_context(), begin, file_size, &found);
  if (status != umemOK) { /* the caller puts the name of the file before what is wrong */
    std::string const text = umem_thread_message(), function = "umem_npy_read_header: ";
    bool const named = text.compare(0, function.size(), function) == 0;
    umem::raise(status, text.substr(named ? function.size() : 0).c_str());
  }
  NpyHeader header;
  header.type = found.descr;
  header.element_type = found.type;
  header.fortran_order = found.fortran_order;
  header.big_endian = found.big_endian;
  header.shape = Shape(found.shape, found.shape + found.rank);
  header.strides = Shape(found.strides, found.strides + found.rank);
  header.nbytes = found.nbytes;
  header.data_offset = found.offset;
  return header;
}

/* A type with this order of its bytes. */
inline std::string npy_type_in(umemByteOrder order, std::string type) {
  if (order == umemOrderBig && type[0] == '<') type[0] = '>';
  return type;
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

/* How many bytes of a number of type Type hold its value; the other bytes of sizeof(Type) are
 * padding. x86 stores the 80 bits of a long double in 12 or 16 bytes. */
template <class Type>
inline constexpr std::size_t number_bytes =
    std::is_same_v<Type, long double> &&std::numeric_limits<Type>::digits == 64 ? 10 : sizeof(Type);

/* The type of the numbers in an element of type Type. */
template <class Type>
using number_of = std::conditional_t<is_complex<Type>, complex_part_t<Type>, Type>;

/* Zeros as padding: in memory it may hold any bytes, also secrets of the program. */
template <class Type> void clear_padding(unsigned char *bytes, std::size_t nbytes) {
  using Scalar = number_of<Type>;
  if constexpr (number_bytes<Scalar> < sizeof(Scalar))
    for (std::size_t at = 0; at < nbytes; at += sizeof(Scalar))
      std::memset(bytes + at + number_bytes<Scalar>, 0, sizeof(Scalar) - number_bytes<Scalar>);
}

/* Numbers of so many bytes in the other order of bytes. */
inline void reverse_numbers(unsigned char *bytes, std::size_t nbytes, std::size_t number) {
  for (std::size_t at = 0; at < nbytes; at += number) std::reverse(bytes + at, bytes + at + number);
}

/* Copies elements in pieces, through a buffer in which change(bytes, nbytes) changes them. */
template <class Type, int Rank, class Change>
void copy_changed(Part<Type const, Rank> const &from, Part<Type, Rank> const &to,
                  Change const &change) {
  constexpr index_t most = (1 << 20) / sizeof(Type); /* elements of a piece */
  std::size_t const nbytes = static_cast<std::size_t>(from.size()) * sizeof(Type);
  if constexpr (Rank > 0) {
    if (from.size() > most) {
      index_t const row = from.size() / from.extent(0), rows = row > most ? 0 : most / row;
      for (index_t i = 0; i < from.extent(0); i += rows ? rows : 1) {
        index_t const end = from.extent(0) - i < rows ? from.extent(0) : i + rows;
        if (rows)
          copy_changed(from.slice(0, i, end), to.slice(0, i, end), change);
        else if constexpr (Rank > 1)
          copy_changed(from.select(0, i), to.select(0, i), change);
      }
      return;
    }
  }
  if (nbytes == 0) return;
  std::unique_ptr<unsigned char[]> const bytes(new unsigned char[nbytes]);
  auto const buffer = reinterpret_cast<address>(bytes.get());
  copy(from, Part<Type, Rank>(pointers(), buffer, from.extents()));
  if (from.context().can(umemOrdered)) from.context().synchronize();
  change(bytes.get(), nbytes);
  copy(Part<Type const, Rank>(pointers(), buffer, from.extents()), to);
  if (to.context().can(umemOrdered)) to.context().synchronize();
}

/* Copies elements whose order of bytes is another one in from than in to. */
template <class Type, int Rank>
void copy_turned(Part<Type const, Rank> const &from, Part<Type, Rank> const &to) {
  copy_changed(from, to, [](unsigned char *bytes, std::size_t nbytes) {
    clear_padding<Type>(bytes, nbytes);
    reverse_numbers(bytes, nbytes, sizeof(number_of<Type>));
  });
}

/* Whether elements follow one another in C order without gaps; there are some. */
template <class Type, int Rank> bool is_in_c_order(Part<Type, Rank> const &part) noexcept {
  return View<Type, Rank>(nullptr, part.extents(), part.strides()).is_contiguous();
}

/* Whether a file of a part is in Fortran order: where the part is so without gaps, and is not in C
 * order, too. */
template <class Type, int Rank> bool is_saved_in_fortran_order(Part<Type, Rank> const &part) {
  return part.size() > 0 && !is_in_c_order(part) && is_in_c_order(part.transpose());
}

} // namespace detail

/* Writes the elements of an array, a part or a view of host memory, without ghost cells, to a new
 * file, and makes it durable. order: of the bytes of numbers in the file; others than this
 * machine's go through a buffer. As with NumPy, a part in Fortran order without gaps makes a file
 * in Fortran order, all others one in C order. The new file replaces the one at path, if any.
 * At every instant path leads to the complete old file or to the complete new one, even if the
 * process is killed or the power fails; if this throws, the old file stays as it is. So the array
 * may be on a mapping of the file that it replaces.
 *
 * The new file gets the permissions of the old one, and its owner if that is permitted. A
 * symbolic link stays, and its target is replaced. Other hard links and open descriptors keep
 * the old file: see umemFile_replace. The disk holds both files for a while, and the folder must
 * be writable.
 *
 * Throws umem::io_error if path cannot be written or is no regular file, umem::memory_error if
 * the disk is full, and the exceptions of the array: it is locked, or work that was queued on
 * its context has failed. */
template <class Operand, class = detail::if_operand<Operand>>
void save_npy(std::string const &path, Operand const &elements,
              umemByteOrder order = umemOrderOfArray) {
  using Value = detail::value_of<Operand>;
  constexpr int Rank = detail::rank_of<Operand>;
  auto const part = detail::as_part(elements);
  bool const fortran_order = detail::is_saved_in_fortran_order(part);
  std::string header = detail::make_npy_header(
      detail::npy_type_in(order, detail::npy_type<Value>()), Shape(part.extents()), fortran_order);
  auto const stored = fortran_order ? part.transpose() : part;
  std::size_t nbytes = static_cast<std::size_t>(part.size()) * sizeof(Value);
  detail::PartMembers::memory(part).check_source();
  File file = File::replace(path);
  address adr = file.allocate(header.size() + nbytes), data = adr + header.size();
  copy(header.data(), file, adr, header.size());
  using Scalar = detail::number_of<Value>;
  Part<Value, Rank> const to(file, data, stored.extents());
  if (order == umemOrderBig)
    detail::copy_turned(Part<Value const, Rank>(stored), to);
  else if constexpr (detail::number_bytes<Scalar> < sizeof(Scalar))
    detail::copy_changed(Part<Value const, Rank>(stored), to, detail::clear_padding<Value>);
  else
    copy(stored, to);
  file.commit();
}

namespace detail {

/* Throws if the type in a file is not that of the array. */
inline void check_npy_type(NpyHeader const &header, std::string const &wanted) {
  std::string const &held = header.type;
  if (held != npy_type_in(header.big_endian ? umemOrderBig : umemOrderLittle, wanted))
    throw type_error("its type is '" + held + "', that of the array '" + wanted + "'");
}

/* The position of the elements in a file whose first byte is at begin, in either order;
 * type: the name of Type that the file must have. */
template <class Type, int Rank>
Part<Type, Rank> find_npy_part(NpyHeader const &header, Context const &file, address begin,
                               std::string const &type) {
  check_npy_type(header, type);
  auto extents = header.shape.to<Rank>();
  address const first = begin + header.data_offset;
  if (!header.fortran_order) return Part<Type, Rank>(file, first, extents);
  Extents<Rank> reversed;
  for (int k = 0; k < Rank; k++) reversed[k] = extents[Rank - 1 - k];
  return Part<Type, Rank>(file, first, reversed).transpose();
}

/* What f() returns; its exceptions name the file. */
template <class Function> auto of_npy_file(std::string const &path, Function const &functor) {
  try {
    return functor();
  } catch (error const &failure) {
    raise_text(failure.status(), "\"%s\": %s", path.c_str(), failure.message());
  }
}

/* Bytes other than 0 and 1 are no bool: they become true, as in NumPy. */
template <int Rank>
Array<unsigned char, Rank> load_npy_bools(Part<unsigned char const, Rank> const &part) {
  Array<unsigned char, Rank> bytes(part.extents(), pointers());
  copy(part, bytes.part());
  auto guard = bytes.host(write);
  for (index_t i = 0; i < guard.size(); i++) guard[i] = guard[i] != 0;
  return bytes;
}

/* Copies the elements of a file to the part that make(extents) returns. */
template <class Type, int Rank, class Make>
void load_npy_to(std::string const &path, Make const &make) {
  constexpr bool is_bool = std::is_same_v<Type, bool>;
  using Held = std::conditional_t<is_bool, unsigned char, Type>;
  File file(path, "r");
  bool big_endian = false;
  Part<Held const, Rank> const from = of_npy_file(path, [&] {
    NpyHeader const header = read_npy_header(file, file.info().capacity, 0, true);
    big_endian = header.big_endian;
    return find_npy_part<Held const, Rank>(header, file, 0, npy_type<Type>());
  });
  Part<Type, Rank> const to = make(from.extents());
  if constexpr (is_bool) {
    auto const bytes = load_npy_bools(from);
    copy(Part<Type const, Rank>(bytes.context(), bytes.adr(), bytes.extents()), to);
  } else if (!big_endian) {
    copy(from, to);
  } else if (is_in_c_order(from)) {
    copy_turned(from, to);
  } else {
    copy_turned(from.transpose(), to.transpose());
  }
}

} // namespace detail

/* Reads a file into a new array in C order; the file may be in Fortran order. Throws
 * umem::type_error if the elements of the file are not Type, or have another number of dimensions;
 * umem::io_error if the file cannot be read; umem::value_error if it is no .npy file or truncated.
 * Bytes behind the elements are left alone, as by NumPy. Ghost cells, which options can request,
 * are uninitialised. */
template <class Type, int Rank>
Array<Type, Rank> load_npy(std::string const &path, Context device = default_context(),
                           ArrayOptions<Rank> const &options = {}) {
  Array<Type, Rank> array;
  detail::load_npy_to<Type, Rank>(path, [&](Extents<Rank> const &extents) {
    array = Array<Type, Rank>(extents, std::move(device), options);
    return array.part();
  });
  return array;
}

/* What to write instead. */
template <class Type> Array<Type, 1> load_npy(std::string const &, Context const & = Context()) {
  static_assert(detail::never<Type>,
                "load_npy: name the type and the number of dimensions: load_npy<double, 2>(path)");
  __builtin_unreachable();
}

/* Reads a file into elements of an array, a part or a view of host memory, which keep their order,
 * and wherever they are. Throws as load_npy, and umem::value_error if the shape of the file is
 * another one; then, and if the elements are locked, they keep their values. A file that cannot be
 * read to its end may leave some elements written. load_npy_converted (npy_c_array.hpp) converts
 * from other types. */
template <class Operand, class = detail::if_operand<detail::bare_t<Operand>>>
void load_npy_into(std::string const &path, Operand &&elements) {
  auto const part = detail::as_part(elements);
  using PartType = std::remove_const_t<decltype(part)>;
  static_assert(!std::is_const_v<typename PartType::element_type>,
                "load_npy_into: the elements of a read-only array cannot be written");
  using Type = typename PartType::value_type;
  detail::load_npy_to<Type, PartType::rank>(
      path, [&](auto const &extents) -> auto const & {
        if (extents != part.extents())
          detail::raise_text(umemValueError, "\"%s\": its shape is %s, that of the elements %s",
                             path.c_str(), detail::in_words(extents).text,
                             detail::in_words(part.extents()).text);
        return part;
      });
}

namespace detail {

/* A mapped .npy file. */
struct MappedNpy {
  MappedNpy(std::string const &path, bool writes)
      : file(path, writes ? "r+" : "r"), size(File(path, "r").info().capacity),
        begin(size > 0 ? file.at_offset(0) : 0) {
    if (size > 0) file.at_offset(size - 1); /* throws if it is shorter now */
  }

  /* A block of all bytes, for the array that uses them. */
  std::shared_ptr<Buffer> block() const {
    return std::make_shared<Buffer>(file, static_cast<std::size_t>(size));
  }

  MMap file;
  std::uint64_t size; /* in bytes; a mapping to write has room for more */
  address begin;
};

inline void check_mapped(std::size_t offset, std::size_t alignment) {
  if (offset % alignment != 0)
    raise_text(umemValueError,
               "its elements begin at byte %zu, which is no multiple of %zu: load the file instead",
               offset, alignment);
}

} // namespace detail

/* The elements of a file in place: an array on a umem::MMap of the file. Nothing is read before it
 * is used, and pages that are not used take no memory. Type const opens the file to read. Other
 * Type open it with mode "r+": writes to the elements change the file, and are durable after
 * flush(). The array has the order of the file: umem::column_major for Fortran's. Map bool as
 * unsigned char, since the bytes of a file may be no bool.
 *
 * Throws as load_npy; umem::value_error where the elements are not aligned in the file;
 * umem::io_error if another context has it open to write. See MMap for files that others make
 * shorter. */
template <class Type, int Rank> Array<Type, Rank> map_npy(std::string const &path) {
  using Value = std::remove_const_t<Type>;
  static_assert(!std::is_same_v<Value, bool>,
                "map_npy: the bytes of a file may be no bool: map unsigned char, or load the file");
  detail::MappedNpy const mapped(path, !std::is_const_v<Type>);
  return detail::of_npy_file(path, [&] {
    detail::NpyHeader const header =
        detail::read_npy_header(mapped.file, mapped.size, mapped.begin);
    std::string type = detail::npy_type<Value>();
    if constexpr (std::is_same_v<Value, unsigned char>)
      if (header.type == "|b1") type = "|b1";
    auto const part = detail::find_npy_part<Type, Rank>(header, mapped.file, mapped.begin, type);
    ArrayOptions<Rank> options;
    if (part.size() > 0 && !detail::is_in_c_order(part)) options.order = column_major;
    address const first = detail::PartMembers::memory(part).adr;
    detail::check_mapped(first - mapped.begin, alignof(Type));
    auto block = mapped.block();
    return Array<Type, Rank>::wrap(
        first, part.extents(), mapped.file, [block]() mutable { block.reset(); }, options);
  });
}

/* What to write instead. */
template <class Type> Array<Type, 1> map_npy(std::string const &) {
  static_assert(detail::never<Type>, "map_npy: name the type and the number of dimensions: "
                                     "map_npy<double const, 2>(path)");
  __builtin_unreachable();
}

} // namespace umem

#endif
