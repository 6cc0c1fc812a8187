/* trace_replay.c - runs the operations of a log again, on one context and in one thread, in the
 * order of the log. They are prepared first, so that only they are timed. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <umem.h>

typedef struct Operation {
  umemLogRecord const *record;
  size_t block, other; /* indices of blocks */
  size_t at, to;       /* offsets in them */
} Operation;

/* A block of the replay. */
typedef struct Place {
  uintptr_t adr;
  size_t size;
  bool live, aligned;
} Place;

struct Replay {
  Operation *operations; /* owned */
  Place *places;         /* owned; one for each index */
  size_t count, places_count;
  size_t left_out;     /* operations on blocks that the log does not know */
  uint64_t peak_bytes; /* of all contexts that are wanted together */
};

/* ---- preparing ---- */

static bool lies_within(TraceBlock const *block, uint64_t adr, uint64_t size) {
  return block && size <= block->size - (adr - block->adr);
}

/* Fills in the operation. Whether there is one: the blocks are known, and nothing had failed. */
static bool prepare(TraceStep const *step, Operation *operation) {
  umemLogRecord const *r = step->record;
  TraceBlock const *block = step->block, *other = step->other;
  *operation = (Operation){.record = r,
                           .block = block ? block->index : 0,
                           .other = other ? other->index : 0,
                           .at = block ? (size_t)(r->adr - block->adr) : 0,
                           .to = other ? (size_t)(r->other_adr - other->adr) : 0};
  switch ((umemLogKind)r->kind) {
  case umemLogAlloc:
  case umemLogFree:
    return block != NULL;
  case umemLogResizeEnd:
    return block && other;
  case umemLogSet:
    return lies_within(block, r->adr, r->size);
  case umemLogCopy:
    return lies_within(block, r->adr, r->size) && lies_within(other, r->other_adr, r->size);
  case umemLogResizeBegin:
  case umemLog_kinds:
    break;
  }
  return false;
}

static bool visit(void *user, TraceStep const *step) {
  Replay *replay = user;
  if (step->all > replay->peak_bytes) replay->peak_bytes = step->all;
  replay->places_count = step->blocks;
  if (step->record->kind == umemLogResizeBegin || step->record->status) return true;
  if (prepare(step, &replay->operations[replay->count]))
    replay->count++;
  else
    replay->left_out++;
  return true;
}

Replay *replay_make(Trace const *trace) {
  Replay *replay = calloc(1, sizeof *replay);
  if (!replay) return NULL;
  replay->operations = calloc(trace->count + 1, sizeof *replay->operations);
  if (replay->operations && trace_walk(trace, visit, replay)) {
    replay->places = calloc(replay->places_count + 1, sizeof *replay->places);
    if (replay->places) return replay;
  }
  replay_free(replay);
  return NULL;
}

void replay_free(Replay *replay) {
  free(replay->operations);
  free(replay->places);
  free(replay);
}

/* ---- running ---- */

static uintptr_t allocate(void *ctx, umemLogRecord const *r) {
  size_t size = (size_t)r->size;
  if (r->flags & umemLogAligned)
    return umem_aligned_alloc(ctx, (size_t)1 << r->log2_alignment, size);
  return r->flags & umemLogZeroed ? umem_calloc(ctx, 1, size) : umem_alloc(ctx, size);
}

static void give_back(void *ctx, Place *place) {
  (place->aligned ? umem_aligned_free : umem_free)(ctx, place->adr);
  place->live = false;
}

/* A block that cannot be resized is, as it was, what comes after. */
static bool resize(void *ctx, Place *from, Place *to, size_t size) {
  uintptr_t adr = umem_null(ctx);
  if (!from->aligned) adr = umem_realloc(ctx, from->adr, from->size, size);
  bool moved = adr != umem_null(ctx);
  *to = moved ? (Place){adr, size, true, false} : *from;
  from->live = false;
  return moved;
}

static bool has(Place const *place, size_t at, size_t size) {
  return place->live && at <= place->size && size <= place->size - at;
}

/* Whether it worked. Its blocks may not be there, or be smaller, since an earlier one failed
 * here. */
static bool run(Replay *replay, Operation const *operation, void *ctx) {
  umemLogRecord const *r = operation->record;
  Place *place = &replay->places[operation->block], *other = &replay->places[operation->other];
  size_t size = (size_t)r->size;
  if (r->kind == umemLogAlloc) {
    uintptr_t adr = allocate(ctx, r);
    *place = (Place){adr, size, adr != umem_null(ctx), (r->flags & umemLogAligned) != 0};
    return place->live;
  }
  if (!place->live) return false;
  switch ((umemLogKind)r->kind) {
  case umemLogFree:
    give_back(ctx, place);
    return true;
  case umemLogResizeEnd:
    return resize(ctx, place, other, size);
  case umemLogSet:
    return has(place, operation->at, size) &&
           !umem_set(ctx, place->adr + operation->at, r->value, size);
  case umemLogCopy:
    return has(place, operation->at, size) && has(other, operation->to, size) &&
           !umem_copy_to(ctx, place->adr + operation->at, ctx, other->adr + operation->to, size);
  default:
    return true;
  }
}

static uint64_t now(void) {
  struct timespec t = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

ReplayFigures replay_measure(Replay *replay, void *ctx) {
  size_t failed = 0;
  uint64_t begun = now();
  for (size_t i = 0; i < replay->count; i++) failed += !run(replay, &replay->operations[i], ctx);
  if (umem_synchronize(ctx) != umemOK) failed++;
  uint64_t ns = now() - begun;
  for (size_t i = 0; i < replay->places_count; i++)
    if (replay->places[i].live) give_back(ctx, &replay->places[i]);
  return (ReplayFigures){replay->count, failed, replay->left_out, ns, replay->peak_bytes};
}

size_t replay_run(Replay *replay, void *ctx, FILE *out) {
  ReplayFigures f = replay_measure(replay, ctx);
  double ns = (double)f.nanoseconds;
  fprintf(out, "%zu operations in %.6f s, %.0f ns each\n", f.operations, ns * 1e-9,
          f.operations ? ns / (double)f.operations : 0.0);
  fprintf(out, "peak of live bytes: %" PRIu64 "\n", f.peak_bytes);
  if (f.left_out) fprintf(out, "left out, of unknown blocks: %zu\n", f.left_out);
  if (f.failed) fprintf(out, "failed: %zu\n", f.failed);
  return f.failed;
}
