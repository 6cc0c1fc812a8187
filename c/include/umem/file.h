/* umem/file.h - arrays in a file, which umem reads and writes with system calls. */
#ifndef UMEM_FILE_H
#define UMEM_FILE_H

#include <umem/base.h>

/* The bytes of one regular file. Addresses are byte offsets (umemOffsets: 0 is a valid address,
 * UINTPTR_MAX is null). A file that holds one array contains exactly the bytes of this array.
 * Concurrent, not ordered.
 *
 * umem protects existing files:
 * - Only umem_calloc, umem_set, umem_realloc and copies change bytes, and only inside live blocks:
 *   outside of them they fail with umemIndexError. umem_alloc and umem_free change no byte. A copy
 *   may read any byte of the file.
 * - The file never becomes shorter than it was when it was opened, except by the modes w and w+.
 * - A call that fails never makes the file shorter, even if another process appends to it at the
 *   same time. It may leave the file longer.
 * - If another process makes the file shorter, copies and sets of bytes that a live block has lost
 *   fail with umemIOError until the block is freed, also when an allocation or another process has
 *   made the file longer again. The other bytes can be used on. umem notices the cut when a read
 *   passes the end, when a block is allocated, and before a write.
 * - One writer: umem locks a file that it opens for writing (flock). The constructor of a second
 *   writer fails. The lock lasts until the context is destructed, also in children of fork that
 *   still have it. Such a child may use the context, and gives no space back. Let only one of the
 *   two allocate: they have separate tables of blocks, and would use the same offsets twice.
 *
 * The offsets of blocks depend only on the sequence of sizes, alignments and frees, not on the
 * mode. So a program that wrote a file finds the same addresses when it runs again with mode "r".
 * Blocks begin at multiples of 16. The first block begins at 0, with modes a and a+ at the end of
 * the file, rounded up.
 *
 * A block gets its disk space when it is allocated, also over a hole of an existing file. So a full
 * disk is a umemMemoryError of the allocation, and not an incomplete array later. First umem checks
 * how many bytes are free (statvfs), and fails if there are too few. Of a file in memory (tmpfs, or
 * a descriptor of memfd_create) it also compares what a block of 4 MiB and more takes with what the
 * machine and the control groups of the process have left, as umemHost does. Then it calls
 * fallocate. On a file system without fallocate it writes zeros past the end, and into holes if
 * nobody else has the file open. If others have it open, or the descriptor was taken over, a block
 * over such a hole fails with umemNotSupportedError. With umemReserveNone umem reserves nothing: if
 * the disk is full, a copy fails with umemIOError, and a write through a pointer of a umemMMap
 * raises SIGBUS. Mode r needs no space. Reserved space does not help on file systems that copy on
 * write, if a snapshot or another file shares the bytes: there a write takes new space.
 *
 * In a folder where everybody may make files (sticky and writable for all, as /tmp) a constructor
 * that writes refuses a file, and a symbolic link to it, that belongs to another user than the
 * effective one and the owner of the folder.
 *
 * A block beyond the process's limit of file size (RLIMIT_FSIZE) fails with umemMemoryError, too;
 * umem does not notice a limit that is lowered later.
 *
 * umem_get_info returns the size and the free bytes of the disk; of a file in memory no more free
 * bytes than the machine has left, with swap. With mode "r" it returns the length of the file, and
 * how much of it has no block.
 *
 * umem_flush makes data, and the name of a new file, durable. umem_trim(ctx, 0) punches holes where
 * no block is, but not into bytes that were there when the file was opened, nor into bytes that
 * umem has seen others append. It makes the file shorter only if nobody else has the file open,
 * because others could append at the same time. It does nothing for a descriptor that was taken
 * over, because this may have duplicates. */
typedef struct umemFile {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemFile;

/* Whether a block gets disk space when it is allocated. */
typedef enum umemReserve {
  umemReserveAuto = 0, /* yes: if the disk is full, the allocation fails */
  umemReserveNone      /* no: the file stays sparse; if the disk is full, the write fails */
} umemReserve;

/* Whether long transfers go around the page cache (O_DIRECT), straight between the disk and memory.
 * The bytes are the same on every route, and a transfer sees all that was written before it, also
 * through a mapping. Parts of a page at both ends go through the cache. The same holds for
 * transfers between the disk and a GPU (GPUDirect Storage), of 8 MiB and more. */
typedef enum umemDirect {
  /* Reads of 1 MiB and more take from the cache what it has, and go around it for the rest, where
   * the file system can do that. When as many bytes as the file has were read so, and the file is
   * no larger than half of the RAM, later reads go through the cache, which then keeps them. Writes
   * go through the cache. */
  umemDirectAuto = 0,
  umemDirectOn, /* reads and writes of 64 KiB and more, whatever is cached */
  umemDirectOff /* none */
} umemDirect;

/* Whether a later block of a named file may take the bytes of an array that has ended, while the
 * file is open. What umem_free frees is always reused, and so is everything in a scratch file. */
typedef enum umemReuse {
  /* what a umemArray has released; not what an object of C++ or Python has left when it ended */
  umemReuseAuto = 0,
  umemReuseYes, /* all of it */
  umemReuseNo   /* none of it: what was written stays */
} umemReuse;

/* Whether umemFile_commit waits until the disk has the new file. */
typedef enum umemDurable {
  umemDurableAuto = 0, /* yes: the new file outlives a power cut */
  /* no, which is faster: a process that is killed leaves the old file or the complete new one, but
   * after a power cut the new file may lack its bytes, unless the file system writes data before
   * names */
  umemDurableNo
} umemDurable;

/* Options of umemFile_ctor_with, umemMMap_ctor_with and the functions ..._adopt_with. */
typedef struct umemFileOptions {
  size_t size; /* sizeof(umemFileOptions) as the caller was compiled */
  umemReserve reserve;
  uint32_t reserved; /* zero; not read: older programs have padding here */
  umemDirect direct;
  uint32_t reserved_too; /* zero; not read: older programs have padding here */
  umemReuse reuse;
  uint32_t reserved_last; /* zero; not read: older programs have padding here */
  umemDurable durable;    /* of umemFile_replace_with; others do not read it */
} umemFileOptions;

/* The defaults. */
#define UMEM_FILE_OPTIONS_INIT                                                                     \
  {                                                                                                \
    sizeof(umemFileOptions), umemReserveAuto, 0, umemDirectAuto, 0, umemReuseAuto, 0,              \
        umemDurableAuto                                                                            \
  }

/* Opens filename. mode, with an optional 'b' that changes nothing:
 *
 *   "r"   read. Blocks are ranges of the bytes of the file, up to its end, which its writer may
 *         have moved meanwhile (beyond: umemMemoryError). umem_realloc moves no bytes here: the
 *         writer has done so.
 *   "r+"  read and write. Blocks are ranges of the bytes there are; past the end the file grows.
 *   "w"   write, "w+" read and write. The file is created, or emptied.
 *   "a"   write, "a+" read and write. The file is created if missing; blocks start at its end.
 *
 * filename NULL with mode "w+" makes a scratch file without a name, in $TMPDIR or /tmp. The file
 * ends with the context, and a free gives the disk space back at once.
 *
 * A constructor that fails changes no byte and no length of an existing file, because it empties
 * the file last, and removes a file that it has created. If a later call fails, such as the
 * constructor of an adaptor over this context, the file stays empty; umem_open constructs the whole
 * stack before it empties the file.
 *
 * Errors: umemValueError for a bad mode or an empty name; umemIOError with the system's text for a
 * file that cannot be opened, is not a regular file, is another user's in a folder of all users, is
 * on a file system that stores nothing (/proc, /sys and other interfaces of the kernel), or has a
 * writer already; umemMemoryError. */
UMEM_EXTERN umemStatusType umemFile_ctor(umemFile *ctx, char const *filename, char const *mode);

/* Does what umemFile_ctor does, with options; NULL: the defaults. Errors: also umemValueError for
 * options with a wrong size or an unknown reserve, direct, reuse or durable; umemNotSupportedError
 * with the system's text if direct is umemDirectOn and the file system does not support it. */
UMEM_EXTERN umemStatusType umemFile_ctor_with(umemFile *ctx, char const *filename, char const *mode,
                                              umemFileOptions const *options);

/* Takes over an open descriptor of a regular file, for example one received from another process,
 * or a memfd. A descriptor opened for reading acts as mode "r", one opened for reading and writing
 * as "r+". One opened for writing acts as "r+" without reads. The file offset is neither used nor
 * changed. ctx owns fd from now on and closes it. After a failure the caller still owns fd.
 * Duplicates of a descriptor share its lock: if two contexts take them over, both can write.
 * Errors: umemValueError for a descriptor with O_APPEND, O_DIRECT or O_PATH; umemIOError as
 * above. */
UMEM_EXTERN umemStatusType umemFile_adopt(umemFile *ctx, int fd);

/* Does what umemFile_adopt does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemFile_adopt_with(umemFile *ctx, int fd,
                                               umemFileOptions const *options);

/* Opens a new, empty file, as with mode "w+". umemFile_commit replaces filename by this file. At
 * every instant filename leads to the complete old file or to the complete new one, even if the
 * process is killed or the power fails. Without a commit, umem_dtor(ctx) removes the new file.
 *
 * - A symbolic link stays, and its target is replaced, or created if it does not exist. Other hard
 *   links of the old file, and open descriptors and mappings of it, still lead to the old file. So
 *   you can copy from the old file.
 * - The new file has the access permissions (rwx, POSIX access list) that the old one has at this
 *   call, and its owner and group if the system permits it. If it cannot keep the group, its group
 *   may do what all others may, and the access list is lost. Without an old file, the umask
 *   decides. Bits such as setuid, and other extended attributes, are lost. Until the commit only
 *   the owner can open the new file.
 * - umem makes the new file in the folder of the old one, so the disk holds both for a while and
 *   the folder must be writable. On a file system with nameless files (O_TMPFILE), a killed process
 *   leaves nothing behind, except a complete file ".umem-..." if it is killed inside of the commit.
 *   On others it may leave an incomplete ".umem-..." that only the owner can open. The name ends
 *   with a random number, and never leads to a file or a link that was there before.
 *
 * Errors: as umemFile_ctor; umemIOError too for a filename that may not be written, and for a
 * folder in which no file can be made. */
UMEM_EXTERN umemStatusType umemFile_replace(umemFile *ctx, char const *filename);

/* Does what umemFile_replace does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemFile_replace_with(umemFile *ctx, char const *filename,
                                                 umemFileOptions const *options);

/* Gives the new file of umemFile_replace a hidden name in its folder until the commit, so that
 * other processes of this user can open it and write to it. Writes its path, at most size bytes
 * with the zero, to path; it is as absolute or relative as filename. Releases the lock of the file.
 * A second call writes the same path. Errors: umemIOError if the file cannot get a name, or the
 * path is too long; umemValueError and umemTypeError as umemFile_commit. */
UMEM_EXTERN umemStatusType umemFile_draft(umemFile *ctx, char *path, size_t size);

/* Makes all written bytes durable, then gives the file its name, then makes the name durable; with
 * umemDurableNo it only gives the file its name. ctx stays a context of the file, locked as by mode
 * "w+". Do not call it while other threads write to ctx: the file may lack their bytes. Errors:
 * umemIOError: filename still leads to the unchanged old file, unless the message says that the new
 * file has the name, which may not survive a power cut. umemValueError for a context that
 * umemFile_replace has not opened, or that was committed already. umemTypeError if ctx is not a
 * umemFile. */
UMEM_EXTERN umemStatusType umemFile_commit(umemFile *ctx);

#endif
