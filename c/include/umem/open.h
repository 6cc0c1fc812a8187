/* umem/open.h - contexts chosen by a text, so that a configuration file or a variable of the
 * environment decides where arrays live.
 *
 *     void *ctx = umem_open("pool+cuda:0?max=8G");
 *     if (!ctx) puts(umem_thread_message());
 *     ...
 *     umem_close(ctx);
 *
 * A name is made of layers, outermost first and joined by "+", then ":", a place, and options:
 *
 *     [layer "+"]... scheme ":" [place] ["?" option ["&" option]...]
 *
 *   layers   the schemes of contexts that go over others: pool, limit, stats, ... At most 16.
 *   place    what the innermost scheme asks for: a path, the number of a GPU, nothing.
 *   option   KEY=VALUE. Where more than one layer has an option of that name, the key begins with
 *            the layer: pool.max=8G. Of layers of one scheme the second is named limit.2.limit=1M.
 *   sizes    are in bytes: digits, then K, M, G or T (of 1024), or none of them.
 *   %XX      in a place or a value is the byte with that hexadecimal number: "%3F" for "?", "%26" for
 *            "&", "%25" for "%" itself. All other characters stand for themselves, "+" and " " too.
 *
 * umem/scheme.h is for those who add schemes; umem_scheme there tells what schemes there are. */
#ifndef UMEM_OPEN_H
#define UMEM_OPEN_H

#include <umem/config.h>
#include <umem/status.h>

/* The longest name, its terminating zero included. */
#define UMEM_NAME_SIZE 8192

/* Constructs the context with this name (borrowed for the call) on the heap, with all its layers, and
 * returns the outermost: a pointer to the struct of that scheme, so that "limit+host:?limit=1M" is a
 * umemLimit. NULL, with a status of the thread, when that fails; then nothing is left behind: a file that
 * exists has its bytes and its length, whatever its mode, and one that was created is removed. (A layer
 * of a program's own scheme that writes to the file while it is constructed makes the exception.)
 *
 * Errors: umemValueError for a malformed name, unknown schemes, options and words, with those that are
 * known; umemMemoryError; what the constructors say, and in front of it which layer it is of where there
 * are several.
 *
 * Threads: any, at any time. The context itself is as concurrent as its layers. */
UMEM_EXTERN void *umem_open(char const *name);

/* Destructs all layers of ctx, a context of umem_open, outermost first, and frees them. Failures that
 * only the end reveals (a failing close, leaks that a umemTrack knows) are told by the status and the
 * thread. NULL does nothing.
 *
 * Errors: umemValueError, with nothing done, for what umem_open has not returned, or was closed before.
 * After umem_dtor(ctx) it ends the layers below, and frees. */
UMEM_EXTERN umemStatusType umem_close(void *ctx);

#endif
