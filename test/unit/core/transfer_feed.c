/* transfer_feed.c - long transfers to a context with the method copy_pieces (umem/virtual.h): one
 * sequence of pieces of all that are in flight, and what becomes of what fails or is cancelled. */
#include <limits.h>

#include "core/threads.h"
#include "failures.h"
#include "workers.h"

#include <umem/file.h>
#include <umem/limit.h>

enum { sources = 3, most = 8 << 20, asked = 512 << 10 };

static umemHost from[sources], to, ram; /* ram: of what the method writes to */
static umemLimit limit;
static struct umemVtbl vtbl;
static unsigned char *bytes[sources], *target;

/* What the method does. */
static struct {
  bool held;          /* before it copies a piece; atomic */
  bool refuses;       /* every source */
  unsigned calls;     /* atomic, as are mixed and elsewhere */
  unsigned elsewhere; /* of them, those of another target than `to` */
  unsigned mixed;     /* of them, those that have had pieces of several transfers */
  size_t moved;       /* bytes that it has copied; atomic */
  unsigned inside;    /* threads that have a piece now; atomic */
  uintptr_t fails_at; /* the piece with this first byte fails */
  bool says_nothing;  /* of that */
  uintptr_t last;     /* the piece with this first byte ends when no other comes */
  unsigned others;    /* that have ended; atomic */
  bool wrong;         /* what it has got; atomic */
} method;

static bool carry(umemVirtual *ctx, umemVirtual *src, umemFeed *feed) {
  umemCopyPiece piece;
  uintptr_t first = UINTPTR_MAX;
  bool mixed = false;
  (void)src;
  if (method.refuses) return false;
  if (ctx != &to.super) __atomic_fetch_add(&method.elsewhere, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&method.calls, 1, __ATOMIC_RELEASE);
  while (feed->next(feed, asked, &piece)) {
    umemVirtual *source = feed->src;
    feed->about(feed, &piece);
    mixed |= first != UINTPTR_MAX && first != piece.copy;
    first = piece.copy;
    __atomic_fetch_add(&method.inside, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&method.held, __ATOMIC_ACQUIRE)) usleep(100);
    __atomic_fetch_sub(&method.inside, 1, __ATOMIC_RELEASE);
    bool fails = piece.src_adr == method.fails_at, last = piece.src_adr == method.last;
    while (last && __atomic_load_n(&method.others, __ATOMIC_ACQUIRE) < most / asked - 1)
      usleep(100);
    if (piece.dst != ctx || piece.nbytes > asked || !source->vptr)
      __atomic_store_n(&method.wrong, true, __ATOMIC_RELEASE);
    if (fails && !method.says_nothing) umemVirtual_fail(ctx, umemIOError, "it is broken");
    umem_copy_to(source, piece.src_adr, &ram, piece.dst_adr, piece.nbytes);
    __atomic_fetch_add(&method.moved, piece.nbytes, __ATOMIC_RELAXED);
    feed->end(feed, &piece, !fails);
    __atomic_fetch_add(&method.others, 1, __ATOMIC_RELEASE);
  }
  if (mixed) __atomic_fetch_add(&method.mixed, 1, __ATOMIC_RELEASE);
  return true;
}

static void set_up(void **state UNUSED) {
  umem_set_threads(4);
  memset(&method, 0, sizeof method);
  method.fails_at = method.last = UINTPTR_MAX;
  assert_ok(umemHost_ctor(&to));
  assert_ok(umemHost_ctor(&ram));
  vtbl = *to.super.vptr;
  vtbl.copy_pieces = carry;
  to.super.vptr = &vtbl;
  assert_ok(umemLimit_ctor(&limit, &to, SIZE_MAX));
  target = malloc((size_t)sources * most);
  assert_non_null(target);
  for (size_t k = 0; k < sources; k++) {
    assert_ok(umemHost_ctor(&from[k]));
    bytes[k] = malloc(most);
    assert_non_null(bytes[k]);
    for (size_t i = 0; i < most; i++) bytes[k][i] = (unsigned char)(i * 7 + (i >> 8) + k);
  }
}

static void tear_down(void **state UNUSED) {
  for (size_t k = 0; k < sources; k++) {
    umem_dtor(&from[k]);
    free(bytes[k]);
  }
  DESTRUCT(&limit, &to, &ram);
  free(target);
  umem_set_threads(0);
  assert_false(method.wrong);
  assert_ok(umem_thread_status());
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static unsigned char *target_of(size_t k) { return target + k * most; }

static umemTransfer *start(size_t k, size_t nbytes, void *dst) {
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&from[k], (uintptr_t)bytes[k], dst, (uintptr_t)target_of(k), nbytes, NULL,
                       &transfer));
  assert_non_null(transfer);
  return transfer;
}

static void expect_arrived(size_t k, umemTransfer *transfer, size_t nbytes) {
  assert_ok(umemTransfer_wait(transfer));
  assert_memory_equal(target_of(k), bytes[k], nbytes);
  assert_ok(umemTransfer_release(transfer));
}

static void hold(bool held) { __atomic_store_n(&method.held, held, __ATOMIC_RELEASE); }

static void await_count(unsigned const *count) {
  while (!__atomic_load_n(count, __ATOMIC_ACQUIRE)) usleep(100);
}

static void await_call(void) { await_count(&method.calls); }

/* Three transfers are in flight when the first piece is copied. */
static void start_all(umemTransfer *transfers[sources], void *dst) {
  hold(true);
  for (size_t k = 0; k < sources; k++) {
    transfers[k] = start(k, most - k * 12345, dst);
    if (!k) await_call();
  }
  hold(false);
}

TEST(pieces_of_the_next_one_follow) {
  umemTransfer *transfers[sources];
  start_all(transfers, &to);
  for (size_t k = 0; k < sources; k++) expect_arrived(k, transfers[k], most - k * 12345);
  assert_true(method.mixed > 0); /* else the link was idle between two */
}

TEST(files_are_fed) {
  umemTransfer *transfer = NULL;
  CONTEXT(umemFile, file, NULL, "w+");
  uintptr_t adr = umem_alloc(&file, most);
  assert_ok(umem_copy_to(&from[0], (uintptr_t)bytes[0], &file, adr, most));
  hold(true);
  assert_ok(umem_start(&file, adr, &to, (uintptr_t)target, most, NULL, &transfer));
  await_call();
  hold(false);
  expect_arrived(0, transfer, most);
}

TEST(adaptors_that_pass_copies_on_are_passed) {
  umemTransfer *transfers[sources];
  start_all(transfers, &limit);
  for (size_t k = 0; k < sources; k++) expect_arrived(k, transfers[k], most - k * 12345);
  assert_true(method.mixed > 0);
}

TEST(what_the_method_refuses_is_copied) {
  umemTransfer *transfers[sources];
  method.refuses = true;
  for (size_t k = 0; k < sources; k++) transfers[k] = start(k, most, &to);
  for (size_t k = sources; k-- > 0;) expect_arrived(k, transfers[k], most);
  assert_int_equal(method.calls, 0);
}

/* That of the second transfer: the others arrive. */
static void expect_one_failure(umemStatusType type, char const *text) {
  umemTransfer *transfers[sources];
  uint64_t done, total;
  method.fails_at = (uintptr_t)bytes[1] + 2 * asked;
  start_all(transfers, &to);
  assert_int_equal(umemTransfer_wait(transfers[1]), type);
  assert_non_null(strstr(umem_thread_message(), text));
  assert_ok(umemTransfer_progress(transfers[1], &done, &total));
  assert_true(done <= 2 * asked && total == most - 12345);
  assert_memory_equal(target_of(1), bytes[1], done);
  FORGET(&to);
  assert_ok(umemTransfer_release(transfers[1])); /* it was returned */
  expect_arrived(0, transfers[0], most);
  expect_arrived(2, transfers[2], most - 2 * 12345);
}

TEST(a_failure_is_that_of_its_transfer) { expect_one_failure(umemIOError, "it is broken"); }

TEST(a_failure_without_a_reason_is_one) {
  method.says_nothing = true;
  expect_one_failure(umemRuntimeError, "gave no reason");
}

/* Cancelled while a thread copies a piece of it, and others wait behind it. */
TEST(a_cancelled_one_takes_no_further_pieces) {
  umemTransfer *transfers[sources];
  uint64_t done;
  hold(true);
  transfers[0] = start(0, most, &to);
  await_call();
  for (size_t k = 1; k < sources; k++) transfers[k] = start(k, most, &to);
  umemTransfer_cancel(transfers[0]);
  umemTransfer_cancel(transfers[1]);
  hold(false);
  for (size_t k = 0; k < 2; k++) {
    assert_int_equal(umemTransfer_wait(transfers[k]), umemCancelledError);
    assert_ok(umemTransfer_progress(transfers[k], &done, NULL));
    assert_true(done <= (k ? 0 : 4 * asked)); /* a piece of each thread */
    umem_thread_clear();
    assert_ok(umemTransfer_release(transfers[k]));
  }
  umem_clear_status(&to);
  expect_arrived(2, transfers[2], most);
}

TEST(a_failure_is_that_of_the_adaptor_too) {
  method.fails_at = (uintptr_t)bytes[0];
  hold(true);
  umemTransfer *transfer = start(0, most, &limit);
  await_call();
  hold(false);
  assert_int_equal(umemTransfer_wait(transfer), umemIOError);
  assert_int_equal(umem_get_status(&limit), umemIOError);
  assert_int_equal(umem_get_status(&to), umemIOError);
  FORGET(&limit, &to);
  assert_ok(umemTransfer_release(transfer));
}

/* All others have arrived before it. */
TEST(the_first_piece_may_come_last) {
  method.last = (uintptr_t)bytes[0];
  hold(true);
  umemTransfer *transfer = start(0, most, &to);
  await_call();
  hold(false);
  expect_arrived(0, transfer, most);
}

static bool ends_soon(umemTransfer *transfer) {
  bool over = false;
  for (int i = 0; i < 50000 && !over; i++) {
    usleep(100);
    over = umemTransfer_poll(transfer);
  }
  return over;
}

/* Feeders hold their pieces, of one target or of two: a worker is left for it. */
static void expect_brief_is_served(void *targets[2], unsigned count) {
  umemTransfer *fed[2];
  hold(true);
  for (unsigned k = 0; k < count; k++) {
    fed[k] = start(k, most, targets[k]);
    await_count(k ? &method.elsewhere : &method.calls);
  }
  umemTransfer *brief = start(2, 1000000, &to);
  bool served = ends_soon(brief);
  hold(false);
  expect_arrived(2, brief, 1000000);
  for (unsigned k = 0; k < count; k++) expect_arrived(k, fed[k], most);
  assert_true(served);
}

TEST(short_ones_are_served_meanwhile) { expect_brief_is_served((void *[]){&to, NULL}, 1); }

TEST(short_ones_are_served_beside_two_feeds) {
  CONTEXT(umemHost, other);
  other.super.vptr = &vtbl;
  expect_brief_is_served((void *[]){&to, &other}, 2);
}

/* A context that holds up whoever reads it. */
static bool gate_closed; /* atomic */

static uintptr_t gate_alloc(umemVirtual *ctx, size_t nbytes) { return (void)ctx, (void)nbytes, 64; }

static void gate_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr UNUSED,
                         umemVirtual *that UNUSED, uintptr_t dst_adr UNUSED, size_t nbytes UNUSED) {
  while (__atomic_load_n(&gate_closed, __ATOMIC_ACQUIRE)) usleep(100);
}

/* Both servers are held up until three wait. Then one begins the first, and the other must leave
 * the rest to it. */
TEST(those_that_wait_already_are_fed) {
  static struct umemVtbl const gate_vtbl = {.alloc = gate_alloc, .copy_to = gate_copy_to};
  unsigned char room[100];
  umemTransfer *brief[2], *transfers[sources];
  umem_set_threads(3);
  SCOPED(umem_dtor) umemVirtual gate;
  umemVirtual_ctor(&gate, &from[0]);
  gate.vptr = &gate_vtbl;
  gate.capabilities |= umemConcurrent;
  __atomic_store_n(&gate_closed, true, __ATOMIC_RELEASE);
  for (int i = 0; i < 2; i++)
    assert_ok(umem_start(&gate, 64, &ram, (uintptr_t)room + 50 * (size_t)i, 50, NULL, &brief[i]));
  hold(true);
  for (size_t k = 0; k < sources; k++) transfers[k] = start(k, most, &to);
  __atomic_store_n(&gate_closed, false, __ATOMIC_RELEASE);
  await_call();
  for (int i = 0; i < 2; i++) assert_ok(umemTransfer_release(brief[i]));
  usleep(20000);
  hold(false);
  for (size_t k = 0; k < sources; k++) assert_true(ends_soon(transfers[k]));
  for (size_t k = 0; k < sources; k++) expect_arrived(k, transfers[k], most);
  assert_int_equal(method.moved, (size_t)sources * most);
}

/* Who waits at once does not copy beside a feed that begins, unless the machine is so busy that
 * this takes a millisecond. */
TEST(who_waits_leaves_it_to_a_feed) {
  enum { rounds = 20 };
  for (int i = 0; i < rounds; i++) expect_arrived(0, start(0, most, &to), most);
  assert_true(method.moved > (size_t)rounds * most / 2);
}

/* Transfers follow one another, so closely that the first thread that finds no piece could leave,
 * and the others go on. All four workers have pieces of each. */
TEST(all_threads_go_on_or_none) {
  enum { workers = 4 };
  umem_set_threads(workers + 1);
  for (int i = 0; i < 60; i++) {
    umemTransfer *transfer = start(0, most, &to);
    umemTransfer_release(transfer);
    if (i % 3 == 2) usleep(250 + 10 * (useconds_t)i);
    hold(true);
    transfer = start(1, most, &to);
    bool all = false;
    for (int k = 0; k < 50000 && !all; k++) {
      usleep(100);
      all = __atomic_load_n(&method.inside, __ATOMIC_ACQUIRE) == workers;
    }
    hold(false);
    umemTransfer_release(transfer);
    assert_true(all);
  }
}

static void *transfer_often(void *over) {
  while (!__atomic_load_n((bool *)over, __ATOMIC_ACQUIRE))
    umemTransfer_release(start(0, most, &to));
  return NULL;
}

TEST(the_process_forks_meanwhile) {
  pthread_t thread;
  bool over = false;
  assert_int_equal(pthread_create(&thread, NULL, transfer_often, &over), 0);
  for (int i = 0; i < 100; i++) {
    pid_t child = fork();
    if (!child) _exit(0);
    assert_true(child > 0 && waitpid(child, NULL, 0) == child);
  }
  __atomic_store_n(&over, true, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
}

typedef struct Ending {
  pthread_t thread;
  umemVirtual *ctx;
  bool over; /* atomic */
} Ending;

static void *end_context(void *argument) {
  Ending *ending = argument;
  umem_dtor(ending->ctx);
  __atomic_store_n(&ending->over, true, __ATOMIC_RELEASE);
  return NULL;
}

/* That of the source of the first one waits for its pieces only, that of the target for all. */
static void expect_end_waits(void *ctx) {
  umemTransfer *transfers[sources];
  Ending ending = {.ctx = ctx};
  hold(true);
  for (size_t k = 0; k < sources; k++) {
    transfers[k] = start(k, most, &to);
    if (!k) await_call();
  }
  assert_int_equal(pthread_create(&ending.thread, NULL, end_context, &ending), 0);
  usleep(20000);
  assert_false(__atomic_load_n(&ending.over, __ATOMIC_ACQUIRE));
  hold(false);
  pthread_join(ending.thread, NULL);
  for (size_t k = 0; k < sources; k++) expect_arrived(k, transfers[k], most);
}

TEST(a_source_that_ends_waits_for_its_bytes) {
  expect_end_waits(&from[0]);
  assert_ok(umemHost_ctor(&from[0]));
}

TEST(a_target_that_ends_waits_for_all) {
  umem_dtor(&limit);
  expect_end_waits(&to);
  assert_ok(umemHost_ctor(&to));
  assert_ok(umemLimit_ctor(&limit, &to, SIZE_MAX));
}

/* Random sizes, waits and cancels, by several threads. */
typedef struct Starter {
  unsigned k;
  bool wrong;
} Starter;

static void *start_often(void *argument) {
  Starter *self = argument;
  unsigned random = self->k + 1;
  for (int i = 0; i < 40 && !self->wrong; i++) {
    umemTransfer *transfer = NULL;
    random = random * 1103515245 + 12345;
    size_t nbytes = (random >> 8) % most + 1;
    bool cancels = !(random >> 28 & 3);
    self->wrong = umem_start(&from[self->k], (uintptr_t)bytes[self->k], &to,
                             (uintptr_t)target_of(self->k), nbytes, NULL, &transfer) != umemOK;
    if (self->wrong) break;
    if (cancels) umemTransfer_cancel(transfer);
    if (random >> 30) umemTransfer_wait_for(transfer, 1000);
    umemStatusType result = umemTransfer_wait(transfer);
    umemTransfer_release(transfer);
    bool arrived = result == umemOK && !memcmp(target_of(self->k), bytes[self->k], nbytes);
    self->wrong = !arrived && !(cancels && result == umemCancelledError);
    umem_thread_clear();
    memset(target_of(self->k), 0, nbytes);
  }
  return self->wrong ? self : NULL;
}

/* Several threads use one handle, each by functions of its own. */
typedef struct User {
  umemTransfer *transfer;
  unsigned k;
  bool wrong;
} User;

static void *use_handle(void *argument) {
  User *self = argument;
  uint64_t done, before = 0, total;
  umemTransfer *transfer = self->transfer;
  if (self->k == 1) self->wrong = umemTransfer_descriptor(transfer) < 0;
  if (self->k == 2) umemTransfer_cancel(transfer);
  while (!(self->k % 2 ? umemTransfer_poll(transfer) : umemTransfer_wait_for(transfer, 20000))) {
    if (umemTransfer_progress(transfer, &done, &total) != umemOK) self->wrong = true;
    self->wrong = self->wrong || done < before || done > total;
    before = done;
  }
  umemStatusType result = umemTransfer_wait(transfer);
  umemTransfer_progress(transfer, &done, &total);
  self->wrong = self->wrong ||
                (result == umemOK ? done != total : result != umemCancelledError || done == total);
  umem_thread_clear();
  return self->wrong ? self : NULL;
}

TEST(threads_share_a_handle) {
  enum { users = 4 };
  for (size_t round = 0; round < 30; round++) {
    User user[users];
    umemTransfer *transfer = start(0, most, &to);
    for (unsigned k = 0; k < users; k++) user[k] = (User){.transfer = transfer, .k = k};
    run_at_once(users, use_handle, user, sizeof *user);
    umemTransfer_release(transfer);
    FORGET(&to);
  }
}

TEST(all_arrive_in_any_order) {
  Starter starters[sources] = {{.k = 0}, {.k = 1}, {.k = 2}};
  run_at_once(sources, start_often, starters, sizeof *starters);
  umem_clear_status(&to);
}
