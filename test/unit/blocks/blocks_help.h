/* blocks_help.h - what the tests of umem/blocks.h share: arrays in RAM, and a context whose copies
 * wait for the test. */
#pragma once

#include "unit/tasks.h"
#include "workers.h"

/* How many threads a test may use: its initial state; without one 4. */
enum { one_thread = 1, two_threads, three_threads };

static inline void set_up(void **state) {
  assert_ok(umem_set_threads(*state ? (unsigned)(uintptr_t)*state : 4));
}

static inline void tear_down(void **state UNUSED) { assert_ok(umem_set_threads(0)); }

/* That the last failure of the thread is this one; forgets it. */
static inline void expect_failure_at(umemStatusType type, char const *words, int line) {
  if (umem_thread_status() != type || !strstr(umem_thread_message(), words))
    fail_msg("line %d: %s, \"%s\"; expected %s with \"%s\"", line,
             umem_get_status_name(umem_thread_status()), umem_thread_message(),
             umem_get_status_name(type), words);
  umem_thread_clear();
}
#define expect_failure(type, words) expect_failure_at((type), (words), __LINE__)

/* ---- a context whose copies wait ---- */

/* RAM that the CPU is said not to address. Counts of copies out of it (reads) and into it (writes)
 * that have begun; the n-th waits until the test has opened the gate for n. */
typedef struct Gate {
  umemVirtual super;
  umemHost host;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  unsigned long reads, writes;           /* begun */
  unsigned long open_reads, open_writes; /* may go on */
  unsigned long fail_read, fail_write;   /* this one fails; 0: none */
  bool all_fail;                         /* all do */
  uintptr_t late;                        /* a read from here begins when another one has ended */
  unsigned long ended;                   /* reads */
  pthread_t reader, writer;              /* who has done the last */
  bool hears_signals;                    /* the last thread was one that runs signal handlers */
} Gate;

static inline uintptr_t gate_alloc(umemVirtual *ctx, size_t nbytes) {
  uintptr_t adr = (uintptr_t)malloc(nbytes);
  if (!adr) umemVirtual_fail(ctx, umemMemoryError, "no memory");
  return adr;
}

static inline void gate_free(umemVirtual *ctx UNUSED, uintptr_t adr) { free((void *)adr); }

/* Whether the copy may go on. */
static inline bool gate_pass(Gate *gate, unsigned long *begun, unsigned long const *open,
                             unsigned long const *failing, pthread_t *who) {
  pthread_mutex_lock(&gate->mutex);
  unsigned long number = ++*begun;
  *who = pthread_self();
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  gate->hears_signals = !sigismember(&blocked, SIGUSR1);
  pthread_cond_broadcast(&gate->changed);
  while (number > *open) pthread_cond_wait(&gate->changed, &gate->mutex);
  bool fails = number == *failing || gate->all_fail;
  pthread_mutex_unlock(&gate->mutex);
  if (fails) umemVirtual_fail(gate, umemIOError, "the gate is broken");
  return !fails;
}

static inline void gate_copy_to(umemVirtual *ctx, uintptr_t src, umemVirtual *that, uintptr_t dst,
                                size_t nbytes) {
  Gate *gate = (Gate *)ctx;
  (void)that;
  pthread_mutex_lock(&gate->mutex);
  while (src == gate->late && !gate->ended) pthread_cond_wait(&gate->changed, &gate->mutex);
  pthread_mutex_unlock(&gate->mutex);
  if (gate_pass(gate, &gate->reads, &gate->open_reads, &gate->fail_read, &gate->reader))
    memcpy((void *)dst, (void *)src, nbytes);
  pthread_mutex_lock(&gate->mutex);
  gate->ended++;
  pthread_cond_broadcast(&gate->changed);
  pthread_mutex_unlock(&gate->mutex);
}

static inline void gate_copy_from(umemVirtual *ctx, uintptr_t dst, umemVirtual *that, uintptr_t src,
                                  size_t nbytes) {
  Gate *gate = (Gate *)ctx;
  (void)that;
  if (gate_pass(gate, &gate->writes, &gate->open_writes, &gate->fail_write, &gate->writer))
    memcpy((void *)dst, (void *)src, nbytes);
}

static inline void gate_dtor(umemVirtual *ctx) {
  Gate *gate = (Gate *)ctx;
  pthread_cond_destroy(&gate->changed);
  pthread_mutex_destroy(&gate->mutex);
  umemVirtual_dtor(ctx);
  umem_dtor(&gate->host);
}

/* As at first: everything passes. */
static inline void gate_reset(Gate *gate) {
  gate->reads = gate->writes = gate->ended = gate->fail_read = gate->fail_write = 0;
  gate->open_reads = gate->open_writes = SIZE_MAX;
}

static inline void gate_ctor(Gate *gate) {
  static struct umemVtbl const vtbl = {.dtor = gate_dtor,
                                       .alloc = gate_alloc,
                                       .free = gate_free,
                                       .copy_to = gate_copy_to,
                                       .copy_from = gate_copy_from};
  memset(gate, 0, sizeof *gate);
  assert_ok(umemHost_ctor(&gate->host));
  umemVirtual_ctor(&gate->super, &gate->host);
  gate->super.vptr = &vtbl;
  gate->super.name = "Gate";
  gate->super.capabilities |= umemConcurrent;
  pthread_mutex_init(&gate->mutex, NULL);
  pthread_cond_init(&gate->changed, NULL);
  gate_reset(gate);
}

/* Lets so many reads and writes pass, in all. */
static inline void gate_open(Gate *gate, unsigned long reads, unsigned long writes) {
  pthread_mutex_lock(&gate->mutex);
  gate->open_reads = reads;
  gate->open_writes = writes;
  pthread_cond_broadcast(&gate->changed);
  pthread_mutex_unlock(&gate->mutex);
}

/* Waits until so many have begun, at most `seconds`. Whether they have. */
static inline bool gate_await(Gate *gate, unsigned long reads, unsigned long writes) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += seconds;
  int error = 0;
  pthread_mutex_lock(&gate->mutex);
  while (!error && (gate->reads < reads || gate->writes < writes))
    error = pthread_cond_timedwait(&gate->changed, &gate->mutex, &end);
  bool come = gate->reads >= reads && gate->writes >= writes;
  pthread_mutex_unlock(&gate->mutex);
  return come;
}

static inline unsigned long gate_reads(Gate *gate) {
  pthread_mutex_lock(&gate->mutex);
  unsigned long reads = gate->reads;
  pthread_mutex_unlock(&gate->mutex);
  return reads;
}

static inline unsigned long gate_writes(Gate *gate) {
  pthread_mutex_lock(&gate->mutex);
  unsigned long writes = gate->writes;
  pthread_mutex_unlock(&gate->mutex);
  return writes;
}
