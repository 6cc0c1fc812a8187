/* route.c - which methods a copy calls, in which order, and with what: umem/virtual.h.
 *
 * That the right bytes arrive is for the contract to show. */

#include "cases.h"
#include "random.h"

/* ---- a context that writes down what it is asked for ---- */

typedef struct Probe {
  umemVirtual super;
  umemHost host;
  char letter;       /* its name in the log */
  bool takes;        /* what copy_direct answers */
  bool agrees;       /* what plan_copy answers */
  bool breaks;       /* whether reads and writes fail */
  umemLayout layout; /* a copy of the last one that copy_direct was offered, and of its arrays */
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t src_strides[UMEM_MAX_RANK], dst_strides[UMEM_MAX_RANK];
  uintptr_t src_adr, dst_adr;
} Probe;

/* Which methods of probes were called, in order: "a!" plan_copy of a, "a?" copy_direct, "a>"
 * copy_to, "a<" copy_from. */
static char calls[1000];

static void note(umemVirtual *ctx, char what) {
  size_t used = strlen(calls);
  if (used + 3 < sizeof calls) snprintf(calls + used, 3, "%c%c", ((Probe *)ctx)->letter, what);
}

static bool probe_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  (void)src, (void)dst;
  Probe *probe = (Probe *)ctx;
  size_t rank = (size_t)layout->rank;
  note(ctx, '?');
  probe->layout = *layout;
  if (rank) {
    memcpy(probe->extents, layout->extents, rank * sizeof *layout->extents);
    memcpy(probe->src_strides, layout->src_strides, rank * sizeof *layout->src_strides);
    memcpy(probe->dst_strides, layout->dst_strides, rank * sizeof *layout->dst_strides);
  }
  probe->layout.extents = probe->extents;
  probe->layout.src_strides = probe->src_strides;
  probe->layout.dst_strides = probe->dst_strides;
  probe->src_adr = src_adr;
  probe->dst_adr = dst_adr;
  return probe->takes;
}

static void read_or_write(umemVirtual *ctx, char what, umemVirtual *that, uintptr_t host_adr) {
  Probe *probe = (Probe *)ctx;
  note(ctx, that->host == that && that->type == umemHostDevice ? what : '!');
  probe->src_adr = probe->dst_adr = host_adr;
  if (probe->breaks) umemVirtual_fail(ctx, umemIOError, "broken");
}

static void probe_copy_to(umemVirtual *ctx, uintptr_t src_adr UNUSED, umemVirtual *that,
                          uintptr_t dst_adr, size_t nbytes) {
  memset((void *)dst_adr, ((Probe *)ctx)->letter, nbytes);
  read_or_write(ctx, '>', that, dst_adr);
}

static void probe_copy_from(umemVirtual *ctx, uintptr_t dst_adr UNUSED, umemVirtual *that,
                            uintptr_t src_adr, size_t nbytes UNUSED) {
  read_or_write(ctx, '<', that, src_adr);
}

static bool probe_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                            uintptr_t dst_adr, umemLayout const *layout) {
  (void)src, (void)src_adr, (void)dst, (void)dst_adr, (void)layout;
  note(ctx, '!');
  return ((Probe *)ctx)->agrees;
}

/* As a program that was compiled before there was plan_copy. */
static void open_probe(Probe *probe, char letter) {
  static struct umemVtbl const vtbl = {
      .copy_to = probe_copy_to,
      .copy_from = probe_copy_from,
      .copy_direct = probe_copy_direct,
      .plan_copy = probe_plan_copy,
  };
  memset(probe, 0, sizeof *probe);
  umemHost_ctor(&probe->host);
  umemVirtual_ctor(&probe->super, &probe->host);
  probe->super.vptr = &vtbl;
  probe->super.vtbl_size = offsetof(struct umemVtbl, plan_copy);
  probe->letter = letter;
}

/* From now on the probe has the method plan_copy, too. */
static void let_plan(Probe *probe, bool agrees) {
  probe->super.vtbl_size = sizeof(struct umemVtbl);
  probe->agrees = agrees;
}

static Probe a, b;
static char place[64]; /* memory for the probes that claim to be RAM */

/* Without more capabilities than reads and writes. */
static void open_probes(void **state UNUSED) {
  *calls = 0;
  open_probe(&a, 'a');
  open_probe(&b, 'b');
}

static void close_probes(void **state UNUSED) { DESTRUCT(&a, &b); }

#define PROBE_TEST(name) TEST_CASE_WITH(name, open_probes, close_probes)

static uintptr_t adr(void) { return (uintptr_t)place; }

/* ---- the order of routes ---- */

PROBE_TEST(the_source_is_asked_first) {
  a.takes = true;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  assert_string_equal(calls, "a?");
  assert_int_equal(a.layout.rank, 0);
  assert_int_equal(a.layout.item_size, 10);
  assert_true(a.src_adr == 4096 && a.dst_adr == 8192);
}

PROBE_TEST(then_the_destination) {
  b.takes = true;
  assert_int_equal(umem_copy_from(&b, 8192, &a, 4096, 10), umemOK);
  assert_string_equal(calls, "a?b?");
  assert_true(b.src_adr == 4096 && b.dst_adr == 8192);
}

PROBE_TEST(who_plans_a_copy_does_it) {
  let_plan(&a, true);
  a.takes = true;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  let_plan(&a, false);
  let_plan(&b, true);
  b.takes = true;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  assert_string_equal(calls, "a!a?a!b!b?");
}

PROBE_TEST(who_plans_no_copy_is_not_called_for_it) {
  let_plan(&a, false);
  let_plan(&b, false);
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  assert_string_equal(calls, "a!b!a>b<");
  size_t const extents[] = {2};
  ptrdiff_t const strides[] = {100};
  umemLayout const items = {sizeof items, 8, 1, extents, strides, NULL};
  assert_int_equal(umem_copy_strided(&a, 4096, &b, 8192, &items), umemOK);
  assert_null(strchr(calls, '?'));
}

/* A capture that another thread began when the plan was made may be over, for example. */
PROBE_TEST(a_plan_that_fails_leaves_the_copy_to_others) {
  let_plan(&a, true);
  let_plan(&b, true);
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  assert_string_equal(calls, "a!a?b!b?a>b<");
}

PROBE_TEST(what_the_cpu_can_write_is_read_into) {
  b.super.capabilities |= umemCpuReadable | umemCpuWritable;
  assert_int_equal(umem_copy_to(&a, 4096, &b, adr(), 10), umemOK);
  assert_string_equal(calls, "a?b?a>");
  assert_true(a.dst_adr == adr());
}

PROBE_TEST(what_the_cpu_can_read_is_written_from) {
  a.super.capabilities |= umemCpuReadable;
  assert_int_equal(umem_copy_to(&a, adr(), &b, 4096, 10), umemOK);
  assert_string_equal(calls, "a?b?b<");
  assert_true(b.src_adr == adr());
}

PROBE_TEST(the_rest_goes_through_host_memory) {
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemOK);
  assert_string_equal(calls, "a?b?a>b<");
  assert_true(a.dst_adr == b.src_adr);
}

/* Pointers that may fault are not followed. */
PROBE_TEST(faultable_memory_goes_through_host_memory) {
  b.super.capabilities |= umemCpuReadable | umemCpuWritable | umemFaultable;
  assert_int_equal(umem_copy_to(&a, 4096, &b, adr(), 10), umemOK);
  assert_string_equal(calls, "a?b?a>b<");
  assert_true(a.dst_adr != adr());
}

PROBE_TEST(the_plain_host_needs_no_buffer) {
  CONTEXT(umemHost, host);
  assert_int_equal(umem_copy_to(&a, 4096, &host, adr(), 10), umemOK);
  assert_int_equal(umem_copy_from(&a, 4096, &host, adr(), 10), umemOK);
  assert_string_equal(calls, "a?a>a?a<");
  assert_true(a.src_adr == adr());
}

PROBE_TEST(a_failed_read_is_not_written) {
  a.breaks = true;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemIOError);
  assert_string_equal(calls, "a?b?a>");
  assert_true(umem_is_ok(&b));
}

PROBE_TEST(a_failed_write_ends_the_copy) {
  b.breaks = true;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 3 << 20), umemIOError); /* several chunks */
  assert_string_equal(calls, "a?b?a>b<");
  assert_true(umem_is_ok(&a));
}

/* Nothing is called before the arguments are checked. */
PROBE_TEST(refused_copies_reach_no_method) {
  a.super.capabilities &= ~(unsigned)umemReadable;
  assert_int_equal(umem_copy_to(&a, 4096, &b, 8192, 10), umemNotSupportedError);
  assert_int_equal(umem_copy_to(&b, 0, &b, 8192, 10), umemValueError);
  assert_int_equal(umem_copy_to(&b, 4096, &b, 0, 10), umemValueError);
  assert_int_equal(umem_copy_to(&b, 4096, &b, UINTPTR_MAX, 10), umemValueError);
  assert_int_equal(umem_copy_to(&b, 4096, &b, 0, 0), umemOK);
  assert_string_equal(calls, "");
}

/* ---- the normal form of layouts ---- */

/* The layout that a is offered for this one. */
static umemLayout const *offered(int rank, size_t item_size, size_t const *extents,
                                 ptrdiff_t const *src_strides, ptrdiff_t const *dst_strides) {
  umemLayout layout = {sizeof layout, item_size, rank, extents, src_strides, dst_strides};
  uintptr_t middle = (uintptr_t)1 << 40;
  a.takes = true;
  assert_int_equal(umem_copy_strided(&a, middle, &b, middle, &layout), umemOK);
  return &a.layout;
}

PROBE_TEST(what_is_contiguous_becomes_a_run) {
  size_t const extents[] = {4, 5, 6};
  ptrdiff_t const strides[] = {240, 48, 8};
  umemLayout const *normal = offered(3, 8, extents, strides, NULL);
  assert_int_equal(normal->rank, 0);
  assert_int_equal(normal->item_size, 960);
  normal = offered(3, 8, extents, NULL, NULL);
  assert_int_equal(normal->rank, 0);
  assert_int_equal(normal->item_size, 960);
}

PROBE_TEST(rows_stay_whole) {
  size_t const extents[] = {4, 5, 6};
  ptrdiff_t const strides[] = {500, 100, 8};
  umemLayout const *normal = offered(3, 8, extents, strides, strides);
  assert_int_equal(normal->rank, 1); /* 20 rows of 48 bytes */
  assert_int_equal(normal->item_size, 48);
  assert_int_equal(normal->extents[0], 20);
  assert_int_equal(a.src_strides[0], 100);
  assert_int_equal(a.dst_strides[0], 100);
}

PROBE_TEST(dimensions_of_one_are_dropped) {
  size_t const extents[] = {1, 3, 1, 4, 1};
  ptrdiff_t const strides[] = {-99, 64, 12345, 16, 1};
  umemLayout const *normal = offered(5, 4, extents, strides, strides);
  assert_int_equal(normal->rank, 1); /* 3 * 64 == 4 * 16 * 3 */
  assert_int_equal(a.extents[0], 12);
  assert_int_equal(a.src_strides[0], 16);
}

static uint64_t random_state = 1;

static size_t random_below(size_t n) { return below(&random_state, n); }

/* Marks in map, for each byte of the destination, which of the source goes there. */
enum { map_size = 1 << 15 };
static void mark(int *map, ptrdiff_t src, ptrdiff_t dst, umemLayout const *layout, int axis) {
  if (axis == layout->rank) {
    for (size_t i = 0; i < layout->item_size; i++)
      map[map_size / 2 + dst + (ptrdiff_t)i] = (int)(src + (ptrdiff_t)i);
    return;
  }
  for (size_t i = 0; i < layout->extents[axis]; i++)
    mark(map, src + (ptrdiff_t)i * layout->src_strides[axis],
         dst + (ptrdiff_t)i * layout->dst_strides[axis], layout, axis + 1);
}

static void expect_normal(umemLayout const *normal) {
  for (int k = 0; k < normal->rank; k++) assert_true(normal->extents[k] > 1);
  for (int k = 0; k + 1 < normal->rank; k++) { /* no two dimensions could be one */
    ptrdiff_t inner = (ptrdiff_t)normal->extents[k + 1];
    assert_false(normal->src_strides[k] == inner * normal->src_strides[k + 1] &&
                 normal->dst_strides[k] == inner * normal->dst_strides[k + 1]);
  }
  int last = normal->rank - 1;
  ptrdiff_t item = (ptrdiff_t)normal->item_size;
  assert_false(normal->rank && normal->src_strides[last] == item &&
               normal->dst_strides[last] == item);
}

/* Strides without overlap: the dimensions in any order, some with gaps, some backwards. */
static void random_strides(int rank, size_t item_size, size_t const *extents, ptrdiff_t *strides) {
  ptrdiff_t stride = (ptrdiff_t)item_size;
  int first = rank ? (int)random_below((size_t)rank) : 0;
  for (int i = 0; i < rank; i++) {
    int k = (first + i) % rank;
    if (random_below(3) == 0) stride += (ptrdiff_t)random_below(3);
    strides[k] = random_below(4) == 0 ? -stride : stride;
    stride *= (ptrdiff_t)extents[k];
  }
}

/* Whatever the normal form is, the same bytes go to the same places. */
PROBE_TEST(the_normal_form_means_the_same) {
  static int wanted[map_size], found[map_size];
  for (int i = 0; i < 300; i++) {
    size_t extents[5], item_size = 1 + random_below(3);
    ptrdiff_t src[5], dst[5];
    int rank = (int)random_below(6);
    for (int k = 0; k < rank; k++) extents[k] = 1 + random_below(4);
    random_strides(rank, item_size, extents, src);
    random_strides(rank, item_size, extents, dst);
    umemLayout const *normal = offered(rank, item_size, extents, src, dst);
    umemLayout given = {sizeof given, item_size, rank, extents, src, dst};
    expect_normal(normal);
    memset(wanted, 0x7F, sizeof wanted);
    memset(found, 0x7F, sizeof found);
    ptrdiff_t middle = (ptrdiff_t)1 << 40;
    mark(wanted, 0, 0, &given, 0);
    mark(found, (ptrdiff_t)a.src_adr - middle, (ptrdiff_t)a.dst_adr - middle, normal, 0);
    assert_memory_equal(wanted, found, sizeof wanted);
  }
}

/* Numbers at which careless arithmetic overflows; seen by the undefined behaviour sanitizer. */
PROBE_TEST(strides_may_be_as_long_as_addresses) {
  size_t const extents[] = {2, 2};
  ptrdiff_t const half = (ptrdiff_t)1 << 62;
  ptrdiff_t const far[] = {1, half}, dense[] = {2, 1};
  umemLayout const *normal = offered(2, 1, extents, far, dense);
  assert_int_equal(normal->rank, 2);
  normal = offered(2, 1, extents, dense, far);
  assert_int_equal(normal->rank, 2);
  assert_true(a.dst_strides[0] == half);

  struct {
    size_t extents[2];
    ptrdiff_t strides[2];
  } const beyond[] = {
      {{2, 1}, {PTRDIFF_MIN, 0}},
      {{2, 1}, {PTRDIFF_MAX, 0}},
      {{2, 2}, {half, -half}},
      {{2, 2}, {PTRDIFF_MAX - 1, -PTRDIFF_MAX}},
  };
  uintptr_t const middle = (uintptr_t)1 << 63;
  for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
    umemLayout layout = {sizeof layout, 1, 2, beyond[i].extents, beyond[i].strides, NULL};
    assert_int_equal(umem_copy_strided(&a, middle, &b, 4096, &layout), umemValueError);
    layout.src_strides = NULL, layout.dst_strides = beyond[i].strides;
    assert_int_equal(umem_copy_strided(&a, 4096, &b, middle, &layout), umemValueError);
  }
}
