/* umem/npy.hpp - arrays to and from NumPy's .npy files.
 *
 *     umem::save_npy("u.npy", array);
 *     auto u = umem::load_npy<double, 2>("u.npy", umem::Cuda());
 *
 * The elements go between the file and the context directly. bool, integers, floats (half too) and
 * complex numbers, in little endian; versions 1.0, 2.0 and 3.0 of the format. */
#ifndef UMEM_NPY_HPP
#define UMEM_NPY_HPP

#include <umem/array.hpp>
#include <umem/npy_header.hpp>
#include <umem/view.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace umem {

/* Writes the elements, without ghost cells, to a file that is created or emptied, and makes it
 * durable. umem::io_error where it cannot be written, umem::memory_error when the disk is full. A
 * file that is there stays as it is where the elements cannot be had, since the array is locked or
 * what was queued on its context has failed. */
template <class T, int N> void save_npy(std::string const &path, Part<T, N> const &part) {
  using Value = std::remove_const_t<T>;
  std::string header = detail::make_npy_header(detail::npy_type<Value>(), Shape(part.extents()));
  std::size_t nbytes = static_cast<std::size_t>(part.size()) * sizeof(T);
  part.check_source();
  File file(path, "w");
  address adr = file.allocate(header.size() + nbytes);
  copy(header.data(), file, adr, header.size());
  copy(part, Part<Value, N>(file, adr + header.size(), part.extents()));
  file.flush();
}
template <class T, int N> void save_npy(std::string const &path, ArrayAccess<T, N> const &array) {
  save_npy(path, array.part());
}
template <class T, int N> void save_npy(std::string const &path, View<T, N> const &view) {
  save_npy(path, part(view));
}

namespace detail {

/* Throws unless the type in a file is that of the array. */
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

/* Where the elements are in a file, whichever order they have; type: what the file is to call T. */
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

/* The same, whose exceptions name the file. */
template <class T, int N>
Part<T const, N> npy_part(std::string const &path, File const &file, std::string const &type) {
  try {
    return find_npy_part<T, N>(file, type);
  } catch (error const &failure) {
    raise(failure.status(), ("\"" + path + "\": " + failure.message()).c_str());
  }
}

/* Bytes other than 0 and 1, which are no bool, become true, as in NumPy. */
template <int N> Array<unsigned char, N> load_npy_bools(Part<unsigned char const, N> const &part) {
  Array<unsigned char, N> bytes(part.extents());
  copy(part, bytes.part());
  auto guard = bytes.host(write);
  for (index i = 0; i < guard.size(); i++) guard[i] = guard[i] != 0;
  return bytes;
}

} // namespace detail

/* Reads a file into a new array, in C order also where the file is in Fortran order. The elements
 * of the file must be T, else umem::type_error, also for another byte order or another number of
 * dimensions; umem::io_error for a file that cannot be read or is truncated, umem::value_error for
 * one that is no .npy file or has more in it. Ghost cells, where options ask for them, are
 * uninitialised. */
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
