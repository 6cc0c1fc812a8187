/* sizes.c - opens blocks of one size, and bins of sizes, over any row of the table. */
#include "sizes.h"
#include "settings.h"

#include <stdlib.h>

/* ---- what both stand on ---- */

typedef struct Ground {
  Backend const *inner;
  umemVirtual *upstream;
} Ground;

static bool open_ground(Ground *ground, char const *name) {
  ground->inner = backend_by_name(name);
  ground->upstream = ground->inner->open();
  return ground->upstream != NULL;
}

static void close_ground(Ground *ground) {
  if (ground->upstream) ground->inner->close(ground->upstream);
}

static size_t moves_below(Ground *ground) { return backend_moves(ground->inner, ground->upstream); }

static size_t blocks_of(umemFixed *fixed) {
  umemFixedStats stats = UMEM_FIXED_STATS_INIT;
  umemFixed_stats(fixed, &stats);
  return (size_t)stats.blocks;
}

#define OPENERS(name)                                                                              \
  umemVirtual *open_##name##_host(void) { return open_##name("host"); }                            \
  umemVirtual *open_##name##_file(void) { return open_##name("file-scratch"); }                    \
  umemVirtual *open_##name##_fake(void) { return open_##name("fake"); }                            \
  umemVirtual *open_##name##_offset(void) { return open_##name("fake-offset"); }                   \
  umemVirtual *open_##name##_async(void) { return open_##name("fake-async"); }

/* ---- blocks of one size ---- */

typedef struct OpenFixed {
  umemFixed fixed;
  Ground ground;
} OpenFixed;

/* The largest arrays of the contract, aligned to its largest alignment. */
static size_t block_size(void) { return (size_t)(setting_small() ? 4 : 12) << 20; }

static umemVirtual *open_fixed(char const *name) {
  OpenFixed *self = malloc(sizeof *self);
  if (!self) return NULL;
  if (open_ground(&self->ground, name) &&
      umemFixed_ctor(&self->fixed, self->ground.upstream, block_size(), NULL) == umemOK)
    return &self->fixed.super;
  close_ground(&self->ground);
  free(self);
  return NULL;
}
OPENERS(fixed)

void close_fixed(umemVirtual *ctx) {
  OpenFixed *self = (OpenFixed *)ctx;
  umem_dtor(ctx);
  close_ground(&self->ground);
  free(self);
}

BackendRecords fixed_records(umemVirtual *ctx) {
  OpenFixed *self = (OpenFixed *)ctx;
  return (BackendRecords){blocks_of(&self->fixed), moves_below(&self->ground)};
}

/* ---- bins ---- */

typedef struct OpenBinning {
  umemBinning binning;
  umemFixed small, middle;
  umemPool large;
  Ground ground;
} OpenBinning;

enum { small_size = 100, middle_size = 4096 };

static umemStatusType construct(OpenBinning *self) {
  umemBin const bins[] = {{small_size, &self->small}, {middle_size, &self->middle}};
  umemVirtual *upstream = self->ground.upstream;
  umemStatusType status = umemFixed_ctor(&self->small, upstream, small_size, NULL);
  if (status == umemOK) status = umemFixed_ctor(&self->middle, upstream, middle_size, NULL);
  if (status == umemOK) status = umemPool_ctor(&self->large, upstream, NULL);
  return status == umemOK ? umemBinning_ctor(&self->binning, &self->large, bins, 2) : status;
}

/* Also after a part of it. */
static void destruct(OpenBinning *self) {
  umem_dtor(&self->binning);
  umem_dtor(&self->large);
  umem_dtor(&self->middle);
  umem_dtor(&self->small);
  close_ground(&self->ground);
  free(self);
}

static umemVirtual *open_binning(char const *name) {
  OpenBinning *self = calloc(1, sizeof *self);
  if (!self) return NULL;
  if (open_ground(&self->ground, name) && construct(self) == umemOK) return &self->binning.super;
  destruct(self);
  return NULL;
}
OPENERS(binning)
umemVirtual *open_binning_cuda(void) { return open_binning("cuda-async"); }

void close_binning(umemVirtual *ctx) { destruct((OpenBinning *)ctx); }

BackendRecords binning_records(umemVirtual *ctx) {
  OpenBinning *self = (OpenBinning *)ctx;
  umemPoolStats stats = UMEM_POOL_STATS_INIT;
  umemPool_stats(&self->large, &stats);
  size_t blocks = blocks_of(&self->small) + blocks_of(&self->middle) + (size_t)stats.blocks;
  return (BackendRecords){blocks, moves_below(&self->ground)};
}
