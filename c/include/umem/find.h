/* umem/find.h - whose address is it: the block around an address, labels, and how much each context
 * has in use.
 *
 *     umemFound found = UMEM_FOUND_INIT;
 *     if (umem_find((uintptr_t)p, &found))
 *       printf("%zu bytes into a block of %s\n", (uintptr_t)p - found.adr, found.name);
 *
 * This makes no allocation slower: umem looks at the records that contexts keep anyway. A Host
 * without options keeps no records of its blocks, nor do Retry, Fault and Log over it. Put a
 * umemTrack over such a Host to find its blocks.
 *
 *   | context               | finds                                              | found.nbytes |
 *   |-----------------------|----------------------------------------------------|--------------|
 *   | Track, Debug          | any byte of a block                                | as requested |
 *   | Guarded over RAM      | any byte of a block                                | as requested |
 *   | File, MMap            | any byte of a block                                | as requested |
 *   | Cuda and its kin, Shm | any byte of a block; compares all blocks           | as requested |
 *   | Host with options     | any byte of a block; compares all blocks           | as requested |
 *   | Pool, Fixed           | any byte of a block                                | rounded up   |
 *   | Mpi                   | any byte of a block of any rank                    | whole units  |
 *   | Limit, Stats          | the first byte; any byte if the context below does | as requested |
 *   | Binning               | what its bins and its upstream find                | as theirs    |
 *
 * Threads: every function here may be called from any thread. Do not call them from a method of a
 * context or from a callback that runs while the library works on a context: a search waits until
 * the locks of the contexts are free. */
#ifndef UMEM_FIND_H
#define UMEM_FIND_H

#include <umem/context.h>

/* The bytes of the longest label, its terminating zero included. */
#define UMEM_LABEL_SIZE 64

/* Memory that CUDA knows, and that another library has allocated. */
typedef enum umemForeign {
  umemForeignNone = 0,
  umemForeignPinned = 1, /* page-locked host memory */
  umemForeignGpu = 2,    /* memory of a GPU */
  umemForeignManaged = 3
} umemForeign;

/* A live block. */
typedef struct umemFound {
  size_t size; /* sizeof(umemFound) as the caller was compiled; set it before the call */
  void *ctx;   /* borrowed: the context that has the block. Another thread may end it at any time */
  uintptr_t adr;                     /* where the block begins */
  size_t nbytes;                     /* of the block; see the table above */
  char const *name;                  /* of the kind of ctx: "Pool". Static storage */
  char label[UMEM_LABEL_SIZE];       /* of ctx; "" without one */
  char block_label[UMEM_LABEL_SIZE]; /* of the block; "" without one */
  umemForeign foreign;               /* of memory that is no block of the library: see umem_find */
  int device;                        /* its GPU; -1 for all else */
} umemFound;

/* All zero, except the size and the device. */
#define UMEM_FOUND_INIT                                                                            \
  { sizeof(umemFound), NULL, 0, 0, NULL, "", "", umemForeignNone, -1 }

/* Searches all contexts of the library in this process for the live block that contains adr, at its
 * beginning or further inside. The byte behind a block is not in it. If there is such a block,
 * describes it in *found (at most found->size bytes) and returns true. found may be NULL. Otherwise
 * it returns false and records no status; then adr may still be RAM of a Host, of the stack, or of
 * another library.
 *
 * If a context for GPUs lives, umem also asks CUDA about an address that is in no block. If CUDA
 * knows it, another library has allocated the memory, or another process, whose memory is attached
 * here. umem_find then returns false, and sets in *found: foreign, name ("device memory"), device,
 * and adr and nbytes of the allocation if the driver tells them (0 otherwise). It makes no CUDA
 * context.
 *
 * In a stack one byte can be in a block of each layer: in a block of a pool, and in the block of
 * the context below that is the pool's chunk. umem_find returns the block of the outermost layer,
 * which is the context that the program allocated it from. To see the layers below, go on with
 * umem_find_in(umem_get_upstream(found.ctx), adr, ...). An address in free memory of a pool is in
 * no block of the pool, but in its chunk. A view of a pool (umemPoolOn) has the blocks of the pool,
 * and umem_find returns the pool.
 *
 * Leaves out contexts whose addresses are offsets (umemOffsets): 4096 can be an offset in each of
 * several files. Ask one of them by umem_find_in. Leaves out contexts of programs (umemUserDevice),
 * too, but not layers of the library over them. The search takes O(contexts) steps, each O(log
 * blocks) except as the table says.
 *
 * The block may be freed, and its context may end, as soon as the call returns; the call itself is
 * safe while other threads free blocks and end contexts. A context that the program forgets without
 * umem_dtor must stay in memory. Errors: umemValueError for a size that is too small; the result is
 * then false. */
UMEM_EXTERN bool umem_find(uintptr_t adr, umemFound *found);

/* Finds as umem_find does, among the blocks of one context, whose addresses may also be offsets.
 * found->ctx is the outermost layer in the stack of ctx that keeps records: if ctx keeps none, umem
 * asks the context below. Errors: also umemValueError if ctx is not constructed. */
UMEM_EXTERN bool umem_find_in(void *ctx, uintptr_t adr, umemFound *found);

/* ---- labels ---- */

/* Gives ctx a label, which umem copies; NULL or "" removes it. It appears in umemFound, in
 * umem_describe_contexts, in reports of leaks, in figures of umemStats and umemPool, and beside the
 * names of contexts in a log. It ends with ctx: a labelled Host needs umem_dtor, too. Errors:
 * umemValueError for UMEM_LABEL_SIZE bytes or more, or if ctx is not constructed; umemMemoryError.
 * The old label then stays. */
UMEM_EXTERN umemStatusType umem_set_label(void *ctx, char const *label);

/* The label of ctx, or "". Never NULL. Valid as the text of umem_get_message. */
UMEM_EXTERN char const *umem_get_label(void const *ctx);

/* Gives the live block that begins at adr a label, which umem copies and which ends with the block;
 * umem_realloc keeps it. NULL or "" removes it. A umemTrack must be in the stack of ctx, and the
 * block must be allocated through it. Errors: umemValueError if no live block begins at adr, and as
 * umem_set_label; umemNotSupportedError if no layer of the stack keeps labels; umemMemoryError. */
UMEM_EXTERN umemStatusType umem_set_block_label(void *ctx, uintptr_t adr, char const *label);

/* The label of the live block of ctx that contains adr, or "". Never NULL. Valid as the text of
 * umem_get_message. */
UMEM_EXTERN char const *umem_get_block_label(void *ctx, uintptr_t adr);

/* ---- how much is in use ---- */

/* Writes the live contexts of the library that count their bytes to text, at most size bytes with
 * the terminating zero: those with the most bytes first, as in
 *
 *     Pool "fields" 1048576 bytes (peak 2097152), Track 4096 bytes, and 3 more
 *
 * Each layer of a stack counts by itself. "(busy)" stands for a context whose lock another thread
 * holds. Allocates nothing and waits for no context. Returns how many contexts there are; text may
 * be NULL if size is 0. */
UMEM_EXTERN size_t umem_describe_contexts(char *text, size_t size);

/* From now on the message of a failure with umemMemoryError ends with "; live contexts: " and the
 * text of umem_describe_contexts, of at most `most` contexts, cut to UMEM_MESSAGE_SIZE. 0, the
 * default: no failure does. A failure that the library recovers from, as a pool that tries again,
 * costs nothing more. */
UMEM_EXTERN void umem_list_when_out_of_memory(unsigned most);

#endif
