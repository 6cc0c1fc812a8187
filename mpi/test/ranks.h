/* ranks.h - what the tests of several ranks share. A check that fails ends all ranks. */
#ifndef UMEM_TEST_MPI_RANKS_H
#define UMEM_TEST_MPI_RANKS_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <umem.h>
#include <umem/mpi.h>
#include <unistd.h>

#include "end.h"

extern int rank, ranks; /* of MPI_COMM_WORLD */
extern umemHost host;

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) check_failed(__FILE__, __LINE__, #condition);                                \
  } while (0)
#define CHECK_OK(call) CHECK((call) == umemOK)

_Noreturn static inline void check_failed(char const *file, int line, char const *condition) {
  fprintf(stderr, "%s:%d: rank %d: not %s; the last failure: %s\n", file, line, rank, condition,
          umem_thread_message());
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  abort();
}

/* That the last call recorded a failure of type on ctx (NULL: on none) whose message has words;
 * clears both. */
static inline void expect(void *ctx, umemStatusType type, char const *words) {
  CHECK(umem_thread_status() == type);
  CHECK(strstr(umem_thread_message(), words));
  if (ctx) CHECK(umem_get_status(ctx) == type);
  if (ctx) umem_clear_status(ctx);
  umem_thread_clear();
}

/* The first rank of the machine on which each rank is. The first call is one of all ranks. */
static inline int const *machines(void) {
  static int first[64];
  static bool known;
  if (known) return first;
  MPI_Comm machine;
  int mine = 0;
  CHECK(ranks <= 64);
  CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) ==
        MPI_SUCCESS);
  CHECK(MPI_Allreduce(&rank, &mine, 1, MPI_INT, MPI_MIN, machine) == MPI_SUCCESS);
  CHECK(MPI_Allgather(&mine, 1, MPI_INT, first, 1, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
  CHECK(MPI_Comm_free(&machine) == MPI_SUCCESS);
  known = true;
  return first;
}

/* Whether two ranks are on one machine. */
static inline bool are_neighbours(int one, int other) {
  return machines()[one] == machines()[other];
}

/* Whether the ranks are on several machines. */
static inline bool is_apart(void) {
  for (int r = 0; r < ranks; r++)
    if (!are_neighbours(r, 0)) return true;
  return false;
}

/* Whether the CPU can use the memory of rank r in the window of start_window. */
static inline bool is_shared(int r) {
  return r == rank || (!getenv("UMEM_TEST_MPI_MEMORY") && are_neighbours(r, rank));
}

/* MPI_Barrier that lets other processes run: with more ranks than processors, MPICH's own takes
 * seconds. */
static inline void barrier(void) {
  MPI_Request request;
  int done = 0;
  CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  while (!done) {
    CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    sched_yield();
  }
}

/* Starts MPI, with threads unless the environment forbids them. */
static inline void init_mpi(int *argc, char ***argv) {
  bool const single = getenv("UMEM_TEST_MPI_SINGLE") != NULL;
  int level;
  MPI_Init_thread(argc, argv, single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  machines();
}

/* A barrier that leaves the processors to other ranks. */
static inline void sleep_to_barrier(void) {
  struct timespec const pause = {0, 5000000};
  MPI_Request request;
  int done = 0;
  CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS);
  while (!done) {
    CHECK(MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    nanosleep(&pause, NULL);
  }
}

/* A generator of its own for each rank. */
typedef struct Random {
  uint64_t state;
} Random;

static inline uint64_t next_random(Random *random) {
  random->state += UINT64_C(0x9E3779B97F4A7C15);
  uint64_t z = random->state;
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static inline uint64_t below(Random *random, uint64_t n) { return next_random(random) % n; }

static inline void fill_random(void *bytes, size_t n, uint64_t seed) {
  Random random = {seed};
  for (size_t i = 0; i < n; i++) ((unsigned char *)bytes)[i] = (unsigned char)next_random(&random);
}

/* The window of MPI_COMM_WORLD with what the environment says of memory and progress. */
static inline void start_window(size_t capacity) {
  char const *memory = getenv("UMEM_TEST_MPI_MEMORY"), *progress = getenv("UMEM_TEST_MPI_PROGRESS");
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = capacity;
  if (memory && !strcmp(memory, "create")) options.memory = umemMpiMemoryCreate;
  if (memory && !strcmp(memory, "allocate")) options.memory = umemMpiMemoryAllocate;
  if (progress && !strcmp(progress, "thread")) options.progress = umemMpiProgressThread;
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
}

/* A context for each rank. */
static inline umemMpi *open_all(void) {
  umemMpi *all = calloc((size_t)ranks, sizeof *all);
  CHECK(all);
  for (int r = 0; r < ranks; r++) CHECK_OK(umemMpi_ctor(&all[r], MPI_COMM_WORLD, r));
  return all;
}

static inline void close_all(umemMpi *all) {
  for (int r = 0; r < ranks; r++) {
    CHECK(umem_is_ok(&all[r]));
    umem_dtor(&all[r]);
  }
  free(all);
}

#endif
