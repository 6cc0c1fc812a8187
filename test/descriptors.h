/* descriptors.h - what files this process has open, for tests of what leaves some open. */
#pragma once

#include "temporary.h"

/* How many descriptors, and one more: the same number each time. */
static inline int open_descriptors(void) { return count_entries("/proc/self/fd", ""); }
