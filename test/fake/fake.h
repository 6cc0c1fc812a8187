/* fake.h - devices that exist in tests only.
 *
 * Like a GPU's, their addresses cannot be dereferenced by the CPU. They check everything that the
 * library promises to the methods of a context (umem/virtual.h), and record umemAssertError where
 * it does not hold. */
#pragma once

#include <stdatomic.h>
#include <umem.h>

#include "store.h"

typedef struct Fake {
  umemVirtual super;
  umemHost host;
  FakeStore *store; /* owned */
  atomic_size_t moves;
} Fake;

/* A device that does no more than it must: the base's defaults do the rest. */
umemStatusType fake_ctor(Fake *ctx);

/* A fake with a method in every slot, and with offsets for addresses: its first block is at 0. */
umemStatusType fake_offset_ctor(Fake *ctx);

/* ---- for fakes: their common parts ---- */

/* As fake_ctor; with FAKE_REAL_POINTERS for first the addresses are pointers. */
umemStatusType fake_ctor_at(Fake *ctx, uintptr_t first);

uintptr_t fake_alloc(umemVirtual *ctx, size_t nbytes);

/* The real place of [adr, adr + nbytes), or NULL and a status. Counts a move. */
unsigned char *fake_access(umemVirtual *ctx, uintptr_t adr, size_t nbytes);

/* Whether that is the plain host which copies are promised; else a status. */
bool fake_host_is_genuine(umemVirtual *ctx, umemVirtual *that);

/* ---- an ordered device ---- */

/* Work is queued, and done by a thread of its own when somebody waits for it and not earlier:
 * whoever frees, reuses or reads a buffer too early is found out. */
typedef struct FakeAsync {
  Fake super;
  struct FakeQueue *queue; /* owned */
  FakeStore *own;          /* owned; the one in use may be another's */
} FakeAsync;

umemStatusType fake_async_ctor(FakeAsync *ctx);

/* Another queue of the same device, which must outlive it: in its memory. */
umemStatusType fake_async_ctor_on(FakeAsync *ctx, FakeAsync *device);

/* A fake with addresses that the CPU can use, like managed memory. */
umemStatusType fake_managed_ctor(FakeAsync *ctx);

/* The next piece of work that is queued fails with type when its turn comes. */
void fake_async_fail_next(FakeAsync *ctx, umemStatusType type);

/* How much work is queued and not done. */
uint64_t fake_async_queued(FakeAsync *ctx);
