/* new_text.hpp - a file of text that gets its name when it is complete. */
#pragma once

#include "interrupt.hpp"

#include <cstdio>
#include <string>
#include <sys/types.h>
#include <umem.h>

namespace umem::tool {

/* Writes a new file through a stream of C. Without a commit an old file of the name stays as it is,
 * and an interrupt ends the writing. Throws Failure. */
class NewText {
public:
  explicit NewText(std::string const &path);
  ~NewText();
  NewText(NewText const &) = delete;
  NewText &operator=(NewText const &) = delete;

  std::FILE *stream() const { return stream_; }

  /* Closes the stream, and replaces the file of the name. */
  void commit();

private:
  static ssize_t write(void *self, char const *bytes, std::size_t nbytes);
  bool write_pending(std::size_t nbytes);
  [[noreturn]] void fail();

  Interrupt const interrupt_;
  std::string path_, pending_, why_;
  umemFile file_ = {};
  umemHost ram_ = {};
  std::FILE *stream_ = nullptr;
};

} // namespace umem::tool
