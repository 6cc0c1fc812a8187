/* umem/file.h - arrays in a file, read and written by calls. */
#ifndef UMEM_FILE_H
#define UMEM_FILE_H

#include <umem/base.h>

/* The bytes of one regular file. Addresses are byte offsets (umemOffsets: 0 is a good address,
 * UINTPTR_MAX is null); a file that holds one array is byte for byte that array. Concurrent, not
 * ordered.
 *
 * An existing file is sacred:
 * - Only umem_calloc, umem_set, umem_realloc and copies into live blocks ever change bytes
 *   (umemIndexError outside of them). umem_alloc and umem_free change none. Reads may touch any byte
 *   of the file.
 * - The file never becomes shorter than it was when it was opened, except by the modes w and w+.
 * - A call that fails never makes the file shorter, whoever else appends to it meanwhile. It may leave
 *   the file longer.
 * - One writer: a file opened for writing is locked (flock) against others who ask, until the context
 *   is destructed, also in children of fork that still have it. Such a child may use the context and
 *   gives no space back, but only one of the two should go on allocating: both would hand out the
 *   same offsets.
 *
 * Where blocks lie depends only on the sequence of sizes, alignments and frees, not on the mode: the
 * program that wrote a file finds the same addresses when it runs again with mode "r". Blocks start
 * at multiples of 16; the first starts at 0 (modes a and a+: at the end of the file, rounded up).
 *
 * A block gets its disk space when it is allocated, also over a hole of an existing file: a full disk is
 * a umemMemoryError there and not a half-written array later. First umem asks how much is free (statvfs):
 * a request for more takes nothing. Then fallocate decides. Where the file system has none, umem writes
 * zeros: behind the end, and into holes while nobody else has the file open. With others there, or a
 * descriptor that was adopted, a block over such a hole is umemNotSupportedError. umemReserveNone
 * reserves nothing: writing can then find the disk full, which is umemIOError (with umemMMap and a
 * pointer: SIGBUS). Mode r needs no space. No reservation helps where a write takes new space: on file
 * systems that copy on write, for bytes that a snapshot or another file shares.
 *
 * A block that would pass the process's limit of file size (RLIMIT_FSIZE) is umemMemoryError too; a limit
 * that is lowered later is not looked at.
 *
 * umem_get_info tells the size and the free bytes of the disk; with mode "r" the length of the file as
 * capacity, and what is left of it.
 *
 * umem_flush makes data, and the name of a new file, durable. umem_trim(ctx, 0) punches holes where
 * no block is, but never into what was there when the file was opened, nor into what others were seen to
 * have added. It also cuts the end, if nobody else has the file open: others could append at that
 * instant. Of an adopted descriptor there may be duplicates, so that umem_trim does nothing there. */
typedef struct umemFile {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemFile;

/* Whether a block gets disk space when it is allocated. */
typedef enum umemReserve {
  umemReserveAuto = 0, /* yes: a full disk is an error of the allocation */
  umemReserveNone      /* no: the file stays sparse, and a full disk is an error of the write */
} umemReserve;

/* What the constructors are told. */
typedef struct umemFileOptions {
  size_t size; /* sizeof(umemFileOptions) as the caller was compiled */
  umemReserve reserve;
} umemFileOptions;

/* What umemFileOptions start as: the defaults. */
#define UMEM_FILE_OPTIONS_INIT                                                                     \
  { sizeof(umemFileOptions), umemReserveAuto }

/* Opens filename. mode, with an optional 'b' that changes nothing:
 *
 *   "r"   read. Blocks are laid over the bytes of the file, up to its end, also one that its writer
 *         has moved meanwhile (beyond: umemMemoryError). umem_realloc moves no bytes here: the writer
 *         has.
 *   "r+"  read and write. Blocks are laid over the bytes there are; past the end the file grows.
 *   "w"   write, "w+" read and write. The file is created, or emptied.
 *   "a"   write, "a+" read and write. The file is created if missing; blocks start at its end.
 *
 * filename NULL with mode "w+" is a scratch file without a name, in $TMPDIR or /tmp: it vanishes with
 * the context, and frees give the disk back at once.
 *
 * A constructor that fails changes no byte and no length of an existing file: it is emptied last. A file
 * that it has created it removes. What fails later, such as the constructor of an adaptor over this
 * context, comes too late for that; umem_open constructs the whole stack before it empties the file.
 *
 * Errors: umemValueError for a bad mode or an empty name; umemIOError with the system's words for a
 * file that cannot be opened, is not a regular file, is on a file system that stores nothing (/proc, /sys,
 * and others by which the kernel is talked to), or has a writer already; umemMemoryError. */
UMEM_EXTERN umemStatusType umemFile_ctor(umemFile *ctx, char const *filename, char const *mode);

/* The same with options; NULL: the defaults. Error: umemValueError for options that cannot be. */
UMEM_EXTERN umemStatusType umemFile_ctor_with(umemFile *ctx, char const *filename, char const *mode,
                                              umemFileOptions const *options);

/* Takes over an open descriptor of a regular file (for example one received from another process, or
 * a memfd): as mode "r" when it was opened for reading, "r+" when for both, and like "r+" without
 * reads when for writing only. The file offset is neither used nor changed. ctx owns fd from now on
 * and closes it; after a failure fd is still the caller's.
 * Duplicates of one
 * descriptor share its lock: two contexts that adopt them are both writers.
 * Errors: umemValueError for a descriptor with O_APPEND, O_DIRECT or O_PATH; umemIOError as above. */
UMEM_EXTERN umemStatusType umemFile_adopt(umemFile *ctx, int fd);

/* The same with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemFile_adopt_with(umemFile *ctx, int fd,
                                               umemFileOptions const *options);

/* Opens a new, empty file that is to take the place of filename, as with mode "w+". At every instant
 * filename leads to what was there before, complete, or to the new file, complete: umemFile_commit
 * changes that at once, also where the process is killed or the power fails. Without a commit,
 * destructing ctx drops the new file.
 *
 * - Symbolic links stay and their target is replaced, also one that is not there yet. Other hard links
 *   of the old file, and whoever has it open or mapped, keep the old one: it may be the source of the
 *   copies.
 * - The new file has the access permissions (rwx, POSIX access list) that the old one has when this is
 *   called, and its owner and group where the process may give files away. Where there is no old file,
 *   those that the umask leaves. Other extended attributes are not kept.
 * - The new file is made in the folder of the old one, so the disk holds both for a while and the
 *   folder must be writable. Where the file system has nameless files (O_TMPFILE), a process that is
 *   killed leaves nothing but, between two calls of a commit, a complete ".umem-..." beside; elsewhere
 *   an unfinished one.
 *
 * Errors: as umemFile_ctor; umemIOError too for a filename that may not be written, and for a folder
 * in which no file can be made. */
UMEM_EXTERN umemStatusType umemFile_replace(umemFile *ctx, char const *filename);

/* Makes all that was written durable, then gives the file its name, then makes that durable. ctx goes
 * on as a context of the file, locked as by mode "w+". Not to be called while other threads write to
 * ctx: what they write may be in the file or not.
 * Errors: umemIOError; what was at filename is unharmed then, or the message says that the new file is
 * there but its name may not survive a power cut. umemValueError for a context that umemFile_replace
 * has not made, or that has been committed already. umemTypeError for what is no umemFile. */
UMEM_EXTERN umemStatusType umemFile_commit(umemFile *ctx);

#endif
