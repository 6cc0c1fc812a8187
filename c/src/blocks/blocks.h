/* blocks.h - what the parts of umemBlocks share: blocks_plan.c cuts an array into blocks, has the
 * memory that they pass through and chooses how they are read; blocks_pump.c moves them while the
 * program works on one of them. */
#ifndef UMEM_BLOCKS_PRIVATE_H
#define UMEM_BLOCKS_PRIVATE_H

#include "base/thread.h"
#include "watch/watch.h"

#include <pthread.h>
#include <umem/blocks.h>
#include <umem/virtual.h>

/* ==== blocks ==== */

/* The options, checked, and what follows from them. */
typedef struct umemBlocksPlan {
  /* strides are never 0; queues borrowed for the call of the constructor only */
  umemBlocksOptions given;
  size_t rows; /* of each block but the last */
  size_t blocks, depth;
  size_t ahead;      /* a block may be written when so many blocks after it have been read */
  size_t in_bytes;   /* of a block with its ghost rows, rounded to the alignment of the place */
  size_t slot_bytes; /* and with its results; slots stand one after the other */
} umemBlocksPlan;

/* Makes a plan. Returns false, and records a status, where options allow none. */
bool umemBlocksPlan_make(umemBlocksPlan *plan, umemBlocksOptions const *options);

/* Which rows of the array a block holds. */
typedef struct umemBlockRange {
  size_t first, rows;    /* its own rows */
  size_t before, after;  /* ghost rows that the array has */
  size_t missing_before; /* and those that it has not */
  size_t missing_after;
} umemBlockRange;

umemBlockRange umemBlocksPlan_range(umemBlocksPlan const *plan, size_t number);

enum { umemBlockNameSize = 160 };

/* What the messages of failures with a block begin with: "umemBlocks_next: reading block 7 of 16
 * (rows 700 to 799)". function: of at most 40 characters, as verb is of at most 10. */
void umemBlocksPlan_name(umemBlocksPlan const *plan, char const *function, char const *verb,
                         size_t number, char name[umemBlockNameSize]);

/* ==== slots ==== */

/* Block k is in slot k % depth. */
typedef struct umemSlots {
  umemBlocksPlan plan;
  uintptr_t memory;     /* on the place */
  unsigned generation;  /* of the process that has allocated it */
  umemVirtual **queues; /* owned */
  size_t queue_count;   /* at least 1 */
} umemSlots;

/* Allocates the memory. False, with a status and nothing to release, when that fails. */
bool umemSlots_take(umemSlots *slots, umemBlocksPlan const *plan);
void umemSlots_release(umemSlots *slots);

/* Where a block is: the first of its own rows, and its results. */
uintptr_t umemSlots_adr(umemSlots const *slots, size_t number);
uintptr_t umemSlots_out(umemSlots const *slots, size_t number);

/* The context in whose order block number is read and written. */
umemVirtual *umemSlots_queue(umemSlots const *slots, size_t number);

/* Bytes of a block with its ghost rows, of any kind. */
size_t umemSlots_nbytes(umemSlots const *slots, size_t number);

/* Bytes of a block in its memory, [at, at + nbytes) from its first ghost row on. */
typedef struct umemSlotPart {
  size_t number; /* of the block */
  size_t at, nbytes;
} umemSlotPart;

/* The part of block number that begins at at, and has about wanted bytes. */
umemSlotPart umemSlots_part(umemSlots const *slots, size_t number, size_t at, size_t wanted);

/* Whether the part stands in the source as one run, too. If so, fills in *piece. */
bool umemSlots_piece(umemSlots const *slots, umemSlotPart const *part, umemCopyPiece *piece);

/* Reads a part, or writes a block, and returns when that is done. False, with a status, when it
 * failed. */
bool umemSlots_read(umemSlots const *slots, umemSlotPart const *part);
bool umemSlots_write(umemSlots const *slots, size_t number);

/* Orders what the queue of a block does from now on after what the program has queued on the place.
 * False, with a status, if it fails. */
bool umemSlots_order(umemSlots const *slots, size_t number);

/* ==== a passage of an array ==== */

/* Bytes of a piece at least: a shorter one is read before another thread is awake, and costs the
 * driver of a GPU as much time. */
enum { umemLeastPiece = 256 << 10 };

/* Reading blocks. */
typedef struct umemReads {
  /* Constant: */
  bool by_method;   /* the place has the method copy_pieces, which gets pieces */
  bool cuts;        /* blocks are cut into pieces without it, too */
  size_t piece;     /* bytes of a piece */
  unsigned threads; /* that read pieces, at most */
  unsigned whole;   /* threads that read whole blocks, at most */
  /* Under the lock: */
  size_t begun; /* blocks */
  size_t done;  /* blocks before the first one that is not done */
  size_t at,
      nbytes; /* of the block that was begun last: bytes that somebody reads or has read, and all */
  size_t running; /* pieces that are begun and have not ended */
  size_t limit;   /* blocks that may begin: all, but for the call that reads one block */
  bool failed;
  size_t failed_at; /* the first block that failed, if failed */
  umemAttempt held; /* its failure */
} umemReads;

/* Chooses how the blocks are read. concurrent: by several threads. */
void umemReads_begin(umemReads *reads, umemSlots const *slots, bool concurrent);

/* Writing them. */
typedef struct umemWrites {
  size_t done;      /* blocks; without a destination, blocks that were given back */
  bool running;     /* one is being written */
  bool failed;      /* the block after those that are done */
  umemAttempt held; /* its failure */
} umemWrites;

/* Of a slot, and the block in it. */
typedef struct umemSlotState {
  size_t left; /* bytes that have not been read */
  umemTrace trace;
  umemOpenStep step; /* of reading the block, in the ledger */
} umemSlotState;

/* A thread of umem that reads, or one that writes. */
typedef struct umemPumpTask {
  struct umemPump *pump;
  bool (*can_run)(struct umemPump const *pump);
  bool (*is_over)(struct umemPump const *pump);
  void (*run)(struct umemPump *pump); /* with the lock, which it releases meanwhile */
  bool has_thread;                    /* else the calling thread does it; constant */
  bool has_left;                      /* the thread could not serve; under the lock */
  pthread_t thread;
} umemPumpTask;

/* A block is in its slot from the beginning of its reading to the end of its writing. One lock
 * protects the numbers below. What is in a slot belongs to the threads that read or write the
 * block, or to the program. */
typedef struct umemPump {
  umemSlots slots;
  char const *function; /* of which failures are */
  unsigned forks;       /* umem_fork_count() of the process that began */
  umemLock lock;
  pthread_cond_t changed;
  umemPumpTask reading, writing;
  umemReads reads;
  umemWrites writes;
  size_t given; /* blocks that the program got */
  size_t back;  /* and gave back: as many, or one less */
  bool cancelled;
  bool interrupted; /* what waits for a server ends, a write too */
  bool stopping;    /* reads no further block; writes those that were given back */
  umemSlotState state[];
} umemPump;

/* ---- the pump ---- */

/* Begins to read. Returns NULL, and records a status, when that fails. */
umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function);

/* Takes the program's block back. False, with a status, if its queue cannot be ordered after the
 * program's work: the program keeps the block. */
bool umemPump_give_back(umemPump *pump);

/* Waits for the next block. False if there is none: all were given, or reading or writing has
 * failed, or the blocks are cancelled. */
bool umemPump_take(umemPump *pump, umemBlock *block);

/* Stops reading. Returns when all blocks that were given back are written, or writing has
 * failed. */
void umemPump_drain(umemPump *pump);

void umemPump_cancel(umemPump *pump);
bool umemPump_is_cancelled(umemPump *pump);

/* The rows that are done, as the progress of umemBlocksOptions counts them. */
uint64_t umemPump_done(umemPump *pump);

/* After umemPump_drain. */
void umemPump_end(umemPump *pump);

/* Whether this process is a child of fork of the one whose threads the pump has. */
bool umemPump_is_lost(umemPump const *pump);

#endif
