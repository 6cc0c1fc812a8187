#include "interrupt.hpp"

#include "failure.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <umem.h>

namespace umem::tool {

static volatile std::sig_atomic_t came;
static constexpr std::array<int, 3> caught_signals = {SIGINT, SIGTERM, SIGHUP};
static std::array<struct sigaction, caught_signals.size()> actions_before;

static unsigned depth; /* of Interrupts that exist */

/* For a call of umem that waits for a server. */
static bool goes_on(void *) noexcept { return !came; }

void Interrupt::note(int number) {
  if (!came) came = number;
}

Interrupt::Interrupt() {
  if (depth++) return;
  came = 0;
  umem_set_wait_hook(goes_on, nullptr);
  for (std::size_t i = 0; i < caught_signals.size(); i++) {
    struct sigaction action = {};
    action.sa_handler = Interrupt::note;
    action.sa_flags = SA_RESTART;
    sigaction(caught_signals[i], nullptr, &actions_before[i]);
    if (actions_before[i].sa_handler != SIG_IGN)
      sigaction(caught_signals[i], &action, nullptr); /* nohup ignores SIGHUP */
  }
}

Interrupt::~Interrupt() {
  if (--depth) return;
  umem_set_wait_hook(nullptr, nullptr);
  for (std::size_t i = 0; i < caught_signals.size(); i++)
    sigaction(caught_signals[i], &actions_before[i], nullptr);
}

int Interrupt::signal() { return came; }

void Interrupt::check() {
  if (came) throw Failure("interrupted", 128 + came);
}

} // namespace umem::tool
