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
 * file=PATH), and take any memory. One that does not come from the user of the program is for
 * umem_open_with, which keeps it to some schemes and folders.
 *
 * umem/scheme.h is for those who add schemes; umem_scheme there tells what schemes there are. */
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

/* What a name may reach. */
typedef struct umemOpenOptions {
  size_t size;         /* sizeof(umemOpenOptions) as the caller was compiled */
  char const *schemes; /* those that it may use, separated by spaces; NULL: all */
  /* The folders that its files must be in, or in folders of which, however deep; relative ones are seen
   * from the working directory now. NULL: files may be anywhere. Not NULL with a count of 0: nowhere. */
  char const *const *folders;
  size_t folder_count;
  uintptr_t reserved[4]; /* zero */
} umemOpenOptions;

/* Everything is allowed. */
#define UMEM_OPEN_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(umemOpenOptions), NULL, NULL, 0, { 0, 0, 0, 0 }                                         \
  }

/* As umem_open, for a name that may use some schemes and folders only (options: borrowed for the call; NULL:
 * all). Whatever a path says ("..", symbolic links), a file is opened or created only in an allowed folder,
 * and links to it are followed only there; a refused name changes no file. A hard link in an allowed folder to a file elsewhere is in that folder.
 * Scratch files, which have no name, are in no folder: allow no scheme that makes them, if they must not
 * be. With folders, schemes that the program has registered must stand in schemes: what they open, but for
 * their options of the kind umemPathOption, is theirs to check.
 *
 * Errors: as umem_open; umemValueError for what is not allowed and for options whose size is too small to be
 * true; umemIOError for a folder that cannot be opened. */
UMEM_EXTERN void *umem_open_with(char const *name, umemOpenOptions const *options);

/* Destructs all layers of ctx, a context of umem_open, outermost first, and frees them. Failures that
 * only the end reveals (a failing close, leaks that a umemTrack knows) are told by the status and the
 * thread. NULL does nothing.
 *
 * Errors: umemValueError, with nothing done, for what umem_open has not returned, or was closed before.
 * After umem_dtor(ctx) it ends the layers below, and frees. */
UMEM_EXTERN umemStatusType umem_close(void *ctx);

#endif
