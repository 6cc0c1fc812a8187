/* tasks.h - how many threads this process has, for tests of when threads come and go. */
#pragma once

#include <unistd.h>

#include "../sanitizer.h"
#include "../settings.h"
#include "../temporary.h"

/* Of a program that has started and joined others. The sanitizer has one of its own then, and so
 * has qemu. */
static inline unsigned tasks_alone(void) {
  return 1 + UNDER_THREAD_SANITIZER + (setting_qemu() ? 1 : 0);
}

enum { seconds = 60 }; /* after which something is taken to hang */

static inline unsigned count_tasks(void) { return (unsigned)count_entries("/proc/self/task", ""); }

/* The system forgets a thread a little later than pthread_join. */
static inline bool task_count_becomes(unsigned count) {
  for (int i = 0; i < seconds * 1000; i++) {
    if (count_tasks() == count) return true;
    usleep(1000);
  }
  return false;
}
