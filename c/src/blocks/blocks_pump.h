/* blocks_pump.h - moves blocks between an array and a place, while the program works on one of them. */
#ifndef UMEM_BLOCKS_PUMP_H
#define UMEM_BLOCKS_PUMP_H

#include <pthread.h>

#include "base/lock.h"
#include "blocks/blocks_slots.h"

/* Reading blocks, or writing them. */
typedef struct umemLeg {
  struct umemPump *pump;
  bool (*carry_out)(umemSlots const *slots, size_t number);
  char const *verb;
  umemAttempt held; /* the failure, if failed */
  /* Under the lock: */
  size_t begun;     /* blocks */
  size_t done;      /* blocks before the first one that is not done */
  unsigned running; /* blocks that are begun and have not ended */
  bool failed;
  size_t failed_at; /* the first block that failed, if failed */
  unsigned threads; /* that carry it out; 0: the calling thread does */
  unsigned wanted;  /* threads that were to; constant once the first has started */
  pthread_t thread[umemBlocksReaders];
} umemLeg;

/* A block is in its slot from the beginning of its reading to the end of its writing. One lock guards the numbers
 * below. What is in a slot belongs to the thread that reads or writes the block, or to the program. */
typedef struct umemPump {
  umemSlots slots;
  char const *function; /* of which failures are */
  unsigned forks;       /* umem_fork_count() of the process that began */
  umemLock lock;
  pthread_cond_t changed;
  umemLeg reads, writes; /* without a destination writes.done counts what was given back */
  size_t given;          /* blocks that the program got */
  size_t back;           /* and gave back: as many, or one less */
  bool cancelled;
  bool stopping; /* reads no further block; writes those that were given back */
  bool ended[];  /* for each slot: a leg is done with its block, but not with a block before */
} umemPump;

/* Begins to read. Returns NULL, and records a status, when that fails. */
umemPump *umemPump_begin(umemBlocksPlan const *plan, char const *function);

/* The program is done with its block. False when the order of the queues fails, which is then a failure of writing
 * the block. */
bool umemPump_give_back(umemPump *pump);

/* Waits for the next block. False when there is none, because of whatever. */
bool umemPump_take(umemPump *pump, umemBlock *block);

/* Returns when all blocks that were given back are written, or writing has failed, and nothing is read. */
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
