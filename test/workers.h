/* workers.h - threads of a test. */
#pragma once

#include <sched.h>

#include "child.h"

static inline pthread_t start_thread(void *(*work)(void *argument), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, work, argument), 0);
  return thread;
}

/* What its work has returned. */
static inline void *join_thread(pthread_t thread) {
  void *result = NULL;
  assert_int_equal(pthread_join(thread, &result), 0);
  return result;
}

/* Starts so many threads that do the work with this argument. */
static inline void start_threads(pthread_t *threads, unsigned count, void *(*work)(void *argument),
                                 void *argument) {
  for (unsigned i = 0; i < count; i++) threads[i] = start_thread(work, argument);
}

/* Whether all have returned what is not NULL. */
static inline bool join_threads(pthread_t const *threads, unsigned count) {
  bool all = true;
  for (unsigned i = 0; i < count; i++) all = join_thread(threads[i]) && all;
  return all;
}

enum { worker_count = 4 };

/* Runs work in so many threads at once, each with its number. Whether all have returned what is not
 * NULL. */
static inline bool in_threads(void *(*work)(void *number)) {
  pthread_t workers[worker_count];
  for (uintptr_t i = 0; i < worker_count; i++) workers[i] = start_thread(work, (void *)i);
  return join_threads(workers, worker_count);
}

enum { threads_at_once = 16 };

/* Calls work in so many threads at once, each with the address of an element of an array; step:
 * bytes from one to the next, 0: one for all. Waits for them, and fails unless all return NULL. */
static inline void run_at_once(unsigned count, void *(*work)(void *element), void *array,
                               size_t step) {
  pthread_t threads[threads_at_once];
  unsigned wrong = 0;
  assert_in_range(count, 1, threads_at_once);
  for (unsigned i = 0; i < count; i++)
    threads[i] = start_thread(work, step ? (char *)array + i * step : array);
  for (unsigned i = 0; i < count; i++) wrong += join_thread(threads[i]) != NULL;
  assert_int_equal(wrong, 0);
}

/* Waits until flag, which is atomic, is set. */
static inline void await(bool const *flag) {
  while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE)) sched_yield();
}
