/* trace_run.hpp - runs a program whose default context of umem writes a log. */
#pragma once

#include <string>
#include <vector>

namespace umem::tool {

struct TraceRun {
  std::vector<std::string> program; /* and its arguments */
  std::string out = "trace.json";   /* JSON for Perfetto */
  std::string keep;                 /* where the log stays; empty: nowhere */
  std::string on;                   /* the context below the log; empty: that of UMEM_DEFAULT */
  std::string size;                 /* of the log, as in its name; empty: the default */
  bool flows = false;
};

/* Throws Failure, also with the exit status of a program that fails. */
void run_traced(TraceRun const &wanted);

} // namespace umem::tool
