/* transfer_blocks.c - which transfers use a block: who frees it waits for them.
 *
 * A free looks at few of the transfers that go on. Those whose two sides are short runs are in
 * buckets by the addresses where the sides begin; all others are in one chain. */
#include "watch/transfer.h"
#include "core/context.h"
#include "core/live.h"

#include <malloc.h>
#include <sched.h>

enum { buckets = 1024, span_bits = 16, longest_short = 1 << span_bits, most_tries = 1000 };

static umemTransferUse *chains[buckets + 1]; /* the last one: of all others */

static void link_use(umemTransfer *self, umemTransferUse *use, size_t bucket) {
  umemTransferUse **first = &chains[bucket];
  *use = (umemTransferUse){self, *first, first};
  if (*first) (*first)->link = &use->next;
  *first = use;
}

static void unlink_use(umemTransferUse *use) {
  if (!use->link) return;
  *use->link = use->next;
  if (use->next) use->next->link = use->link;
  use->link = NULL;
}

static size_t bucket_of(uintptr_t adr) { return (adr >> span_bits) % buckets; }

void umemTransfer_add_uses(umemTransfer *self) {
  if (self->list || self->layout.rank || self->nbytes > longest_short) {
    link_use(self, &self->uses[0], buckets);
  } else {
    link_use(self, &self->uses[0], bucket_of(self->src_adr));
    link_use(self, &self->uses[1], bucket_of(self->dst_adr));
  }
}

void umemTransfer_remove_uses(umemTransfer *self) {
  unlink_use(&self->uses[0]);
  unlink_use(&self->uses[1]);
}

void umemTransfer_forget_uses(void) { memset(chains, 0, sizeof chains); }

/* ---- the block ---- */

/* The queue in whose order ctx frees; NULL: none. */
static umemVirtual *queue_of(umemVirtual *ctx) {
  return umem_can(ctx, umemOrdered) ? UMEM_LAYER_WITH(ctx, mark) : NULL;
}

/* Whether blocks are those of malloc, which keeps their sizes: only a umemHost is such RAM. */
static bool is_of_malloc(umemVirtual const *ctx) {
  return umem_is_plain_host(ctx) && umem_can(ctx, umemPrompt);
}

umemTransferBlock umemTransfer_block_at(umemVirtual *ctx, uintptr_t adr) {
  umemTransferBlock block = {umem_innermost(ctx), queue_of(ctx), adr, adr + 1};
  umemFound found = UMEM_FOUND_INIT;
  umemSearch search = umemSearchBusy;
  for (int i = 0; search == umemSearchBusy && i < most_tries; i++) {
    if (i) sched_yield();
    search = umemLive_search(ctx, adr, &found);
  }
  if (search == umemSearchFound)
    block.end = found.adr + found.nbytes;
  else if (search == umemSearchBusy)
    block.end = UINTPTR_MAX; /* whatever it may be */
  else if (!found.ctx && is_of_malloc(ctx))
    block.end = adr + malloc_usable_size((void *)adr);
  return block;
}

/* Whether a side has bytes of the block. */
static bool meets(umemTransferBlock const *block, umemVirtual *ctx, uintptr_t first,
                  size_t nbytes) {
  if (!nbytes || first >= block->end || first + nbytes <= block->first) return false;
  bool offsets = (ctx->capabilities | block->ctx->capabilities) & umemOffsets;
  return !offsets || umem_innermost(ctx) == block->ctx;
}

/* What is in the queue of the block ends before that frees it. */
static bool is_before_free(umemTransferBlock const *block, umemVirtual *src, umemVirtual *dst) {
  return block->queue && queue_of(umem_can(dst, umemOrdered) ? dst : src) == block->queue;
}

static bool list_uses(umemList const *list, umemTransferBlock const *block) {
  for (size_t i = 0; i < list->count; i++) {
    umemCopyItem const *item = &list->items[i];
    if ((meets(block, item->src, item->src_adr, item->nbytes) ||
         meets(block, item->dst, item->dst_adr, item->nbytes)) &&
        !is_before_free(block, item->src, item->dst))
      return true;
  }
  return false;
}

static bool uses_block(umemTransfer const *self, umemTransferBlock const *block) {
  if (umemTransfer_state(self) == umemTransferEnded) return false;
  if (self->list) return list_uses(&self->list->list, block);
  umemRanges ranges = {self->src_adr, self->dst_adr, self->nbytes, self->nbytes};
  if (self->layout.rank)
    umem_check_strided(self->src, self->src_adr, self->dst, self->dst_adr, &self->layout, &ranges);
  return (meets(block, self->src, ranges.src, ranges.src_bytes) ||
          meets(block, self->dst, ranges.dst, ranges.dst_bytes)) &&
         !is_before_free(block, self->src, self->dst);
}

static umemTransfer *user_in(size_t bucket, umemTransferBlock const *block) {
  umemTransferUse *use = chains[bucket];
  while (use && !uses_block(use->transfer, block)) use = use->next;
  return use ? use->transfer : NULL;
}

/* A short run that begins in the bucket before may reach into the block. */
umemTransfer *umemTransfer_user_of(umemTransferBlock const *block) {
  umemTransfer *found = user_in(buckets, block);
  size_t spans = ((block->end - 1) >> span_bits) - (block->first >> span_bits) + 2;
  size_t first = bucket_of(block->first) + buckets - 1;
  for (size_t i = 0; !found && i < spans && i < buckets; i++)
    found = user_in((first + i) % buckets, block);
  return found;
}
