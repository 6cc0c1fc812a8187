/* memory_left.c - how much memory the system has left, from files that are made up, and how often
 * it is asked. */

#include "base/system.h"
#include "unit/system_files.h"

static uint64_t const MiB = 1 << 20;

/* A machine with room, and no group. */
static void begin_machine(void **state UNUSED) {
  begin_system();
  write_there("/proc/meminfo", "MemFree: 1024 kB\nMemAvailable: 102400 kB\nSwapFree: 51200 kB\n");
}

static void end_machine(void **state UNUSED) {
  if (system_folder) end_system();
}

#define TEST(name) TEST_CASE_WITH(name, begin_machine, end_machine)

static void expect_left(uint64_t available, uint64_t left) {
  assert_int_equal(umemMemory_available() / MiB, available);
  assert_int_equal(umemMemory_left() / MiB, left);
}

TEST(the_machine_has_what_is_available_and_swap) {
  expect_left(100, 150);
  write_there("/proc/meminfo", "MemFree: 1024 kB\n");
  assert_true(umemMemory_left() == UINT64_MAX && umemMemory_available() == UINT64_MAX);
  end_system();
  uint64_t left = 0;
  bool fits = false; /* other programs take and free memory between the two */
  for (int tries = 0; tries < 100 && !fits; tries++)
    fits = umemMemory_available() <= umemMemory_left();
  assert_true(fits);
  assert_true(umemMemory_left() < UINT64_MAX);
  assert_false(umemMemory_has(UINT64_C(1) << 60, &left));
  assert_true(left && left < UINT64_C(1) << 60);
}

TEST(a_group_limits_memory_and_swap_apart) {
  write_there("/proc/self/cgroup", "0::/outer/inner\n");
  write_there("/sys/fs/cgroup/outer/inner/memory.max", "62914560\n");
  write_there("/sys/fs/cgroup/outer/inner/memory.current", "31457280\n");
  expect_left(30, 80); /* the machine's swap */
  write_there("/sys/fs/cgroup/outer/inner/memory.swap.max", "20971520\n");
  write_there("/sys/fs/cgroup/outer/inner/memory.swap.current", "10485760\n");
  expect_left(30, 40);
  write_there("/sys/fs/cgroup/outer/memory.swap.max", "0\n");
  write_there("/sys/fs/cgroup/outer/memory.swap.current", "0\n");
  expect_left(30, 30); /* the group around has no swap */
  write_there("/sys/fs/cgroup/outer/inner/memory.stat",
              "inactive_file 1048576\nactive_file 2097152\nslab_reclaimable 4194304\n");
  expect_left(37, 37);
  write_there("/sys/fs/cgroup/outer/inner/memory.high", "52428800\n");
  expect_left(27, 27); /* above it all processes of the group wait */
  write_there("/sys/fs/cgroup/outer/inner/memory.current", "99999999\n");
  expect_left(0, 0);
}

TEST(an_old_group_limits_the_sum_of_memory_and_swap) {
  write_there("/proc/self/cgroup", "5:cpu:/\n4:memory:/a/b\n0::/\n");
  write_there("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "62914560\n");
  write_there("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "31457280\n");
  expect_left(30, 80);
  write_there("/sys/fs/cgroup/memory/a/memory.memsw.limit_in_bytes", "83886080\n");
  write_there("/sys/fs/cgroup/memory/a/memory.memsw.usage_in_bytes", "41943040\n");
  expect_left(30, 40);
  write_there("/sys/fs/cgroup/memory/a/memory.stat",
              "inactive_file 9999999\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
  expect_left(32, 42);
  write_there("/sys/fs/cgroup/memory/a/memory.memsw.limit_in_bytes", "52428800\n");
  expect_left(12, 12);
}

static void wait_until_forgotten(void) {
  struct timespec const pause = {0, 150000000};
  nanosleep(&pause, NULL);
}

static bool has(uint64_t mebibytes) {
  uint64_t left;
  return umemMemory_has(mebibytes * MiB, &left);
}

/* A request costs no reading of files while what was left suffices, and none is granted more. */
TEST(few_requests_read_files) {
  wait_until_forgotten();
  assert_true(has(40));
  unsigned before = system_opened;
  assert_true(has(40) && has(40) && has(30)); /* all of 150 */
  assert_int_equal(system_opened, before);
  assert_true(has(40)); /* the first are freed, or were never touched: the system knows */
  assert_true(system_opened > before);
  before = system_opened;
  for (int i = 0; i < 1000; i++) assert_true(has(3)); /* less than is compared */
  assert_int_equal(system_opened, before);
  assert_false(has(151));
  assert_true(has(150));
  assert_true(has(40));
  write_there("/proc/meminfo", "MemAvailable: 10240 kB\nSwapFree: 0 kB\n");
  wait_until_forgotten();
  assert_false(has(40)); /* what the system has said before counts no longer */
}
