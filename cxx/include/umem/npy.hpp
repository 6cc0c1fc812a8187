/* umem/npy.hpp - arrays to and from NumPy's .npy files.
 *
 *     umem::save_npy("u.npy", array);
 *     auto u = umem::load_npy<double, 2>("u.npy", umem::Cuda());
 *
 * Elements are copied directly between the file and the context. Supported are bool, integers,
 * floats (half too) and complex numbers, in little endian, in versions 1.0, 2.0 and 3.0 of the
 * format. */
#ifndef UMEM_NPY_HPP
#define UMEM_NPY_HPP

#include <umem/array.hpp>
#include <umem/npy_header.hpp>
#include <umem/view.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace umem {

namespace detail {

/* How many bytes of a number of type T hold its value; the other bytes of sizeof(T) are padding.
 * x86 stores the 80 bits of a long double in 12 or 16 bytes. */
template <class T>
inline constexpr std::size_t number_bytes =
    std::is_same_v<T, long double> &&std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);

/* The type of the numbers in an element of type T. */
template <class T> using number_of = std::conditional_t<is_complex<T>, complex_part_t<T>, T>;

/* Writes elements to a file in pieces, with zeros as padding: in memory the padding may hold any
 * bytes, also secrets of the program. */
template <class T> class PaddingSaver {
public:
  PaddingSaver(File const &file, address adr)
      : file_(file), adr_(adr), buffer_(new unsigned char[most * sizeof(T)]) {}

  /* In C order. */
  template <int N> void save(Part<T const, N> const &part) {
    if (part.size() == 0) return;
    if constexpr (N == 0) {
      save_piece(part);
    } else {
      index row = part.size() / part.extent(0), rows = row > most ? 0 : most / row;
      for (index i = 0; i < part.extent(0); i += rows ? rows : 1)
        if (rows)
          save_piece(part.slice(0, i, part.extent(0) - i < rows ? part.extent(0) : i + rows));
        else
          save(part.select(0, i));
    }
  }

private:
  using Number = number_of<T>;
  static constexpr index most = 65536; /* elements of a piece */

  template <int N> void save_piece(Part<T const, N> const &part) {
    std::size_t nbytes = static_cast<std::size_t>(part.size()) * sizeof(T);
    copy(part, Part<T, N>(pointers(), reinterpret_cast<address>(buffer_.get()), part.extents()));
    for (std::size_t at = 0; at < nbytes; at += sizeof(Number))
      std::memset(buffer_.get() + at + number_bytes<Number>, 0,
                  sizeof(Number) - number_bytes<Number>);
    copy(buffer_.get(), file_, adr_, nbytes);
    adr_ += nbytes;
  }

  File const &file_;
  address adr_;
  std::unique_ptr<unsigned char[]> buffer_;
};

} // namespace detail

/* Writes the elements, without ghost cells, to a new file, and makes it durable. The new file
 * replaces the one at path, if there is one. At every instant path leads to the complete old
 * file or to the complete new one, even if the process is killed or the power fails; if this
 * throws, the old file stays as it is. So the array may be on a mapping of the file that it
 * replaces.
 *
 * The new file gets the permissions of the old one, and its owner if that is permitted. A
 * symbolic link stays, and its target is replaced. Other hard links and open descriptors keep
 * the old file: see umemFile_replace. The disk holds both files for a while, and the folder must
 * be writable.
 *
 * Throws umem::io_error if path cannot be written or is no regular file, umem::memory_error if
 * the disk is full, and the exceptions of the array: it is locked, or work that was queued on
 * its context has failed. */
template <class T, int N> void save_npy(std::string const &path, Part<T, N> const &part) {
  using Value = std::remove_const_t<T>;
  std::string header = detail::make_npy_header(detail::npy_type<Value>(), Shape(part.extents()));
  std::size_t nbytes = static_cast<std::size_t>(part.size()) * sizeof(T);
  detail::PartMembers::memory(part).check_source();
  File file = File::replace(path);
  address adr = file.allocate(header.size() + nbytes), data = adr + header.size();
  copy(header.data(), file, adr, header.size());
  using Number = detail::number_of<Value>;
  if constexpr (detail::number_bytes<Number> < sizeof(Number))
    detail::PaddingSaver<Value>(file, data).save(Part<Value const, N>(part));
  else
    copy(part, Part<Value, N>(file, data, part.extents()));
  file.commit();
}
template <class T, int N> void save_npy(std::string const &path, ArrayAccess<T, N> const &array) {
  save_npy(path, array.part());
}
template <class T, int N> void save_npy(std::string const &path, View<T, N> const &view) {
  save_npy(path, part(view));
}

namespace detail {

/* Throws if the type in a file is not that of the array. */
inline void check_npy_type(std::string const &held, std::string const &wanted) {
  if (held == wanted ||
      (held.size() > 1 && held[0] != '>' && wanted[0] == '|' && held.substr(1) == wanted.substr(1)))
    return;
  if (held.size() > 1 && held[0] == '=' && held.substr(1) == wanted.substr(1)) return;
  if (held.size() > 1 && held[0] == '>') throw type_error("its type '" + held + "' is big endian");
  throw type_error("its type is '" + held + "', that of the array '" + wanted + "'");
}

inline void check_npy_size(std::uint64_t held, std::size_t wanted) {
  if (held < wanted)
    throw io_error("it is truncated: its header says " + std::to_string(wanted) +
                   " bytes of data, it holds " + std::to_string(held));
  if (held > wanted)
    throw value_error("it is too long: its header says " + std::to_string(wanted) +
                      " bytes of data, it holds " + std::to_string(held));
}

/* The position of the elements in a file, in either order; type: the name of T that the file
 * must have. */
template <class T, int N>
Part<T const, N> find_npy_part(File const &file, std::string const &type) {
  std::uint64_t size = file.info().capacity;
  NpyHeader header = read_npy_header(file, size);
  check_npy_type(header.type, type);
  auto extents = header.shape.to<N>();
  index count = checked_product(extents);
  if (count > largest<index> / static_cast<index>(sizeof(T)))
    throw value_error("its shape is larger than any array can be");
  check_npy_size(size - header.data_offset, static_cast<std::size_t>(count) * sizeof(T));
  if (!header.fortran_order) return Part<T const, N>(file, header.data_offset, extents);
  Extents<N> reversed;
  for (int k = 0; k < N; k++) reversed[k] = extents[N - 1 - k];
  return Part<T const, N>(file, header.data_offset, reversed).transpose();
}

/* The same; its exceptions name the file. */
template <class T, int N>
Part<T const, N> npy_part(std::string const &path, File const &file, std::string const &type) {
  try {
    return find_npy_part<T, N>(file, type);
  } catch (error const &failure) {
    raise(failure.status(), ("\"" + path + "\": " + failure.message()).c_str());
  }
}

/* Bytes other than 0 and 1 are no bool: they become true, as in NumPy. */
template <int N> Array<unsigned char, N> load_npy_bools(Part<unsigned char const, N> const &part) {
  Array<unsigned char, N> bytes(part.extents());
  copy(part, bytes.part());
  auto guard = bytes.host(write);
  for (index i = 0; i < guard.size(); i++) guard[i] = guard[i] != 0;
  return bytes;
}

} // namespace detail

/* Reads a file into a new array in C order; the file may be in Fortran order. Throws
 * umem::type_error if the elements of the file are not T, have another byte order, or another
 * number of dimensions; umem::io_error if the file cannot be read or is truncated;
 * umem::value_error if it is no .npy file or contains more. Ghost cells, which options can
 * request, are uninitialised. */
template <class T, int N>
Array<T, N> load_npy(std::string const &path, Context device = detail::pointers(),
                     ArrayOptions<N> const &options = {}) {
  File file(path, "r");
  if constexpr (std::is_same_v<T, bool>) {
    auto bytes = detail::load_npy_bools(
        detail::npy_part<unsigned char, N>(path, file, detail::npy_type<T>()));
    Array<T, N> array(bytes.extents(), std::move(device), options);
    copy(Part<T, N>(bytes.context(), bytes.adr(), bytes.extents()), array.part());
    return array;
  } else {
    auto part = detail::npy_part<T, N>(path, file, detail::npy_type<T>());
    Array<T, N> array(part.extents(), std::move(device), options);
    copy(part, array.part());
    return array;
  }
}

} // namespace umem

#endif
