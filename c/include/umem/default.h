/* umem/default.h - default contexts, for parts of a program that name no place: one for the
 * process, and one for each GPU.
 *
 * The environment variable UMEM_DEFAULT contains the name of the first one, as for umem_open. If it
 * is not set or empty, the name is "host:". The default of a GPU has the same layers and options,
 * on this GPU. If the variable names no GPU, or is not set, the default of GPU N is "cuda:N":
 *
 *     UMEM_DEFAULT              umem_default()       umem_default_of(1)
 *     -                         host:                cuda:1
 *     stats+host:               stats+host:          cuda:1
 *     pool+cuda:0?max=8G        pool+cuda:0?max=8G   pool+cuda:1?max=8G
 *
 * In the last row umem_default_of(0) returns the same context as umem_default().
 *
 * - umem reads UMEM_DEFAULT and opens a default context at the first call that returns it. If it
 *   cannot be opened, the call records a status, and the next call tries again. Programs that run
 *   with more rights than their user (setuid) do not read the variable.
 * - The library owns the contexts that it has opened. They live as long as the process: do not
 *   destruct or close them.
 * - When the process ends by exit or by a return from main, the library finishes the contexts that
 *   it has opened: a umemLog completes its file, a umemTrack reports live blocks, and a umemDebug
 *   over RAM checks all blocks for wrong writes. This comes after all functions of atexit and all
 *   destructors of C++ objects; these, and threads that still run, may use the defaults. The
 *   library frees nothing, does not call CUDA, and does not change the exit status. After that a
 *   umemLog records nothing.
 * - The library writes each report to the standard error output, as a line that begins with "umem:
 *   ", because no call can return it. It does not call the failure hook, because objects that the
 *   hook uses may have ended.
 * - After _exit, quick_exit, abort or a signal, the library finishes nothing. A child of fork
 *   finishes only contexts that it has opened itself. dlclose of the library finishes the defaults,
 *   too, and does not free them. To end a context earlier, or to get the status of its end, set a
 *   context of umem_open as the default, and close it.
 * - The program still owns a context that it sets. The context must live until the program sets
 *   another one, and until nothing uses it any more.
 * - A child of fork has the same defaults, and may use them as far as their kind allows it.
 * - The next call of any thread uses a changed default. A thread may have a default of its own,
 *   which umem_default then returns to it alone; threads that it starts do not inherit it.
 *
 * Threads: any, at any time. */
#ifndef UMEM_DEFAULT_H
#define UMEM_DEFAULT_H

#include <umem/config.h>
#include <umem/status.h>

/* The environment variable with the name of the default context. */
#define UMEM_DEFAULT "UMEM_DEFAULT"

/* GPUs 0 to UMEM_DEFAULT_DEVICES - 1 have a default. */
#define UMEM_DEFAULT_DEVICES 64

/* Returns the default context, borrowed: that of the calling thread, if it has one, else that of
 * the process. Returns NULL, and records a status of the thread, if UMEM_DEFAULT cannot be opened,
 * or if the calling thread is just opening it. */
UMEM_EXTERN void *umem_default(void);

/* Makes ctx (borrowed) the default of the process; NULL: the one of UMEM_DEFAULT again. Does not
 * end the default before. Errors: umemValueError for a context that is not constructed; then
 * nothing changes. */
UMEM_EXTERN umemStatusType umem_set_default(void *ctx);

/* Makes ctx (borrowed) the default of the calling thread, until it sets another one; NULL: the
 * thread has none of its own, as at its start. To restore what was before, ask umem_thread_default
 * first. Errors: umemValueError for a context that is not constructed; then nothing changes. */
UMEM_EXTERN umemStatusType umem_set_thread_default(void *ctx);

/* Returns what umem_set_thread_default has set for the calling thread, borrowed; NULL: none. */
UMEM_EXTERN void *umem_thread_default(void);

/* Returns the default context of the GPU with this number. Errors: umemValueError, and NULL, for a
 * number that is not from 0 to UMEM_DEFAULT_DEVICES - 1. If there is no such GPU, umem_default_of
 * fails when it opens the context. */
UMEM_EXTERN void *umem_default_of(int device);
UMEM_EXTERN umemStatusType umem_set_default_of(int device, void *ctx);

#endif
