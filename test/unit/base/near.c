/* near.c - which processors are near a device, and threads that run there. */

#include <sys/syscall.h>

#include "unit/near_help.h"

#define NODE "bus/pci/devices/0000:3b:00.0/numa_node"
#define LIST "devices/system/node/node1/cpulist"

static void begin(void **state UNUSED) { near_begin(); }

static void end(void **state UNUSED) { near_end(); }

#define TEST(name) TEST_CASE_WITH(name, begin, end)

static bool find(cpu_set_t *near) { return umemNear_find("0000:3B:00.0", near); }

TEST(what_is_not_known_is_not_near) {
  cpu_set_t near;
  assert_false(find(&near));
  near_write(NODE, "-1\n");
  assert_false(find(&near));
  near_write(NODE, "1\n");
  assert_false(find(&near));
  char const *const bad[] = {"\n", "x", "0x", "0-", "4096", "2-1\n"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    near_write(LIST, bad[i]);
    assert_false(find(&near));
  }
}

TEST(processors_of_the_node_are_near) {
  cpu_set_t near, before, now;
  char list[64];
  int count;
  unsigned first = near_first(&count);
  near_write(NODE, "1\n");
  snprintf(list, sizeof list, "%u,900-902\n", first);
  near_write(LIST, list);
  assert_int_equal(find(&near), count > 1); /* all that there are is nothing to tell */
  if (count < 2) skip();
  assert_true(CPU_ISSET(first, &near) && CPU_ISSET(902, &near) && CPU_COUNT(&near) == 4);
  assert_true(umemNear_enter(&near, &before));
  assert_int_equal(CPU_COUNT(&before), count);
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_true(CPU_COUNT(&now) == 1 && CPU_ISSET(first, &now));
  cpu_set_t again;
  assert_false(umemNear_enter(&near, &again)); /* it is there */
  umemNear_leave(&before);
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_int_equal(CPU_COUNT(&now), count);
}

/* Machines with several nodes are rare: the folder says that the node of this thread has one
 * processor. */
TEST(processors_of_the_own_node_are_near) {
  cpu_set_t near;
  char text[64];
  unsigned processor, node;
  int count;
  unsigned first = near_first(&count);
  assert_false(umemNear_here(&near));
  assert_int_equal(syscall(SYS_getcpu, &processor, &node, NULL), 0);
  near_write_processor(node, first);
  assert_int_equal(umemNear_here(&near), count > 1);
  if (count > 1) assert_true(CPU_COUNT(&near) == 1 && CPU_ISSET(first, &near));
  snprintf(text, sizeof text, "devices/system/node/node%u/cpulist", node);
  near_write(text, "0-1023\n");
  assert_false(umemNear_here(&near)); /* it has all processors */
}

TEST(a_thread_that_may_not_go_there_stays) {
  cpu_set_t near, before, now;
  int count;
  near_first(&count);
  CPU_ZERO(&near);
  CPU_SET(CPU_SETSIZE - 1, &near);
  assert_false(umemNear_enter(&near, &before));
  assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
  assert_int_equal(CPU_COUNT(&now), count);
}
