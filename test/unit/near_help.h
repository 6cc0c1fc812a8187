/* near_help.h - a folder in place of /sys, in which a device is near some processors. */
#pragma once

#include "cases.h"
#include "base/system.h"
#include "temporary.h"

static char near_root[256];

static inline void near_write(char const *path, char const *text) {
  assert_true(temporary_write(near_root, path, text));
}

/* Says that the node has this processor alone. */
static inline void near_write_processor(unsigned node, unsigned processor) {
  char path[64], list[16];
  snprintf(path, sizeof path, "devices/system/node/node%u/cpulist", node);
  snprintf(list, sizeof list, "%u\n", processor);
  near_write(path, list);
}

static inline void near_begin(void) {
  assert_true(temporary_folder(near_root, sizeof near_root));
  umemNear_read_below(near_root);
}

static inline void near_end(void) {
  umemNear_read_below(NULL);
  temporary_remove(near_root);
}

/* The first processor that this process may use, and how many there are. */
static inline unsigned near_first(int *count) {
  cpu_set_t mine;
  unsigned first = 0;
  assert_int_equal(sched_getaffinity(0, sizeof mine, &mine), 0);
  *count = CPU_COUNT(&mine);
  while (!CPU_ISSET(first, &mine)) first++;
  return first;
}
