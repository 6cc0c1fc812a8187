/* umem/mmap.h - arrays in a file, addressed by pointers. */
#ifndef UMEM_MMAP_H
#define UMEM_MMAP_H

#include <umem/base.h>

struct umemFileOptions; /* umem/file.h */

/* A file as umemFile has it (all that umem/file.h says of modes, placement, reservation, locks and
 * existing bytes holds), mapped into memory: addresses are pointers, so that a program can use a file
 * as an array, and share it with other processes that map it. A block has the same offset as it
 * would have in a umemFile. Concurrent, not ordered.
 *
 * - Blocks never move while the context lives: address space for growth is reserved at the start.
 *   umem_alloc beyond it is umemMemoryError.
 * - The largest alignment is 1 GiB, or 64 KiB where less than 1 GiB of address space can be mapped. A
 *   larger one is umemMemoryError, also if the address of the mapping would happen to be a multiple.
 * - With mode "r" the memory is read-only for the CPU too.
 * - Only the program's own use of a pointer can be hit by SIGBUS (umemFaultable): when another process cuts
 *   the file, or when the disk is full and no space was reserved (umemReserveNone, and what umem/file.h says of
 *   copying on write). umem's own sets and contiguous copies go through the file descriptor, and strided copies
 *   handle the signal.
 * - Two mappings of one file are two devices: their addresses differ.
 * - umem_dtor unmaps: all addresses end with the context. */
typedef struct umemMMap {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemMMap;

/* As umemFile_ctor. Modes w and a open the file for reading too, because a mapping needs it. */
UMEM_EXTERN umemStatusType umemMMap_ctor(umemMMap *ctx, char const *filename, char const *mode);

/* The same with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemMMap_ctor_with(umemMMap *ctx, char const *filename, char const *mode,
                                              struct umemFileOptions const *options);

/* As umemFile_adopt; a descriptor opened for writing only cannot be mapped (umemValueError). */
UMEM_EXTERN umemStatusType umemMMap_adopt(umemMMap *ctx, int fd);

/* The same with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemMMap_adopt_with(umemMMap *ctx, int fd,
                                               struct umemFileOptions const *options);

/* The offset in the file of the byte at adr, as umemFile would address it; UINTPTR_MAX, and a status
 * on ctx, for an address outside of the mapping; umemTypeError for another kind of context. */
UMEM_EXTERN uintptr_t umemMMap_offset(umemMMap *ctx, uintptr_t adr);

/* The pointer to the byte at offset in the file; 0, and umemIndexError, past its end;
 * umemTypeError for another kind of context. */
UMEM_EXTERN uintptr_t umemMMap_address(umemMMap *ctx, uintptr_t offset);

#endif
