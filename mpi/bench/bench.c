/* bench.c - contexts of MPI compared with bare MPI, in one run: rank 0 uses the memory of rank 1, which waits.
 *
 *     mpirun -n 2 bench [shared|allocate|create]
 *
 * Each row is measured in turns, umem and MPI alternately, and the middle ratio of the turns counts. Bare MPI uses a
 * window of the same kind, MPI_Put or MPI_Get, and MPI_Win_flush. Writes JSON to stdout. */
#include "../test/ranks.h"

#include <time.h>

int rank, ranks;
umemHost host;

enum { turns = 15, part = 128 << 20, largest = 64 << 20 };
static double const most_seconds = 0.03; /* of a turn: a network takes longer than shared memory */

static umemMpi remote;
static umemPool pool;
static MPI_Win bare;
static unsigned char *buffer;
static uintptr_t block;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- what is compared ---- */

static void umem_put(size_t n) { umem_copy_to(&host, (uintptr_t)buffer, &remote, block, n); }
static void umem_get(size_t n) { umem_copy_to(&remote, block, &host, (uintptr_t)buffer, n); }

static void bare_put(size_t n) {
  MPI_Put(buffer, (int)n, MPI_BYTE, 1, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(1, bare);
}

static void bare_get(size_t n) {
  MPI_Get(buffer, (int)n, MPI_BYTE, 1, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(1, bare);
}

static void umem_allocate(size_t n) { umem_free(&remote, umem_alloc(&remote, n)); }
static void pool_allocate(size_t n) { umem_free(&pool, umem_alloc(&pool, n)); }

/* Two operations for the two calls. */
static void bare_fetch(size_t n) {
  uint64_t one = 1, old;
  (void)n;
  for (int i = 0; i < 2; i++) {
    MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, 1, 0, MPI_SUM, bare);
    MPI_Win_flush(1, bare);
  }
}

static struct {
  char const *name;
  void (*umem)(size_t), (*mpi)(size_t);
  size_t nbytes;
  int calls; /* of one turn */
} const rows[] = {
    {"put, 8 bytes", umem_put, bare_put, 8, 20000},
    {"get, 8 bytes", umem_get, bare_get, 8, 20000},
    {"put, 4 KiB", umem_put, bare_put, 4096, 5000},
    {"get, 4 KiB", umem_get, bare_get, 4096, 5000},
    {"put, 1 MiB", umem_put, bare_put, 1 << 20, 100},
    {"get, 1 MiB", umem_get, bare_get, 1 << 20, 100},
    {"put, 64 MiB", umem_put, bare_put, largest, 3},
    {"get, 64 MiB", umem_get, bare_get, largest, 3},
    {"allocate and free, to two fetch-and-ops", umem_allocate, bare_fetch, 2000, 5000},
    {"the same in a pool", pool_allocate, bare_fetch, 2000, 5000},
    {"allocate and free 16 MiB", umem_allocate, bare_fetch, 16 << 20, 500},
};

/* ---- measuring ---- */

static double seconds(void (*call)(size_t), size_t nbytes, int calls) {
  double start = now();
  for (int i = 0; i < calls; i++) call(nbytes);
  return (now() - start) / calls;
}

static int ascending(void const *a, void const *b) {
  double one = *(double const *)a, other = *(double const *)b;
  return (one > other) - (one < other);
}

static double middle(double *numbers) {
  qsort(numbers, turns, sizeof *numbers, ascending);
  return numbers[turns / 2];
}

/* How many calls a turn has. */
static int calls_of(size_t i) {
  double const one =
      seconds(rows[i].mpi, rows[i].nbytes, 3); /* also the first ones, which make connections */
  double const most = most_seconds / one;
  return most > rows[i].calls ? rows[i].calls : most < 1 ? 1 : (int)most;
}

static void measure(size_t i) {
  double own[turns], other[turns], ratios[turns];
  int const calls = calls_of(i);
  for (int turn = -1; turn < turns; turn++) { /* the first is not counted */
    double u = seconds(rows[i].umem, rows[i].nbytes, calls);
    double m = seconds(rows[i].mpi, rows[i].nbytes, calls);
    if (turn < 0) continue;
    own[turn] = u;
    other[turn] = m;
    ratios[turn] = u / m;
  }
  printf("%s\n  {\"row\": \"%s\", \"umem_us\": %.3f, \"mpi_us\": %.3f, \"time_ratio\": %.3f}",
         i ? "," : "", rows[i].name, middle(own) * 1e6, middle(other) * 1e6, middle(ratios));
  fflush(stdout);
}

/* A window as umem makes it. */
static void make_bare(umemMpiMemory memory) {
  unsigned char *base = NULL;
  MPI_Comm const world = MPI_COMM_WORLD;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  if (memory == umemMpiMemoryShared)
    MPI_Win_allocate_shared(part, 1, info, world, &base, &bare);
  else if (memory == umemMpiMemoryAllocate)
    MPI_Win_allocate(part, 1, info, world, &base, &bare);
  else
    MPI_Win_create(base = malloc(part), part, 1, info, world, &bare);
  MPI_Info_free(&info);
  CHECK(base);
  memset(base, 1, largest);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, bare);
}

static void measure_all(char const *memory) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  version[strcspn(version, "\n,")] = 0;
  for (char *c = version; *c; c++)
    if (*c == '\t') *c = ' ';
  CHECK_OK(umemMpi_ctor(&remote, MPI_COMM_WORLD, 1));
  CHECK_OK(umemPool_ctor(&pool, &remote, NULL));
  block = umem_calloc(&remote, 1, largest);
  buffer = malloc(largest);
  CHECK(block != UINTPTR_MAX && buffer);
  memset(buffer, 2, largest);
  printf("{\"mpi\": \"%s\", \"memory\": \"%s\", \"rows\": [", version, memory);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) measure(i);
  printf("\n]}\n");
  CHECK(umem_is_ok(&remote) && umem_is_ok(&pool));
  umem_dtor(&pool);
  umem_free(&remote, block);
  umem_dtor(&remote);
  free(buffer);
}

int main(int argc, char **argv) {
  int level;
  char const *words = argc > 1 ? argv[1] : "shared";
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = part;
  options.memory = !strcmp(words, "create")     ? umemMpiMemoryCreate
                   : !strcmp(words, "allocate") ? umemMpiMemoryAllocate
                                                : umemMpiMemoryShared;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CHECK(ranks == 2);
  umemHost_ctor(&host);
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
  make_bare(options.memory);
  barrier();
  if (rank == 0) measure_all(words);
  barrier();
  MPI_Win_unlock_all(bare);
  MPI_Win_free(&bare);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  umem_dtor(&host);
  MPI_Finalize();
  return 0;
}
