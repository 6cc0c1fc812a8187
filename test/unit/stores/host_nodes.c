/* host_nodes.c - Hosts with options: RAM on nodes, on pages of hugetlbfs, and by the first touch.
 *
 * Most machines of tests have one node. So the linker sends the calls of the system to the wrappers
 * here, which play machines with several nodes, old kernels and containers, and let single calls
 * fail. On a kernel with NUMA the test also runs what one node can show without them. */

#include <sys/syscall.h>

#include "base/system.h"
#include "failures.h"
#include "wrap.h"

#define MiB ((size_t)1 << 20)

/* ---- the machine ---- */

enum { bind_mode = 2, interleave_mode = 3, prefer_mode = 1, place_calls = 8 };

typedef struct PlaceCall { /* of mbind */
  uintptr_t adr;
  size_t nbytes;
  long mode;
  uint64_t nodes;
} PlaceCall;

static struct {
  bool plays; /* else the real machine */
  uint64_t allowed;
  int no_policy;      /* errno of get_mempolicy, mbind and move_pages; 0: they work */
  int no_place;       /* errno of mbind alone */
  long node_of_pages; /* what move_pages finds */
  PlaceCall calls[place_calls];
  unsigned placed;
  size_t set_aside; /* bytes of pages of hugetlbfs */
  bool lacks_huge;  /* the kernel has no such pages */
  int no_populate;  /* errno */
  unsigned populated;
  unsigned maps_left; /* until one fails; 0: never */
  bool table_fails;   /* calloc for the table of blocks */
  bool no_unmap;
  long mapped; /* bytes, of the library */
} machine;

static void play(uint64_t allowed) {
  memset(&machine, 0, sizeof machine);
  machine.plays = true;
  machine.allowed = allowed;
}

static long answer(int error) {
  errno = error;
  return error ? -1 : 0;
}

/* How many arguments a call has; -1: the library makes none such here. */
static int count_of(long number) {
  if (number == SYS_mbind || number == SYS_move_pages) return 6;
  if (number == SYS_get_mempolicy) return 5;
  return number == SYS_membarrier ? 3 : number == SYS_gettid ? 0 : -1;
}

WRAPPED(long, syscall, (long number, ...)) {
  long a[6] = {0};
  int count = count_of(number);
  if (count < 0) return answer(ENOSYS);
  va_list rest;
  va_start(rest, number);
  for (int i = 0; i < count; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  if (machine.plays && number == SYS_get_mempolicy) {
    if (machine.no_policy) return answer(machine.no_policy);
    memcpy((void *)a[1], &machine.allowed, sizeof machine.allowed);
    return 0;
  }
  if (machine.plays && number == SYS_mbind) {
    PlaceCall call = {(uintptr_t)a[0], (size_t)a[1], a[2], 0};
    if (a[3]) memcpy(&call.nodes, (void *)a[3], sizeof call.nodes);
    if (a[4] < 65)
      call.nodes &= a[4] > 1 ? (UINT64_C(1) << (a[4] - 1)) - 1 : 0; /* as the kernel reads it */
    if (machine.placed < place_calls) machine.calls[machine.placed] = call;
    machine.placed++;
    return answer(machine.no_policy ? machine.no_policy : machine.no_place);
  }
  if (machine.plays && number == SYS_move_pages) {
    if (machine.no_policy) return answer(machine.no_policy);
    *(int *)a[4] = (int)machine.node_of_pages;
    return 0;
  }
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* Pages of hugetlbfs are ordinary ones at such an address. */
static void *map_huge(void *adr, size_t n, int how, int flags);

WRAPPED(void *, mmap, (void *adr, size_t n, int how, int flags, int fd, off_t at)) {
  if (machine.maps_left && !--machine.maps_left) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void *mapped = machine.plays && flags & MAP_HUGETLB ? map_huge(adr, n, how, flags)
                                                      : __real_mmap(adr, n, how, flags, fd, at);
  if (mapped != MAP_FAILED && !(flags & MAP_FIXED)) machine.mapped += (long)n;
  return mapped;
}

WRAPPED(int, munmap, (void *adr, size_t n)) {
  if (machine.no_unmap) return (int)answer(ENOMEM);
  int result = __real_munmap(adr, n);
  if (!result) machine.mapped -= (long)n;
  return result;
}

static void *map_huge(void *adr, size_t n, int how, int flags) {
  size_t page = (size_t)1 << ((unsigned)flags >> 26 & 63);
  int without = (int)((unsigned)flags & ~((unsigned)MAP_HUGETLB | 63u << 26));
  if (machine.lacks_huge) errno = EINVAL;
  if (machine.lacks_huge) return MAP_FAILED;
  if (!(flags & MAP_NORESERVE) && n > machine.set_aside) errno = ENOMEM;
  if (!(flags & MAP_NORESERVE) && n > machine.set_aside) return MAP_FAILED;
  assert_int_equal(n % page, 0);
  if (adr) return __real_mmap(adr, n, how, without, -1, 0);
  char *mapped = __real_mmap(NULL, n + page, how, without, -1, 0);
  if (mapped == MAP_FAILED) return mapped;
  size_t below = -(uintptr_t)mapped & (page - 1);
  if (below) __real_munmap(mapped, below);
  __real_munmap(mapped + below + n, page - below);
  return mapped + below;
}

WRAPPED(int, madvise, (void *adr, size_t n, int advice)) {
  if (!machine.plays || advice != 23) return __real_madvise(adr, n, advice);
  machine.populated++;
  return (int)answer(machine.no_populate);
}

WRAP(machine.table_fails, NULL, void *, calloc, (size_t count, size_t size), (count, size))

/* ---- helpers ---- */

static umemStatusType make(umemHost *ctx, umemHostPolicy policy, umemHostPages pages,
                           uint64_t nodes) {
  umemHostOptions options = {
      .size = sizeof options, .policy = policy, .pages = pages, .nodes = nodes};
  return umemHost_ctor_with(ctx, &options);
}

static uint64_t nodes_of(void *ctx) { return info_of(ctx).nodes; }

/* ---- tests ---- */

TEST_CASE(options_that_choose_nothing_make_a_plain_host) {
  play(1);
  umemHost ctx, plain;
  umemHost_ctor(&plain);
  assert_int_equal(make(&ctx, 0, 0, 0), umemOK);
  assert_true(umem_is_same_device(&ctx, &plain));
  assert_int_equal(umemHost_ctor_with(&ctx, NULL), umemOK);
  assert_true(umem_is_same_device(&ctx, &plain));
  assert_int_equal(machine.placed, 0);
  assert_int_equal(nodes_of(&plain), 1);
  machine.no_policy = ENOSYS;
  assert_true(nodes_of(&plain) == UMEM_UNKNOWN);
  assert_int_equal(umemHost_ctor_with(NULL, NULL), umemValueError);
}

/* What each policy asks of the kernel: once at construction, and then for each block, in whole
 * pages. */
TEST_CASE(policies_reach_the_kernel) {
  static struct {
    umemHostPolicy policy;
    uint64_t given;
    long mode;
    uint64_t asked, reported;
  } const cases[] = {
      {umemHostPolicyDefault, 4, bind_mode, 4, 4},
      {umemHostBind, 5, bind_mode, 5, 5},
      {umemHostBind, 0, bind_mode, 15, 15},
      {umemHostPrefer, 8, prefer_mode, 8, 8},
      {umemHostInterleave, 6, interleave_mode, 6, 6},
      {umemHostInterleave, 0, interleave_mode, 15, 15},
      {umemHostFirstTouch, 0, prefer_mode, 0, 15},
  };
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    umemHost ctx;
    play(15);
    assert_int_equal(make(&ctx, cases[i].policy, 0, cases[i].given), umemOK);
    assert_int_equal(machine.placed, 1);
    uintptr_t adr = umem_alloc(&ctx, page + 1);
    assert_int_equal(machine.placed, 2);
    for (int call = 0; call < 2; call++) {
      assert_int_equal(machine.calls[call].mode, cases[i].mode);
      assert_int_equal(machine.calls[call].nodes, cases[i].asked);
    }
    assert_true(machine.calls[1].adr == adr && machine.calls[1].nbytes == 2 * page);
    assert_int_equal(nodes_of(&ctx), cases[i].reported);
    umem_dtor(&ctx);
    assert_int_equal(machine.mapped, 0);
  }
}

TEST_CASE(nodes_that_the_process_may_not_use_are_refused) {
  umemHost ctx;
  play(5);
  expect_status(NULL, make(&ctx, umemHostBind, 0, 14), umemValueError,
                "the nodes 1,3 are not among those that this process may use: 0,2");
  assert_true(umem_alloc(&ctx, 1) == 0);
  umem_thread_clear();
  assert_int_equal(machine.placed, 0);
}

TEST_CASE(a_kernel_that_cannot_is_refused_in_words) {
  umemHost ctx;
  int node;
  static int const errors[] = {ENOSYS, EPERM};
  for (int i = 0; i < 2; i++) {
    play(1);
    machine.no_policy = errors[i];
    expect_status(NULL, make(&ctx, umemHostBind, 0, 1), umemNotSupportedError, strerror(errors[i]));
    expect_status(NULL, make(&ctx, umemHostFirstTouch, 0, 0), umemNotSupportedError, "container");
    umemHost_ctor(&ctx);
    assert_int_equal(umemHost_node(&ctx, (uintptr_t)&ctx, &node), umemNotSupportedError);
    expect_failure(NULL, umemNotSupportedError, "does not tell on which node");
    play(1);
    machine.no_place = errors[i];
    expect_status(NULL, make(&ctx, umemHostInterleave, 0, 0), umemNotSupportedError, "mbind");
    assert_int_equal(machine.mapped, 0);
  }
}

TEST_CASE(each_step_of_an_allocation_may_fail) {
  SCOPED(umem_dtor) umemHost ctx;
  play(3);
  assert_int_equal(make(&ctx, umemHostBind, 0, 2), umemOK);
  machine.no_place = ENOMEM;
  assert_true(umem_alloc(&ctx, 100) == 0);
  expect_failure(&ctx, umemMemoryError, "cannot map 100 bytes as memory on the nodes 1: ");
  machine.no_place = 0;
  machine.maps_left = 1;
  expect_no_block(&ctx, umem_alloc(&ctx, 100), umemMemoryError, "cannot map 100 bytes");
  machine.maps_left = 1; /* the addresses */
  assert_true(umem_aligned_alloc(&ctx, MiB, 100) == 0);
  expect_failure(&ctx, umemMemoryError, "cannot map 100 bytes");
  machine.maps_left = 2; /* the memory there */
  assert_true(umem_aligned_alloc(&ctx, MiB, 100) == 0);
  expect_failure(&ctx, umemMemoryError, "cannot map 100 bytes");
  machine.table_fails = true;
  expect_no_block(&ctx, umem_alloc(&ctx, 100), umemMemoryError, "cannot map 100 bytes");
  assert_int_equal(make(&(umemHost){{0}}, umemHostBind, 0, 2), umemMemoryError);
  umem_thread_clear();
  machine.table_fails = false;
  assert_int_equal(machine.mapped, 0);
  expect_no_block(&ctx, umem_alloc(&ctx, SIZE_MAX - 5), umemMemoryError, "18446744073709551610");
  uintptr_t adr = umem_alloc(&ctx, 100);
  machine.no_unmap = true;
  umem_free(&ctx, adr);
  expect_failure(&ctx, umemRuntimeError, "cannot unmap 100 bytes");
  machine.no_unmap = false;
  ((char *)adr)[99] = 1; /* it is live still */
  umem_free(&ctx, adr);
  assert_int_equal(umem_thread_status(), umemOK);
  umem_free(&ctx, adr);
  expect_failure(&ctx, umemValueError, "is not a live block of this Host");
  assert_int_equal(machine.mapped, 0);
}

TEST_CASE(huge_pages_come_from_those_set_aside) {
  umemHost ctx;
  play(3);
  machine.set_aside = 6 * MiB;
  assert_int_equal(make(&ctx, umemHostBind, umemHostPages2M, 1), umemOK);
  umemInfo info = info_of(&ctx);
  assert_int_equal(info.page_size, 2 * MiB);
  assert_int_equal(info.alignment, 2 * MiB);
  uintptr_t adr = umem_alloc(&ctx, 3 * MiB);
  assert_true(adr && adr % (2 * MiB) == 0);
  assert_int_equal(machine.populated, 1); /* the first touch cannot raise SIGBUS */
  char words[80];
  snprintf(words, sizeof words, "pages of 2 MiB on the nodes 0: %s (the admin", strerror(ENOMEM));
  expect_no_block(&ctx, umem_alloc(&ctx, 7 * MiB), umemMemoryError, words);
  machine.no_populate = EFAULT; /* the other node has pages, this one has none */
  expect_no_block(&ctx, umem_alloc(&ctx, 2 * MiB), umemMemoryError, "too few such pages");
  machine.no_populate = EINVAL; /* Linux before 5.14 */
  assert_true(umem_alloc(&ctx, 2 * MiB) != 0);
  umem_dtor(&ctx);
  assert_int_equal(make(&ctx, 0, umemHostPages2M, 0), umemOK);
  machine.populated = 0;
  assert_true(umem_alloc(&ctx, 2 * MiB) != 0);
  assert_int_equal(machine.populated, 0); /* the first touch takes it */
  umem_dtor(&ctx);
  machine.lacks_huge = true;
  expect_status(NULL, make(&ctx, 0, umemHostPages1G, 0), umemNotSupportedError,
                "this system has no pages of 1 GiB: Invalid argument");
}

TEST_CASE(blocks_shrink_in_place_and_grow_with_their_bytes) {
  umemHost ctx;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  play(1);
  assert_int_equal(make(&ctx, umemHostInterleave, 0, 0), umemOK);
  uintptr_t adr = umem_alloc(&ctx, 4 * page);
  memset((void *)adr, 7, 4 * page);
  long before = machine.mapped;
  assert_true(umem_realloc(&ctx, adr, 4 * page, page + 1) == adr);
  assert_int_equal(machine.mapped, before - 2 * (long)page);
  assert_true(umem_realloc(&ctx, adr, page + 1, 2 * page) == adr);
  umemFound found = UMEM_FOUND_INIT;
  assert_true(umem_find(adr + page, &found));
  assert_true(found.adr == adr && found.nbytes == 2 * page);
  uintptr_t more = umem_realloc(&ctx, adr, 2 * page, 9 * page);
  assert_true(more && more != adr && ((char *)more)[2 * page - 1] == 7);
  expect_no_block(&ctx, umem_realloc(&ctx, more, 10 * page, 1), umemValueError, "realloc");
  machine.no_unmap = true; /* its bytes go to a new block, and the old one stays live */
  uintptr_t small = umem_realloc(&ctx, more, 9 * page, 10);
  machine.no_unmap = false;
  expect_failure(&ctx, umemRuntimeError, "cannot unmap");
  assert_true(!small || ((char *)small)[9] == 7);
  assert_true(umem_find(more, &found) && found.nbytes == 9 * page);
  umem_dtor(&ctx);
  assert_int_equal(machine.mapped, 0);
}

TEST_CASE(names_choose_as_structs_do) {
  play(0xff);
  void *ctx = umem_open("pool+host:?nodes=0,2-3&policy=interleave");
  assert_non_null(ctx);
  assert_int_equal(machine.calls[0].mode, interleave_mode);
  assert_int_equal(machine.calls[0].nodes, 13);
  assert_int_equal(nodes_of(ctx), 13);
  umemHost *layer = umem_find_layer(ctx, "host");
  assert_true(layer && layer == umem_get_upstream(ctx));
  int node = 5;
  machine.node_of_pages = 3;
  assert_int_equal(umemHost_node(layer, umem_alloc(ctx, 8), &node), umemOK);
  assert_int_equal(node, 3);
  machine.node_of_pages = -ENOENT;
  assert_int_equal(umemHost_node(layer, (uintptr_t)ctx, &node), umemOK);
  assert_int_equal(node, -1);
  machine.node_of_pages = -EFAULT;
  assert_int_equal(umemHost_node(layer, 8, &node), umemIndexError);
  assert_int_equal(umemHost_node(layer, 8, NULL), umemValueError);
  assert_int_equal(umemHost_node(ctx, 8, &node), umemTypeError);
  umem_thread_clear();
  umem_close(ctx);
  static char const *const wrong[] = {"x", "64", "1-", "3-1", "1,,2", "0;1", "-1", "100"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char name[64];
    snprintf(name, sizeof name, "host:?nodes=%s", wrong[i]);
    assert_null(umem_open(name));
    expect_failure(NULL, umemValueError, "no list of nodes");
  }
}

/* Each word is the member of the enumeration that it names. */
TEST_CASE(each_word_is_the_option_that_it_names) {
  static struct {
    char const *name;
    long mode;
    uint64_t nodes;
    size_t page; /* 0: the usual one */
  } const cases[] = {
      {"host:?nodes=1", bind_mode, 2, 0},
      {"host:?policy=bind&nodes=1-2", bind_mode, 6, 0},
      {"host:?policy=prefer&nodes=2", prefer_mode, 4, 0},
      {"host:?policy=interleave", interleave_mode, 15, 0},
      {"host:?policy=first-touch", prefer_mode, 0, 0},
      {"host:?policy=bind&nodes=0&pages=2M", bind_mode, 1, 2 * MiB},
      {"host:?policy=interleave&pages=1G", interleave_mode, 15, 1024 * MiB},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    play(15);
    void *ctx = umem_open(cases[i].name);
    if (!ctx) fail_msg("%s: %s", cases[i].name, umem_thread_message());
    assert_int_equal(machine.calls[0].mode, cases[i].mode);
    assert_int_equal(machine.calls[0].nodes, cases[i].nodes);
    umemInfo info = info_of(ctx);
    assert_int_equal(info.page_size, cases[i].page ? cases[i].page : (size_t)sysconf(_SC_PAGESIZE));
    umem_close(ctx);
  }
}

TEST_CASE(lists_of_nodes_are_written_as_they_are_read) {
  static struct {
    uint64_t nodes;
    char const *text;
  } const cases[] = {
      {1, "0"}, {5, "0,2"}, {14, "1-3"}, {UINT64_MAX, "0-63"}, {UINT64_C(1) << 63 | 3, "0-1,63"}};
  char text[200];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(umemNuma_write(cases[i].nodes, text, sizeof text), cases[i].text);
    assert_true(umemNuma_read(text) == cases[i].nodes);
  }
  assert_string_equal(umemNuma_write(0x5555555555555555, text, 10), "0,2,4,6,8");
}

/* The real machine: its first node is enough to see where pages are, and that nothing but the
 * program touches them. */
TEST_CASE(pages_are_where_they_were_asked_for) {
  memset(&machine, 0, sizeof machine);
  uint64_t allowed = 0;
  if (umemNuma_allowed(&allowed) || !allowed) skip();
  uint64_t last = UINT64_C(1) << (63 - __builtin_clzll(allowed));
  SCOPED(umem_dtor) umemHost ctx;
  int node = 5;
  umemStatusType status = make(&ctx, umemHostBind, 0, last);
  if (status == umemNotSupportedError) skip();
  assert_int_equal(status, umemOK);
  char *block = (char *)umem_calloc(&ctx, 16 * MiB, 1);
  assert_true((uintptr_t)block % (2 * MiB) == 0);
  assert_int_equal(umemHost_node(&ctx, (uintptr_t)block, &node), umemOK);
  assert_int_equal(node, -1);
  block[0] = 1;
  assert_int_equal(umemHost_node(&ctx, (uintptr_t)block + 1, &node), umemOK);
  assert_true(node >= 0 && UINT64_C(1) << node == last);
  umemInfo info = info_of(&ctx);
  assert_true(info.nodes == last && info.capacity >= 16 * MiB && info.available <= info.capacity);
}
