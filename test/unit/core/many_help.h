/* many_help.h - a context that has offsets, counts its calls, and can fail at one of them; and
 * reads of it. */
#pragma once

#include <stdatomic.h>

#include "cases.h"

enum { room = 8 << 20, most_calls = 1000 };

typedef struct Store {
  umemVirtual super;
  umemHost host;
  unsigned char *bytes;
  size_t calls;                   /* atomic */
  uintptr_t at[most_calls];       /* address of each of the first */
  size_t lengths[most_calls];     /* and its bytes */
  pthread_t threads[most_calls];  /* and its caller */
  uintptr_t fails_from, fails_to; /* reads of these bytes fail */
  size_t fails;                   /* so often at most */
} Store;

static bool note(Store *store, uintptr_t adr, size_t nbytes) {
  size_t call = __atomic_fetch_add(&store->calls, 1, __ATOMIC_RELAXED);
  if (call < most_calls) {
    store->at[call] = adr;
    store->lengths[call] = nbytes;
    store->threads[call] = pthread_self();
  }
  bool bad = adr < store->fails_to && store->fails_from < adr + nbytes && store->fails;
  if (!bad) return true;
  store->fails--;
  umemVirtual_fail(&store->super, umemIOError, "the call fails");
  return false;
}

static void store_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that, uintptr_t dst_adr,
                          size_t nbytes) {
  Store *store = (Store *)ctx;
  (void)that;
  if (note(store, src_adr, nbytes)) memcpy((void *)dst_adr, store->bytes + src_adr, nbytes);
}

static void store_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that,
                            uintptr_t src_adr, size_t nbytes) {
  Store *store = (Store *)ctx;
  (void)that;
  if (note(store, dst_adr, nbytes)) memcpy(store->bytes + dst_adr, (void const *)src_adr, nbytes);
}

/* All bytes are one block. */
static umemSearch store_find(umemVirtual *ctx UNUSED, uintptr_t adr, umemFound *found) {
  if (adr >= room) return umemSearchNone;
  found->adr = 0;
  found->nbytes = room;
  return umemSearchFound;
}

static struct umemVtbl const store_vtbl = {
    .copy_to = store_copy_to, .copy_from = store_copy_from, .find = store_find};

static Store store;
static unsigned char memory[room];
static umemHost host;

static unsigned char byte_at(size_t i) { return (unsigned char)(i * 2654435761u >> 17); }

static void destruct(void) {
  free(store.bytes);
  DESTRUCT(&store, &store.host, &host);
}

/* Anew. */
static void construct(unsigned capabilities) {
  if (store.bytes) destruct();
  memset(&store, 0, sizeof store);
  assert_int_equal(umemHost_ctor(&store.host), umemOK);
  assert_int_equal(umemHost_ctor(&host), umemOK);
  umemVirtual_ctor(&store.super, &store.host);
  store.super.vptr = &store_vtbl;
  store.super.capabilities |= umemOffsets | capabilities;
  store.bytes = malloc(room);
  assert_non_null(store.bytes);
  for (size_t i = 0; i < room; i++) store.bytes[i] = byte_at(i);
  memset(memory, 0, room);
}

static void set_up(void **state UNUSED) { construct(0); }

static void tear_down(void **state UNUSED) {
  destruct();
  store.bytes = NULL;
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static umemCopyItem read_of(size_t from, size_t to, size_t nbytes) {
  return (umemCopyItem){&store, from, &host, (uintptr_t)memory + to, nbytes};
}

static size_t count_bits(uint8_t const *done, size_t count) {
  size_t bits = 0;
  for (size_t i = 0; i < count; i++) bits += done[i / 8] >> i % 8 & 1;
  return bits;
}
