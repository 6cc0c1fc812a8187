/* descriptors.h - what files this process has open, for tests of what leaves some open. */
#pragma once

#include <dirent.h>

#include "cases.h"

/* How many descriptors, and a few more: the same number each time. */
static inline int open_descriptors(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/fd");
  assert_non_null(folder);
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}
