/* umem/guarded.h - a context for tests, whose memory traps accesses that come at a wrong time. */
#ifndef UMEM_GUARDED_H
#define UMEM_GUARDED_H

#include <umem/base.h>

/* A umemGuarded passes every call on to another context, upstream. If that is RAM, each block gets
 * pages of its own. umemGuarded_protect closes and opens them: an access through a pointer to a
 * closed page raises SIGSEGV, and a debugger stops at the very line. An inaccessible page is before
 * the pages of each block, and another one behind them. A block ends where its last page ends,
 * except for the bytes that its alignment takes: at most 15 with umem_alloc. So most accesses
 * outside of a block raise SIGSEGV, too.
 *
 * New blocks are open. umem's own calls (sets, copies, connections) work on closed blocks: they
 * open the pages for the time of the call, in which other threads can use them, too. So copies
 * between them and a umemOrdered context are complete on return. A call for bytes outside of a live
 * block fails with umemIndexError.
 *
 * A umemGuarded over RAM is also a device for programs that have no GPU: it has umemSeparate, so
 * connections (umem_connect) and the arrays of C++ keep a copy of the bytes for the host, as they
 * do for a GPU. Arrays of C++ open each side only while a guard of that side lives; C programs call
 * umemGuarded_protect where the host hands its bytes over to the device, and back.
 *
 * RAM is a context whose addresses are pointers to read and write, without a queue, that is neither
 * in a file (umemMMap) nor accessible for a GPU (umemCudaHost, umemCudaManaged): Host, Shm, and
 * pools and adaptors over them. Over all other contexts the blocks are those of upstream, and
 * umemGuarded_protect does nothing; the host side of an array is in protected pages all the same.
 *
 * A block takes its bytes, rounded up to pages, and two pages more; for alignments above that of a
 * page, two alignments more. An allocation makes two system calls, a change of access one. Linux
 * limits how many mappings a process has (vm.max_map_count, 65530); each block takes up to four.
 * Beyond that calls fail with umemMemoryError. umem_dtor frees the blocks that are still live.
 *
 * Threads: as many as upstream allows. The access of a block holds for all threads. */
typedef struct umemGuarded {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemGuarded;

/* upstream: any context; borrowed, it must live longer than ctx. Errors: umemValueError for NULL,
 * umemMemoryError; the status of an upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemGuarded_ctor(umemGuarded *ctx, void *upstream);

/* Constructs ctx as umemGuarded_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemGuarded_adopt(umemGuarded *ctx, void *upstream);

/* What a program may do with the bytes of a block through pointers. */
typedef enum umemGuardedAccess {
  umemGuardedClosed,
  umemGuardedRead,
  umemGuardedWrite /* read and write, as new blocks */
} umemGuardedAccess;

/* Changes what the program may do with the block of nbytes, as requested, that begins at adr. ctx:
 * a umemGuarded, or a context over one that passes on its blocks. Returns umemOK and does nothing
 * if this umemGuarded is not over RAM. Errors: umemTypeError if no umemGuarded is in the stack of
 * ctx; umemValueError for another access, and if the umemGuarded has no such block: a part of a
 * block, which a pool over ctx hands out, has no pages of its own; umemMemoryError if the system
 * refuses. The block then stays as it was. */
UMEM_EXTERN umemStatusType umemGuarded_protect(void *ctx, uintptr_t adr, size_t nbytes,
                                               umemGuardedAccess access);

/* The access that the program has to the block that begins at adr. Returns umemGuardedWrite if the
 * umemGuarded is not over RAM. Errors, with umemGuardedClosed: umemTypeError as above,
 * umemValueError if no live block begins at adr. */
UMEM_EXTERN umemGuardedAccess umemGuarded_access(void *ctx, uintptr_t adr);

/* From now on, or no longer, SIGSEGV for an address in memory of a umemGuarded first prints a line
 * on stderr:
 *
 *     umem: SIGSEGV at byte 16 of the block "temperature" of 800 bytes at 0x7f0c5a2e4ce0 of a
 *     Guarded "gpu": it is closed: ...
 *
 * With the labels of the block and of the context (find.h), if they have some. Then umem installs
 * the handler that was there before again, and repeats the access: the default one ends the
 * process. So umem reports one access for each call. Without a call umem installs no handler. A
 * program that installs a handler of its own calls this function afterwards. on: whether to report.
 * Errors: umemRuntimeError if the system refuses. */
UMEM_EXTERN umemStatusType umemGuarded_report(bool on);

#endif
