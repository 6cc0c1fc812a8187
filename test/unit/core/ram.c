/* ram.c - core/ram.h: sets and copies in RAM are those of one thread, whatever they are divided
 * into. */
#include "parallel_help.h"

#include <sys/syscall.h>

#include "unit/near_help.h"
#include "wrap.h"

enum { mebi = 1 << 20, most = 11 * mebi, margin = 128, room = margin + most + margin };

static umemHost host;
static unsigned char *source, *target, *wanted;

static size_t const sizes[] = {
    0, 1, 1023, 1025, 5000, 8 * mebi - 1, 8 * mebi, 8 * mebi + 1, 8 * mebi + 65, 10 * mebi + 12345};
enum { sizes_count = sizeof sizes / sizeof *sizes };

static void open_ram(void **state) {
  begin(state);
  source = malloc(room), target = malloc(room), wanted = malloc(room);
  assert_true(source && target && wanted);
  for (size_t i = 0; i < room; i++) source[i] = (unsigned char)(i * 2654435761u >> 13);
  assert_ok(umemHost_ctor(&host));
}

static void close_ram(void **state) {
  free(source), free(target), free(wanted);
  umem_dtor(&host);
  end(state);
}

static void begin_target(void) {
  memset(target, 0x5A, room);
  memset(wanted, 0x5A, room);
}

/* ---- who copies ---- */

static pthread_t caller;
static int all;     /* processors of the process */
static int helpers; /* on which helpers should run */
static atomic_bool watches;
static atomic_uint helped,
    astray; /* pieces by helpers; pieces by a thread that may run where it should not */

static int processors(void) {
  cpu_set_t mine;
  assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
  return CPU_COUNT(&mine);
}

/* The caller waits for a helper, so that it does not make the whole copy. */
WRAPPED(void *, memcpy, (void *to, void const *from, size_t n)) {
  if (n < mebi || !atomic_load(&watches)) return __real_memcpy(to, from, n);
  bool helps = !pthread_equal(caller, pthread_self());
  if (helps) atomic_fetch_add(&helped, 1);
  if (processors() != (helps ? helpers : all)) atomic_fetch_add(&astray, 1);
  time_t const until = time(NULL) + 20;
  while (!atomic_load(&helped) && time(NULL) < until) sched_yield();
  return __real_memcpy(to, from, n);
}

/* ---- tests ---- */

#define TEST(name) TEST_CASE_WITH(name, open_ram, close_ram)

static void copy(unsigned char *to, unsigned char const *from, size_t n) {
  assert_int_equal(umem_copy_to(&host, (uintptr_t)from, &host, (uintptr_t)to, n), umemOK);
}

/* How many helpers come depends on how fast the first of them are. */
TEST(several_threads_share_long_runs) {
  unsigned before = count_tasks();
  copy(target, source, 8 * mebi - 1);
  assert_int_equal(umem_set(&host, (uintptr_t)target, 1, 8 * mebi - 1), umemOK);
  assert_int_equal(count_tasks(), before);
  copy(target, source, most);
  assert_true(count_tasks() > before);
  assert_int_equal(umem_set_threads(1), umemOK);
  assert_true(task_count_becomes(tasks_alone()));
  assert_int_equal(umem_set_threads(4), umemOK);
  assert_int_equal(umem_set(&host, (uintptr_t)target, 1, most), umemOK);
  assert_true(count_tasks() > tasks_alone());
}

/* The distances are those where processors differ: see base/system.h. */
TEST(copies_are_exact) {
  size_t const distances[] = {0, 1, 16, 31, 32, 64};
  for (size_t i = 0; i < sizes_count; i++)
    for (size_t k = 0; k < sizeof distances / sizeof *distances; k++) {
      begin_target();
      memcpy(wanted + distances[k], source + margin, sizes[i]);
      copy(target + distances[k], source + margin, sizes[i]);
      assert_memory_equal(target, wanted, room);
    }
}

TEST(copies_of_slow_processors_are_exact) {
  umem_all_are_slow = true;
  copies_are_exact(state);
  umem_all_are_slow = false;
}

TEST(sets_are_exact) {
  for (size_t i = 0; i < sizes_count; i++) {
    begin_target();
    memset(wanted + 7, 0xC3, sizes[i]);
    assert_int_equal(umem_set(&host, (uintptr_t)target + 7, 0xC3, sizes[i]), umemOK);
    assert_memory_equal(target, wanted, room);
  }
}

/* Calls that overlap are wrong, and what they give is still the same each time. */
TEST(overlaps_are_moves) {
  size_t const distances[] = {1, 16, 100, mebi, 5 * mebi};
  for (size_t k = 0; k < sizeof distances / sizeof *distances; k++) {
    size_t d = distances[k], n = most - d;
    memcpy(wanted, source, room);
    memcpy(target, source, room);
    memmove(wanted + d, wanted, n);
    copy(target + d, target, n);
    assert_memory_equal(target, wanted, room);
    memmove(wanted, wanted + d, n);
    copy(target, target + d, n);
    assert_memory_equal(target, wanted, room);
  }
}

static void watch_copy(int count) {
  caller = pthread_self();
  helpers = count;
  atomic_store(&helped, 0);
  memset(target, 0, most);
  atomic_store(&watches, true);
  copy(target, source, most);
  atomic_store(&watches, false);
  assert_true(atomic_load(&helped) > 0);
  assert_int_equal(atomic_load(&astray), 0);
  assert_memory_equal(target, source, most);
}

/* So that memory which nobody has touched yet comes to the node of the caller. The folder says that
 * the node has one processor: the helpers run there, and are back on all when the copy is over. */
TEST(helpers_run_on_the_node_of_the_caller) {
  unsigned processor, node;
  unsigned first = near_first(&all);
  if (all < 2 || UNDER_SANITIZER) skip(); /* sanitizers have a memcpy of their own */
  copy(target, source, most);             /* starts the helpers */
  near_begin();
  assert_int_equal(syscall(SYS_getcpu, &processor, &node, NULL), 0);
  near_write_processor(node, first);
  watch_copy(1);
  near_end();
  watch_copy(all);
}

TEST(one_thread_is_enough) {
  assert_int_equal(umem_set_threads(1), umemOK);
  begin_target();
  memcpy(wanted, source, most);
  copy(target, source, most);
  assert_memory_equal(target, wanted, room);
  assert_true(task_count_becomes(tasks_alone()));
}
