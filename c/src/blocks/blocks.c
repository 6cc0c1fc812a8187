/* blocks.c - umem/blocks.h: an array passes through a place, block by block. */
#include "blocks/blocks.h"
#include "core/context.h"

#include <stdlib.h>

typedef struct Blocks {
  umemPump *pump;
  bool (*progress)(void *user, uint64_t done, uint64_t total);
  void *user;
  uint64_t reported; /* rows, to progress; UINT64_MAX: nothing yet */
  bool has;          /* the program has a block */
  bool over;         /* umemBlocks_next has returned false; nothing runs any more */
  umemStatusType status;
} Blocks;

static void keep(Blocks *self, umemStatusType status) {
  if (self->status == umemOK) self->status = status;
}

static void *recorded_on(Blocks const *self) {
  umemBlocksOptions const *given = &self->pump->slots.plan.given;
  return given->destination.ctx ? given->destination.ctx : given->place;
}

/* Whether blocks may be used; else records why not. A failed constructor has recorded that
 * already. */
static Blocks *blocks_of(umemBlocks *blocks) {
  if (blocks && blocks->impl) return blocks->impl;
  if (!blocks || blocks->status == umemOK)
    umemVirtual_fail(NULL, umemValueError, "the blocks are %s",
                     blocks ? "not constructed: zeroed or ended" : "NULL");
  return NULL;
}

/* ---- construction ---- */

static umemStatusType construct(umemBlocks *blocks, umemBlocksOptions const *options,
                                char const *function) {
  uint64_t before = umem_thread.failures;
  if (!blocks) return umemVirtual_fail(NULL, umemValueError, "the blocks are NULL");
  *blocks = (umemBlocks){.impl = NULL};
  umemBlocksOptions full = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocksPlan plan;
  Blocks *self = NULL;
  umem_defer_cancel(); /* what the constructor takes is not lost */
  if (!options)
    umemVirtual_fail(NULL, umemValueError, "the options are NULL");
  else if (umem_read_sized(NULL, &full, sizeof full, options, "umemBlocksOptions") &&
           umemBlocksPlan_make(&plan, &full) && !(self = calloc(1, sizeof *self)))
    umemVirtual_fail(full.place, umemMemoryError, "no memory for blocks");
  if (self) {
    *self = (Blocks){.progress = full.progress, .user = full.user, .reported = UINT64_MAX};
    self->pump = umemPump_begin(&plan, function);
    if (self->pump)
      blocks->impl = self;
    else
      free(self);
  }
  return blocks->status = umem_result(before);
}

umemStatusType umemBlocks_ctor(umemBlocks *blocks, umemBlocksOptions const *options) {
  UMEM_ENTER();
  return construct(blocks, options, "umemBlocks_next");
}

/* ---- the end of the passage ---- */

/* Stops, and records what has failed. A block that could not be read counts only if the program has
 * asked for it: it may have been read ahead. */
static void finish(Blocks *self, bool asked) {
  umemPump *pump = self->pump;
  self->over = true;
  umemPump_drain(pump);
  bool missed = pump->reads.failed && pump->given == pump->reads.done;
  if (asked && missed && !umemPump_is_cancelled(pump))
    keep(self, umemAttempt_record(&pump->reads.held));
  if (pump->writes.failed) keep(self, umemAttempt_record(&pump->writes.held));
}

/* Whether to go on. Nothing is to be cancelled any more when all blocks were given back. */
static bool report(Blocks *self) {
  uint64_t done = umemPump_done(self->pump), total = self->pump->slots.plan.given.count;
  if (!self->progress || done == self->reported) return true;
  self->reported = done;
  UMEM_STEP_ASIDE(running);
  return self->progress(self->user, done, total) || done == total;
}

static bool all_are_back(Blocks const *self) {
  return self->pump->back == self->pump->slots.plan.blocks;
}

static void record_cancelled(Blocks *self) {
  if (self->status != umemOK || all_are_back(self) || !umemPump_is_cancelled(self->pump)) return;
  keep(self,
       umemVirtual_fail(recorded_on(self), umemCancelledError, "cancelled after %ju of %zu rows",
                        (uintmax_t)umemPump_done(self->pump), self->pump->slots.plan.given.count));
}

/* In a child of fork. */
static bool is_lost(Blocks *self) {
  if (!umemPump_is_lost(self->pump)) return false;
  keep(self,
       umemVirtual_fail(NULL, umemRuntimeError,
                        "forked in the middle: the threads that read and write blocks are not in "
                        "the child"));
  return self->over = true;
}

/* ---- the next block ---- */

static bool next(Blocks *self, umemBlock *block) {
  umemPump *pump = self->pump;
  uint64_t before = umem_thread.failures;
  if (self->over || is_lost(self)) return false;
  if (self->has && !umemPump_give_back(pump)) keep(self, umem_result(before));
  self->has = false;
  if (self->status == umemOK && !report(self)) umemPump_cancel(pump);
  self->has = self->status == umemOK && umemPump_take(pump, block);
  if (self->has) return true;
  finish(self, true);
  record_cancelled(self);
  if (self->status == umemOK) report(self);
  return false;
}

bool umemBlocks_next(umemBlocks *blocks, umemBlock *block) {
  UMEM_ENTER();
  umem_defer_cancel();
  Blocks *self = blocks_of(blocks);
  umemBlock full;
  if (!self || !umem_can_write_sized(NULL, block, sizeof block->size, "block", "umemBlock") ||
      !next(self, &full))
    return false;
  umem_write_sized(block, &full, sizeof full);
  return true;
}

void umemBlocks_cancel(umemBlocks *blocks) {
  Blocks *self = blocks ? blocks->impl : NULL;
  if (self) umemPump_cancel(self->pump);
}

umemStatusType umemBlocks_info(umemBlocks *blocks, umemBlocksInfo *info) {
  UMEM_ENTER();
  Blocks *self = blocks_of(blocks);
  if (!self) return blocks && blocks->status != umemOK ? blocks->status : UMEM_RESULT();
  if (!umem_can_write_sized(NULL, info, sizeof info->size, "info", "umemBlocksInfo"))
    return UMEM_RESULT();
  umemBlocksPlan const *plan = &self->pump->slots.plan;
  umemBlocksInfo full = {.rows = plan->rows,
                         .blocks = plan->blocks,
                         .depth = plan->depth,
                         .nbytes = plan->depth * plan->slot_bytes,
                         .done = umemPump_done(self->pump)};
  umem_write_sized(info, &full, sizeof full);
  return umemOK;
}

/* ---- the end ---- */

umemStatusType umemBlocks_end(umemBlocks *blocks) {
  UMEM_ENTER();
  umem_defer_cancel();
  if (!blocks) return umemOK;
  Blocks *self = blocks->impl;
  umemStatusType status = blocks->status;
  if (self) {
    bool lost = umemPump_is_lost(self->pump);
    if (!self->over && !lost) finish(self, false);
    uint64_t before = umem_thread.failures;
    umemPump_end(self->pump);
    keep(self, umem_result(before));
    status = self->status;
    free(self);
  }
  *blocks = (umemBlocks){.impl = NULL};
  return status;
}

/* ---- the callback form ---- */

static void end_running(umemBlocks *blocks) { umemBlocks_end(blocks); }

static int call_body(umemBlockBody *body, void *data, umemBlock const *block) {
  UMEM_STEP_ASIDE(running);
  return body(data, block);
}

umemStatusType umemBlocks_run(umemBlocksOptions const *options, umemBlockBody *body, void *data,
                              int *code) {
  UMEM_ENTER();
  if (code) *code = 0;
  if (!body) return umemVirtual_fail(NULL, umemValueError, "the function to call is NULL");
  __attribute__((cleanup(end_running))) umemBlocks blocks; /* also when an exception passes */
  construct(&blocks, options, "umemBlocks_run");
  umemBlock block;
  int stop = 0;
  while (!stop && blocks.impl && next(blocks.impl, &block)) stop = call_body(body, data, &block);
  if (code) *code = stop;
  return umemBlocks_end(&blocks);
}
