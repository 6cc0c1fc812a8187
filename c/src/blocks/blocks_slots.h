/* blocks_slots.h - the memory that blocks pass through, and one passage of an array through it. */
#ifndef UMEM_BLOCKS_SLOTS_H
#define UMEM_BLOCKS_SLOTS_H

#include <pthread.h>
#include <umem/virtual.h>

#include "base/lock.h"
#include "blocks/blocks_plan.h"
#include "watch/watch.h"

/* ---- slots ---- */

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

/* ---- passages ---- */

/* Reading blocks (blocks_pump.c). */
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
typedef struct umemLeg {
  struct umemPump *pump;
  bool (*can_run)(struct umemPump const *pump);
  bool (*is_over)(struct umemPump const *pump);
  void (*run)(struct umemPump *pump, bool one); /* with the lock, which it releases meanwhile */
  bool has_thread; /* else the calling thread does it; under the lock, as is has_left */
  bool has_left;   /* the thread could not serve */
  pthread_t thread;
} umemLeg;

/* A block is in its slot from the beginning of its reading to the end of its writing. One lock
 * guards the numbers below. What is in a slot belongs to the threads that read or write the block,
 * or to the program. */
typedef struct umemPump {
  umemSlots slots;
  char const *function; /* of which failures are */
  unsigned forks;       /* umem_fork_count() of the process that began */
  umemLock lock;
  pthread_cond_t changed;
  umemLeg reading, writing;
  umemReads reads;
  umemWrites writes;
  size_t given; /* blocks that the program got */
  size_t back;  /* and gave back: as many, or one less */
  bool cancelled;
  bool stopping; /* reads no further block; writes those that were given back */
  umemSlotState state[];
} umemPump;

#endif
