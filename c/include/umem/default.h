/* umem/default.h - the context to take where the program names none: one for the process, and one for
 * each GPU.
 *
 * They begin as the environment variable UMEM_DEFAULT says, a name as of umem_open, or as "host:" where
 * it is not set or empty. That of a GPU begins with the same layers and options, on that GPU; where the
 * variable is not set or names no GPU, as plain "cuda:N":
 *
 *     UMEM_DEFAULT              umem_default()       umem_default_of(1)
 *     -                         host:                cuda:1
 *     stats+host:               stats+host:          cuda:1
 *     pool+cuda:0?max=8G        pool+cuda:0?max=8G   pool+cuda:1?max=8G
 *
 * There umem_default_of(0) is the context of umem_default() itself.
 *
 * - Each is opened when it is first asked for; UMEM_DEFAULT is read then. What cannot be opened is a
 *   status, and is tried again at the next call. Programs that run with more rights than their user
 *   (setuid) do not read it.
 * - The library owns what it opened, which lives as long as the process: do not destruct or close it.
 * - When the process ends by exit or by a return from main, the library finishes what it opened: a
 *   umemLog completes its file, a umemTrack looks for blocks that are live, and a umemDebug over RAM looks
 *   for wrong writes. This comes after all functions of atexit and all destructors of C++ objects; these,
 *   and threads that still run, may use the defaults. The library frees nothing, calls no CUDA, and does
 *   not change the exit status. After that a umemLog records nothing.
 * - The library writes each finding to the standard error output, as a line that begins with "umem: ",
 *   because no call is there to return it. It does not call the hook for failures: what the hook uses may
 *   have ended.
 * - _exit, quick_exit, abort and signals finish nothing. A child of fork finishes only what it has opened
 *   itself. dlclose of the library finishes the defaults too, and does not free them. To end a context
 *   earlier, or to see its status, set a context of umem_open, and close it.
 * - A context that the program sets stays the program's: it must live until another one is set, and
 *   until nobody uses it any more.
 * - A child of fork has the same defaults; it may use them as far as their kind may be used there.
 * - A change is seen by the next call of any thread.
 *
 * Threads: any, at any time.
 */
#ifndef UMEM_DEFAULT_H
#define UMEM_DEFAULT_H

#include <umem/config.h>
#include <umem/status.h>

/* The environment variable that names what the defaults begin as. */
#define UMEM_DEFAULT "UMEM_DEFAULT"

/* The devices that have a default are numbered from 0 to UMEM_DEFAULT_DEVICES - 1. */
#define UMEM_DEFAULT_DEVICES 64

/* The default context of the process, borrowed. NULL, and a status of the thread, where UMEM_DEFAULT
 * cannot be opened, or this is called while the calling thread is opening it. */
UMEM_EXTERN void *umem_default(void);

/* Makes ctx (borrowed) the default of the process; NULL: what it began as. The one before is not
 * touched. Errors: that of a context that is not constructed, and nothing changes. */
UMEM_EXTERN umemStatusType umem_set_default(void *ctx);

/* The same for the GPU with this number. umemValueError, and NULL, for a number that is not from 0 to
 * UMEM_DEFAULT_DEVICES - 1. Whether there is such a GPU shows when its default is opened. */
UMEM_EXTERN void *umem_default_of(int device);
UMEM_EXTERN umemStatusType umem_set_default_of(int device, void *ctx);

#endif
