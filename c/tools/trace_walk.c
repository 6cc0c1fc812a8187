/* trace_walk.c - goes through the records and keeps the live blocks, in two binary trees (POSIX's
 * tsearch) of intervals that never overlap: the live ones, and those that are being resized. */
#include "trace.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

typedef struct Walk {
  TraceStep step;
  void *live, *moving; /* trees of TraceBlocks, which they own */
  bool (*visit)(void *user, TraceStep const *step);
  void *user;
} Walk;

/* ---- trees of blocks ---- */

/* Equal are those that overlap. */
static int compare(void const *left, void const *right) {
  TraceBlock const *one = left, *other = right;
  if (one->ctx != other->ctx) return one->ctx < other->ctx ? -1 : 1;
  if (one->adr + (one->size - 1) < other->adr) return -1;
  return other->adr + (other->size - 1) < one->adr;
}

static TraceBlock *find(void *const *tree, TraceBlock const *wanted) {
  void *node = tfind(wanted, tree, compare);
  return node ? *(TraceBlock **)node : NULL;
}

/* The block in which nbytes from adr on begin. */
static TraceBlock *around(void *const *tree, unsigned ctx, uint64_t adr) {
  return find(tree, &(TraceBlock){.ctx = ctx, .adr = adr, .size = 1});
}

/* ---- what is live ---- */

static void count(Walk *walk, TraceBlock const *block, bool more) {
  uint64_t nbytes = more ? block->size : 0 - block->size;
  walk->step.live[block->ctx] += nbytes;
  walk->step.all += nbytes;
}

static void drop(void **tree, TraceBlock *block) {
  tdelete(block, tree, compare);
  free(block);
}

/* Blocks in the way are gone: the record of their end is not there. */
static TraceBlock *enter(Walk *walk, unsigned ctx, uint64_t adr, uint64_t size) {
  TraceBlock *block = malloc(sizeof *block), *old;
  if (!block) return NULL;
  *block = (TraceBlock){.ctx = ctx, .adr = adr, .size = size, .index = walk->step.blocks};
  while ((old = find(&walk->live, block))) {
    count(walk, old, false);
    drop(&walk->live, old);
  }
  if (!tsearch(block, &walk->live, compare)) {
    free(block);
    return NULL;
  }
  walk->step.blocks++;
  count(walk, block, true);
  return block;
}

/* Of what is moving the bytes are live, but the address may belong to another already. */
static void settle(Walk *walk, TraceBlock *old) {
  count(walk, old, false);
  drop(&walk->moving, old);
}

/* From live to moving. False without memory. */
static bool move_away(Walk *walk, TraceBlock *block) {
  TraceBlock *old;
  while ((old = find(&walk->moving, block))) settle(walk, old);
  if (!tsearch(block, &walk->moving, compare)) return false;
  tdelete(block, &walk->live, compare);
  return true;
}

/* ---- records ---- */

static TraceBlock *named(void *const *tree, unsigned ctx, uint64_t adr) {
  TraceBlock *block = around(tree, ctx, adr);
  return block && block->adr == adr ? block : NULL;
}

static bool show(Walk *walk, TraceBlock *block, TraceBlock *other) {
  walk->step.block = block;
  walk->step.other = other;
  return walk->visit(walk->user, &walk->step);
}

static bool allocated(Walk *walk, umemLogRecord const *r) {
  TraceBlock *block = r->status ? NULL : enter(walk, r->ctx, r->adr, r->size);
  return (block || r->status) && show(walk, block, NULL);
}

static bool freed(Walk *walk, umemLogRecord const *r) {
  TraceBlock *block = named(&walk->live, r->ctx, r->adr);
  if (!block || r->status) return show(walk, block, NULL);
  count(walk, block, false);
  bool goes_on = show(walk, block, NULL);
  drop(&walk->live, block);
  return goes_on;
}

static bool resize_begun(Walk *walk, umemLogRecord const *r) {
  TraceBlock *block = named(&walk->live, r->ctx, r->adr);
  return (!block || move_away(walk, block)) && show(walk, block, NULL);
}

static bool resize_ended(Walk *walk, umemLogRecord const *r) {
  TraceBlock *old = named(&walk->moving, r->ctx, r->other_adr);
  TraceBlock *new = NULL;
  if (old) count(walk, old, false);
  if (!r->status) {
    new = enter(walk, r->ctx, r->adr, r->size);
    if (!new) return false;
    if (old) new->writer = old->writer;
  } else if (old) { /* back it goes: the same block, with its own index */
    TraceBlock *back = enter(walk, r->ctx, old->adr, old->size);
    if (!back) return false;
    back->index = old->index;
    back->writer = old->writer;
  }
  bool goes_on = show(walk, old, new);
  if (old) drop(&walk->moving, old);
  return goes_on;
}

static bool copied(Walk *walk, umemLogRecord const *r) {
  TraceBlock *to = around(&walk->live, r->other_ctx, r->other_adr);
  bool goes_on = show(walk, around(&walk->live, r->ctx, r->adr), to);
  if (to && !r->status) to->writer = r;
  return goes_on;
}

static bool take(Walk *walk, umemLogRecord const *r) {
  walk->step.record = r;
  switch ((umemLogKind)r->kind) {
  case umemLogAlloc:
    return allocated(walk, r);
  case umemLogFree:
    return freed(walk, r);
  case umemLogResizeBegin:
    return resize_begun(walk, r);
  case umemLogResizeEnd:
    return resize_ended(walk, r);
  case umemLogSet:
    return show(walk, around(&walk->live, r->ctx, r->adr), NULL);
  case umemLogCopy:
    return copied(walk, r);
  case umemLog_kinds:
    break;
  }
  return true;
}

static void clear(void **tree) {
  while (*tree) drop(tree, **(TraceBlock ***)tree);
}

static bool wants(Trace const *trace, umemLogRecord const *r) {
  return trace_wants(trace, r->ctx) || (r->kind == umemLogCopy && trace_wants(trace, r->other_ctx));
}

bool trace_walk(Trace const *trace, bool (*visit)(void *user, TraceStep const *step), void *user) {
  Walk walk = {.visit = visit, .user = user};
  bool goes_on = true;
  for (size_t i = 0; i < trace->count && goes_on; i++)
    if (wants(trace, &trace->records[i])) goes_on = take(&walk, &trace->records[i]);
  clear(&walk.live);
  clear(&walk.moving);
  return goes_on;
}
