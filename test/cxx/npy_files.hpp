/* npy_files.hpp - what the tests of .npy files share: files byte by byte. */
#pragma once

#include <fstream>
#include "tests.hpp"

inline std::string bytes_of(std::string const &path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

inline void write_bytes(std::string const &path, std::string const &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/* A file of this version with this text and these data. */
inline std::string file_of(int version, std::string const &text, std::string const &data) {
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int shift = 0; shift < (version > 1 ? 32 : 16); shift += 8)
    bytes += static_cast<char>(text.size() >> shift & 0xff);
  return bytes + text + data;
}

inline std::string dictionary(std::string const &type, std::string const &order,
                              std::string const &shape) {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

/* The bytes of the numbers 1, 2, ... */
template <class T> std::string numbers(int count) {
  std::string data;
  for (int i = 1; i <= count; i++) {
    T value = static_cast<T>(i);
    data.append(reinterpret_cast<char const *>(&value), sizeof value);
  }
  return data;
}
