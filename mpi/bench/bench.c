/* bench.c - contexts of MPI compared with bare MPI, in one run: rank 0 uses the memory of another
 * rank, which waits.
 *
 *     mpirun -n 2 bench [shared|allocate|create [RANK]]     (default: of rank 1; 0: of its own)
 *
 * Each row is measured in turns, umem and MPI alternately, and the middle ratio of the turns
 * counts. Bare MPI uses a window of the same kind, MPI_Put or MPI_Get, and MPI_Win_flush. Writes
 * JSON to stdout. */
#include "measure.h"

int rank, ranks;
umemHost host;

enum { part = 128 << 20, largest = 64 << 20 };

static umemMpi remote;
static umemPool pool;
static MPI_Win bare;
static unsigned char *buffer;
static uintptr_t block;
static int target = 1; /* the other rank */

/* ---- what is compared ---- */

static void umem_put(size_t n) { umem_copy_to(&host, (uintptr_t)buffer, &remote, block, n); }
static void umem_get(size_t n) { umem_copy_to(&remote, block, &host, (uintptr_t)buffer, n); }

static void bare_put(size_t n) {
  MPI_Put(buffer, (int)n, MPI_BYTE, target, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(target, bare);
}

static void bare_get(size_t n) {
  MPI_Get(buffer, (int)n, MPI_BYTE, target, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(target, bare);
}

static void umem_allocate(size_t n) { umem_free(&remote, umem_alloc(&remote, n)); }
static void pool_allocate(size_t n) { umem_free(&pool, umem_alloc(&pool, n)); }

/* Two operations for the two calls. */
static void bare_fetch(size_t n) {
  uint64_t one = 1, old;
  (void)n;
  for (int i = 0; i < 2; i++) {
    MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, 0, MPI_SUM, bare);
    MPI_Win_flush(target, bare);
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

static void measure(size_t i) {
  Measured const measured = compare(rows[i].umem, rows[i].mpi, rows[i].nbytes, rows[i].calls);
  printf("%s\n  {\"row\": \"%s\", \"umem_us\": %.3f, \"mpi_us\": %.3f, \"time_ratio\": %.3f}",
         i ? "," : "", rows[i].name, measured.own * 1e6, measured.other * 1e6, measured.ratio);
  fflush(stdout);
}

static void measure_all(char const *memory) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  CHECK_OK(umemMpi_ctor(&remote, MPI_COMM_WORLD, target));
  CHECK_OK(umemPool_ctor(&pool, &remote, NULL));
  block = umem_calloc(&remote, 1, largest);
  buffer = malloc(largest);
  CHECK(block != UINTPTR_MAX && buffer);
  memset(buffer, 2, largest);
  printf("{\"mpi\": \"%s\", \"memory\": \"%s\", \"neighbour\": %s, \"rows\": [",
         mpi_version(version), memory, are_neighbours(0, target) ? "true" : "false");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) measure(i);
  printf("\n]}\n");
  CHECK(umem_is_ok(&remote) && umem_is_ok(&pool));
  umem_dtor(&pool);
  umem_free(&remote, block);
  umem_dtor(&remote);
  free(buffer);
}

int main(int argc, char **argv) {
  char const *words = argc > 1 ? argv[1] : "shared";
  umemMpiMemory const memory = start_bench(&argc, &argv, words, part);
  if (argc > 2) target = atoi(argv[2]);
  CHECK(target >= 0 && target < ranks);
  bare = make_bare(memory, part);
  barrier();
  if (rank == 0) measure_all(words);
  if (rank == 0 || rank == target)
    barrier();
  else
    sleep_to_barrier(); /* it needs no processor */
  MPI_Win_unlock_all(bare);
  MPI_Win_free(&bare);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  umem_dtor(&host);
  end_mpi();
  return 0;
}
