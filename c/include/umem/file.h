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
 * The offsets of blocks depend only on the sequence of sizes, alignments and frees, not on the mode: the
 * program that wrote a file finds the same addresses when it runs again with mode "r". Blocks start
 * at multiples of 16; the first starts at 0 (modes a and a+: at the end of the file, rounded up).
 *
 * A block gets its disk space when it is allocated, also over a hole of an existing file: a full disk is
 * a umemMemoryError there and not a half-written array later. First umem asks how much is free (statvfs):
 * a request for more takes nothing. Then it calls fallocate. On a file system without fallocate it writes
 * zeros: behind the end, and into holes while nobody else has the file open. If others have it open, or
 * the descriptor was adopted, a block over such a hole is umemNotSupportedError. With umemReserveNone umem
 * reserves nothing: a write can then find the disk full, which is umemIOError (with umemMMap and a pointer:
 * SIGBUS). Mode r needs no space. A reservation cannot help where a write takes new space: on file systems
 * that copy on write, for bytes that a snapshot or another file shares.
 *
 * A block that would pass the process's limit of file size (RLIMIT_FSIZE) is umemMemoryError too; umem
 * does not notice a limit that is lowered later.
 *
 * umem_get_info returns the size and the free bytes of the disk; with mode "r" the length of the file as
 * capacity, and what is left of it.
 *
 * umem_flush makes data, and the name of a new file, durable. umem_trim(ctx, 0) punches holes where
 * no block is, but never into bytes that were there when the file was opened, nor into bytes that umem has
 * seen others append. It also cuts the end if nobody else has the file open, because others could append
 * at that instant. It does nothing on an adopted descriptor, which may have duplicates. */
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

/* Whether long transfers go around the page cache (O_DIRECT), straight between the disk and memory. The bytes
 * are the same on every route, and a transfer sees all that was written before it, also through a mapping. Parts
 * of a page at both ends go through the cache. The same holds for transfers between the disk and a GPU (GPUDirect
 * Storage), of 8 MiB and more. */
typedef enum umemDirect {
  /* Reads of 1 MiB and more take from the cache what it has, and go around it for the rest, where the file system
   * can do that. When as many bytes as the file has were read so, and the file is no larger than half of the RAM,
   * later reads go through the cache, which then keeps them. Writes go through the cache. */
  umemDirectAuto = 0,
  umemDirectOn, /* reads and writes of 64 KiB and more, whatever is cached */
  umemDirectOff /* none */
} umemDirect;

/* Options of umemFile_ctor_with, umemMMap_ctor_with and the functions ..._adopt_with. */
typedef struct umemFileOptions {
  size_t size; /* sizeof(umemFileOptions) as the caller was compiled */
  umemReserve reserve;
  uint32_t reserved; /* zero; not read: older programs have padding here */
  umemDirect direct;
} umemFileOptions;

/* What umemFileOptions start as: the defaults. */
#define UMEM_FILE_OPTIONS_INIT                                                                     \
  { sizeof(umemFileOptions), umemReserveAuto, 0, umemDirectAuto }

/* Opens filename. mode, with an optional 'b' that changes nothing:
 *
 *   "r"   read. Blocks are ranges of the bytes of the file, up to its end, which its writer may have moved
 *         meanwhile (beyond: umemMemoryError). umem_realloc moves no bytes here: the writer has done so.
 *   "r+"  read and write. Blocks are ranges of the bytes there are; past the end the file grows.
 *   "w"   write, "w+" read and write. The file is created, or emptied.
 *   "a"   write, "a+" read and write. The file is created if missing; blocks start at its end.
 *
 * filename NULL with mode "w+" is a scratch file without a name, in $TMPDIR or /tmp: it vanishes with
 * the context, and frees give the disk back at once.
 *
 * A constructor that fails changes no byte and no length of an existing file, because it empties the file
 * last, and removes a file that it has created. If a later call fails, such as the constructor of an adaptor
 * over this context, the file stays empty; umem_open constructs the whole stack before it empties the file.
 *
 * Errors: umemValueError for a bad mode or an empty name; umemIOError with the system's words for a
 * file that cannot be opened, is not a regular file, is on a file system that stores nothing (/proc, /sys
 * and other interfaces of the kernel), or has a writer already; umemMemoryError. */
UMEM_EXTERN umemStatusType umemFile_ctor(umemFile *ctx, char const *filename, char const *mode);

/* The same with options; NULL: the defaults. Errors: also umemValueError for options with a wrong size or an
 * unknown reserve or direct; umemNotSupportedError with the system's words if direct is umemDirectOn and the file
 * system cannot do that. */
UMEM_EXTERN umemStatusType umemFile_ctor_with(umemFile *ctx, char const *filename, char const *mode,
                                              umemFileOptions const *options);

/* Takes over an open descriptor of a regular file (for example one received from another process, or
 * a memfd): as mode "r" when it was opened for reading, "r+" when for both, and like "r+" without
 * reads when for writing only. The file offset is neither used nor changed. ctx owns fd from now on
 * and closes it; after a failure the caller still owns it.
 * Duplicates of one descriptor share its lock: two contexts that take them over are both writers.
 * Errors: umemValueError for a descriptor with O_APPEND, O_DIRECT or O_PATH; umemIOError as above. */
UMEM_EXTERN umemStatusType umemFile_adopt(umemFile *ctx, int fd);

/* The same with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemFile_adopt_with(umemFile *ctx, int fd,
                                               umemFileOptions const *options);

/* Opens a new, empty file, as with mode "w+", which umemFile_commit puts in the place of filename. At every
 * instant filename leads to the complete old file or to the complete new one, even if the process is killed
 * or the power fails. Without a commit, destructing ctx removes the new file.
 *
 * - A symbolic link stays, and its target is replaced or, if it does not exist, created. Other hard links
 *   of the old file, and whoever has it open or mapped, keep the old one. So the old file may be the source
 *   of the copies.
 * - The new file has the access permissions (rwx, POSIX access list) that the old one has at this call, and
 *   its owner and group where the process may give files away. Without an old file, the umask decides. Other
 *   extended attributes are not kept.
 * - umem makes the new file in the folder of the old one, so the disk holds both for a while and the folder
 *   must be writable. On a file system with nameless files (O_TMPFILE), a killed process leaves nothing
 *   behind, except a complete file ".umem-..." if it is killed inside of the commit. On others it may leave
 *   an incomplete ".umem-...".
 *
 * Errors: as umemFile_ctor; umemIOError too for a filename that may not be written, and for a folder
 * in which no file can be made. */
UMEM_EXTERN umemStatusType umemFile_replace(umemFile *ctx, char const *filename);

/* Makes all that was written durable, then gives the file its name, then makes the name durable. ctx stays
 * a context of the file, locked as by mode "w+". Do not call it while other threads write to ctx: the file
 * may lack what they write.
 * Errors: umemIOError: filename then leads to the old file as it was, or the message says that the new file
 * is there but its name may not survive a power cut. umemValueError for a context that umemFile_replace
 * has not opened, or that was committed already. umemTypeError for what is no umemFile. */
UMEM_EXTERN umemStatusType umemFile_commit(umemFile *ctx);

#endif
