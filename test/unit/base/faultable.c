/* faultable.c - base/faultable.h: which faults end a copy, and what becomes of other signals. */
#include "base/faultable.h"
#include "settings.h"
#include "temporary.h"
#include "workers.h"

#include <stdatomic.h>

enum { page = 64 << 10, pages = 4 };

static umemFaultableRange const none[2];

/* ---- a file that is mapped, and then cut ---- */

typedef struct Cut {
  int fd;
  char *bytes; /* `pages` pages, of which the file has the first one alone */
} Cut;

static Cut open_cut(void) {
  char path[256];
  Cut made = {.fd = temporary_file(path, sizeof path)};
  assert_true(made.fd >= 0);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(ftruncate(made.fd, page), 0);
  made.bytes = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE, MAP_SHARED, made.fd, 0);
  assert_true(made.bytes != MAP_FAILED);
  return made;
}

static void close_cut(Cut *made) {
  munmap(made->bytes, (size_t)pages * page);
  close(made->fd);
}

static umemFaultableRange range_of(Cut const *made) {
  return (umemFaultableRange){(uintptr_t)made->bytes, (size_t)pages * page};
}

static Cut cut;                      /* of the test */
static umemFaultableRange ranges[2]; /* its range */

static void set_up(void **state UNUSED) {
  cut = open_cut();
  ranges[0] = range_of(&cut);
}

static void tear_down(void **state UNUSED) { close_cut(&cut); }

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* ---- work ---- */

static void touch(void *adr) { *(volatile char *)adr = 1; }

typedef struct Sum {
  char const *bytes;
  size_t size, done;
} Sum;

static void add_up(void *data) {
  Sum *sum = data;
  for (sum->done = 0; sum->done < sum->size; sum->done++)
    (void)*(volatile char const *)(sum->bytes + sum->done);
}

TEST(work_that_faults_nowhere_returns) {
  Sum sum = {cut.bytes, page, 0};
  assert_true(umem_access_faultable(ranges, add_up, &sum));
  assert_int_equal(sum.done, page);
  assert_true(umem_access_faultable(none, touch, cut.bytes));
}

TEST(work_ends_at_a_page_that_is_gone) {
  umemFaultableRange const both[][2] = {{range_of(&cut), {0}}, {{0}, range_of(&cut)}};
  for (int i = 0; i < 2; i++) {
    Sum sum = {cut.bytes, 2 * page, 0};
    assert_false(umem_access_faultable(both[i], add_up, &sum));
    assert_int_equal(sum.done, page);
    assert_false(umem_access_faultable(both[i], touch, cut.bytes + page));
  }
}

static struct sigaction handler_now(void) {
  struct sigaction now;
  assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
  return now;
}

/* CMocka installs a handler for each test. */
static bool is_handler(struct sigaction const *action) {
  struct sigaction now = handler_now();
  return now.sa_handler == action->sa_handler && now.sa_flags == action->sa_flags;
}

static struct sigaction in_work;
static void look_at_handler(void *unused UNUSED) { in_work = handler_now(); }

TEST(the_handler_is_there_only_meanwhile) {
  struct sigaction const before = handler_now();
  assert_true(umem_access_faultable(none, look_at_handler, NULL));
  assert_true(is_handler(&before) && in_work.sa_sigaction != before.sa_sigaction);
  assert_false(umem_access_faultable(ranges, touch, cut.bytes + page));
  assert_true(is_handler(&before));
}

/* ---- nested work, masks ---- */

typedef struct Nested {
  Cut *inner, *outer;
  bool volatile inner_done, sibling_done, after;
} Nested;

static void nest(void *data) {
  Nested *nested = data;
  umemFaultableRange const within[] = {range_of(nested->inner), {0}};
  nested->inner_done = umem_access_faultable(within, touch, nested->inner->bytes + page);
  nested->sibling_done = umem_access_faultable(within, touch, nested->inner->bytes);
  nested->after = true;
  touch(nested->outer->bytes + page);
  nested->after = false;
}

TEST(each_level_has_its_own_guard) {
  SCOPED(close_cut) Cut inner = open_cut();
  Nested nested = {.inner = &inner, .outer = &cut};
  assert_false(umem_access_faultable(ranges, nest, &nested));
  assert_true(!nested.inner_done && nested.sibling_done && nested.after);
  nested = (Nested){.inner = &cut, .outer = &cut}; /* the same pages */
  assert_false(umem_access_faultable(ranges, nest, &nested));
  assert_true(!nested.inner_done && nested.sibling_done && nested.after);
}

static bool is_blocked(int number) {
  sigset_t now;
  assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
  return sigismember(&now, number) == 1;
}

TEST(masks_stay_and_do_not_matter) {
  sigset_t all, old;
  sigfillset(&all);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
  assert_false(umem_access_faultable(ranges, touch, cut.bytes + page));
  assert_true(is_blocked(SIGBUS) && is_blocked(SIGUSR1));
  assert_true(umem_access_faultable(ranges, touch, cut.bytes));
  assert_true(is_blocked(SIGBUS) && is_blocked(SIGUSR1));
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
  assert_false(umem_access_faultable(ranges, touch, cut.bytes + page));
  assert_false(is_blocked(SIGBUS) || is_blocked(SIGUSR1));
}

/* A SIGBUS that somebody sends to a thread which blocks it waits for that thread, not for the
 * copy. */
TEST(a_signal_that_is_sent_stays_pending) {
  if (setting_qemu()) skip(); /* it delivers the signal although the thread blocks it */
  sigset_t bus, old, pending;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  assert_int_equal(pthread_sigmask(SIG_BLOCK, &bus, &old), 0);
  assert_int_equal(pthread_kill(pthread_self(), SIGBUS), 0);
  assert_true(umem_access_faultable(ranges, touch, cut.bytes));
  assert_int_equal(sigpending(&pending), 0);
  assert_int_equal(sigismember(&pending, SIGBUS), 1);
  int number = 0;
  assert_int_equal(sigwait(&bus, &number), 0);
  assert_int_equal(number, SIGBUS);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
}

/* ---- handlers of the program ---- */

static volatile sig_atomic_t plain_calls, full_calls;
static volatile uintptr_t full_address;
static sigjmp_buf out;

static void plain(int number) {
  plain_calls += number == SIGBUS;
  siglongjmp(out, 1);
}

static void full(int number, siginfo_t *info, void *context) {
  full_calls += number == SIGBUS && context;
  full_address = (uintptr_t)info->si_addr;
  siglongjmp(out, 1);
}

static void set_handler(void (*handler)(int), void (*action)(int, siginfo_t *, void *)) {
  struct sigaction wish = {.sa_flags = action ? SA_SIGINFO : 0};
  if (action)
    wish.sa_sigaction = action;
  else
    wish.sa_handler = handler;
  assert_int_equal(sigaction(SIGBUS, &wish, NULL), 0);
}

/* Touches a page of which no guard knows. Whether the program's handler ended it. */
typedef struct Strange {
  char *adr;
  bool left;
} Strange;

static void touch_a_strange_page(void *data) {
  Strange *strange = data;
  if (sigsetjmp(out, 1) == 0)
    touch(strange->adr);
  else
    strange->left = true;
}

TEST(other_faults_go_to_the_handler_before) {
  SCOPED(close_cut) Cut other = open_cut();
  plain_calls = full_calls = 0;
  for (int i = 0; i < 3; i++) {
    Strange strange = {.adr = other.bytes + page};
    set_handler(plain, NULL);
    assert_true(umem_access_faultable(ranges, touch_a_strange_page, &strange));
    assert_true(strange.left && plain_calls == i + 1);
    assert_false(umem_access_faultable(ranges, touch, cut.bytes + page));
    assert_true(handler_now().sa_handler == plain);

    strange.left = false;
    set_handler(NULL, full);
    assert_true(umem_access_faultable(ranges, touch_a_strange_page, &strange));
    assert_true(strange.left && full_calls == i + 1);
    assert_true(full_address == (uintptr_t)other.bytes + page);
    assert_true(handler_now().sa_sigaction == full);
  }
  set_handler(SIG_DFL, NULL);
}

/* ---- in a child: what ends the process ---- */

typedef void InChild(void);

/* As child_wait. */
static int run_child(InChild *run) {
  pid_t child = fork();
  if (!child) {
    run();
    _exit(7);
  }
  return child_wait(child);
}

static void sends(void *unused UNUSED) { pthread_kill(pthread_self(), SIGBUS); }

static void fault_by_default(void) {
  Cut other = open_cut();
  set_handler(SIG_DFL, NULL);
  umem_access_faultable(none, touch, other.bytes + page);
}

static void fault_while_ignored(void) {
  Cut other = open_cut();
  set_handler(SIG_IGN, NULL);
  umem_access_faultable(none, touch, other.bytes + page);
}

static void send_by_default(void) {
  set_handler(SIG_DFL, NULL);
  umem_access_faultable(none, sends, NULL);
}

static void send_while_ignored(void) {
  set_handler(SIG_IGN, NULL);
  if (umem_access_faultable(none, sends, NULL)) _exit(3);
}

TEST(the_default_action_is_taken) {
  InChild *const kill[] = {fault_by_default, fault_while_ignored, send_by_default};
  for (size_t i = 0; i < sizeof kill / sizeof *kill; i++) {
    int status = run_child(kill[i]);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    assert_int_equal(status, -SIGBUS);
#else
    assert_int_not_equal(status, 7);
#endif
  }
  assert_int_equal(run_child(send_while_ignored), 3);
}

/* A handler that comes over ours and keeps it: each of the two could call the other for ever. */
static struct sigaction kept;
static volatile sig_atomic_t over_calls;

static void over(int number, siginfo_t *info, void *context) {
  over_calls++;
  if (over_calls > 100) _exit(9);
  if (kept.sa_flags & SA_SIGINFO) kept.sa_sigaction(number, info, context);
}

static void install_over(void *adr) {
  struct sigaction wish = {.sa_flags = SA_SIGINFO};
  wish.sa_sigaction = over;
  sigaction(SIGBUS, &wish, &kept);
  touch(adr);
}

static void come_over(void) {
  static Cut other; /* not in a register, which siglongjmp may restore */
  other = open_cut();
  set_handler(plain, NULL);
  plain_calls = 0;
  if (umem_access_faultable(ranges, install_over, cut.bytes + page) || over_calls != 1) _exit(2);
  if (handler_now().sa_sigaction != over) _exit(3);
  if (umem_access_faultable(ranges, touch, cut.bytes) || over_calls != 1)
    _exit(4);                                            /* no guards any more */
  if (sigsetjmp(out, 1) == 0) touch(other.bytes + page); /* ours hands it to the first one */
  if (over_calls != 2 || plain_calls != 1) _exit(5);
  _exit(0);
}

TEST(a_handler_that_comes_over_ours_stays) { assert_int_equal(run_child(come_over), 0); }

/* ---- alternate stacks ---- */

TEST(on_the_alternate_stack) {
  static char room[64 << 10];
  stack_t own = {.ss_sp = room, .ss_size = sizeof room}, old;
  assert_int_equal(sigaltstack(&own, &old), 0);
  for (int i = 0; i < 3; i++) assert_false(umem_access_faultable(ranges, touch, cut.bytes + page));
  assert_int_equal(sigaltstack(&old, NULL), 0);
}

/* ---- fork ---- */

static void fork_in_work(void *unused UNUSED) {
  pid_t child = fork();
  if (!child) { /* the guard holds here too */
    touch(cut.bytes + page);
    _exit(8);
  }
  if (child_wait(child) == 4) cut.bytes[0] = 4;
}

/* Both processes return from here; the child has been thrown out of its work. */
TEST(a_child_keeps_its_own_guard) {
  pid_t parent = getpid();
  struct sigaction const before = handler_now();
  bool whole = umem_access_faultable(ranges, fork_in_work, NULL);
  if (getpid() != parent) _exit(!whole && is_handler(&before) ? 4 : 5);
  assert_true(whole && cut.bytes[0] == 4);
}

/* Guards of threads that are not in the child take no room there. */
enum { all_accesses = 256 };

static void go_deeper(void *data) {
  int volatile *levels = data;
  --*levels;
  if (*levels > 0 && !umem_access_faultable(none, go_deeper, data)) *levels = -1;
}

typedef struct Spin {
  atomic_bool inside, end;
} Spin;

static void spin(void *data) {
  Spin *spin = data;
  spin->inside = true;
  while (!spin->end) sched_yield();
}

static void *spin_in_access(void *data) {
  return umem_access_faultable(none, spin, data) ? data : NULL;
}

TEST(a_child_has_all_guards) {
  Spin busy;
  atomic_init(&busy.inside, false);
  atomic_init(&busy.end, false);
  pthread_t thread = start_thread(spin_in_access, &busy);
  while (!busy.inside) sched_yield();
  pid_t child = fork();
  if (!child) {
    int volatile levels = all_accesses;
    bool whole = umem_access_faultable(none, go_deeper, (void *)&levels);
    _exit(whole && levels == 0 ? 4 : 5);
  }
  int status = child_wait(child);
  busy.end = true;
  assert_non_null(join_thread(thread));
  assert_int_equal(status, 4);
}

/* ---- threads ---- */

enum { threads = 8, rounds = 2000 };

static void *fault_again_and_again(void *data) {
  for (int i = 0; i < rounds; i++) {
    Sum sum = {cut.bytes + page - 10, i % 2 ? 10 : 20, 0};
    bool whole = umem_access_faultable(ranges, add_up, &sum);
    if (whole != (i % 2 == 1) || sum.done != 10) return NULL;
  }
  return data;
}

TEST(each_thread_has_its_own_guard) {
  pthread_t thread[threads];
  struct sigaction const before = handler_now();
  start_threads(thread, threads, fault_again_and_again, &cut);
  assert_true(join_threads(thread, threads));
  assert_true(is_handler(&before));
}
