/* strided.c - strided copies compared with bare MPI, in one run: rank 0 uses the memory of rank 1,
 * which waits.
 *
 *     mpirun -n 2 strided [shared|allocate|create [WORD]]
 *
 * Bare MPI has datatypes of MPI_Type_create_hvector for both sides, which are made before the time
 * is taken, and a flush. A third column is what one copy of as many bytes without gaps takes by
 * bare MPI: how far strides are from that. Each row is measured in turns, and the middle ratio of
 * the turns counts. WORD: of the names of patterns. Writes JSON to stdout. */
#include "measure.h"

int rank, ranks;
umemHost host;

enum { part = 64 << 20, most_items = 16384, most_moved = 256 << 10 };

static umemMpi remote;
static MPI_Win bare;
static unsigned char *buffer;

/* ---- patterns ---- */

typedef struct Pattern {
  int rank;
  size_t extents[3];
  ptrdiff_t here[3], there[3]; /* strides of the memory of rank 0, and of the window, in items */
} Pattern;

/* About n items, in a power of two. */
static Pattern rows(size_t n) { return (Pattern){2, {n / 64, 64}, {64, 1}, {128, 1}}; }
static Pattern apart(size_t n) { return (Pattern){2, {n / 64, 64}, {128, 1}, {64, 1}}; }
static Pattern every_second(size_t n) { return (Pattern){1, {n}, {1}, {2}}; }
static Pattern column(size_t n) { return (Pattern){1, {n}, {1}, {64}}; }
static Pattern both_columns(size_t n) { return (Pattern){1, {n}, {64}, {64}}; }

static ptrdiff_t side_of(size_t n) {
  ptrdiff_t side = 1;
  while ((size_t)(side * side) * 4 <= n) side *= 2;
  return side;
}

static Pattern transpose(size_t n) {
  ptrdiff_t const side = side_of(n);
  return (Pattern){2, {(size_t)side, (size_t)side}, {side, 1}, {1, side}};
}

/* The faces of a cube, in the order of the strides. */
static Pattern face(size_t n, int normal) {
  ptrdiff_t const side = side_of(n) > 64 ? 64 : side_of(n), steps[3] = {side * side, side, 1};
  Pattern pattern = {2, {(size_t)side, (size_t)side}, {0}, {0}};
  for (int k = 0, d = 0; d < 3; d++)
    if (d != normal) pattern.here[k] = pattern.there[k] = steps[d], k++;
  return pattern;
}
static Pattern face_0(size_t n) { return face(n, 0); }
static Pattern face_1(size_t n) { return face(n, 1); }
static Pattern face_2(size_t n) { return face(n, 2); }

static struct {
  char const *name;
  Pattern (*make)(size_t n);
} const patterns[] = {{"rows of 64 items", rows},
                      {"every 2nd item", every_second},
                      {"every 64th item", column},
                      {"every 64th item at both sides", both_columns},
                      {"transpose", transpose},
                      {"rows of 64 items apart to rows in a run", apart},
                      {"face of a cube, normal to axis 0", face_0},
                      {"face of a cube, normal to axis 1", face_1},
                      {"face of a cube, normal to axis 2", face_2}};
static size_t const item_sizes[] = {1, 8, 64, 512, 4096};

/* ---- what is compared ---- */

static struct {
  umemLayout put, get;
  MPI_Datatype here, there;
  size_t bytes;
} now_copied;

static void umem_put(size_t n) {
  (void)n;
  umem_copy_strided(&host, (uintptr_t)buffer, &remote, 0, &now_copied.put);
}

static void umem_get(size_t n) {
  (void)n;
  umem_copy_strided(&remote, 0, &host, (uintptr_t)buffer, &now_copied.get);
}

static void bare_put(size_t n) {
  (void)n;
  MPI_Put(buffer, 1, now_copied.here, 1, 0, 1, now_copied.there, bare);
  MPI_Win_flush(1, bare);
}

static void bare_get(size_t n) {
  (void)n;
  MPI_Get(buffer, 1, now_copied.here, 1, 0, 1, now_copied.there, bare);
  MPI_Win_flush(1, bare);
}

static void whole_put(size_t n) {
  MPI_Put(buffer, (int)n, MPI_BYTE, 1, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(1, bare);
}

static void whole_get(size_t n) {
  MPI_Get(buffer, (int)n, MPI_BYTE, 1, 0, (int)n, MPI_BYTE, bare);
  MPI_Win_flush(1, bare);
}

static MPI_Datatype make_type(Pattern const *pattern, ptrdiff_t const *strides, size_t item) {
  MPI_Datatype type, outer;
  MPI_Type_contiguous((int)item, MPI_BYTE, &type);
  for (int k = pattern->rank - 1; k >= 0; k--) {
    MPI_Type_create_hvector((int)pattern->extents[k], 1, strides[k], type, &outer);
    MPI_Type_free(&type);
    type = outer;
  }
  MPI_Type_commit(&type);
  return type;
}

static void measure_pattern(size_t which, size_t item, bool *first) {
  size_t n = most_moved / item < most_items ? most_moved / item : most_items;
  Pattern pattern = patterns[which].make(n < 64 ? 64 : n);
  ptrdiff_t here[3], there[3];
  now_copied.bytes = item;
  for (int k = 0; k < pattern.rank; k++) {
    here[k] = pattern.here[k] * (ptrdiff_t)item;
    there[k] = pattern.there[k] * (ptrdiff_t)item;
    now_copied.bytes *= pattern.extents[k];
  }
  now_copied.put =
      (umemLayout){sizeof(umemLayout), item, pattern.rank, pattern.extents, here, there};
  now_copied.get =
      (umemLayout){sizeof(umemLayout), item, pattern.rank, pattern.extents, there, here};
  now_copied.here = make_type(&pattern, here, item);
  now_copied.there = make_type(&pattern, there, item);
  for (int get = 0; get < 2; get++) {
    Measured const measured = get ? compare(umem_get, bare_get, now_copied.bytes, 1000)
                                  : compare(umem_put, bare_put, now_copied.bytes, 1000);
    Measured const whole = get ? compare(whole_get, whole_get, now_copied.bytes, 1000)
                               : compare(whole_put, whole_put, now_copied.bytes, 1000);
    printf("%s\n  {\"row\": \"%s, %s\", \"item\": %zu, \"bytes\": %zu, \"umem_us\": %.2f, "
           "\"mpi_us\": %.2f, "
           "\"whole_us\": %.2f, \"time_ratio\": %.3f}",
           *first ? "" : ",", get ? "get" : "put", patterns[which].name, item, now_copied.bytes,
           measured.own * 1e6, measured.other * 1e6, whole.other * 1e6, measured.ratio);
    fflush(stdout);
    *first = false;
  }
  MPI_Type_free(&now_copied.here);
  MPI_Type_free(&now_copied.there);
}

/* Patterns whose name has word. */
static void measure_all(char const *memory, char const *word) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  bool first = true;
  CHECK_OK(umemMpi_ctor(&remote, MPI_COMM_WORLD, 1));
  buffer = calloc(1, part);
  CHECK(buffer);
  memset(buffer, 2, part);
  printf("{\"mpi\": \"%s\", \"memory\": \"%s\", \"strided\": [", mpi_version(version), memory);
  for (size_t which = 0; which < sizeof patterns / sizeof *patterns; which++)
    for (size_t i = 0; i < sizeof item_sizes / sizeof *item_sizes; i++)
      if (strstr(patterns[which].name, word)) measure_pattern(which, item_sizes[i], &first);
  printf("\n]}\n");
  CHECK(umem_is_ok(&remote));
  umem_dtor(&remote);
  free(buffer);
}

int main(int argc, char **argv) {
  char const *words = argc > 1 ? argv[1] : "shared", *word = argc > 2 ? argv[2] : "";
  umemMpiMemory const memory = start_bench(&argc, &argv, words, part);
  bare = make_bare(memory, part);
  barrier();
  if (rank == 0) measure_all(words, word);
  barrier();
  MPI_Win_unlock_all(bare);
  MPI_Win_free(&bare);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  umem_dtor(&host);
  MPI_Finalize();
  return 0;
}
