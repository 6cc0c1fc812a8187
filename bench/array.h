/* array.h - an array in RAM, in a file or in a mapped file, as a program without umem has it, and
 * the ways such a program has to move it. */
#ifndef UMEM_BENCH_ARRAY_H
#define UMEM_BENCH_ARRAY_H

#include "by_hand.h"
#include "place.h"

#include <optional>
#include <vector>

namespace bench {

/* size bytes, all written once. */
class Array {
public:
  Array(Kind kind, std::size_t size);
  Array(Array const &) = delete;
  Array &operator=(Array const &) = delete;

  /* Of memory and mappings. */
  char *bytes() const { return mapping_ ? mapping_->bytes() : memory_.get(); }

  /* Of files and mappings; the stream is at the start of the file. */
  int fd() const { return *fd_; }
  std::FILE *stream() const;

  std::size_t size() const { return size_; }

private:
  std::size_t size_;
  by_hand::Memory memory_;
  std::optional<TempFile> file_;
  std::optional<by_hand::Descriptor> fd_;
  by_hand::Stream stream_;
  std::optional<by_hand::Mapping> mapping_;
};

/* A way to copy the whole of one array to another of the same size. */
struct Way {
  char const *name;
  Kind from, to;
  void (*copy)(Array const &from, Array const &to);
};

/* All ways between arrays of these kinds. */
std::vector<Way> ways(Kind from, Kind to);

/* A way to set all bytes of an array. */
struct Filling {
  char const *name;
  Kind kind;
  void (*fill)(Array const &array, int value);
};

Filling filling(Kind kind);

} // namespace bench

#endif
