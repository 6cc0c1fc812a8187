/* status.h - failures and their texts, for the library itself, and the entry and exit of public
 * functions. */
#ifndef UMEM_CORE_STATUS_H
#define UMEM_CORE_STATUS_H

#include <umem/base.h>

#include "base/thread.h"

/* umemVirtual_fail as an expression of this value, for what functions return; of those that return
 * whether they have succeeded, and of those that return a pointer. */
#define UMEM_FAIL_AS(value, ...) (umemVirtual_fail(__VA_ARGS__), (value))
#define UMEM_FAIL(...) UMEM_FAIL_AS(false, __VA_ARGS__)
#define UMEM_FAIL_NULL(...) UMEM_FAIL_AS(NULL, __VA_ARGS__)

/* Copies what was recorded on ctx to text, UMEM_MESSAGE_SIZE bytes. Unlike umem_get_message it
 * uses up none of the texts that were handed out to the program. */
void umem_copy_message(umemVirtual const *ctx, char *text);

/* A copy of text that is valid as long as that of umem_get_message. */
char const *umem_keep_text(char const *text);

/* The system's words for error, as strerror. Uses buffer; thread-safe. */
char const *umem_system_words(int error, char *buffer, size_t size);

#define UMEM_WORDS(error) umem_system_words((error), (char[128]){0}, 128)

/* umemVirtual_adopt for ctx and each layer between it and from, innermost first. from: the
 * context that has done the work for them, ctx itself or one below it; NULL: none has, so all
 * layers down to the innermost one. */
umemStatusType umem_record_on_layers(umemVirtual *from, umemVirtual *ctx, uint64_t before);

/* Writes text and a newline to the standard error output: the only output of the library, for
 * what no call can return. A failure has no effect, nor has a reader that has gone (SIGPIPE). */
void umem_print_line(char const *text);

/* Makes the calling thread as one that is in no function of umem. Only for test programs, which
 * leave a call by longjmp when a check or a signal ends a test. What the call held, locks of its
 * contexts too, it holds for ever. Returns whether the thread left a call. */
bool umem_leave_all(void);

/* ---- entry and exit of public functions ---- */

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

/* Runs also when an exception of C++ passes: it closes the attempts that the exception has left.
 * Lets the thread be cancelled again, if it could be when umem_defer_cancel was called. */
static inline void umem_leave(umemEntry const *entry) {
  umemThread *thread = entry->thread;
  thread->attempt = entry->attempt;
  if (!entry->outermost) return;
  thread->function = NULL;
  if (__builtin_expect(thread->deferred, 0)) {
    thread->deferred = false; /* before: see umem_defer_cancel */
    pthread_setcancelstate(thread->cancel_state, NULL);
  }
}

/* First line of every public function that can fail. */
#define UMEM_ENTER() UMEM_ENTER_AS(__func__, __builtin_return_address(0))
/* UMEM_ENTER for a private function that continues a public one, with the name and the return
 * address of that one. */
#define UMEM_ENTER_AS(function, caller)                                                            \
  __attribute__((cleanup(umem_leave), unused)) umemEntry const umem_entry_ =                       \
      umem_enter(function, caller)

/* Forgets what fails from here to the end of the block of code. */
#define UMEM_FORGETTING()                                                                          \
  __attribute__((cleanup(umemAttempt_end), unused)) umemAttempt umem_forgotten_;                   \
  umemAttempt_begin(&umem_forgotten_)

/* Holds failures from here to the end of the block of code, and records them then: after the
 * release of a lock that is taken later, because the failure hook may call back. */
#define UMEM_HOLDING()                                                                             \
  __attribute__((cleanup(umemAttempt_record_at_end), unused)) umemAttempt umem_held_;              \
  umemAttempt_begin(&umem_held_)
static inline void umemAttempt_record_at_end(umemAttempt *held) {
  umemAttempt_end(held);
  umemAttempt_record(held);
}

/* The status of what this thread did since before, an earlier umem_thread.failures: umemOK, or the
 * type of its last failure. */
static inline umemStatusType umem_result(uint64_t before) {
  return umem_thread.failures == before ? umemOK : umem_thread.last;
}

/* The status of what was done since a public function began. It has the thread at hand: to look
 * it up again costs as much as a short copy. */
static inline umemStatusType umem_result_of(umemEntry const *entry) {
  return entry->thread->failures == entry->failures ? umemOK : entry->thread->last;
}

/* In a function with UMEM_ENTER: the type of the failure since then; umemOK if there was none. */
#define UMEM_RESULT() umem_result_of(&umem_entry_)

/* Around a call of a function of the program. What that function calls is no part of the running
 * call: messages do not name the running function, no attempt holds its failures, and they do not
 * count as failures of the running call, whose results and adaptors look at umem_thread.failures.
 * Holds until the end of the block, also when an exception passes:
 *
 *     UMEM_STEP_ASIDE(running);
 *     hook(...); */
static inline umemThread umem_step_aside(void) {
  umem_defer_cancel(); /* no cancellation may pass through umem */
  umemThread running = umem_thread;
  umem_thread.function = NULL;
  umem_thread.attempt = NULL;
  umem_thread.uncaptured = false;
  umem_thread.deferred = false;
  umem_thread.step = NULL;
  umem_thread.meter = NULL;
  umem_thread.waiter = NULL;
  return running;
}
static inline void umem_step_back(umemThread const *running) { umem_thread = *running; }
#define UMEM_STEP_ASIDE(running)                                                                   \
  __attribute__((cleanup(umem_step_back), unused)) umemThread const running = umem_step_aside()

/* ---- the lock of texts ---- */

/* The global lock, for the texts of messages and labels, notes, and the records of the ledger.
 * umem_texts_lock returns false, and takes no lock, in a signal handler that has interrupted this
 * thread while it holds the lock: it would wait for itself. */
bool umem_texts_lock(void);
void umem_texts_unlock(void);

/* Holds this lock from here to the end of the block of code. If it cannot be taken, the function
 * returns, with the value that follows. */
#define UMEM_TEXTS_LOCKED(...)                                                                     \
  __attribute__((cleanup(umem_texts_end), unused)) bool const umem_texts_ = umem_texts_lock();     \
  if (!umem_texts_) return __VA_ARGS__
static inline void umem_texts_end(bool const *locked) {
  if (*locked) umem_texts_unlock();
}

/* ---- decisions ---- */

/* What the decision hook wants to see: a umemDecision; atomic. */
extern int umem_decisions __attribute__((visibility("hidden")));

/* Reports a decision of this level to the hook. format: as of printf; the arguments are evaluated
 * only if the hook wants to see it. */
#define UMEM_DECIDED(level, ctx, ...)                                                              \
  do {                                                                                             \
    if (__builtin_expect(__atomic_load_n(&umem_decisions, __ATOMIC_RELAXED) >= (int)(level), 0))   \
      umem_report_decision((ctx), (level), __VA_ARGS__);                                           \
  } while (0)
void umem_report_decision(void *ctx, umemDecision level, char const *format, ...) UMEM_PRINTF(3, 4);

#endif
