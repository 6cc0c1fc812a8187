/* model.c - random operations of all ranks on the memory of all ranks, against a model in RAM.
 *
 *     mpirun -n 4 model [OPERATIONS] [SEED]
 *
 * Each rank has blocks in the parts of all ranks, and their contents in RAM. It allocates, resizes,
 * writes, reads, sets, copies between two parts, copies boxes of items, and frees. From time to
 * time it hands a block over to the next rank, which checks it and has it from then on. At the end
 * all blocks have the contents of the model, and when they are freed, all memory is free. */
#include "ranks.h"

enum { most_blocks = 24, most_bytes = 40000, part = 4 << 20 };

int rank, ranks;
umemHost host;

typedef struct Block {
  int where; /* the rank; -1 for none */
  uintptr_t adr;
  size_t nbytes;
  unsigned char *model;
} Block;

static Block blocks[most_blocks];
static umemMpi *contexts;
static umemVirtual *pools[64]; /* over the contexts, for every second block */
static Random dice;

static void *context_of(Block const *block) { return &contexts[block->where]; }

static unsigned char *new_bytes(size_t nbytes) {
  unsigned char *bytes = malloc(nbytes);
  CHECK(bytes);
  return bytes;
}

/* A range of the bytes of a block. */
static size_t some(Block const *block, size_t *first) {
  *first = below(&dice, block->nbytes);
  return 1 + below(&dice, block->nbytes - *first);
}

/* ---- the operations ---- */

static void check(Block const *block) {
  unsigned char *bytes = new_bytes(block->nbytes);
  CHECK_OK(umem_copy_to(context_of(block), block->adr, &host, (uintptr_t)bytes, block->nbytes));
  CHECK(!memcmp(bytes, block->model, block->nbytes));
  free(bytes);
}

static void write_some(Block *block) {
  size_t first, n = some(block, &first);
  fill_random(block->model + first, n, next_random(&dice));
  CHECK_OK(umem_copy_to(&host, (uintptr_t)block->model + first, context_of(block),
                        block->adr + first, n));
}

static void set_some(Block *block) {
  size_t first, n = some(block, &first);
  int value = (int)below(&dice, 256);
  memset(block->model + first, value, n);
  CHECK_OK(umem_set(context_of(block), block->adr + first, value, n));
}

static void allocate(Block *block) {
  block->where = (int)below(&dice, (uint64_t)ranks);
  block->nbytes = 1 + below(&dice, below(&dice, 4) ? 3000 : most_bytes);
  block->model = new_bytes(block->nbytes);
  bool zeros = below(&dice, 2);
  block->adr =
      zeros ? umem_calloc(context_of(block), 1, block->nbytes)
            : umem_aligned_alloc(context_of(block), (size_t)64 << below(&dice, 6), block->nbytes);
  CHECK(block->adr != UINTPTR_MAX);
  memset(block->model, 0, block->nbytes);
  fill_random(block->model, zeros ? 0 : block->nbytes, next_random(&dice));
  if (!zeros)
    CHECK_OK(
        umem_copy_to(&host, (uintptr_t)block->model, context_of(block), block->adr, block->nbytes));
}

static void release(Block *block) {
  check(block);
  umem_free(context_of(block), block->adr);
  free(block->model);
  block->where = -1;
}

static void resize(Block *block) {
  size_t nbytes = 1 + below(&dice, most_bytes), kept = block->nbytes;
  unsigned char *model = new_bytes(nbytes);
  if (kept > nbytes) kept = nbytes;
  memcpy(model, block->model, kept);
  block->adr = umem_realloc(context_of(block), block->adr, block->nbytes, nbytes);
  CHECK(block->adr != UINTPTR_MAX);
  free(block->model);
  block->model = model;
  block->nbytes = nbytes;
  memset(model + kept, 3, nbytes - kept);
  if (nbytes > kept) CHECK_OK(umem_set(context_of(block), block->adr + kept, 3, nbytes - kept));
}

/* Between two parts, or inside of one. */
static void copy(Block *from, Block *to) {
  size_t first, n = some(from, &first);
  if (n > to->nbytes) n = to->nbytes;
  size_t at = below(&dice, to->nbytes - n + 1);
  memcpy(to->model + at, from->model + first, n);
  CHECK_OK(umem_copy_to(context_of(from), from->adr + first, context_of(to), to->adr + at, n));
}

/* A box of items to or from RAM, also with rows in reverse order. */
static void copy_box(Block *block) {
  size_t const item = 1 + below(&dice, 12), columns = 2 + below(&dice, 6),
               rows = 2 + below(&dice, 6);
  size_t const pitch = columns * item + 1 + below(&dice, 40), all = rows * pitch;
  if (all > block->nbytes) return;
  size_t const first = below(&dice, block->nbytes - all + 1);
  size_t extents[2] = {rows, columns};
  ptrdiff_t strided[2] = {(ptrdiff_t)pitch, (ptrdiff_t)item + (pitch > columns * (item + 1))};
  bool turned = below(&dice, 2), put = below(&dice, 2);
  ptrdiff_t packed[2] = {(ptrdiff_t)(columns * item), (ptrdiff_t)item};
  unsigned char bytes[4096], expected[4096];
  CHECK(rows * columns * item <= sizeof bytes);
  if (turned && !put) {
    strided[0] = -strided[0];
  }
  uintptr_t begin = first + (strided[0] < 0 ? (rows - 1) * pitch : 0);
  fill_random(bytes, rows * columns * item, next_random(&dice));
  umemLayout layout = {sizeof layout,         item, 2, extents, put ? packed : strided,
                       put ? strided : packed};
  for (size_t i = 0; i < rows; i++)
    for (size_t k = 0; k < columns; k++) {
      unsigned char *in_model =
          block->model + (ptrdiff_t)begin + (ptrdiff_t)i * strided[0] + (ptrdiff_t)k * strided[1];
      unsigned char *in_box = (put ? bytes : expected) + (i * columns + k) * item;
      memcpy(put ? in_model : in_box, put ? in_box : in_model, item);
    }
  if (put) {
    CHECK_OK(
        umem_copy_strided(&host, (uintptr_t)bytes, context_of(block), block->adr + begin, &layout));
    return;
  }
  CHECK_OK(
      umem_copy_strided(context_of(block), block->adr + begin, &host, (uintptr_t)bytes, &layout));
  CHECK(!memcmp(bytes, expected, rows * columns * item));
}

/* A block of a pool over the context: it lives for one operation. */
static void use_pool(void) {
  umemVirtual *pool = pools[below(&dice, (uint64_t)ranks)];
  uint64_t value = next_random(&dice), seen = 0;
  uintptr_t adr = umem_alloc(pool, 8 + below(&dice, 500));
  CHECK(adr != umem_null(pool));
  CHECK_OK(umem_copy_to(&host, (uintptr_t)&value, pool, adr, sizeof value));
  CHECK_OK(umem_copy_to(pool, adr, &host, (uintptr_t)&seen, sizeof seen));
  CHECK(value == seen);
  umem_free(pool, adr);
}

static void do_something(void) {
  Block *block = &blocks[below(&dice, most_blocks)], *other = &blocks[below(&dice, most_blocks)];
  if (block->where < 0) {
    allocate(block);
    return;
  }
  switch (below(&dice, 10)) {
  case 0:
    release(block);
    break;
  case 1:
    resize(block);
    break;
  case 2:
    set_some(block);
    break;
  case 3:
  case 4:
    if (other != block && other->where >= 0) copy(other, block);
    break;
  case 5:
  case 6:
    copy_box(block);
    break;
  case 7:
    use_pool();
    break;
  case 8:
    write_some(block);
    break;
  default:
    check(block);
  }
}

/* Each rank gives its first block to the next one. */
static void hand_over(void) {
  int const next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
  Block *mine = &blocks[0], given;
  if (mine->where < 0) allocate(mine);
  MPI_Sendrecv(mine, sizeof *mine, MPI_BYTE, next, 1, &given, sizeof given, MPI_BYTE, last, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  unsigned char *model = new_bytes(given.nbytes);
  MPI_Sendrecv(mine->model, (int)mine->nbytes, MPI_BYTE, next, 2, model, (int)given.nbytes,
               MPI_BYTE, last, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  free(mine->model);
  *mine = given;
  mine->model = model;
  check(mine);
}

/* ---- the run ---- */

static void open_everything(void) {
  contexts = open_all();
  for (int r = 0; r < ranks; r++) {
    umemPool *pool = calloc(1, sizeof *pool);
    CHECK(pool && umemPool_ctor(pool, &contexts[r], NULL) == umemOK);
    pools[r] = &pool->super;
  }
  for (size_t i = 0; i < most_blocks; i++) blocks[i].where = -1;
}

static void close_everything(void) {
  for (size_t i = 0; i < most_blocks; i++)
    if (blocks[i].where >= 0) release(&blocks[i]);
  for (int r = 0; r < ranks; r++) {
    CHECK(umem_is_ok(pools[r]));
    umem_dtor(pools[r]);
    free(pools[r]);
  }
  barrier();
  umemInfo info = UMEM_INFO_INIT;
  CHECK_OK(umem_get_info(&contexts[rank], &info));
  CHECK(info.available == part);
  barrier();
  close_all(contexts);
}

int main(int argc, char **argv) {
  init_mpi(&argc, &argv);
  int const operations = argc > 1 ? atoi(argv[1]) : 1000;
  dice.state = (uint64_t)(argc > 2 ? atoi(argv[2]) : 1) * 1000 + (uint64_t)rank;
  umemHost_ctor(&host);
  start_window(part);
  open_everything();
  for (int i = 0; i < operations; i++) {
    do_something();
    if (i % 100 == 99) hand_over();
  }
  close_everything();
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  CHECK(umem_thread_status() == umemOK);
  umem_dtor(&host);
  end_mpi();
  return 0;
}
