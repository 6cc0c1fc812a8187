/* umem/status.h - how failures are reported.
 *
 * umem reports a failure in three places:
 *
 *   the call     functions that have nothing else to return return this call's umemStatusType;
 *                allocations return umem_null(ctx);
 *   the thread   umem_thread_status() and umem_thread_message() return the calling thread's last
 *                failure, until umem_thread_clear();
 *   the context  umem_get_status(ctx) and umem_get_message(ctx) return the failures on ctx, in
 *                any thread, until umem_clear_status(ctx). A program can make many calls and
 *                check once at the end.
 *
 * A recorded failure does not stop later calls. Recording a failure allocates nothing and cannot
 * fail. The library never aborts or exits. It prints nothing, except what nobody could receive:
 * what the contexts of UMEM_DEFAULT find when the process ends (default.h), and why an object of
 * C++ could not end as it should (umem_report_end).
 *
 * Threads: every function here may be called from any thread at any time. */
#ifndef UMEM_STATUS_H
#define UMEM_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <umem/config.h>

/* The kinds of failures. umem_get_status_name returns their names without "umem". */
typedef enum umemStatusType {
  umemOK = 0,
  umemMemoryError,         /* out of memory: RAM, disk or device; or the size is impossible */
  umemRuntimeError,        /* a runtime (driver, thread, kernel) failed */
  umemIOError,             /* a file or a link to another node failed */
  umemValueError,          /* an argument that can never be right */
  umemTypeError,           /* an object of the wrong kind */
  umemIndexError,          /* outside of a block, a file or the given bounds */
  umemNotImplementedError, /* the context lacks this operation */
  umemNotSupportedError,   /* this build, mode or machine cannot do it */
  umemAssertError,         /* an error in umem: please report it */
  umemCancelledError       /* the program has cancelled its own call */
} umemStatusType;

/* The bytes of the longest message, its terminating zero included. Longer ones are cut at the
 * end. */
#define UMEM_MESSAGE_SIZE 512

/* The status of a context. Read it by the functions below, which are safe while other threads use
 * the context. Do not read the members directly. */
typedef struct umemStatus {
  umemStatusType type;
  char *message; /* points into the context; NULL when nothing was recorded */
} umemStatus;

/* ---- the status of a context ---- */

/* Whether nothing has failed on ctx since it was constructed or cleared. False for NULL. */
UMEM_EXTERN bool umem_is_ok(void const *ctx);

/* The type of the last failure on ctx, or umemOK. umemValueError for NULL. */
UMEM_EXTERN umemStatusType umem_get_status(void const *ctx);

/* Returns the messages that were recorded on ctx, or "". Never NULL. The library owns the text. It
 * stays valid and unchanged during three further calls of umem_get_message or umem_thread_message
 * by this thread. */
UMEM_EXTERN char const *umem_get_message(void const *ctx);

/* Records a failure that the caller has found: on ctx, on this thread, and by a call of the failure
 * hook. The type overwrites the recorded one. The message (NULL is "") is appended to the recorded
 * text after "; "; a change from one failure to another is recorded there as "status OldName
 * changed to NewName". When the text is full, umem keeps its beginning. Control characters, marks
 * of writing direction, and bytes that are not UTF-8 become "\x1b" and the like, in messages of
 * umem, too: they may contain names that other people chose. If type is umemOK, it sets the
 * context's type to umemOK and appends the message, and the thread records no failure. Returns
 * type. If ctx is NULL, umem only records the failure on the thread and calls the hook. */
UMEM_EXTERN umemStatusType umem_set_status(void *ctx, umemStatusType type, char const *message);

/* Sets ctx back to umemOK and "". Does not change the status of any thread.
 * Returns umemOK, or umemValueError for NULL. */
UMEM_EXTERN umemStatusType umem_clear_status(void *ctx);

/* The name of type: "OK", "MemoryError", ...; "UnknownError" for any other number. Static
 * storage. */
UMEM_EXTERN char const *umem_get_status_name(umemStatusType type);

/* ---- the status of the calling thread ---- */

/* The type of this thread's last failure since umem_thread_clear, whatever its context; else
 * umemOK. */
UMEM_EXTERN umemStatusType umem_thread_status(void);

/* The message of that failure, or "". Never NULL. Valid as umem_get_message's. */
UMEM_EXTERN char const *umem_thread_message(void);

/* Returns how many failures this thread has recorded in its life. If a call that returns neither a
 * status nor an address (a free) increases this number, it has failed; otherwise it has succeeded.
 * Failures in a callback or hook increase the number, too. When the callback returns, umem
 * subtracts them again, because they are not failures of the call that has run the callback. */
UMEM_EXTERN uint64_t umem_thread_failures(void);

/* Sets this thread back to umemOK and "". Does not change contexts, nor umem_thread_failures. */
UMEM_EXTERN void umem_thread_clear(void);

/* ---- seeing every failure ---- */

/* umem calls the hook for each failure when it records it, in the thread that failed. ctx may be
 * NULL; do not destruct it in the hook. message is valid during the call. umem records failures
 * inside a hook, but does not call the hook for them, and the thread's last failure is still the
 * one for which the hook was called. No exception may leave the hook: declare it noexcept in C++
 * (see doc/concepts/callbacks.rst). */
typedef void umemFailureHook(void *ctx, umemStatusType type, char const *message, void *data);

/* For an object whose end has failed where nobody can receive a status, such as a destructor of C++
 * that could not write back. Prints one line to stderr: "umem: ", what has ended, and the message
 * of this thread's last failure. It prints nothing if there is a failure hook, which has seen the
 * failure. what: borrowed for the call. */
UMEM_EXTERN void umem_report_end(char const *what);

/* umem calls the hook some ten times a second, in the thread of the call, while a call waits for a
 * server that sends nothing; false cancels the call, which fails with umemCancelledError. For
 * umemBlocks threads of umem call it too, several at a time, and while a block is waited for.
 * Copies that report how far they are, and transfers, ask their function or umemTransfer_cancel
 * instead. No exception may leave the hook: umem ends the process with abort() then. */
typedef bool umemWaitHook(void *data);

/* Sets the wait hook of the process; NULL, the default: none. data is borrowed, as that of
 * umem_set_failure_hook. */
UMEM_EXTERN void umem_set_wait_hook(umemWaitHook *hook, void *data);

/* Sets the failure hook of the process; NULL, the default: none. data is borrowed, and is an
 * argument of each call of the hook. A call that already runs in another thread may still use the
 * old hook and the old data. */
UMEM_EXTERN void umem_set_failure_hook(umemFailureHook *hook, void *data);

/* ---- seeing what umem decides ---- */

/* How much of what umem decides by itself a hook sees; each level includes those before it. */
typedef enum umemDecision {
  umemDecisionNone = 0,
  umemDecisionFallbacks, /* umem takes a slower way, because a better one is not there */
  umemDecisionMemory,    /* a pool takes memory or gives it back; a retry calls its function */
  umemDecisionCopies     /* who moves the bytes of a copy */
} umemDecision;

/* umem calls the hook for each decision of the chosen levels, in the thread that decides. ctx: the
 * context that it is about; may be NULL. message is a line of text for people, valid during the
 * call; it may change with any version. umem may hold locks: the hook must not call umem, nor wait
 * for a thread that does. No exception may leave it. */
typedef void umemDecisionHook(void *ctx, umemDecision level, char const *message, void *data);

/* Sets the decision hook of the process, and how much it sees. umemDecisionNone or NULL, the
 * default: none; a decision then costs one branch. data is borrowed, and is an argument of each
 * call of the hook. A call that already runs in another thread may still use the old hook and data.
 * Errors: umemValueError for another level. */
UMEM_EXTERN umemStatusType umem_set_decision_hook(umemDecision most, umemDecisionHook *hook,
                                                  void *data);

#endif
