/* trace_log.hpp - a log of umemLog that was read, and what is written of it. */
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <trace.h>

namespace umem::tool {

class Log {
public:
  /* Reads the file. only: the number of the one context that is wanted; 0: all. Throws Failure. */
  Log(std::string const &path, unsigned only);
  ~Log() { trace_close(&trace_); }
  Log(Log const &) = delete;
  Log &operator=(Log const &) = delete;

  /* Each writes to a file, which gets its name when it is complete, or to the standard output for
   * "-". They throw Failure. */
  void write_chrome(std::string const &path, bool flows) const;
  void write_csv(std::string const &path) const;
  void write_summary() const;

  /* Runs the log again on the context of this name, and prints time and peak. */
  void replay(std::string const &name) const;

private:
  void write(std::string const &path, std::function<bool(FILE *out)> const &what) const;

  Trace trace_;
  std::string path_;
};

} // namespace umem::tool
