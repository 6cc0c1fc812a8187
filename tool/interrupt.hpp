/* interrupt.hpp - SIGINT, SIGTERM and SIGHUP become a question, so that a command can undo its work
 * first. */
#pragma once

namespace umem::tool {

/* From its construction to its end these signals only set a flag, and end calls of umem that wait
 * for a server. One inside of another changes nothing. */
class Interrupt {
public:
  Interrupt();
  ~Interrupt();
  Interrupt(Interrupt const &) = delete;
  Interrupt &operator=(Interrupt const &) = delete;

  /* The number of the first signal that came, or 0. */
  static int signal();

  /* Sets the flag; for handlers of signals. */
  static void note(int number);

  /* Throws Failure with the status 128 + number if one came. */
  static void check();
};

} // namespace umem::tool
