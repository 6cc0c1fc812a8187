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
 * A name can create, overwrite and empty any file that the process may write ("file:PATH?mode=w", a log's
 * file=PATH), and take any memory. For a name that does not come from the user of the program use
 * umem_open_with, which allows only some schemes and folders.
 *
 * umem/scheme.h is for those who add schemes; umem_scheme there lists them. */
#ifndef UMEM_OPEN_H
#define UMEM_OPEN_H

#include <stddef.h>
#include <stdint.h>
#include <umem/config.h>
#include <umem/status.h>

/* The longest name, its terminating zero included. */
#define UMEM_NAME_SIZE 8192

/* Constructs the context with this name (borrowed for the call) on the heap, with all its layers, and
 * returns the outermost: a pointer to the struct of that scheme, so that "limit+host:?limit=1M" is a
 * umemLimit. NULL, with a status of the thread, when that fails; then nothing is left behind: an existing
 * file keeps its bytes and its length, whatever the mode, and a file that umem_open has created is removed.
 * (The exception is a scheme of the program that writes to the file while it is constructed.)
 *
 * Errors: umemValueError for a malformed name, unknown schemes, options and words, with those that are
 * known; umemMemoryError; what the constructors say, and in front of it which layer it is of where there
 * are several.
 *
 * Threads: any, at any time. The context itself is as concurrent as its layers. */
UMEM_EXTERN void *umem_open(char const *name);

/* What a name of umem_open_with may use. */
typedef struct umemOpenOptions {
  size_t size;         /* sizeof(umemOpenOptions) as the caller was compiled */
  char const *schemes; /* the allowed ones, separated by spaces; NULL: all */
  /* The folders that its files must be below, at any depth; a relative path starts at the working directory
   * of the call. NULL: files may be anywhere. Not NULL, with folder_count 0: no file is allowed. */
  char const *const *folders;
  size_t folder_count;
  uintptr_t reserved[4]; /* zero */
} umemOpenOptions;

/* Everything is allowed. */
#define UMEM_OPEN_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(umemOpenOptions), NULL, NULL, 0, { 0, 0, 0, 0 }                                         \
  }

/* As umem_open, for a name that may use only some schemes and folders (options: borrowed for the call; NULL:
 * all). Whatever a path says ("..", symbolic links), umem opens or creates a file only in an allowed folder,
 * and follows a link only to a file in an allowed folder. A refused name changes no file.
 *
 * - A hard link in an allowed folder is allowed, also if the file has another name elsewhere.
 * - Scratch files have no name and are in no folder. To forbid them, do not allow their schemes.
 * - If folders is not NULL, schemes that the program has registered are allowed only if schemes names them.
 *   umem checks their options of the kind umemPathOption; they check other files that they open.
 *
 * Errors: as umem_open; umemValueError for a scheme or a file that is not allowed, and for options with a
 * wrong size; umemIOError for a folder that cannot be opened. */
UMEM_EXTERN void *umem_open_with(char const *name, umemOpenOptions const *options);

/* Destructs all layers of ctx, a context of umem_open, outermost first, and frees them. Failures that
 * only the end reveals (a failing close, leaks that a umemTrack knows) are told by the status and the
 * thread. NULL does nothing.
 *
 * Errors: umemValueError, with nothing done, for what umem_open has not returned, or was closed before.
 * After umem_dtor(ctx) it ends the layers below, and frees. */
UMEM_EXTERN umemStatusType umem_close(void *ctx);

#endif
