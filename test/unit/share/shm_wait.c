/* shm_wait.c - a Shm of many processes at a time: those that die with its lock, that stop, and that
 * make one name. */
#include "shm_help.h"
#include "workers.h"

#include <linux/futex.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "share/shm_segment.h"
#include "temporary.h"
#include "wrap.h"

/* ---- the lock ---- */

static umemShmHeader *header;

static void map_header(umemShm *ctx) {
  header = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, umemShm_descriptor(ctx), 0);
  assert_true(header != MAP_FAILED);
}

static uint64_t own_mark(void) { return umemShmOwner_mark(umemShmOwner_self(), false); }

static void die_with_the_lock(void) {
  _exit(umemShmLock_acquire(&header->lock, own_mark(), -1, 1000) == umemShmLockRefused);
}

/* The second one dies while it would repair. */
TEST_CASE(owners_may_die_one_after_the_other) {
  open_small(&shm, MiB, 8);
  map_header(&shm);
  uintptr_t adr = umem_alloc(&shm, 100);
  for (int deaths = 1; deaths < 4; deaths++) {
    for (int i = 0; i < deaths; i++) assert_true(in_child(die_with_the_lock));
    uintptr_t other = umem_alloc(&shm, 100);
    assert_true(other && other != adr);
    umem_free(&shm, other);
    assert_ok(umem_get_status(&shm));
    assert_int_equal(umemShm_blocks(&shm, NULL, 0), 1);
    assert_true(header->lock.holder == 0);
  }
  munmap(header, 4096);
  umem_dtor(&shm);
}

/* ---- processes that cannot see each other ---- */

static umemShm shared;

/* In a child: becomes the first process of a PID namespace of its own. */
static void enter_container(void) {
  if (unshare(CLONE_NEWPID) != 0) _exit(child_not_permitted);
  pid_t first = fork();
  if (first < 0) _exit(child_not_permitted);
  if (first) _exit(child_wait(first));
}

static void die_in_a_container(void) {
  enter_container();
  EXPECT(umemShm_adopt(&shm, dup(umemShm_descriptor(&shared))) == umemOK);
  EXPECT(umem_alloc(&shm, 100));
  umemShmOwner self = umemShmOwner_self();
  EXPECT(umemShmLock_acquire(&header->lock, umemShmOwner_mark(self, true), -1, 1000) ==
         umemShmLockTaken);
  kill(getpid(), SIGKILL);
  _exit(0);
}

/* The kernel shows that it has ended. */
TEST_CASE(a_death_in_another_container_is_noticed) {
  open_small(&shared, MiB, 8);
  map_header(&shared);
  if (!in_child(die_in_a_container)) skip();
  assert_true(header->lock.holder != 0);
  assert_true(umem_alloc(&shared, 100) != 0);
  assert_true(header->lock.holder == 0);
  assert_int_equal(umemShm_blocks(&shared, NULL, 0), 2);
  munmap(header, 4096);
  umem_dtor(&shared);
}

static int gate[2];

static void stay_in_a_container(void) {
  char byte;
  enter_container();
  EXPECT(umemShm_adopt(&shm, dup(umemShm_descriptor(&shared))) == umemOK);
  EXPECT(umemShmLock_acquire(&header->lock, umemShmOwner_mark(umemShmOwner_self(), true), -1,
                             1000) == umemShmLockTaken);
  EXPECT(write(gate[1], "r", 1) == 1);
  EXPECT(read(gate[1], &byte, 1) == 1);
  umemShmLock_release(&header->lock, umemShmOwner_mark(umemShmOwner_self(), true));
}

/* And while it lives, nobody takes its lock. */
TEST_CASE(a_live_process_in_another_container_keeps_the_lock) {
  char byte;
  open_small(&shared, MiB, 8);
  map_header(&shared);
  sockets(SOCK_STREAM, gate);
  pid_t child = fork();
  if (!child) {
    stay_in_a_container();
    _exit(0);
  }
  close(gate[1]);
  bool permitted = read(gate[0], &byte, 1) == 1;
  if (permitted) {
    uint64_t holder = header->lock.holder;
    expect_no_block(&shared, umem_alloc(&shared, 100), umemRuntimeError, "for 2000 ms");
    assert_true(header->lock.holder == holder);
    assert_int_equal(write(gate[0], "e", 1), 1);
  }
  assert_int_equal(child_wait(child), permitted ? 0 : child_not_permitted);
  if (permitted) assert_true(umem_alloc(&shared, 100) != 0);
  close(gate[0]);
  munmap(header, 4096);
  umem_dtor(&shared);
  if (!permitted) skip();
}

/* ---- a process that does not go on ---- */

/* The linker sends calls that wait to these: they let no time pass. */
static bool skips_time; /* false: calls wait */
static long skipped;    /* milliseconds */
static unsigned long pauses;

WRAPPED(long, syscall, (long number, ...)) {
  va_list arguments;
  va_start(arguments, number);
  uint32_t *word = va_arg(arguments, uint32_t *);
  int what = va_arg(arguments, int);
  uint32_t value = va_arg(arguments, uint32_t);
  struct timespec *time = va_arg(arguments, struct timespec *);
  va_end(arguments);
  if (number != SYS_futex || what != FUTEX_WAIT || !skips_time)
    return __real_syscall(number, word, what, value, time, (void *)NULL, 0);
  assert_true(*word == value);
  skipped += time->tv_sec * 1000 + time->tv_nsec / 1000000;
  errno = ETIMEDOUT;
  return -1;
}

WRAPPED(int, clock_gettime, (clockid_t clock, struct timespec *now)) {
  int result = __real_clock_gettime(clock, now);
  now->tv_sec += skipped / 1000;
  now->tv_nsec += skipped % 1000 * 1000000;
  return result;
}

WRAPPED(int, nanosleep, (struct timespec const *time, struct timespec *left)) {
  if (!skips_time) return __real_nanosleep(time, left);
  pauses++;
  return 0;
}

/* Starts a child that does something and then stands still; returns when it does. */
static pid_t start_and_stop(void (*run)(void)) {
  int ends[2];
  char ready;
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    run();
    if (write(ends[1], "r", 1) == 1) pause();
    _exit(1);
  }
  close(ends[1]);
  assert_int_equal(read(ends[0], &ready, 1), 1);
  close(ends[0]);
  return child;
}

static void end_child(pid_t child) {
  kill(child, SIGKILL);
  assert_int_equal(child_wait(child), -SIGKILL);
}

static void take_the_lock(void) {
  EXPECT(umemShmLock_acquire(&header->lock, own_mark(), -1, 1000) == umemShmLockTaken);
}

static void expect_two_seconds(umemShm *ctx) {
  assert_in_range(skipped, 1900, 2100); /* some time passes by itself */
  skipped = 0;
  expect_failure(ctx, umemRuntimeError, "for 2000 ms it was held by a process that is stopped");
}

/* Calls that need the tables fail after two seconds; all others do not wait. */
TEST_CASE(a_stopped_process_holds_nobody_for_ever) {
  umemFound found = UMEM_FOUND_INIT;
  umemHandle handle;
  char text[512];
  umemHost_ctor(&host);
  open_small(&shm, MiB, 8);
  map_header(&shm);
  uintptr_t adr = umem_alloc(&shm, 100);
  pid_t child = start_and_stop(take_the_lock);
  assert_true(umem_find(adr + 99, &found) && found.adr == adr && found.nbytes == 100);
  assert_false(umem_find_in(&shm, adr + 100, NULL));
  info_of(&shm);
  umem_describe_contexts(text, sizeof text);
  assert_non_null(strstr(text, "Shm 128 bytes"));
  assert_ok(umem_share(&shm, adr, 100, &handle));
  assert_true(umem_attach(&handle, &host) == adr);
  assert_ok(umem_detach(&host, adr));
  skips_time = true;
  assert_true(umem_alloc(&shm, 10) == 0);
  expect_two_seconds(&shm);
  umem_free(&shm, adr);
  expect_two_seconds(&shm);
  assert_true(umem_realloc(&shm, adr, 100, 200) == 0);
  expect_two_seconds(&shm);
  assert_int_equal(umemShm_blocks(&shm, NULL, 0), 0);
  expect_two_seconds(&shm);
  assert_int_equal(umemShm_reclaim(&shm, 0), 0);
  expect_two_seconds(&shm);
  assert_int_equal(umemShm_own(&shm, adr), umemRuntimeError);
  expect_two_seconds(&shm);
  skips_time = false;
  end_child(child);
  umem_free(&shm, adr); /* it was live all the time */
  assert_ok(umem_get_status(&shm));
  munmap(header, 4096);
  DESTRUCT(&shm, &host);
}

/* Whatever stands in the lock, no call waits longer than two seconds, and all is well when the word
 * is gone. */
TEST_CASE(nonsense_in_the_lock_stops_nobody_for_ever) {
  open_small(&shm, MiB, 8);
  map_header(&shm);
  uint64_t const self = own_mark(), init = umemShmOwner_mark((umemShmOwner){1, 1}, false);
  uint64_t const words[] = {1,
                            UINT64_MAX,
                            UINT32_MAX,
                            self,
                            init,
                            self ^ UINT64_C(1) << 50,
                            self & ~UINT64_C(0x7fffff),
                            (uint64_t)(uintptr_t)&shm,
                            0x80000000,
                            UINT64_C(1) << 63};
  for (unsigned i = 0; i < 200; i++) {
    uint64_t word = i < sizeof words / sizeof *words ? words[i] : next_random();
    __atomic_store_n(&header->lock.holder, word, __ATOMIC_SEQ_CST);
    __atomic_store_n(&header->lock.waiters, (uint32_t)next_random(), __ATOMIC_SEQ_CST);
    skips_time = true;
    skipped = 0;
    uintptr_t adr = umem_alloc(&shm, 100);
    assert_in_range(skipped, 0, 2100);
    skips_time = false;
    if (!adr) expect_two_seconds(&shm);
    __atomic_store_n(&header->lock.holder, 0, __ATOMIC_SEQ_CST);
    if (!adr) adr = umem_alloc(&shm, 100);
    assert_true(adr);
    umem_free(&shm, adr);
    assert_true(header->lock.holder == 0);
    assert_ok(umem_get_status(&shm));
  }
  munmap(header, 4096);
  umem_dtor(&shm);
}

/* Someone else's word is not removed by one who has lost the lock. */
TEST_CASE(a_lock_that_was_lost_is_not_released) {
  umemShmLock lock = {.holder = 0};
  assert_int_equal(umemShmLock_acquire(&lock, 5, -1, 0), umemShmLockTaken);
  lock.holder = 7;
  umemShmLock_release(&lock, 5);
  assert_true(lock.holder == 7);
  assert_int_equal(umemShmLock_acquire(&lock, 5, -1, 0), umemShmLockRefused);
}

/* A release wakes who waits, and calls the system no more for waiters that are gone. */
TEST_CASE(a_release_forgets_the_waiters) {
  umemShmLock lock = {.holder = 0};
  assert_int_equal(umemShmLock_acquire(&lock, 5, -1, 0), umemShmLockTaken);
  lock.waiters = 1;
  umemShmLock_release(&lock, 5);
  assert_true(lock.holder == 0);
  assert_int_equal(lock.waiters, 0);
}

/* Waiters sleep, and a release wakes each of them in its turn. */
static umemShmLock contended;
static unsigned counted;

static void *count_up(void *mark) {
  for (unsigned i = 0; i < 2000; i++) {
    if (umemShmLock_acquire(&contended, (uint64_t)(uintptr_t)mark, -1, 60000) != umemShmLockTaken)
      return mark;
    counted++; /* under the lock */
    umemShmLock_release(&contended, (uint64_t)(uintptr_t)mark);
  }
  return NULL;
}

TEST_CASE(threads_take_turns) {
  enum { threads = 4 };
  uint64_t mark = own_mark(); /* all are of this process */
  run_at_once(threads, count_up, (void *)(uintptr_t)mark, 0);
  assert_int_equal(counted, threads * 2000);
  assert_true(contended.holder == 0);
}

/* Of the segment, for its makers, too. */
static char name[128];

static void lock_the_file(void) {
  int fd = open(path_of(name), O_CREAT | O_RDWR, 0600);
  EXPECT(fd >= 0 && flock(fd, LOCK_EX) == 0);
}

/* A name that another process is about to make, and does not. */
TEST_CASE(a_name_that_is_not_completed_is_an_error) {
  temporary_word(name, sizeof name, "stopped");
  pid_t child = start_and_stop(lock_the_file);
  skips_time = true;
  assert_int_equal(umemShm_ctor(&shm, name, MiB), umemIOError);
  skips_time = false;
  expect_failure(NULL, umemIOError, "cannot lock shared memory /umem-test-");
  assert_int_equal(pauses, 30000); /* of a millisecond */
  end_child(child);
  assert_ok(umemShm_ctor(&shm, name, MiB));
  umem_dtor(&shm);
  umemShm_remove(name);
}

/* ---- many processes at one name ---- */

static pid_t start_maker(int const ends[2]) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child) return child;
  char one;
  close(ends[1]);
  if (read(ends[0], &one, 1) != 0) _exit(2); /* until the parent closes its end */
  if (umemShm_ctor(&shm, name, MiB) != umemOK || !umem_alloc(&shm, 100)) {
    fprintf(stderr, "%s\n", umem_thread_message());
    _exit(1);
  }
  umem_dtor(&shm);
  _exit(0);
}

/* One makes the segment, and the others wait until it is whole. */
TEST_CASE(processes_that_make_a_name_at_once_have_one_segment) {
  enum { makers = 6 };
  unsigned const rounds = setting_small() ? 10 : 60;
  temporary_word(name, sizeof name, "together");
  for (unsigned round = 0; round < rounds; round++) {
    pid_t child[makers];
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    for (int i = 0; i < makers; i++) child[i] = start_maker(ends);
    close(ends[1]); /* now */
    close(ends[0]);
    for (int i = 0; i < makers; i++) assert_int_equal(child_wait(child[i]), 0);
    assert_ok(umemShm_ctor(&shm, name, 0));
    assert_int_equal(umemShm_blocks(&shm, NULL, 0), makers);
    assert_ok(umemShm_remove(name));
    umem_dtor(&shm);
  }
}

/* Whatever a maker has left when it is killed, the next one makes the segment of it, with its own
 * size. */
TEST_CASE(a_maker_that_is_killed_bars_no_name) {
  unsigned const rounds = setting_small() ? 50 : 400;
  unsigned left = 0, whole = 0;
  temporary_word(name, sizeof name, "killed");
  for (unsigned round = 0; round < rounds; round++) {
    struct stat st;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      umemShm_ctor(&shm, name, 8 * MiB);
      pause();
    }
    nanosleep(&(struct timespec){0, (long)below(3000000)}, NULL);
    end_child(child);
    if (stat(path_of(name), &st) == 0) left++;
    umemStatusType status = umemShm_ctor(&shm, name, MiB);
    if (status == umemValueError) { /* it was whole */
      umem_thread_clear();
      whole++;
      assert_ok(umemShm_ctor(&shm, name, 8 * MiB));
    } else {
      assert_ok(status);
      assert_true(umem_alloc(&shm, MiB) != 0);
    }
    umem_dtor(&shm);
    assert_ok(umemShm_remove(name));
  }
  print_message("%u names were left, %u of them whole\n", left, whole);
  assert_true(left > 0);
}
