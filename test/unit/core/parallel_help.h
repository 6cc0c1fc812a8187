/* parallel_help.h - a job in pieces that remembers who did what.
 *
 * Where a test needs several threads at a time its pieces wait for each other, which only a test
 * may do: it has set how many there are. */
#pragma once

#include <stdatomic.h>

#include "unit/tasks.h"
#include "workers.h"

enum { pieces_most = 100 };

typedef struct Log {
  pthread_t thread[pieces_most];
  atomic_uint times[pieces_most]; /* that each piece was done; 0 where others have not met it */
  unsigned order[pieces_most];    /* pieces as they began */
  atomic_uint begun;
  unsigned meeting; /* pieces that wait for each other; 0 for none */
} Log;

/* Waits until so many pieces have begun. Whether they did. */
static inline bool meet(Log *log) {
  for (int i = 0; i < seconds * 1000; i++) {
    if (atomic_load(&log->begun) >= log->meeting) return true;
    usleep(1000);
  }
  return false;
}

/* The function of a job; data: a Log. */
static inline void note(void *data, unsigned piece) {
  Log *log = data;
  log->thread[piece] = pthread_self();
  unsigned begun = atomic_fetch_add(&log->begun, 1);
  if (begun < pieces_most) log->order[begun] = piece;
  if (meet(log)) atomic_fetch_add(&log->times[piece], 1);
}

static inline void begin_log(Log *log, unsigned meeting) {
  memset(log, 0, sizeof *log);
  log->meeting = meeting;
}

/* Whether each of the pieces was done once, and no other. */
static inline void expect_done(Log *log, unsigned pieces) {
  for (unsigned i = 0; i < pieces_most; i++)
    assert_int_equal(atomic_load(&log->times[i]), i < pieces);
}

/* Around each test. */
static inline void begin(void **state UNUSED) { assert_ok(umem_set_threads(4)); }

static inline void end(void **state UNUSED) { assert_ok(umem_set_threads(0)); }
