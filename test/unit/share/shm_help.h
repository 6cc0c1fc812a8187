/* shm_help.h - what the tests of shared memory share. */
#ifndef UMEM_TEST_SHM_HELP_H
#define UMEM_TEST_SHM_HELP_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <umem.h>
#include <unistd.h>

#include "settings.h"
#include "cases.h"

#define MiB ((size_t)1 << 20)

static uint64_t random_state = 88172645463325252u;
static inline uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}
static inline uint64_t below(uint64_t end) { return next_random() % end; }

/* A name of this process. */
static inline char const *own_name(char const *what) {
  static char name[64];
  snprintf(name, sizeof name, "umem-test-%ld-%s", (long)getpid(), what);
  return name;
}

/* A segment without a name, of which memory is taken when it is used. */
static inline void open_small(umemShm *ctx, size_t capacity, size_t blocks) {
  umemShmOptions options = UMEM_SHM_OPTIONS_INIT;
  options.capacity = capacity;
  options.blocks = blocks;
  options.sparse = 1;
  assert_int_equal(umemShm_ctor_with(ctx, NULL, &options), umemOK);
}

/* The status of a child. */
static inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void expect_failure(void *ctx, umemStatusType type, char const *words) {
  assert_int_equal(umem_thread_status(), type);
  if (!strstr(umem_thread_message(), words))
    fail_msg("\"%s\" lacks \"%s\"", umem_thread_message(), words);
  umem_thread_clear();
  if (ctx) umem_clear_status(ctx);
}

#endif
