#include "array.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bench {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 20;

/* Calls act(offset, size) for each chunk of an array. */
template <typename Act> void for_chunks(std::size_t size, Act act) {
  for (std::size_t at = 0; at < size; at += chunk)
    act(static_cast<off_t>(at), std::min(chunk, size - at));
}

} // namespace

/* ---- the array ---- */

Array::Array(Kind kind, std::size_t size) : size_(size) {
  if (kind == Kind::memory) {
    memory_ = by_hand::allocate(size);
    std::memset(memory_.get(), 0x5A, size);
    return;
  }
  file_.emplace();
  fd_.emplace(file_->path(), O_RDWR);
  check_system(ftruncate(*fd_, static_cast<off_t>(size)) == 0, "ftruncate");
  std::vector<char> some(std::min(chunk, size), 0x5A);
  for_chunks(size, [&](off_t at, std::size_t n) { by_hand::write(*fd_, some.data(), n, at); });
  if (kind == Kind::mapping)
    mapping_.emplace(*fd_, size, PROT_READ | PROT_WRITE);
  else
    stream_ = by_hand::open_stream(file_->path(), "r+b");
}

std::FILE *Array::stream() const {
  std::rewind(stream_.get());
  return stream_.get();
}

/* ---- ways to copy ---- */

namespace {

void copy_bytes(Array const &from, Array const &to) {
  std::memcpy(to.bytes(), from.bytes(), from.size());
}

void copy_pwrite(Array const &from, Array const &to) {
  by_hand::write(to.fd(), from.bytes(), from.size(), 0);
}

void copy_fwrite(Array const &from, Array const &to) {
  std::FILE *stream = to.stream();
  by_hand::write(stream, from.bytes(), from.size());
  check_system(std::fflush(stream) == 0, "fflush");
}

void copy_pread(Array const &from, Array const &to) {
  by_hand::read(from.fd(), to.bytes(), from.size(), 0);
}

void copy_fread(Array const &from, Array const &to) {
  by_hand::read(from.stream(), to.bytes(), from.size());
}

void copy_mapped(Array const &from, Array const &to) {
  by_hand::Mapping mapping(from.fd(), from.size(), PROT_READ);
  std::memcpy(to.bytes(), mapping.bytes(), from.size());
}

void copy_in_chunks(Array const &from, Array const &to) {
  by_hand::Memory buffer = by_hand::allocate(std::min(chunk, from.size()));
  for_chunks(from.size(), [&](off_t at, std::size_t n) {
    by_hand::read(from.fd(), buffer.get(), n, at);
    by_hand::write(to.fd(), buffer.get(), n, at);
  });
}

void copy_streams(Array const &from, Array const &to) {
  by_hand::Memory bytes = by_hand::allocate(from.size());
  by_hand::read(from.stream(), bytes.get(), from.size());
  std::FILE *stream = to.stream();
  by_hand::write(stream, bytes.get(), from.size());
  check_system(std::fflush(stream) == 0, "fflush");
}

constexpr Way all_ways[] = {
    {"memcpy", Kind::memory, Kind::memory, copy_bytes},
    {"memcpy", Kind::memory, Kind::mapping, copy_bytes},
    {"memcpy", Kind::mapping, Kind::memory, copy_bytes},
    {"memcpy", Kind::mapping, Kind::mapping, copy_bytes},
    {"pwrite", Kind::memory, Kind::file, copy_pwrite},
    {"pwrite", Kind::mapping, Kind::file, copy_pwrite},
    {"fwrite", Kind::memory, Kind::file, copy_fwrite},
    {"pread", Kind::file, Kind::memory, copy_pread},
    {"pread", Kind::file, Kind::mapping, copy_pread},
    {"fread", Kind::file, Kind::memory, copy_fread},
    {"mmap+memcpy", Kind::file, Kind::memory, copy_mapped},
    {"pread+pwrite", Kind::file, Kind::file, copy_in_chunks},
    {"malloc+fread+fwrite", Kind::file, Kind::file, copy_streams},
};

/* ---- ways to fill ---- */

void fill_bytes(Array const &array, int value) { std::memset(array.bytes(), value, array.size()); }

void fill_file(Array const &array, int value) {
  std::vector<char> some(std::min(chunk, array.size()), static_cast<char>(value));
  for_chunks(array.size(),
             [&](off_t at, std::size_t n) { by_hand::write(array.fd(), some.data(), n, at); });
}

constexpr Filling fillings[] = {{"memset", Kind::memory, fill_bytes},
                                {"memset", Kind::mapping, fill_bytes},
                                {"pwrite", Kind::file, fill_file}};

} // namespace

std::vector<Way> ways(Kind from, Kind to) {
  std::vector<Way> found;
  for (Way const &way : all_ways)
    if (way.from == from && way.to == to) found.push_back(way);
  return found;
}

Filling filling(Kind kind) {
  for (Filling const &filling : fillings)
    if (filling.kind == kind) return filling;
  throw std::logic_error("no way to fill this kind of array");
}

} // namespace bench
