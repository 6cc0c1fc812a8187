/* umem/shm.h - memory that several processes of one machine share. */
#ifndef UMEM_SHM_H
#define UMEM_SHM_H

#include <umem/base.h>

/* Blocks in a segment of shared memory. Addresses are pointers in this process; other processes may
 * have the segment at other addresses (see umemShm_offset, and umem_share in umem/handle.h).
 * Concurrent, not ordered.
 *
 * A segment has a name, under which other processes open it, or none: then they receive it
 * (umem_send), or are forked. Its size is fixed when it is created. All processes allocate from it
 * and free in it, also blocks of each other.
 *
 * - The tables of the blocks are in the segment. They survive a process that is killed, at whatever
 *   instruction: each block is then live or free, and none is lost or handed out twice. The next
 *   call in any process repairs what the dead one has left.
 * - A block belongs to the process that has allocated it. If this process ends, its blocks stay
 *   live, because others may use them: umemShm_blocks lists them and umemShm_reclaim frees them.
 *   umem_dtor frees no blocks either.
 * - A segment without a name ends with the last process that has it. A segment with a name stays
 *   until umemShm_remove, or until the machine restarts.
 * - Memory is reserved when the segment is created: if there is not enough, the constructor fails
 *   with umemMemoryError, and leaves no name. With the option sparse only the tables are reserved,
 *   and an access to a block raises SIGBUS when memory is out. A segment counts as a file: it
 *   cannot be longer than RLIMIT_FSIZE.
 * - Natural alignment is 64 bytes. The largest is 1 GiB, or 64 KiB if less than 1 GiB of address
 *   space can be mapped.
 * - Two contexts of one process with the same segment have the same addresses.
 * - umem opens only a segment that belongs to the effective user and that nobody else may write. So
 *   another user cannot prepare a name for this one. The option trust allows more: segments of the
 *   group, or of everybody. umem never makes a segment of a file that another user has made.
 * - Who may write the segment can damage the bytes of blocks, the tables and the lock. umem checks
 *   every number that it reads there, and follows no pointer: damage makes calls fail with
 *   umemRuntimeError, and umem accesses no other memory. Nobody can make a segment without a name
 *   shorter; a named one can be cut by every process that may write it, and accesses then raise
 *   SIGBUS.
 *
 * A call waits while another process is in a call. It fails with umemRuntimeError after two
 * seconds, and in tables with more than ten million records after the time that their repair may
 * take: that process was stopped, or somebody has destroyed the lock. If a process ends in a call,
 * the next call in another one repairs the tables, also in another PID namespace. Only a child of
 * fork that uses the segment of its parent needs its own namespace for that. */
typedef struct umemShm {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemShm;

/* What the constructor does about a name. */
typedef enum umemShmHow {
  umemShmOpenOrCreate = 0, /* opens the segment, or creates it if there is none */
  umemShmCreate,           /* creates it; fails with umemIOError if there is one */
  umemShmOpen              /* opens it; fails with umemIOError if there is none */
} umemShmHow;

/* The size of the pages of the memory. */
typedef enum umemShmPages {
  umemShmPagesDefault = 0,
  /* asks the kernel for transparent huge pages; it may refuse without a failure */
  umemShmPagesAdvise,
  /* pages of hugetlbfs, which the administrator has set aside; only without a name */
  umemShmPages2M,
  umemShmPages1G
} umemShmPages;

/* How a segment is created and opened. */
typedef struct umemShmOptions {
  size_t size;        /* sizeof(umemShmOptions) as the caller was compiled */
  size_t capacity;    /* bytes for blocks, rounded up to pages; 0: as the segment that is opened */
  size_t blocks;      /* most live blocks at a time; 0: one for each 4 KiB, at least 1024 */
  umemShmHow how;     /* without a name: ignored */
  umemShmPages pages; /* of a segment that is created */
  uint32_t permissions; /* of a name that is created, as of chmod; 0: 0600, only this user */
  uint32_t sparse;      /* 1: a segment that is created reserves memory only for its tables */
  umemTrust trust;      /* whose segment is opened; default: theirs whom permissions let write */
  uint32_t incomplete;  /* 1: new blocks of this context are incomplete until umemShm_complete */
} umemShmOptions;

/* What options start as: their size, and zeros. */
#define UMEM_SHM_OPTIONS_INIT                                                                      \
  {                                                                                                \
    sizeof(umemShmOptions), 0, 0, umemShmOpenOrCreate, umemShmPagesDefault, 0, 0,                  \
        umemTrustDefault, 0                                                                        \
  }

/* Constructs ctx over the segment name, or a new one without a name if name is NULL. name: at most
 * 250 bytes, without "/" but for one at the beginning, which means nothing. capacity: bytes for
 * blocks; 0 opens a segment that exists. Errors: umemValueError for a bad name, and for a capacity
 * that a segment that exists has not; umemIOError if name cannot be opened, or is no segment of
 * umem; umemMemoryError; umemNotSupportedError for pages that the system lacks. */
UMEM_EXTERN umemStatusType umemShm_ctor(umemShm *ctx, char const *name, size_t capacity);

/* Does what umemShm_ctor does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemShm_ctor_with(umemShm *ctx, char const *name,
                                             umemShmOptions const *options);

/* Constructs ctx over the segment of a descriptor, which ctx takes over, also after a failure. Then
 * it is closed. Errors: umemIOError for a descriptor that is no segment of umem. */
UMEM_EXTERN umemStatusType umemShm_adopt(umemShm *ctx, int fd);

/* Constructs ctx as umemShm_adopt. options: their trust says whose segment it may be; NULL: the
 * defaults. */
UMEM_EXTERN umemStatusType umemShm_adopt_with(umemShm *ctx, int fd, umemShmOptions const *options);

/* Returns the descriptor of the segment, which ctx keeps. Returns -1, and records umemTypeError,
 * for another kind of context. */
UMEM_EXTERN int umemShm_descriptor(umemShm *ctx);

/* Removes a name. Processes that have the segment keep it.
 * Errors: umemIOError, umemValueError. */
UMEM_EXTERN umemStatusType umemShm_remove(char const *name);

/* Returns the offset of the byte at adr from the beginning of the segment: the same in all
 * processes. Returns UINTPTR_MAX, and records umemIndexError, for an address outside of the blocks'
 * memory. */
UMEM_EXTERN uintptr_t umemShm_offset(umemShm *ctx, uintptr_t adr);

/* Returns the address in this process of the byte at offset. Returns 0, and records umemIndexError,
 * if there is none. */
UMEM_EXTERN uintptr_t umemShm_address(umemShm *ctx, uintptr_t offset);

/* A live block. */
typedef struct umemShmBlock {
  uintptr_t address; /* in this process */
  size_t nbytes;     /* that were asked for */
  /* when the owner has started, in ticks since the machine has: the field 22 of /proc/PID/stat */
  uint64_t start;
  uint32_t pid;  /* of the process to which it belongs, in the PID namespace of that process */
  uint32_t dead; /* 1: that process has ended. 0: it lives, or is in another PID namespace */
} umemShmBlock;

/* Writes at most room blocks to blocks, in no order, and returns how many live blocks there are.
 * blocks may be NULL if room is 0. Returns 0, and records a status, after a failure. */
UMEM_EXTERN size_t umemShm_blocks(umemShm *ctx, umemShmBlock *blocks, size_t room);

/* Frees the blocks of the process pid if it has ended; 0: of all processes that have ended. Returns
 * how many. A process that has got the number of a dead one keeps its own blocks. Nobody may use
 * these blocks any more: a process that goes on with a block of another one makes it its own first
 * (umemShm_own). */
UMEM_EXTERN size_t umemShm_reclaim(umemShm *ctx, int pid);

/* Makes the block at adr one of the calling process.
 * Errors: umemValueError for what is no live block. */
UMEM_EXTERN umemStatusType umemShm_own(umemShm *ctx, uintptr_t adr);

/* Says that the block that holds the byte at adr is written: others may take its bytes for whole.
 * Blocks of a context without the option incomplete are complete from the beginning. A process that
 * is killed before this call leaves an incomplete block; a reader asks umemShm_is_complete. The
 * bytes are visible to whoever sees the block complete. Errors: umemValueError for an address in no
 * live block. */
UMEM_EXTERN umemStatusType umemShm_complete(umemShm *ctx, uintptr_t adr);

/* Whether the block that holds the byte at adr is complete. Returns false, and records
 * umemValueError, for an address in no live block. */
UMEM_EXTERN bool umemShm_is_complete(umemShm *ctx, uintptr_t adr);

#endif
