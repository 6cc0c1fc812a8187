/* umem/open.h - constructs a context from a text, such as a line of a configuration file or an
 * environment variable.
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
 *   place    the argument of the innermost scheme: a path, the number of a GPU, or nothing.
 *   option   KEY=VALUE. If more than one layer has an option of this name, the key must begin with
 *            the name of the layer: pool.max=8G. If two layers have the same name, a number selects
 *            one: limit.2.limit=1M.
 *   sizes    are in bytes: digits, then optionally K, M, G or T for powers of 1024.
 *   shares   are from 0 to 1, with a point whatever the locale of the program is: share=0.25.
 *   %XX      in a place or a value is the byte with this hexadecimal number: "%3F" for "?", "%26"
 *            for "&", "%25" for "%" itself. All other characters stand for themselves, also "+" and
 *            " ".
 *
 * A name can create, overwrite and empty any file that the process may write ("file:PATH?mode=w", a
 * log's file=PATH), and take any memory. For a name that does not come from the user of the program
 * use umem_open_with, which allows only some schemes and folders.
 *
 * umem/scheme.h declares how a program adds schemes, and umem_scheme, which lists them. */
#ifndef UMEM_OPEN_H
#define UMEM_OPEN_H

#include <stddef.h>
#include <stdint.h>
#include <umem/config.h>
#include <umem/status.h>

/* The longest name, its terminating zero included. */
#define UMEM_NAME_SIZE 8192

/* Constructs the context with this name (borrowed for the call) on the heap, with all its layers.
 * Returns the outermost layer: a pointer to the struct of its scheme, so the result for
 * "limit+host:?limit=1M" is a umemLimit *. If it fails, it returns NULL and records a status of the
 * thread. An existing file then keeps its bytes and its length, whatever the mode, and a file that
 * umem_open has created is removed. There is one exception: a scheme of the program that writes to
 * the file while it is constructed.
 *
 * Errors: umemValueError for a malformed name, and for unknown schemes, options and words; the
 * message lists the known ones. umemMemoryError. The failures of the constructors; if there are
 * several layers, the message begins with the layer.
 *
 * Threads: any, at any time. The context itself is as concurrent as its layers. */
UMEM_EXTERN void *umem_open(char const *name);

/* What a name of umem_open_with may use. */
typedef struct umemOpenOptions {
  size_t size;         /* sizeof(umemOpenOptions) as the caller was compiled */
  char const *schemes; /* the allowed schemes, separated by spaces; NULL: all */
  /* The allowed folders: all files must be in them or in folders below them. A relative path starts
   * at the working directory of the call. NULL: files may be anywhere. Not NULL, with folder_count
   * 0: no file is allowed. */
  char const *const *folders;
  size_t folder_count;
  /* The hosts that a name may connect to, separated by spaces: see hosts of umemUrlOptions. NULL:
   * none. Redirects are held to them, too. */
  char const *hosts;
  uintptr_t reserved[3]; /* zero */
} umemOpenOptions;

/* Everything is allowed, but hosts. */
#define UMEM_OPEN_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(umemOpenOptions), NULL, NULL, 0, NULL, { 0, 0, 0 }                                      \
  }

/* As umem_open, for a name that may use only some schemes and folders (options: borrowed for the
 * call; NULL: all). umem opens or creates files only in an allowed folder, even if a path contains
 * ".." or symbolic links, and follows a link only to a file in an allowed folder. A refused name
 * changes no file.
 *
 * - A hard link in an allowed folder is allowed, also if the file has another name elsewhere.
 * - Scratch files have no name and are in no folder. To forbid them, do not allow their schemes.
 * - If folders is not NULL, schemes that the program has registered are allowed only if schemes
 *   names them. umem checks their options of the kind umemPathOption; they check other files that
 *   they open.
 *
 * Errors: as umem_open; umemValueError for a scheme or a file that is not allowed, and for options
 * with a wrong size; umemIOError for a folder that cannot be opened. */
UMEM_EXTERN void *umem_open_with(char const *name, umemOpenOptions const *options);

/* Destructs all layers of ctx, a context of umem_open, outermost first, and frees them. If the end
 * of a layer fails (close, or leaks that a umemTrack has found), it returns the status, and the
 * thread records it. Does nothing for NULL. You may call it after umem_dtor(ctx); it then ends the
 * other layers.
 *
 * Errors: umemValueError for a context that umem_open has not returned, or that was closed before;
 * nothing is done. */
UMEM_EXTERN umemStatusType umem_close(void *ctx);

#endif
