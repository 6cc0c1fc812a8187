/* umem/blocks.h - arrays larger than memory: block by block through a place that is smaller.
 *
 *     umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
 *     options.source = (umemRows){&file, adr, 8 * columns, 0};    // rows of the array, in a file
 *     options.count = rows;
 *     options.place = &gpu;  // where the program works on them
 *     options.budget = 1 << 30;                                   // bytes that this may take there
 *     umemBlocks blocks;
 *     umemBlock block = UMEM_BLOCK_INIT;
 *     umemBlocks_ctor(&blocks, &options);
 *     while (umemBlocks_next(&blocks, &block)) {
 *       ...  // block.rows rows from row block.first on, at block.adr
 *     }
 *     umemStatusType status = umemBlocks_end(&blocks);            // umemOK, or what has failed
 *
 * An array is a number of rows of equal size: the elements of a vector, the rows of a matrix, the
 * planes of a grid. umem cuts it into blocks of rows, reads them one after the other from the
 * source into memory of the place, hands each to the program, and writes it to the destination, if
 * there is one. While the program works on a block, umem reads the next blocks and writes those
 * before it.
 *
 *   memory     The constructor allocates one block of memory on the place, never more than the
 *              budget, and umemBlocks_end frees it. Copies between contexts that need buffers
 *              (router) take these as always.
 *   order      The rows of a block are there when umemBlocks_next returns it. What the program has
 *              then queued on the place is done before umem writes the block, or reads another one
 *              into its memory. The rows of the destination are there when umemBlocks_next returns
 *              false.
 *   threads    One thread of umem reads and one writes, if umem_set_threads allows two or three
 *              threads (it counts the calling thread, too) and every context is umemConcurrent. The
 *              threads that share long copies help to read: each takes the next piece of a block.
 *              One thread is left to the program, or half of them if the CPU can write to the
 *              place. umemBlocks_next itself reads and writes if there is no thread for that, or if
 *              blocks of less than 256 KiB pass between RAM and files. The threads block all
 *              signals. One thread at a time may call the functions of a umemBlocks, except
 *              umemBlocks_cancel.
 *   failures   Failures of a thread of umem become those of the next call of umemBlocks_next or
 *              umemBlocks_end, with the block in the message: "umemBlocks_next: writing block 7 of
 *              16 (rows 700 to 799): ...". umem then reads no further block. The destination has
 *              the rows of all blocks before the one that could not be written; the rows of that
 *              one are unspecified, and umem does not write later ones. After any other failure the
 *              destination has the rows of all blocks that the program has given back.
 *   fork       A child of fork has none of the threads: if there were any, umemBlocks_next records
 *              umemRuntimeError there, and umemBlocks_end frees the memory and writes nothing.
 *
 * Until umemBlocks_end the contexts and the source and destination must live, and no one else may
 * write to the source or use the destination. */
#ifndef UMEM_BLOCKS_H
#define UMEM_BLOCKS_H

#include <umem/base.h>

/* Rows of an array. */
typedef struct umemRows {
  void *ctx;        /* borrowed: the context of the array; NULL for no array */
  uintptr_t adr;    /* of row 0 */
  size_t nbytes;    /* bytes of one row, which are contiguous; greater than 0 */
  ptrdiff_t stride; /* bytes from row to row, of any sign; 0: nbytes, rows without gaps */
} umemRows;

/* What stands for the ghost rows that the array does not have, before its first and after its last
 * row. */
typedef enum umemGhosts {
  umemGhostsLeftOut = 0, /* nothing: the blocks there have fewer ghost rows */
  umemGhostsClamped = 1  /* copies of the first and of the last row of the array */
} umemGhosts;

/* Options of umemBlocks_ctor. Start from UMEM_BLOCKS_OPTIONS_INIT. */
typedef struct umemBlocksOptions {
  size_t size;     /* sizeof(umemBlocksOptions) as the caller was compiled */
  umemRows source; /* what is read */
  /* Where the blocks are written to; ctx NULL: nowhere. The same rows as those of the source are
   * replaced; other rows that share bytes with the source are refused. */
  umemRows destination;
  size_t count; /* rows of the source and of the destination; may be 0 */

  /* Borrowed: the context whose memory holds the blocks while the program works on them, and on
   * which it queues that work if it is umemOrdered. */
  void *place;

  /* Contexts in the memory of the place, borrowed: umem reads and writes block k on queues[k %
   * queue_count]. Give one umemCudaAsync for each block that is in memory at once (depth), so that
   * copies and kernels overlap on a GPU. Without queues (NULL, 0) the copies are in the order of
   * the place itself. */
  void *const *queues;
  size_t queue_count;

  /* the most bytes that all blocks take on the place; 0: 64 MiB, or if rows is set, any */
  size_t budget;
  /* of a block, its ghost rows not counted; 0: umem chooses. The last block may have fewer */
  size_t rows;
  /* Blocks in memory at once. 0: umem chooses 3 without a destination (5 if the CPU cannot write to
   * the place) and 4 with one, more where ghost rows are replaced, fewer where the budget has no
   * room for them. */
  size_t depth;

  /* Ghost rows: how many rows before and after its own rows a block holds, too. They have the
   * values of the source as it was before the first block was written, also where the destination
   * is the source. */
  size_t before, after;
  umemGhosts ghosts;

  /* Whether the results have memory of their own (umemBlock.out), as a stencil needs it. Without,
   * the program changes the rows of the block in place. Implied if the rows of the destination have
   * another size. */
  bool apart;

  /* Called by umemBlocks_next in the calling thread with the rows that are done (written, where
   * there is a destination; given back, where there is none), whenever the number has grown: at
   * first with 0, at last with done equal to total. It returns whether to go on: false cancels, or
   * when all is done, changes nothing. It may call umem, but no function of this umemBlocks. A C++
   * exception may leave it, and umemBlocks_next (see doc/concepts/callbacks.rst): umemBlocks_end is
   * then still to be called. */
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user; /* borrowed, handed to progress */
} umemBlocksOptions;

/* What umemBlocksOptions start as. */
#define UMEM_BLOCKS_OPTIONS_INIT                                                                   \
  {                                                                                                \
    sizeof(umemBlocksOptions), {NULL, 0, 0, 0}, {NULL, 0, 0, 0}, 0, NULL, NULL, 0, 0, 0, 0, 0, 0,  \
        umemGhostsLeftOut, false, NULL, NULL                                                       \
  }

/* A block that the program works on. Rows of the source stand one after the other in memory,
 * without gaps: before ghost rows, the rows of the block, after ghost rows. */
typedef struct umemBlock {
  size_t size;          /* sizeof(umemBlock) as the caller was compiled; set it before the call */
  size_t number;        /* of the block, from 0 */
  size_t first;         /* which row of the array its first row is */
  size_t rows;          /* at least 1 */
  size_t before, after; /* ghost rows that are there */
  uintptr_t adr; /* on the place: of the first row of the block; ghost rows come before in memory */
  /* On the place: where the program stores the rows for the destination, with the size that rows
   * have there; adr, where the results have no memory of their own. */
  uintptr_t out;
} umemBlock;

/* What a umemBlock starts as. */
#define UMEM_BLOCK_INIT                                                                            \
  { sizeof(umemBlock), 0, 0, 0, 0, 0, 0, 0 }

/* The passage of an array through a place. */
typedef struct umemBlocks {
  void *impl; /* owned; NULL before construction, after a failed one, and after the end */
  umemStatusType status; /* what umemBlocks_end returns where impl is NULL */
  uintptr_t reserved[6]; /* zero */
} umemBlocks;

/* Constructs *blocks and begins to read. options (borrowed for the call) say what. Errors, after
 * which there is nothing to end, and umemBlocks_next returns false: umemValueError for options that
 * contradict themselves, and for a depth in which ghost rows cannot be replaced; umemMemoryError
 * where the budget has no room for one row with its ghost rows, and where the place or RAM has
 * none; umemNotSupportedError where the source is not readable, or the destination or the place not
 * writable; the status of a context that is not constructed. */
UMEM_EXTERN umemStatusType umemBlocks_ctor(umemBlocks *blocks, umemBlocksOptions const *options);

/* Gives the block before back, if there is one, and waits for the next one: fills in *block and
 * returns true. umem writes the block that was given back to the destination. Returns false when
 * there is no further block, the blocks were cancelled, or something has failed; all blocks that
 * were given back are then written, as far as the top of this file promises, and umemBlocks_end
 * returns why.
 *
 * Errors, recorded on the context that failed: those of umem_copy_strided and umem_synchronize;
 * umemCancelledError, on the destination or else on the place; umemValueError for blocks that are
 * not constructed or a block of a size that cannot be true: then the program keeps the block that
 * it has. */
UMEM_EXTERN bool umemBlocks_next(umemBlocks *blocks, umemBlock *block);

/* Ends blocks, at any time: the block that the program has is not written; umem waits until those
 * that it has given back are, and frees the memory. Returns the first failure of all calls for
 * these blocks; umemOK if there was none, and for blocks that were zeroed, or have ended already.
 * umemNotSupportedError if the stream of the place is being captured into a graph: nothing can be
 * freed then, and the memory stays until the place ends. */
UMEM_EXTERN umemStatusType umemBlocks_end(umemBlocks *blocks);

/* Cancels: the next call of umemBlocks_next, and one that waits, returns false and records
 * umemCancelledError, unless all blocks were given back by then. Any thread may call this until
 * umemBlocks_end begins. It does not wait. */
UMEM_EXTERN void umemBlocks_cancel(umemBlocks *blocks);

/* What umemBlocks_info fills in. */
typedef struct umemBlocksInfo {
  size_t size;   /* sizeof(umemBlocksInfo) as the caller was compiled; set it before the call */
  size_t rows;   /* of each block but the last */
  size_t blocks; /* how many there are */
  size_t depth;  /* how many are in memory at once */
  size_t nbytes; /* what they take on the place */
  uint64_t done; /* rows, as progress counts them */
} umemBlocksInfo;

/* What a umemBlocksInfo starts as. */
#define UMEM_BLOCKS_INFO_INIT                                                                      \
  { sizeof(umemBlocksInfo), 0, 0, 0, 0, 0 }

/* Fills in *info. umemValueError where blocks are not constructed, or info is NULL or its size too
 * small to be true. */
UMEM_EXTERN umemStatusType umemBlocks_info(umemBlocks *blocks, umemBlocksInfo *info);

/* What the program does with a block, in the calling thread. Returns 0 to go on; any other number
 * stops. A C++ exception may leave it and umemBlocks_run, which then ends the blocks as
 * umemBlocks_end does (see doc/concepts/callbacks.rst). */
typedef int umemBlockBody(void *data, umemBlock const *block);

/* Constructs blocks, calls body(data, block) for each, and ends them. Returns umemOK, or the first
 * failure. When body stops, umem does not write that block, but all before it, and stores the
 * number that body has returned in *code (0 if it has not stopped; code may be NULL); this is no
 * failure. umemValueError if body is NULL. */
UMEM_EXTERN umemStatusType umemBlocks_run(umemBlocksOptions const *options, umemBlockBody *body,
                                          void *data, int *code);

#endif
