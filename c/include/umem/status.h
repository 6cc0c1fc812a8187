/* umem/status.h - how failures are reported.
 *
 * umem reports a failure in three places, so that each kind of program finds it where it looks:
 *
 *   the call     functions that have nothing else to return return this call's umemStatusType;
 *                allocations return umem_null(ctx);
 *   the thread   umem_thread_status() and umem_thread_message() return the calling thread's last
 *                failure, until umem_thread_clear();
 *   the context  umem_get_status(ctx) and umem_get_message(ctx) return what went wrong on ctx, in
 *                any thread, until umem_clear_status(ctx). A program can make many calls and
 *                look once at the end.
 *
 * umem attempts each operation whatever the earlier status. Recording a failure allocates nothing and
 * cannot fail. The library never aborts or exits, and prints only what the contexts of UMEM_DEFAULT find
 * when the process ends (default.h).
 *
 * Threads: every function here may be called from any thread at any time.
 */
#ifndef UMEM_STATUS_H
#define UMEM_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <umem/config.h>

/* What kind of failure. The names, without "umem", are those of umem_get_status_name. */
typedef enum umemStatusType {
  umemOK = 0,
  umemMemoryError,         /* no room: RAM, disk, device or a size that cannot exist */
  umemRuntimeError,        /* a runtime (driver, thread, kernel) failed */
  umemIOError,             /* a file or a link to another node failed */
  umemValueError,          /* an argument that can never be right */
  umemTypeError,           /* an object of the wrong kind */
  umemIndexError,          /* outside of a block, a file or the given bounds */
  umemNotImplementedError, /* the context lacks this operation */
  umemNotSupportedError,   /* this build, mode or machine cannot do it */
  umemAssertError,         /* umem contradicts itself: please report it */
  umemCancelledError       /* the program has cancelled its own call */
} umemStatusType;

/* The bytes of the longest message, its terminating zero included. Longer ones are cut at the end. */
#define UMEM_MESSAGE_SIZE 512

/* The status that every context carries. Read it through the functions below: they are safe beside
 * other threads, reading the members is not. */
typedef struct umemStatus {
  umemStatusType type;
  char *message; /* points into the context; NULL when nothing was recorded */
} umemStatus;

/* ---- the status of a context ---- */

/* Whether nothing has failed on ctx since it was constructed or cleared. False for NULL. */
UMEM_EXTERN bool umem_is_ok(void const *ctx);

/* The type of the last failure on ctx, or umemOK. umemValueError for NULL. */
UMEM_EXTERN umemStatusType umem_get_status(void const *ctx);

/* What was recorded on ctx, or "". Never NULL. The text is the library's; it stays valid and
 * unchanged through three further calls of umem_get_message or umem_thread_message by this thread. */
UMEM_EXTERN char const *umem_get_message(void const *ctx);

/* Records a failure of the caller's own on ctx, on this thread, and with the failure hook.
 * The type overwrites the recorded one. The message (NULL is "") is appended to the recorded text after "; ";
 * a change from one failure to another is recorded there as "status OldName changed to NewName". When the text
 * is full, umem keeps its beginning.
 * umemOK as type overwrites the context's type and appends, but is no failure of the thread.
 * Returns type. With ctx NULL umem records it on the thread and calls the hook. */
UMEM_EXTERN umemStatusType umem_set_status(void *ctx, umemStatusType type, char const *message);

/* Sets ctx back to umemOK and "". Other threads' statuses are untouched.
 * Returns umemOK, or umemValueError for NULL. */
UMEM_EXTERN umemStatusType umem_clear_status(void *ctx);

/* The name of type: "OK", "MemoryError", ...; "UnknownError" for any other number. Static storage. */
UMEM_EXTERN char const *umem_get_status_name(umemStatusType type);

/* ---- the status of the calling thread ---- */

/* The type of this thread's last failure since umem_thread_clear, whatever its context; else umemOK. */
UMEM_EXTERN umemStatusType umem_thread_status(void);

/* The message of that failure, or "". Never NULL. Valid as umem_get_message's. */
UMEM_EXTERN char const *umem_thread_message(void);

/* How many failures this thread has recorded in its life. A call that returns neither a status nor
 * an address (a free) failed exactly when it raises this number. In a function of the program that
 * a call of umem runs (a hook, a callback) the number counts on. When that function returns, umem subtracts
 * its failures: they are not failures of the running call. */
UMEM_EXTERN uint64_t umem_thread_failures(void);

/* Sets this thread back to umemOK and "". The contexts and the count keep what they have. */
UMEM_EXTERN void umem_thread_clear(void);

/* ---- seeing every failure ---- */

/* Called with each failure as it is recorded, in the thread that failed. ctx may be NULL and must
 * not be destructed here; message is valid during the call. Failures inside a hook are recorded but
 * do not call it again, and the thread's last failure stays the one that the hook was called with. No
 * exception may leave it: declare it noexcept in C++ (see doc/concepts/callbacks.rst). */
typedef void umemFailureHook(void *ctx, umemStatusType type, char const *message, void *data);

/* Sets the process-wide hook; NULL, the default, for none. data is borrowed and handed back with
 * each call. A call already running in another thread may still use the old pair. */
UMEM_EXTERN void umem_set_failure_hook(umemFailureHook *hook, void *data);

#endif
