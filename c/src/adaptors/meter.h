/* meter.h - the part of an adaptor that knows the size of each live block.
 *
 * The impl of an adaptor that counts bytes begins with a umemMeter. Its table of methods names
 * UMEM_METER_BLOCKS, and the meter calls one to three functions of the adaptor for each change. It counts the
 * requested bytes. The meter has a record of a block from its allocation to the free that succeeds. It passes on calls
 * for blocks that were not allocated through the adaptor, and does not count them. Of an upstream that maps memory
 * (umemPages) each page with memory counts as a block.
 */
#ifndef UMEM_METER_H
#define UMEM_METER_H

#include "core/adaptor.h"
#include "base/sizes.h"

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

/* Pages of one size. */
typedef struct umemMeterPages {
  umemPages own;
  umemPages const *below; /* of the upstream; NULL before they were asked for */
} umemMeterPages;

typedef struct umemMeter {
  umemAdaptor adaptor;
  umemMeterHooks const *hooks;
  umemSizes blocks;
  umemMeterPages pages, large_pages;
} umemMeter;

/* The first step of a kind's start, for an impl that begins with a umemMeter. Cannot fail. */
void umemMeter_start(umemVirtual *ctx, umemMeterHooks const *hooks);
void umemMeter_dtor(umemVirtual *ctx);

/* What its methods are made of: see UMEM_ADAPTOR_ALLOCATES and UMEM_ADAPTOR_FREES. */
uintptr_t umemMeter_ask(umemVirtual *ctx, umemRequest const *request);
void umemMeter_free(umemVirtual *ctx, uintptr_t adr, bool aligned);

umemSearch umemMeter_find(umemVirtual *ctx, uintptr_t adr, umemFound *found);

/* The methods pages and large_pages: in meter_pages.c. */
umemPages const *umemMeter_pages(umemVirtual *ctx);
umemPages const *umemMeter_large_pages(umemVirtual *ctx);

#define UMEM_METER_BLOCKS                                                                          \
  .pages = umemMeter_pages, .large_pages = umemMeter_large_pages, .find = umemMeter_find,          \
  UMEM_ADAPTOR_ALLOCATION_BY(umemMeter_ask), UMEM_ADAPTOR_FREE_BY(umemMeter_free)

#endif
