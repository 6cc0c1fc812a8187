/* failure.hpp - how a command ends, and what it says when it cannot. */
#pragma once

#include <stdexcept>
#include <string>

namespace umem::tool {

/* The exit codes of the program. They stand in --help and in the manual. */
enum Status : int {
  success = 0,
  failure = 1,       /* an operation failed; the message says which */
  misuse = 2,        /* the command line is wrong */
  interrupted = 130, /* ended by SIGINT: 128 + its number; SIGTERM gives 143 */
  closed_pipe = 141  /* the reader of the output ended: 128 + SIGPIPE */
};

/* Thrown by a command; main prints what() after the name of the program and exits with status. */
struct Failure : std::runtime_error {
  explicit Failure(std::string const &why, int exit_status = failure)
      : std::runtime_error(why), status(exit_status) {}
  int status;
};

/* The reader of the output ended: the program ends, too, without a message. */
struct ClosedPipe : Failure {
  ClosedPipe() : Failure("", closed_pipe) {}
};

} // namespace umem::tool
