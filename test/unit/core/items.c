/* items.c - copies of items between contexts that have calls only, no pointers and no windows:
 * however large the array, an item costs the same part of a call and the same bytes, and the
 * buffers do not grow. */

#include "cases.h"
#include "wrap.h"

#include <malloc.h>

/* ---- what the library allocates ---- */

/* In the thread of the test: the library's workers allocate, too. */
static _Thread_local size_t live, peak;
static _Thread_local size_t mallocs, refused; /* calls; the first of two that fail, or 0: none */

WRAPPED(void *, malloc, (size_t size)) {
  bool fails =
      ++mallocs - refused < 2 && refused; /* umem_alloc tries again, to say what has failed */
  void *adr = fails ? NULL : __real_malloc(size);
  if (adr) live += malloc_usable_size(adr);
  if (live > peak) peak = live;
  return adr;
}

WRAPPED(void, free, (void *adr)) {
  if (adr) live -= malloc_usable_size(adr);
  __real_free(adr);
}

/* ---- a context with calls only ---- */

enum { address = 1 << 20 }; /* of its one block, which means nothing to the CPU */

typedef struct Calls {
  umemVirtual super;
  umemHost host;
  unsigned char *bytes;
  size_t size, calls, moved;
  size_t fails_at; /* the call that fails; 0: none */
} Calls;

static unsigned char *place_of(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  Calls *calls = (Calls *)ctx;
  calls->calls++;
  calls->moved += nbytes;
  if (calls->calls == calls->fails_at) {
    umemVirtual_fail(ctx, umemIOError, "the call fails");
    return NULL;
  }
  assert_true(adr >= address && adr - address <= calls->size &&
              nbytes <= calls->size - (adr - address));
  return calls->bytes + (adr - address);
}

static uintptr_t calls_alloc(umemVirtual *ctx, size_t nbytes) {
  Calls *calls = (Calls *)ctx;
  calls->bytes = __real_malloc(nbytes);
  calls->size = nbytes;
  return calls->bytes ? address : 0;
}

static void calls_free(umemVirtual *ctx, uintptr_t adr UNUSED) {
  __real_free(((Calls *)ctx)->bytes);
}

static void calls_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  memset(place_of(ctx, adr, nbytes), c, nbytes);
}

static void calls_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *that UNUSED,
                          uintptr_t dst_adr, size_t nbytes) {
  unsigned char *from = place_of(ctx, src_adr, nbytes);
  if (from) memcpy((void *)dst_adr, from, nbytes);
}

static void calls_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *that UNUSED,
                            uintptr_t src_adr, size_t nbytes) {
  unsigned char *to = place_of(ctx, dst_adr, nbytes);
  if (to) memcpy(to, (void const *)src_adr, nbytes);
}

static struct umemVtbl const calls_vtbl = {.alloc = calls_alloc,
                                           .free = calls_free,
                                           .set = calls_set,
                                           .copy_to = calls_copy_to,
                                           .copy_from = calls_copy_from};

static void construct(Calls *calls) {
  memset(calls, 0, sizeof *calls);
  assert_int_equal(umemHost_ctor(&calls->host), umemOK);
  umemVirtual_ctor(&calls->super, &calls->host);
  calls->super.vptr = &calls_vtbl;
  calls->super.type = umemUserDevice;
}

static void destruct(Calls *calls) {
  umem_free(calls, address);
  DESTRUCT(calls, &calls->host);
}

/* ---- copies ---- */

static umemHost host;

typedef struct Cost {
  double calls, bytes; /* of an item, in the context with calls */
  size_t peak;
} Cost;

/* Items of item bytes with these extents, whose order in the source is turned round; into one
 * without gaps. */
static Cost permute(size_t item, int rank, size_t const *extents, bool from_calls, bool to_calls) {
  Calls from, to;
  ptrdiff_t turned[UMEM_MAX_RANK];
  size_t count = 1;
  for (int k = 0; k < rank; count *= extents[k++]) turned[k] = (ptrdiff_t)(count * item);
  size_t nbytes = count * item;
  construct(&from), construct(&to);
  uintptr_t src = umem_alloc(&from, nbytes), dst = umem_alloc(&to, nbytes);
  assert_true(src && dst);
  for (size_t i = 0; i < nbytes; i++) from.bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  memset(to.bytes, 0, nbytes);
  umemLayout const layout = {sizeof layout, item, rank, extents, turned, NULL};
  live = peak = 0;
  umemStatusType status = umem_copy_strided(
      from_calls ? (void *)&from : &host, from_calls ? src : (uintptr_t)from.bytes,
      to_calls ? (void *)&to : &host, to_calls ? dst : (uintptr_t)to.bytes, &layout);
  assert_int_equal(status, umemOK);
  assert_int_equal(live, 0);
  for (size_t i = 0; i < count; i++) {
    size_t rest = i, at = 0;
    for (int k = rank - 1; k >= 0; rest /= extents[k--])
      at += rest % extents[k] * (size_t)turned[k];
    if (memcmp(to.bytes + i * item, from.bytes + at, item) != 0) fail_msg("item %zu is wrong", i);
  }
  Cost cost = {(double)(from.calls + to.calls) / (double)count,
               (double)(from.moved + to.moved) / (double)nbytes, peak};
  destruct(&from), destruct(&to);
  return cost;
}

static void check_cost(Cost cost, double ends) {
  if (cost.calls > 0.01) fail_msg("calls of an item: %f", cost.calls);
  if (cost.bytes > 4.5 * ends) /* gaps of up to 4 KiB are read too */
    fail_msg("bytes moved: %f of all", cost.bytes);
  if (cost.peak > (size_t)18 << 20) fail_msg("buffers of %zu bytes", cost.peak);
}

/* Once from it, once to it, once both. */
static void grow(size_t item, int rank, size_t const *small, size_t const *large) {
  for (int i = 1; i < 4; i++) {
    bool from = i & 1, to = i & 2;
    check_cost(permute(item, rank, small, from, to), from + to);
    check_cost(permute(item, rank, large, from, to), from + to);
  }
}

TEST_CASE(transposes_cost_the_same_for_each_item) {
  grow(8, 2, (size_t const[]){700, 800}, (size_t const[]){2000, 1900});
  grow(4, 2, (size_t const[]){1100, 1000}, (size_t const[]){2600, 2700});
}

TEST_CASE(so_do_permutations_of_three_and_four_dimensions) {
  grow(8, 3, (size_t const[]){80, 80, 80}, (size_t const[]){150, 160, 140});
  grow(8, 4, (size_t const[]){24, 24, 24, 24}, (size_t const[]){40, 42, 44, 41});
}

/* The n-th buffer is refused, for each: without the first buffer there is no copy, without others
 * it takes more calls. */
TEST_CASE(memory_that_is_refused) {
  enum { edge = 300 };
  size_t const extents[] = {edge, edge};
  ptrdiff_t const across[] = {8, 8 * edge};
  umemLayout const layout = {sizeof layout, 8, 2, extents, across, NULL};
  static double values[edge * edge];
  size_t nth = 1, calls = 0;
  for (bool met = true; met; nth++) {
    Calls from;
    construct(&from);
    uintptr_t src = umem_alloc(&from, sizeof values);
    for (size_t i = 0; i < edge * edge; i++)
      memcpy(from.bytes + i * sizeof(double), &(double){(double)i}, sizeof(double));
    memset(values, 0, sizeof values);
    live = mallocs = 0;
    refused = nth;
    umemStatusType status = umem_copy_strided(&from, src, &host, (uintptr_t)values, &layout);
    met = mallocs >= nth;
    refused = 0;
    assert_int_equal(live, 0);
    assert_int_equal(status, nth == 1 ? umemMemoryError : umemOK);
    for (size_t i = 0; status == umemOK && i < edge * edge; i++) {
      size_t turned = i % edge * edge + i / edge;
      assert_true(values[i] == (double)turned);
    }
    if (nth == 2) assert_true(from.calls > edge * edge / 2); /* items */
    calls = from.calls;
    FORGET(&from);
    destruct(&from);
  }
  assert_true(nth > 3 && calls < edge); /* of the last one, which had all memory */
}

/* The n-th call fails, for each of the first ones: a status, and nothing left. */
TEST_CASE(a_call_that_fails_ends_the_copy) {
  enum { edge = 600 };
  size_t const extents[] = {edge, edge};
  ptrdiff_t const across[] = {8, 8 * edge};
  umemLayout const layout = {sizeof layout, 8, 2, extents, across, NULL};
  static double values[edge * edge];
  for (size_t nth = 1; nth < 2000; nth += 97) {
    Calls from;
    construct(&from);
    uintptr_t src = umem_alloc(&from, sizeof values);
    memset(from.bytes, 0, sizeof values);
    live = peak = 0;
    from.fails_at = nth;
    umemStatusType status = umem_copy_strided(&from, src, &host, (uintptr_t)values, &layout);
    assert_int_equal(status, nth <= from.calls ? umemIOError : umemOK);
    assert_true(from.calls <= nth || status == umemOK); /* none after it */
    assert_int_equal(live, 0);
    FORGET(&from);
    destruct(&from);
  }
}

int main(void) {
  if (umemHost_ctor(&host) != umemOK) return 1;
  int failed = run_cases(NULL, NULL);
  umem_dtor(&host);
  return failed;
}
