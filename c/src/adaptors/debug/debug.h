/* debug.h - the parts of umemDebug.
 *
 *   debug.c         the methods, construction
 *   debug_blocks.c  the blocks, live and freed, in order of address
 *   debug_look.c    fills and looks at memory, and reports what is wrong
 *
 * A record covers all of a block: its red zones, which are the bytes before and behind it that
 * nothing may write, and what is between them. Each block is in one state:
 *
 *     live -> freeing -> kept -> leaving -> gone
 *
 * and goes one step back if a step fails. Only the thread that has made a block freeing or
 * leaving may change its state. A thread that checks a block pins it, so that it does not leave
 * in this time. The upstream may allocate the memory of a block again while the block is
 * leaving, or if the program has freed it directly on the upstream. Then the new block replaces
 * the old one. Therefore all functions name a block by the name of its record. */
#ifndef UMEM_DEBUG_PRIVATE_H
#define UMEM_DEBUG_PRIVATE_H

#include "core/adaptor.h"
#include "base/records.h"

#include <umem/debug.h>
#include <umem/host.h>

enum { umemDebugBatch = 64 }; /* blocks that are looked at together, at most */

/* The bytes of a block that can be overwritten: its red zones, and those inside. */
typedef enum umemDebugPart { umemDebugZones, umemDebugInside, umemDebugParts } umemDebugPart;

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
  umemRecordName name;                              /* of its record */
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
  umemRecord head;
  void **traces; /* owned; of the allocation; from table->frames on of the free; or NULL */
  umemDebugBlock block;
  umemDebugState state;
  bool reported[umemDebugParts]; /* what is wrong with it */
  uint16_t pins;                 /* threads that look at it */
  uint16_t allocated_frames, freed_frames;
} umemDebugRecord;

/* Thread-safe. Must not move. */
typedef struct umemDebugTable {
  umemRecords records;     /* umemDebugRecords; first. The lists of spans are of kept blocks */
  uint32_t oldest, newest; /* of those that are kept */
  unsigned frames;
  size_t kept_count, kept_bytes; /* kept, or admitted */
  size_t most_count, most_bytes; /* that may be kept */
} umemDebugTable;

/* Makes *table empty. False, with nothing to release, without memory. */
bool umemDebugTable_init(umemDebugTable *table);

/* ---- debug_blocks.c: new blocks ---- */

/* Enters a live block for which umemSite_reserve has reserved room; its name is set here.
 * traces: room for twice table->frames, of which the first frames are there; the table owns it
 * from now on. */
void umemDebugTable_enter(umemDebugTable *table, umemDebugBlock block, void **traces,
                          unsigned frames);

/* ---- debug_blocks.c: freed blocks ---- */

/* Makes the live block at adr freeing, and copies it to *block. aligned, wanted: how the caller
 * frees it, and how many bytes it should have (0: any number). trace: the call site of the free.
 * Otherwise returns false with the reason in *finding. */
bool umemDebugTable_begin(umemDebugTable *table, uintptr_t adr, bool aligned, size_t wanted,
                          void *const *trace, unsigned frames, umemDebugBlock *block,
                          umemDebugFault *finding);

/* A block that was freeing is live again. */
void umemDebugTable_revive(umemDebugTable *table, umemDebugBlock const *block);

/* Whether one more block of extent bytes may be kept; it is counted from now on, until it is
 * kept or forgone. Otherwise the oldest become leaving, at most room of them, and are copied to
 * oldest: as many as must go, and an eighth of all more when eighth is set. */
bool umemDebugTable_admit(umemDebugTable *table, size_t extent, bool eighth, umemDebugBlock *oldest,
                          unsigned room, unsigned *count);
void umemDebugTable_forgo(umemDebugTable *table, size_t extent);

/* A block that was freeing, and was admitted, is kept. poisoned: whether it is filled. */
void umemDebugTable_keep_block(umemDebugTable *table, umemDebugBlock const *block, bool poisoned);

/* Whether a block that is freeing may go without being kept; a block that is pinned is kept. */
bool umemDebugTable_passes(umemDebugTable *table, umemDebugBlock const *block);

/* Makes the oldest that are kept leaving, at most room of them. Returns how many. */
unsigned umemDebugTable_take(umemDebugTable *table, umemDebugBlock *oldest, unsigned room);

/* A block that was leaving is kept for longer. */
void umemDebugTable_put_back(umemDebugTable *table, umemDebugBlock const *block);

/* A block has gone. */
void umemDebugTable_gone(umemDebugTable *table, umemDebugBlock const *block);

/* ---- debug_blocks.c: checks ---- */

/* Copies, and pins, the first blocks at or after from: those that are live or kept; all of them,
 * when no other thread uses the table. At most room of them. Returns how many. */
unsigned umemDebugTable_pin(umemDebugTable *table, uintptr_t from, bool all, umemDebugBlock *blocks,
                            unsigned room);
void umemDebugTable_unpin(umemDebugTable *table, umemDebugBlock const *blocks, unsigned count);

/* Whether bytes of a part of block were overwritten and this was not reported yet; then fills in
 * *finding and counts it as reported. */
bool umemDebugTable_take_finding(umemDebugTable *table, umemDebugBlock const *block,
                                 umemDebugPart part, umemDebugFault *finding);

/* The method find. A block is found without its red zones. */
umemSearch umemDebug_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);

/* Whether the nbytes at adr are inside a live block or touch none at all; else fills in *finding
 * with what they touch. */
bool umemDebugTable_allow(umemDebugTable *table, uintptr_t adr, size_t nbytes,
                          umemDebugFault *finding);

/* ---- the context ---- */

typedef struct umemDebugImpl {
  umemAdaptor adaptor;
  umemDebugTable table;
  umemHost host;   /* the destination of copies to check bytes */
  size_t red_zone; /* bytes on each side, at least */
  unsigned forks;  /* between the process that loaded the library and the one that made this */
  bool fills;
  bool direct;           /* upstream's memory is the CPU's, and nothing is queued */
  bool at_once;          /* the program can write through pointers, so that each free looks */
  bool buffer_taken;     /* atomic */
  unsigned char *buffer; /* owned; NULL when direct */
  uint64_t findings;     /* with first, under the lock of the records */
  umemDebugFault first;
} umemDebugImpl;

static inline umemDebugImpl *umemDebug_impl(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- debug_look.c ---- */

/* Allocates the buffer into which upstream's bytes are copied. Returns false, and records a
 * status, if it is out of memory. */
bool umemDebug_open_buffer(umemVirtual *ctx);

/* Fills the red zones of a new block; what is between too, if it should be. False with a status
 * when upstream fails. */
bool umemDebug_fill(umemVirtual *ctx, umemDebugBlock const *block, bool fill);

/* Fills a freed block. False with a status when upstream fails. */
bool umemDebug_poison(umemVirtual *ctx, umemDebugBlock const *block);

/* Looks at count blocks: red zones, and the inside of what is poisoned; records in each what is
 * wrong. False with a status when upstream fails: then nothing is known. */
bool umemDebug_inspect(umemVirtual *ctx, umemDebugBlock *blocks, unsigned count);

/* Reports what umemDebug_inspect has found wrong with blocks, each thing once. Returns whether
 * there was nothing. */
bool umemDebug_report(umemVirtual *ctx, umemDebugBlock const *blocks, unsigned count);

/* Records a finding in the call that has led to it. */
void umemDebug_refuse(umemVirtual *ctx, umemDebugFault *finding);

#endif
