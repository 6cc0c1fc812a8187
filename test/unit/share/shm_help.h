/* shm_help.h - what the tests of shared memory share. */
#pragma once

#include <sys/socket.h>

#include "child.h"
#include "descriptors.h"
#include "failures.h"
#include "settings.h"

/* What most tests open and close, and RAM beside it. */
static umemShm shm;
static umemHost host __attribute__((unused));

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
  umemShmOptions options = {
      .size = sizeof options, .capacity = capacity, .blocks = blocks, .sparse = 1};
  assert_int_equal(umemShm_ctor_with(ctx, NULL, &options), umemOK);
}

/* Where Linux has the file of a name. */
static inline char const *path_of(char const *name) {
  static char path[512];
  snprintf(path, sizeof path, "/dev/shm/%s", name);
  return path;
}

/* A connected pair, which closes on exec. */
static inline void sockets(int kind, int ends[2]) {
  assert_int_equal(socketpair(AF_UNIX, kind | SOCK_CLOEXEC, 0, ends), 0);
}

static inline void close_both(int const ends[2]) {
  close(ends[0]);
  close(ends[1]);
}

static inline void call_in_child(void *run) { (*(void (**)(void))run)(); }

/* Runs in a child. False if the system does not permit it. */
static inline bool in_child(void (*run)(void)) { return child_run(call_in_child, &run); }
