/* transfer_ends.c - umem/transfer.h: failures, descriptors, copies in queues, children, and the
 * end of the process. */
#include "transfer_help.h"

#include <poll.h>
#include <sys/epoll.h>

#include "core/hook.h"
#include "fake/fake.h"

/* ---- failures ---- */

static unsigned hooked;

static void count_failures(void *ctx, umemStatusType type, char const *message, void *data) {
  (void)ctx, (void)type, (void)message, (void)data;
  __atomic_fetch_add(&hooked, 1, __ATOMIC_RELAXED);
}

SLOW_TEST(a_failure_goes_to_who_waits) {
  slow.fails = true;
  umem_set_failure_hook(count_failures, NULL);
  hooked = 0;
  umemTransfer *transfer = start_slow(small);
  while (!umemTransfer_poll(transfer)) usleep(100);
  assert_int_equal(hooked, 0);
  assert_true(umem_is_ok(&slow));
  expect_status(&slow, umemTransfer_wait(transfer), umemIOError, "umem_start: it is broken");
  assert_int_equal(hooked, 1);
  assert_ok(umemTransfer_release(transfer));
  assert_int_equal(hooked, 1);
  transfer = start_slow(small);
  expect_status(&slow, umemTransfer_release(transfer), umemIOError, "it is broken");
  assert_int_equal(hooked, 2);
  umem_set_failure_hook(NULL, NULL);
}

SLOW_TEST(a_failure_outlives_its_context) {
  slow.fails = true;
  umemTransfer *transfer = start_slow(small);
  while (!umemTransfer_poll(transfer)) usleep(100);
  DESTRUCT(&slow, &slow.host);
  memset(&slow, 0xee, sizeof slow);
  expect_status(NULL, umemTransfer_wait(transfer), umemIOError, "it is broken");
  assert_ok(umemTransfer_release(transfer));
  memset(&slow, 0, sizeof slow); /* nothing is left to end */
}

/* ---- descriptors ---- */

static bool is_readable(int fd, int milliseconds) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1 && one.revents & POLLIN;
}

static bool is_shown_by_epoll(int fd, int milliseconds) {
  struct epoll_event event = {.events = EPOLLIN};
  int set = epoll_create1(EPOLL_CLOEXEC);
  assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), 0);
  int count = epoll_wait(set, &event, 1, milliseconds);
  close(set);
  return count == 1;
}

SLOW_TEST(a_descriptor_shows_the_end) {
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(small);
  int fd = umemTransfer_descriptor(transfer);
  assert_true(fd >= 0);
  assert_int_equal(umemTransfer_descriptor(transfer), fd);
  assert_false(is_readable(fd, 1));
  assert_false(is_shown_by_epoll(fd, 1));
  hold(false);
  assert_true(is_shown_by_epoll(fd, 60000));
  assert_true(is_readable(fd, 60000));
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
  transfer = start(small);
  assert_ok(umemTransfer_wait(transfer));
  assert_true(is_readable(umemTransfer_descriptor(transfer), 0));
}

/* ---- queues ---- */

TEST(a_context_without_marks_is_waited_for) {
  SCOPED(umem_dtor) FakeAsync queue;
  umemTransfer *transfer;
  assert_ok(fake_async_ctor(&queue));
  uintptr_t adr = umem_alloc(&queue, small);
  assert_ok(umem_start(&ram, source, &queue, adr, small, NULL, &transfer));
  assert_true(umemTransfer_poll(transfer));
  assert_ok(umemTransfer_release(transfer));
  umem_free(&queue, adr);
}

/* ---- fork ---- */

static void use_in_child(void *argument) {
  umemTransfer *transfer = argument;
  uint64_t done;
  EXPECT(umemTransfer_poll(transfer) && umemTransfer_wait_for(transfer, 1));
  EXPECT(umemTransfer_wait(transfer) == umemRuntimeError);
  EXPECT(strstr(umem_thread_message(), "parent") != NULL);
  EXPECT(umemTransfer_progress(transfer, &done, NULL) == umemOK);
  EXPECT(umemTransfer_descriptor(transfer) == -1);
  umemTransfer_cancel(transfer);
  EXPECT(umemTransfer_release(transfer) == umemOK);
  umem_free(&ram, source);
  umem_dtor(&ram);
  EXPECT(umemHost_ctor(&ram) == umemOK);
  char from[small] = "x", to[small];
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, small, NULL, &transfer) == umemOK);
  EXPECT(umemTransfer_wait(transfer) == umemOK && !memcmp(from, to, small));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

/* The parent has set the number of threads to 1. */
static void start_in_child(void *argument) {
  static char from[1 << 20] = "x", to[sizeof from];
  umemTransfer *transfer;
  (void)argument;
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, sizeof from, NULL, &transfer) ==
         umemOK);
  EXPECT(!memcmp(from, to, sizeof from) && umemTransfer_poll(transfer));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

TEST(a_child_without_threads_copies_at_once) {
  unsigned before = umem_get_threads();
  assert_int_equal(umem_set_threads(1), umemOK);
  child_run(start_in_child, NULL);
  assert_int_equal(umem_set_threads(before), umemOK);
}

/* The servers of the parent do not count in the child, where nobody waits for the transfer. */
static void poll_in_child(void *argument) {
  static char from[small] = "x", to[small];
  umemTransfer *transfer;
  (void)argument;
  EXPECT(umem_set_threads(2) == umemOK);
  EXPECT(umem_start(&ram, (uintptr_t)from, &ram, (uintptr_t)to, small, NULL, &transfer) == umemOK);
  for (int i = 0; i < 50000 && !umemTransfer_poll(transfer); i++) usleep(100);
  EXPECT(umemTransfer_poll(transfer) && !memcmp(from, to, small));
  EXPECT(umemTransfer_release(transfer) == umemOK);
}

SLOW_TEST(a_child_has_servers_of_its_own) {
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(small);
  await_reads(1);
  if (!UNDER_THREAD_SANITIZER) child_run(poll_in_child, NULL);
  hold(false);
}

SLOW_TEST(a_child_has_no_transfers) {
  hold(true);
  SCOPED(release) umemTransfer *transfer = start_slow(small);
  await_reads(1);
  if (!UNDER_THREAD_SANITIZER) child_run(use_in_child, transfer);
  hold(false);
}

/* ---- exit ---- */

static void exit_with_transfers(void *argument) {
  umemTransfer *transfer;
  (void)argument;
  for (int i = 0; i < 50; i++)
    EXPECT(umem_start(&ram, source, &file, target, large, NULL, &transfer) == umemOK);
  exit(0);
}

TEST(exit_waits_for_no_transfer) {
  if (!UNDER_SANITIZER) child_run(exit_with_transfers, NULL);
}

/* Memory that a library takes along when the process ends, as CUDA's runtime does. */
static void *doomed;
static bool exits; /* atomic */

static void take_along(void) { munmap(doomed, large); }
static void note_exit(void) { __atomic_store_n(&exits, true, __ATOMIC_RELEASE); }

/* Reads when the process exits, and not at once. */
static void late_copy_to(umemVirtual *ctx UNUSED, uintptr_t src_adr UNUSED,
                         umemVirtual *that UNUSED, uintptr_t dst_adr, size_t nbytes) {
  __atomic_fetch_add(&slow.reads, 1, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&exits, __ATOMIC_ACQUIRE)) usleep(100);
  usleep(20000);
  memset((void *)dst_adr, 7, nbytes);
}

static struct umemVtbl const late_vtbl = {.alloc = slow_alloc, .copy_to = late_copy_to};

/* Transfers have begun before that library is used for the first time. */
static void exit_while_reading(void *argument UNUSED) {
  umem_set_threads(4);      /* a child has one */
  signal(SIGSEGV, SIG_DFL); /* not that of the tests */
  doomed = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT(doomed != MAP_FAILED && umemTransfer_release(start(large)) == umemOK);
  EXPECT(atexit(take_along) == 0);
  umem_exit_hook();
  slow.super.vptr = &late_vtbl;
  start_slow_at((uintptr_t)doomed, small);
  await_reads(1);
  EXPECT(atexit(note_exit) == 0);
  exit(0);
}

SLOW_TEST(exit_ends_transfers_before_their_memory_goes) {
  if (!UNDER_SANITIZER) child_run(exit_while_reading, NULL);
}
