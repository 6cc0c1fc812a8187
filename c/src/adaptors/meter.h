/* meter.h - the part of a decorator that knows how large each live block is.
 *
 * A decorator that counts bytes has a umemMeter for its impl, names UMEM_METER_BLOCKS in its table
 * and learns of every change through two or three functions of its own. Bytes are those that were
 * asked for. A block is known from its allocation to the free that succeeds; blocks that were not
 * allocated through the decorator are passed on uncounted.
 */
#ifndef UMEM_METER_H
#define UMEM_METER_H

#include "core/adaptor.h"
#include "base/blocks.h"

/* Each is called without a lock, from any thread. */
typedef struct umemMeterHooks {
  /* Before more bytes are asked of the upstream: false, with a status, refuses. NULL: all may
   * be. */
  bool (*admit)(umemVirtual *ctx, size_t more);
  /* The upstream refused what was admitted. NULL: nothing to do. */
  void (*retract)(umemVirtual *ctx, size_t more);
  /* A block of old_size bytes (0: a new one) has new_size bytes from now on (0: it is free). */
  void (*resized)(umemVirtual *ctx, size_t old_size, size_t new_size);
} umemMeterHooks;

typedef struct umemMeter {
  umemAdaptor adaptor;
  umemMeterHooks const *hooks;
  umemBlocks blocks;
} umemMeter;

/* The first step of a kind's start, for an impl that begins with a umemMeter. Cannot fail. */
void umemMeter_start(umemVirtual *ctx, umemMeterHooks const *hooks);
void umemMeter_dtor(umemVirtual *ctx);

uintptr_t umemMeter_alloc(umemVirtual *ctx, size_t nbytes);
uintptr_t umemMeter_calloc(umemVirtual *ctx, size_t nmemb, size_t size);
uintptr_t umemMeter_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size);
uintptr_t umemMeter_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size);
void umemMeter_free(umemVirtual *ctx, uintptr_t adr);
void umemMeter_aligned_free(umemVirtual *ctx, uintptr_t adr);

#define UMEM_METER_BLOCKS                                                                          \
  .alloc = umemMeter_alloc, .calloc = umemMeter_calloc, .aligned_alloc = umemMeter_aligned_alloc,  \
  .realloc = umemMeter_realloc, .free = umemMeter_free, .aligned_free = umemMeter_aligned_free

#endif
