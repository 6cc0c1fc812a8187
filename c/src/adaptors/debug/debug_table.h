/* debug_table.h - the blocks of a umemDebug, live and freed, in order of address.
 *
 * A record covers all of a block: the guards and what is between them. Each block is in one state:
 *
 *     live -> freeing -> kept -> leaving -> gone
 *
 * and goes one step back if a step fails. Only the thread that has made a block freeing or leaving may change its
 * state. A thread that checks a block pins it, so that it does not leave in this time. The upstream may allocate the
 * memory of a block again while the block is leaving, or if the program has freed it directly on the upstream. Then
 * the new block replaces the old one. Therefore all functions name a block by its start and its number. */
#ifndef UMEM_DEBUG_TABLE_H
#define UMEM_DEBUG_TABLE_H

#include "adaptors/records.h"

#include <umem/debug.h>

/* The bytes of a block that can be overwritten: those around it, those inside. */
typedef enum umemDebugPart { umemDebugAround, umemDebugInside, umemDebugParts } umemDebugPart;

typedef struct umemDebugOverwritten {
  size_t wrong;   /* bytes; 0: none */
  int64_t offset; /* of the first, from the address on */
  unsigned char found, expected;
} umemDebugOverwritten;

/* What the table knows of a block, for work on it without the lock. */
typedef struct umemDebugBlock {
  uintptr_t origin;                                 /* where upstream's block begins */
  size_t extent;                                    /* its bytes */
  size_t front;                                     /* those before the block proper */
  size_t nbytes;                                    /* as requested */
  uint64_t number;                                  /* of the allocation, from 1 */
  bool aligned;                                     /* of umem_aligned_alloc */
  bool poisoned;                                    /* filled with UMEM_DEBUG_FREED */
  umemDebugOverwritten overwritten[umemDebugParts]; /* of umemDebug_inspect */
} umemDebugBlock;

static inline uintptr_t umemDebugBlock_adr(umemDebugBlock const *block) {
  return block->origin + block->front;
}

typedef enum umemDebugState {
  umemDebugLive,
  umemDebugFreeing,
  umemDebugKept,
  umemDebugLeaving
} umemDebugState;

typedef struct umemDebugRecord {
  umemRecord head; /* traces: of the allocation, then, from table->frames on, of the free */
  umemDebugBlock block;
  umemDebugState state;
  bool reported[umemDebugParts]; /* what is wrong with it */
  uint16_t pins;                 /* threads that look at it */
  uint16_t allocated_frames, freed_frames;
} umemDebugRecord;

/* Thread-safe. Must not move. */
typedef struct umemDebugTable {
  umemRecords records;     /* umemDebugRecords; the lists of their spans are those of kept blocks */
  uint32_t oldest, newest; /* of those that are kept */
  unsigned frames;
  size_t live_count, live_bytes; /* live, or freeing */
  size_t kept_count, kept_bytes; /* kept, or admitted */
  size_t most_count, most_bytes; /* that may be kept */
} umemDebugTable;

/* Makes *table empty. False, with nothing to release, without memory. */
bool umemDebugTable_init(umemDebugTable *table);
void umemDebugTable_fini(umemDebugTable *table);

/* ---- coming ---- */

/* Enters a live block for which umemRecords_prepare has reserved room; its number is set here. traces: room
 * for twice table->frames, of which the first frames are there; the table owns it from now on. */
void umemDebugTable_enter(umemDebugTable *table, umemDebugBlock block, void **traces,
                          unsigned frames);

/* ---- going ---- */

/* Makes the live block at adr freeing, and copies it to *block. aligned, wanted: how the caller frees it, and
 * how many bytes it should have (0: any number). trace: the call site of the free. Otherwise returns false
 * with the reason in *finding. */
bool umemDebugTable_begin(umemDebugTable *table, uintptr_t adr, bool aligned, size_t wanted,
                          void *const *trace, unsigned frames, umemDebugBlock *block,
                          umemDebugFault *finding);

/* A block that was freeing is live again. */
void umemDebugTable_revive(umemDebugTable *table, umemDebugBlock const *block);

/* Whether one more block of extent bytes may be kept; it is counted from now on, until it is kept or
 * forgone. Otherwise the oldest become leaving, at most room of them, and are copied to oldest: as many as
 * must go, and an eighth of all more when eighth is set. */
bool umemDebugTable_admit(umemDebugTable *table, size_t extent, bool eighth, umemDebugBlock *oldest,
                          unsigned room, unsigned *count);
void umemDebugTable_forgo(umemDebugTable *table, size_t extent);

/* A block that was freeing, and was admitted, is kept. poisoned: whether it is filled. */
void umemDebugTable_keep(umemDebugTable *table, umemDebugBlock const *block, bool poisoned);

/* Whether a block that is freeing may go without being kept; a block that is pinned is kept. */
bool umemDebugTable_passes(umemDebugTable *table, umemDebugBlock const *block);

/* Makes the oldest that are kept leaving, at most room of them. Returns how many. */
unsigned umemDebugTable_take(umemDebugTable *table, umemDebugBlock *oldest, unsigned room);

/* A block that was leaving is kept for longer. */
void umemDebugTable_put_back(umemDebugTable *table, umemDebugBlock const *block);

/* A block has gone. */
void umemDebugTable_gone(umemDebugTable *table, umemDebugBlock const *block);

/* ---- looking ---- */

/* Copies, and pins, the first blocks at or after from: those that are live or kept; all of them, when no
 * other thread uses the table. At most room of them. Returns how many. */
unsigned umemDebugTable_pin(umemDebugTable *table, uintptr_t from, bool all, umemDebugBlock *blocks,
                            unsigned room);
void umemDebugTable_unpin(umemDebugTable *table, umemDebugBlock const *blocks, unsigned count);

/* Whether bytes of a part of block were overwritten and nobody has reported it; then fills in *finding and
 * counts it as reported. */
bool umemDebugTable_take_finding(umemDebugTable *table, umemDebugBlock const *block,
                                 umemDebugPart part, umemDebugFault *finding);

/* The live block that contains adr, without its guards, for the method find. */
umemSearch umemDebugTable_search(umemDebugTable *table, uintptr_t adr, umemFound *found);

/* Whether the nbytes at adr are inside a live block or touch none at all; else fills in *finding with what
 * they touch. */
bool umemDebugTable_allow(umemDebugTable *table, uintptr_t adr, size_t nbytes,
                          umemDebugFault *finding);

#endif
