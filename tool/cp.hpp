/* cp.hpp - the parts of umem cp: its two ends, its progress, and the copy itself. */
#pragma once

#include "name.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <umem.h>

namespace umem::tool {

/* ---- ends ---- */

/* What a user names: "NAME@offset,length" or "PATH@offset,length". */
struct Range {
  std::string name; /* without the range */
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length; /* nothing: to the end */
};

/* Throws Failure for sizes that are too large. */
Range parse_range(std::string const &text);

/* A size as in names: digits, then K, M, G or T of 1024 or nothing. Throws Failure. */
std::uint64_t parse_size(std::string const &text);

/* One end of a copy: a context with the block that holds the bytes. */
struct End {
  End() = default;
  virtual ~End() = default;
  End(End const &) = delete;
  End &operator=(End const &) = delete;

  void *ctx = nullptr; /* owned by the derived class */
  std::uintptr_t adr = 0;
  std::uint64_t nbytes = 0;
  bool is_file = false;
  bool is_packed = false; /* its bytes have no address: unpack makes them */
  bool is_array = false;  /* of a file of named arrays, */
  bool is_turned = false; /* and in the other order of bytes */

  /* Copies the bytes of one that is packed. go_on: as progress of umemCopyOptions. */
  virtual void unpack(End const &dst, bool (*go_on)(void *, std::uint64_t, std::uint64_t),
                      void *user, std::size_t step) const;

  /* What a .npy file has before these bytes; "" if they are no array. Throws Failure for one that
   * such a file cannot have. */
  virtual std::string npy_header() const { return {}; }

  /* Makes the bytes durable and visible under their name; does nothing for memory. */
  virtual void finish() {}
};

/* The bytes to copy, of a name or path with a range, or of an array of a file. A file is opened for
 * reading. Memory is filled with zeros, and needs a length. */
std::unique_ptr<End> open_source(std::string const &word, bool direct);

/* Room for the bytes of src. A file is a new one, which replaces that of the name by finish; of an
 * array, one of .npy if its path ends so. */
std::unique_ptr<End> open_destination(std::string const &word, End const &src, bool direct);

/* ---- progress ---- */

/* Shows on the standard error how far the copy is: one line on a terminal, else a line each
 * interval. */
class Progress {
public:
  /* seconds: between two reports; negative: 0.1 on a terminal, else 10. */
  Progress(bool quiet, double seconds);
  ~Progress() { clear(); }
  Progress(Progress const &) = delete;
  Progress &operator=(Progress const &) = delete;

  void show(char const *what, std::uint64_t done, std::uint64_t total);
  void clear(); /* removes the line */

  std::string route; /* shown when it is known */

private:
  using Clock = std::chrono::steady_clock;
  std::string text(char const *what, std::uint64_t done, std::uint64_t total, double seconds) const;

  bool quiet_, terminal_, shown_ = false;
  double interval_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
};

/* ---- the copy ---- */

struct Copied {
  std::uint64_t nbytes = 0;
  double seconds = 0;
  std::string route;
  bool verified = false;
};

/* Throws Failure, also after an interrupt. step: bytes between two looks at it; 0: 64 MiB. */
Copied copy(End const &src, End const &dst, std::size_t step, Progress &progress);

/* Reads both ends again and compares them. Throws Failure with the first byte that differs. */
void verify(End const &src, End const &dst, Progress &progress);

} // namespace umem::tool
