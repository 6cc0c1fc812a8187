/* blocks_pump.h - moves blocks between an array and a place, while the program works on one of
 * them. */
#ifndef UMEM_BLOCKS_PUMP_H
#define UMEM_BLOCKS_PUMP_H

#include "base/thread.h"
#include "blocks/blocks_plan.h"
#include "watch/watch.h"

#include <pthread.h>

/* ---- a passage of an array ---- */

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
  void (*run)(struct umemPump *pump, bool one); /* with the lock, which it releases meanwhile */
  bool has_thread; /* else the calling thread does it; under the lock, as is has_left */
  bool has_left;   /* the thread could not serve */
  pthread_t thread;
} umemPumpTask;

/* A block is in its slot from the beginning of its reading to the end of its writing. One lock
 * protects the numbers below. What is in a slot belongs to the threads that read or write the block,
 * or to the program. */
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
  bool stopping; /* reads no further block; writes those that were given back */
  umemSlotState state[];
} umemPump;

/* ---- pump ---- */

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
