/* transfer.h - what the files of transfers have in common: the handle, its bytes (transfer_copy.c)
 * and the threads that serve it (transfer_serve.c). */
#ifndef UMEM_WATCH_TRANSFER_H
#define UMEM_WATCH_TRANSFER_H

#include "watch/watch.h"

#include <pthread.h>
#include <umem/transfer.h>
#include <umem/virtual.h>

#include "base/thread.h"
#include "core/copy.h"
#include "core/status.h"

/* A mark in the queue of a context. */
typedef struct umemTransferQueue {
  umemVirtual *layer; /* has the mark */
  umemMark mark;
} umemTransferQueue;

/* The items of a transfer of a list, which umem_start_many copies or queues if their contexts want
 * that, and servers otherwise. */
typedef struct umemTransferList {
  umemList list;
  umemCopyItem *items;       /* owned; those of list */
  size_t *failed;            /* of the program, borrowed; or NULL */
  bool at_once;              /* the start copies all items */
  umemTransferQueue *queues; /* owned; NULL: no item is queued */
} umemTransferList;

/* What a transfer that is watched needs beside. */
typedef struct umemTransferWatch {
  umemTrace trace;
  umemOpenStep step;
  umemRoute *route; /* of the program, borrowed; or NULL */
} umemTransferWatch;

typedef enum umemTransferState {
  umemTransferInLine, /* waits for a server */
  umemTransferMoving, /* a thread copies */
  umemTransferQueued, /* the copy is in the queue of a context */
  umemTransferEnded
} umemTransferState;

/* Transfers in the order in which they are served. */
typedef struct umemTransferLine {
  umemTransfer *first, *last;
  size_t count;
} umemTransferLine;

/* In a chain of transfer_blocks.c; all zero: in none. */
typedef struct umemTransferUse {
  umemTransfer *transfer;
  struct umemTransferUse *next, **link; /* link: what points to it */
} umemTransferUse;

/* The lock of transfer_serve.c protects all members but those that are atomic. A transfer belongs
 * to the thread that has set its state to moving, which reads and writes the rest without the
 * lock. */
struct umemTransfer {
  char const *function;   /* that has started it */
  umemVirtual *src, *dst; /* NULL: a list */
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  umemTransferList *list;    /* owned; or NULL */
  umemVirtual *from, *to;    /* that a feed copies between; NULL: no feed can */
  bool was_left;             /* who waits has given a server the time to begin a feed */
  umemLayout layout;         /* rank 0: a run. Its arrays, and at, follow the struct */
  size_t *at;                /* index of the first item that is not copied yet */
  bool whole;                /* is one piece */
  size_t piece;              /* bytes of a short piece */
  umemTransferWatch *watch;  /* owned; NULL: it is not watched */
  unsigned forks;            /* umem_fork_count() at the start */
  umemTransferState state;   /* atomic */
  bool cancelled, seen;      /* atomic; seen: a call has returned the failure */
  uint64_t done;             /* bytes; atomic */
  size_t queued;             /* bytes that queues copy */
  bool is_long;              /* a server does a long piece, and behind it while no other waits, */
  bool (*others_wait)(void); /* as this says */
  bool staged;               /* passes through pinned buffers */
  unsigned sharers;          /* transfers that pass through pinned buffers beside it, itself too */
  /* Of a queued copy: its own, and how many were queued when its mark was not yet set. So the
   * marks of those up to first_number are before its own, if they are in one queue. */
  uint64_t number, first_number;
  umemTransferQueue own;     /* the only queue of a copy that is no list */
  umemTransferQueue *queues; /* own, or those of the list: the transfer ends after their marks */
  size_t queue_count, reached;
  umemVirtual *marked;    /* has the first mark; NULL: there is none, or servers copy still */
  int fd;                 /* owned; -1: none */
  umemAttempt failure;    /* its contexts are NULL when one of them has ended */
  pthread_cond_t changed; /* of the state */
  bool listed;
  umemTransferUse uses[2];
  umemTransferLine *line;              /* that it is in */
  struct umemTransfer *before, *after; /* in its line */
  struct umemTransfer *newer, *older;  /* in the list */
};

/* In a child of fork, a transfer of the parent counts as ended. */
static inline bool umemTransfer_is_here(umemTransfer const *self) {
  return self->forks == umem_fork_count();
}

static inline umemTransferState umemTransfer_state(umemTransfer const *self) {
  return __atomic_load_n(&self->state, __ATOMIC_ACQUIRE);
}

static inline bool umemTransfer_has_ended(umemTransfer const *self) {
  return umemTransfer_state(self) == umemTransferEnded || !umemTransfer_is_here(self);
}

static inline bool umemTransfer_is_cancelled(umemTransfer const *self) {
  return __atomic_load_n(&self->cancelled, __ATOMIC_RELAXED);
}

/* The bytes that servers have to copy still. */
static inline size_t umemTransfer_rest(umemTransfer const *self) {
  return self->nbytes - self->queued - self->done;
}

static inline bool umemTransfer_has_failed(umemTransfer const *self) {
  return umemAttempt_failed(&self->failure);
}

/* ---- the bytes: transfer_copy.c. Without the lock, in the thread it belongs to ---- */

/* What a start is given. */
typedef struct umemTransferStart {
  char const *function;
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  umemLayout const *layout; /* copied */
  umemRoute *route;         /* of the program, borrowed until the transfer has ended; or NULL */
} umemTransferStart;

/* Returns a transfer of nbytes that belongs to the calling thread; NULL, with a status, without
 * memory. list, which it owns then, or NULL. */
umemTransfer *umemTransfer_make(umemTransferStart const *given, size_t nbytes,
                                umemTransferList *list);

/* Checks a list, and copies its items. NULL after a failure. */
umemTransferList *umemTransferList_make(umemCopyItem const *items, size_t count,
                                        umemCopyManyOptions const *options);
void umemTransferList_discard(umemTransferList *self);

/* Frees the handle. No other thread may know it. */
void umemTransfer_discard(umemTransfer *self);

/* Copies all bytes, or queues the copy; of a list, the items that the start copies. The failures
 * are those of the calling thread. Returns whether all is well. */
bool umemTransfer_copy_all(umemTransfer *self);

/* Copies about `most` bytes, and keeps the failure. */
void umemTransfer_copy_piece(umemTransfer *self, size_t most);

/* Whether a piece could overwrite what a later one reads. */
bool umemTransfer_overlaps(umemTransfer const *self);

/* Sets marks behind what is queued, or else waits for it. Returns false after a failure. */
bool umemTransfer_mark(umemTransfer *self);

/* Returns whether the queues have done the copy, or that has failed; then releases the marks. If
 * waits is true, it returns when that is so. */
bool umemTransfer_is_reached(umemTransfer *self, bool waits);

/* Releases the marks, which the queues have reached. */
void umemTransfer_release_marks(umemTransfer *self);

/* Whether bytes of a transfer are on ctx. */
bool umemTransfer_names(umemTransfer const *self, umemVirtual const *ctx);

/* Completes the failure and the route of a transfer that ends. Also with the lock. */
void umemTransfer_close(umemTransfer *self);

/* ---- long ones to a GPU: transfer_feed.c ---- */

typedef struct umemTransferFeed umemTransferFeed;

/* Sets from and to, without the lock. */
void umemTransfer_find_feed(umemTransfer *self);

/* The feed that runs, and takes transfers such as self; or NULL. With the lock. */
umemTransferFeed *umemTransfer_feed_of(umemTransfer const *self);

/* Its line, to which the caller adds a transfer. With the lock. */
umemTransferLine *umemTransferFeed_line(umemTransferFeed *self);

/* What it needs of those that serve transfers. With the lock: take a transfer out of its line for
 * the calling thread, put it at the end of one, end what the thread has claimed, and move those
 * that a feed takes to its line. */
typedef struct umemTransferServing {
  umemLock *lock;
  umemTransfer *(*claim)(umemTransfer *self);
  void (*push)(umemTransfer *self);
  void (*end)(umemTransfer *self);
  void (*sort_lines)(void);
} umemTransferServing;

/* Hands out the pieces of self, which has from and to, then those of transfers in the line of the
 * feed. They end; what the method does not take is put back. With the lock, which it releases
 * meanwhile; afterwards nothing is known of self. */
void umemTransfer_feed(umemTransfer *self, umemTransferServing const *serving);

/* Whether a feed uses ctx. With the lock. */
bool umemTransfer_is_fed_to(umemVirtual const *ctx);

/* In a child of fork. */
void umemTransfer_forget_feeds(void);

/* ---- blocks that are freed: transfer_blocks.c ---- */

typedef struct umemTransferBlock {
  umemVirtual *ctx;   /* the innermost one */
  umemVirtual *queue; /* in whose order it is freed; or NULL */
  uintptr_t first, end;
} umemTransferBlock;

/* The block of ctx that begins at adr. If ctx does not know how long it is, its first byte; if
 * another thread keeps ctx from looking, all bytes from there on. */
umemTransferBlock umemTransfer_block_at(umemVirtual *ctx, uintptr_t adr);

/* A transfer that goes on, and uses the block otherwise than before it in its queue; or NULL. With
 * the lock, as those below. */
umemTransfer *umemTransfer_user_of(umemTransferBlock const *block);

/* While a transfer goes on, umemTransfer_user_of finds it. */
void umemTransfer_add_uses(umemTransfer *self);
void umemTransfer_remove_uses(umemTransfer *self);

/* In a child of fork. */
void umemTransfer_forget_uses(void);

/* ---- the threads: transfer_serve.c. Takes the lock ---- */

/* Whether there are threads for transfers. */
bool umemTransfer_is_served(void);

/* Lets servers do a transfer, or does it in the calling thread if none can be started. */
void umemTransfer_serve(umemTransfer *self);

/* How many copies were queued so far. */
uint64_t umemTransfer_count_queued(void);

/* Lists a transfer whose copy is queued, and marked. */
void umemTransfer_list_queued(umemTransfer *self);

static uint64_t const umemTransfer_for_ever = UINT64_MAX;

/* Returns whether the transfer has ended when it has, or at the deadline, of CLOCK_MONOTONIC in
 * nanoseconds. May copy meanwhile. */
bool umemTransfer_wait_until(umemTransfer *self, uint64_t deadline);

/* Looks once how far the queue is that has the copy, if one has it. */
void umemTransfer_look(umemTransfer *self);

/* umemTransfer_cancel. */
void umemTransfer_stop(umemTransfer *self);

/* Opens the descriptor, if there is none. Servers then look how far a queue is. Returns 0 or
 * errno. */
int umemTransfer_open_descriptor(umemTransfer *self);

/* Forgets a transfer that has ended: its thread uses it no more when this returns. */
void umemTransfer_leave(umemTransfer *self);

/* A copy of the failure of a transfer that has ended. */
umemAttempt umemTransfer_failure(umemTransfer *self);

#endif
