/* Shows how far a long copy is, and ends it if the user presses Ctrl-C. */
#include <csignal>
#include <cstdio>
#include <umem.hpp>

static volatile std::sig_atomic_t interrupted;
static void interrupt(int number) { interrupted = number; }

int main() {
  std::signal(SIGINT, interrupt);
  umem::Host ram;
  umem::File file("copy.bin", "w");
  auto from = umem::Buffer::zeroed(ram, 64 << 20);
  umem::Buffer to(file, 64 << 20);
  try {
    umem::copy(ram, from.adr(), file, to.adr(), from.size(), [](auto done, auto total) {
      std::fprintf(stderr, "\r%3d %%", static_cast<int>(100 * done / total));
      return !interrupted; // false ends the copy
    });
    std::printf("copied\n");
  } catch (umem::cancelled_error const &) {
    std::printf("stopped\n");
  }
}
