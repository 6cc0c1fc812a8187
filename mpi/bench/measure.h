/* measure.h - what the benchmarks of one-sided communication share: times of umem and of bare MPI
 * in turns. */
#ifndef UMEM_BENCH_MPI_MEASURE_H
#define UMEM_BENCH_MPI_MEASURE_H

#include "../test/ranks.h"

#include <time.h>

enum { turns = 15 };

/* Seconds of a call, of umem and of MPI, and the ratio: the middle ones of the turns. */
typedef struct Measured {
  double own, other, ratio;
} Measured;

static inline double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline double seconds(void (*call)(size_t), size_t nbytes, int calls) {
  double start = now();
  for (int i = 0; i < calls; i++) call(nbytes);
  return (now() - start) / calls;
}

static inline int ascending(void const *a, void const *b) {
  double one = *(double const *)a, other = *(double const *)b;
  return (one > other) - (one < other);
}

static inline double middle(double *numbers) {
  qsort(numbers, turns, sizeof *numbers, ascending);
  return numbers[turns / 2];
}

/* So many calls a turn, or fewer: over a network each takes longer than in shared memory. */
static inline int calls_of(void (*call)(size_t), size_t nbytes, int most) {
  static double const most_seconds = 0.02;     /* of a turn */
  double const one = seconds(call, nbytes, 3); /* also the first ones, which make connections */
  double const fit = most_seconds / one;
  return fit > most ? most : fit < 1 ? 1 : (int)fit;
}

static inline Measured compare(void (*umem)(size_t), void (*mpi)(size_t), size_t nbytes, int most) {
  double own[turns], other[turns], ratios[turns];
  int const calls = calls_of(mpi, nbytes, most), own_calls = calls_of(umem, nbytes, most);
  for (int turn = -1; turn < turns; turn++) { /* the first is not counted */
    double u = seconds(umem, nbytes, own_calls), m = seconds(mpi, nbytes, calls);
    if (turn < 0) continue;
    own[turn] = u;
    other[turn] = m;
    ratios[turn] = u / m;
  }
  return (Measured){middle(own), middle(other), middle(ratios)};
}

/* Starts MPI without threads, and umem's window of the kind that the word says. */
static inline umemMpiMemory start_bench(int *argc, char ***argv, char const *word, size_t part) {
  int level;
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = part;
  options.memory = !strcmp(word, "create")     ? umemMpiMemoryCreate
                   : !strcmp(word, "allocate") ? umemMpiMemoryAllocate
                                               : umemMpiMemoryShared;
  MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(ranks > 1);
  machines();
  umemHost_ctor(&host);
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
  return options.memory;
}

/* A window as umem makes it, locked. On several machines MPI shares none: then as MPI allocates
 * it. */
static inline MPI_Win make_bare(umemMpiMemory memory, size_t part) {
  unsigned char *base = NULL;
  MPI_Aint const size = (MPI_Aint)part;
  MPI_Comm const world = MPI_COMM_WORLD;
  MPI_Info info;
  MPI_Win bare = MPI_WIN_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (memory == umemMpiMemoryShared && !is_apart())
    MPI_Win_allocate_shared(size, 1, info, world, &base, &bare);
  else if (memory != umemMpiMemoryCreate)
    MPI_Win_allocate(size, 1, info, world, &base, &bare);
  else
    MPI_Win_create(base = malloc(part), size, 1, info, world, &bare);
  MPI_Info_free(&info);
  CHECK(base);
  memset(base, 1, part);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, bare);
  return bare;
}

/* The MPI's name and version, in one line. */
static inline char const *mpi_version(char version[MPI_MAX_LIBRARY_VERSION_STRING]) {
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n,")] = 0;
  for (char *c = version; *c; c++)
    if (*c == '\t') *c = ' ';
  return version;
}

#endif
