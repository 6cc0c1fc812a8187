/* shm_child.h - what the tests of shared memory do in a child. */
#ifndef UMEM_TEST_SHM_CHILD_H
#define UMEM_TEST_SHM_CHILD_H

#include "shm_help.h"

enum { not_permitted = 77 };

/* Where Linux has the file of a name. */
static inline char const *path_of(char const *name) {
  static char path[512];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  return path;
}

/* In a child: ends it with a message if the condition does not hold. */
#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (condition) break;                                                                          \
    fprintf(stderr, "line %d: not %s; the last message is \"%s\"\n", __LINE__, #condition,         \
            umem_thread_message());                                                                \
    _exit(1);                                                                                      \
  } while (0)

/* Runs in a child. False if the system does not permit it. */
static inline bool in_child(void (*run)(void)) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    run();
    _exit(0);
  }
  int status = wait_for(child);
  if (status == not_permitted) return false;
  assert_int_equal(status, 0);
  return true;
}

#endif
