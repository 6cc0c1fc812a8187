/* enter.h - what each public function begins and ends with, and calls of the program's functions. */
#ifndef UMEM_ENTER_H
#define UMEM_ENTER_H

#include <umem/base.h>

#include "base/thread.h"

/* What the thread's state was when a function began. */
typedef struct umemEntry {
  umemThread *thread;
  bool outermost;       /* this function is the outermost of the thread */
  umemAttempt *attempt; /* the innermost open one */
  uint64_t failures;    /* of the thread: what was recorded or held before */
} umemEntry;

static inline umemEntry umem_enter(char const *function, void const *caller) {
  umemThread *thread = &umem_thread;
  __asm__(""
          : "+r"(thread)); /* keeps the address for umem_leave, where it would take another call */
  umemEntry entry = {thread, !thread->function, thread->attempt, thread->failures};
  if (entry.outermost) {
    thread->function = function;
    thread->caller = caller;
  }
  return entry;
}

/* Runs also when an exception of C++ passes: it closes the attempts that the exception has left. */
static inline void umem_leave(umemEntry const *entry) {
  umemThread *thread = entry->thread;
  thread->attempt = entry->attempt;
  if (!entry->outermost) return;
  thread->function = NULL;
  if (__builtin_expect(thread->deferred, 0)) umem_end_deferral();
}

/* First line of every public function that can fail. */
#define UMEM_ENTER() UMEM_ENTER_AS(__func__, __builtin_return_address(0))
/* The same for a private function that continues a public one, with the name and the return address of
 * that one. */
#define UMEM_ENTER_AS(function, caller)                                                            \
  __attribute__((cleanup(umem_leave), unused)) umemEntry const umem_entry_ =                       \
      umem_enter(function, caller)

/* The status of what this thread did since before, an earlier umem_thread.failures: umemOK, or the
 * type of its last failure. */
static inline umemStatusType umem_result(uint64_t before) {
  return umem_thread.failures == before ? umemOK : umem_thread.last;
}

/* The same for what was done since a public function began. It has the thread at hand: to look it up again costs as
 * much as a short copy. */
static inline umemStatusType umem_result_of(umemEntry const *entry) {
  return entry->thread->failures == entry->failures ? umemOK : entry->thread->last;
}

/* Around a call of a function of the program. What that function calls is no part of the running call:
 * messages do not name the running function, no attempt holds its failures, and they do not count as
 * failures of the running call, whose results and adaptors look at umem_thread.failures. Holds until the end
 * of the block, also when an exception passes:
 *
 *     UMEM_STEP_ASIDE(running);
 *     hook(...);
 */
static inline umemThread umem_step_aside(void) {
  umem_defer_cancel(); /* no cancellation may pass through umem */
  umemThread running = umem_thread;
  umem_thread.function = NULL;
  umem_thread.attempt = NULL;
  umem_thread.apart = false;
  umem_thread.deferred = false;
  umem_thread.leg = NULL;
  return running;
}
static inline void umem_step_back(umemThread const *running) { umem_thread = *running; }
#define UMEM_STEP_ASIDE(running)                                                                   \
  __attribute__((cleanup(umem_step_back), unused)) umemThread const running = umem_step_aside()

#endif
