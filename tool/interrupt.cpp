#include "interrupt.hpp"

#include "failure.hpp"

#include <array>
#include <csignal>
#include <cstddef>

namespace umem::tool {

static volatile std::sig_atomic_t came;
static constexpr std::array<int, 3> numbers = {SIGINT, SIGTERM, SIGHUP};
static std::array<struct sigaction, numbers.size()> before;

static unsigned depth; /* of Interrupts that exist */

void Interrupt::note(int number) {
  if (!came) came = number;
}

Interrupt::Interrupt() {
  if (depth++) return;
  came = 0;
  for (std::size_t i = 0; i < numbers.size(); i++) {
    struct sigaction action = {};
    action.sa_handler = Interrupt::note;
    action.sa_flags = SA_RESTART;
    sigaction(numbers[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN)
      sigaction(numbers[i], &action, nullptr); /* nohup ignores SIGHUP */
  }
}

Interrupt::~Interrupt() {
  if (--depth) return;
  for (std::size_t i = 0; i < numbers.size(); i++) sigaction(numbers[i], &before[i], nullptr);
}

int Interrupt::signal() { return came; }

void Interrupt::check() {
  if (came) throw Failure("interrupted", 128 + came);
}

} // namespace umem::tool
