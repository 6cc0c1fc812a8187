/* umem/mmap.h - arrays in a file that is mapped into memory. */
#ifndef UMEM_MMAP_H
#define UMEM_MMAP_H

#include <umem/base.h>

struct umemFileOptions; /* umem/file.h */

/* A file that is mapped into memory: addresses are pointers. So a program can use a file as an
 * array, and share it with other processes that map it. Modes, offsets of blocks, disk space, locks
 * and existing bytes are as in umem/file.h. Concurrent, not ordered.
 *
 * - Blocks never move while the context lives, because the constructor reserves address space for
 *   growth. umem_alloc beyond this space fails with umemMemoryError.
 * - The largest alignment is 1 GiB, or 64 KiB if less than 1 GiB of address space can be mapped. A
 *   request for a larger one fails with umemMemoryError.
 * - With mode "r" the CPU can only read the memory.
 * - An access of the program through a pointer raises SIGBUS (umemFaultable) if another process has
 *   made the file shorter, or if the disk is full and no space was reserved (umemReserveNone, or
 *   copy on write: see umem/file.h). umem's own sets and contiguous copies use the file descriptor,
 *   and its strided copies handle the signal.
 * - Two mappings of one file are different memory for umem_is_same_device, because their addresses
 *   differ.
 * - umem_dtor unmaps the file: afterwards no address of the context is valid. */
typedef struct umemMMap {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemMMap;

/* As umemFile_ctor. Modes w and a open the file for reading too, because a mapping needs it. */
UMEM_EXTERN umemStatusType umemMMap_ctor(umemMMap *ctx, char const *filename, char const *mode);

/* Does what umemMMap_ctor does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemMMap_ctor_with(umemMMap *ctx, char const *filename, char const *mode,
                                              struct umemFileOptions const *options);

/* As umemFile_adopt; a descriptor opened for writing only cannot be mapped (umemValueError). */
UMEM_EXTERN umemStatusType umemMMap_adopt(umemMMap *ctx, int fd);

/* Does what umemMMap_adopt does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemMMap_adopt_with(umemMMap *ctx, int fd,
                                               struct umemFileOptions const *options);

/* Returns the offset in the file of the byte at adr, which is its address in a umemFile. Returns
 * UINTPTR_MAX, and records a status, for an address outside of the mapping, and for another kind of
 * context (umemTypeError). */
UMEM_EXTERN uintptr_t umemMMap_offset(umemMMap *ctx, uintptr_t adr);

/* Returns the pointer to the byte at offset in the file. Returns 0, and records a status, past the
 * end of the file (umemIndexError), and for another kind of context (umemTypeError). */
UMEM_EXTERN uintptr_t umemMMap_address(umemMMap *ctx, uintptr_t offset);

#endif
