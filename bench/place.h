/* place.h - what the benchmarks work on: contexts of the table, blocks in them, temporary files. */
#ifndef UMEM_BENCH_PLACE_H
#define UMEM_BENCH_PLACE_H

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" {
#include "backends.h"
}

namespace bench {

/* Throws std::runtime_error, with the thread's message, unless status is umemOK. */
void check(umemStatusType status);

/* Throws std::system_error with errno unless good. */
void check_system(bool good, char const *what);

/* The row of the table with this name; throws std::runtime_error when there is none. */
Backend const &row_named(char const *name);

/* An open context of the table. */
class Place {
public:
  /* Throws std::runtime_error, with the thread's message, when it cannot be opened. */
  explicit Place(Backend const &row);
  Place(Place const &) = delete;
  Place &operator=(Place const &) = delete;
  ~Place() { backend_close(&row_, context_); }

  umemVirtual *context() const { return context_; }

  /* Waits for what is queued, where it is an ordered context. */
  void finish() const {
    if (context_->capabilities & umemOrdered) umem_synchronize(context_);
  }

private:
  Backend const &row_;
  umemVirtual *context_;
};

/* A block of size bytes; all of them are written once, so that no benchmark pays for first
 * touch. */
class Block {
public:
  Block(void *context, std::size_t size);
  Block(Block const &) = delete;
  Block &operator=(Block const &) = delete;
  ~Block() { umem_free(context_, address_); }

  std::uintptr_t address() const { return address_; }
  operator std::uintptr_t() const { return address_; }

private:
  void *context_;
  std::uintptr_t address_;
};

/* An empty file in $TMPDIR, removed at the end. */
class TempFile {
public:
  TempFile();
  TempFile(TempFile const &) = delete;
  TempFile &operator=(TempFile const &) = delete;
  ~TempFile();

  char const *path() const { return path_.c_str(); }

private:
  std::string path_;
};

/* Where an array can be; by hand, anywhere except on a device. */
enum class Kind { memory, file, mapping, device };

/* What the addresses of context are to somebody who does without umem. */
Kind kind_of(umemVirtual const *context);
char const *name_of(Kind kind);

/* Bytes of RAM, and of disk behind $TMPDIR, that could be had now. */
std::uint64_t available_memory();
std::uint64_t available_disk();

} // namespace bench

#endif
