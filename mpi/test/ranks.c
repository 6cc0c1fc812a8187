/* ranks.c - tests of umem/mpi.h that several ranks run together.
 *
 *     mpirun -n 4 ranks TEST
 *
 * The tests are in the table at the end. */
#include "ranks.h"

#include <pthread.h>
#include <time.h>

int rank, ranks;
umemHost host;

/* ---- one window ---- */

static void addresses_are_offsets(void) {
  start_window(1 << 20);
  umemMpi *all = open_all();
  umemMpi *next = &all[(rank + 1) % ranks];
  CHECK(umem_null(next) == UINTPTR_MAX);
  CHECK(!strcmp(umem_get_device_name(next), "Mpi"));
  CHECK(umem_find_layer(next, "mpi") == next);
  barrier();
  uintptr_t adr = umem_alloc(next, 1000);
  CHECK(adr < 1 << 20 && adr % next->super.alignment == 0);
  unsigned char bytes[1000], back[1000] = {0};
  fill_random(bytes, sizeof bytes, (uint64_t)rank);
  CHECK_OK(umem_copy_to(&host, (uintptr_t)bytes, next, adr, sizeof bytes));
  CHECK_OK(umem_copy_to(next, adr, &host, (uintptr_t)back, sizeof back));
  CHECK(!memcmp(bytes, back, sizeof bytes));
  barrier();
  umem_free(next, adr);
  umem_free(next, adr);
  expect(next, umemValueError, "is not a live block of rank");
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

static void own_memory_has_pointers(void) {
  start_window(1 << 16);
  umemMpi *all = open_all();
  int count = 0;
  CHECK(umemMpi_rank(&all[rank], &count) == rank && count == ranks);
  umemInfo info = UMEM_INFO_INIT;
  CHECK_OK(umem_get_info(&all[rank], &info));
  CHECK(info.capacity == 1 << 16 && info.available == 1 << 16 && info.ordinal == rank);
  barrier();
  uintptr_t adr = umem_alloc(&all[rank], sizeof(double));
  double *own = umemMpi_pointer(&all[rank], adr);
  CHECK(own);
  *own = rank + 0.5;
  CHECK_OK(umemMpi_sync(&all[rank]));
  uintptr_t others[64];
  CHECK(MPI_Allgather(&adr, 1, MPI_UINT64_T, others, 1, MPI_UINT64_T, MPI_COMM_WORLD) ==
        MPI_SUCCESS);
  for (int r = 0; r < ranks; r++) {
    double value = 0;
    CHECK_OK(umem_copy_to(&all[r], others[r], &host, (uintptr_t)&value, sizeof value));
    CHECK(value == r + 0.5);
  }
  for (int r = 0; r < ranks; r++) {
    double const *others_own = umemMpi_pointer(&all[r], others[r]);
    CHECK(is_shared(r) == (others_own != NULL));
    if (others_own)
      CHECK(*others_own == r + 0.5);
    else
      expect(&all[r], umemNotSupportedError, "has this memory, and does not share it");
  }
  CHECK(!umemMpi_pointer(&all[rank], (1 << 16) + 1));
  expect(&all[rank], umemIndexError, "past the end");
  CHECK(!umemMpi_pointer((umemMpi *)&host, 0));
  expect(NULL, umemTypeError, "no context of MPI");
  barrier();
  umem_free(&all[rank], adr);
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* MPICH crashes on these, and Open MPI answers late: umem must see them itself. */
static void bounds_are_checked(void) {
  start_window(4096);
  umemMpi *all = open_all();
  umemMpi *ctx = &all[(rank + 1) % ranks];
  char bytes[4097] = {0};
  CHECK(umem_copy_to(&host, (uintptr_t)bytes, ctx, 1, 4096) == umemIndexError);
  expect(ctx, umemIndexError, "umem_copy_to: write of 4096 bytes at 1 past the end of rank");
  CHECK(umem_copy_to(ctx, 4096, &host, (uintptr_t)bytes, 1) == umemIndexError);
  expect(ctx, umemIndexError, "read of 1 bytes at 4096 past the end");
  CHECK(umem_copy_to(ctx, (uintptr_t)1 << 40, &host, (uintptr_t)bytes, 1) == umemIndexError);
  expect(ctx, umemIndexError, "past the end");
  CHECK(umem_set(ctx, 4095, 1, 2) == umemIndexError);
  expect(ctx, umemIndexError, "set of 2 bytes at 4095");
  size_t extents[2] = {3, 2};
  ptrdiff_t inside[2] = {64, 8}, outside[2] = {2048, 8};
  umemLayout layout = {sizeof layout, 4, 2, extents, outside, inside};
  CHECK(umem_copy_strided(ctx, 0, &host, (uintptr_t)bytes, &layout) == umemIndexError);
  expect(ctx, umemIndexError, "past the end");
  layout.src_strides = inside;
  layout.dst_strides = outside;
  CHECK(umem_copy_strided(&host, (uintptr_t)bytes, ctx, 0, &layout) == umemIndexError);
  expect(ctx, umemIndexError, "past the end");
  CHECK(umem_alloc(ctx, 4097) == UINTPTR_MAX);
  expect(ctx, umemMemoryError, "no room for 4097 bytes in rank");
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

static void windows_begin_and_end(void) {
  umemMpi ctx;
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  CHECK(umemMpi_ctor(&ctx, MPI_COMM_WORLD, 0) == umemValueError);
  expect(NULL, umemValueError, "has no window");
  CHECK(umem_null(&ctx) == UINTPTR_MAX);
  CHECK(umemMpi_stop(MPI_COMM_WORLD) == umemValueError);
  expect(NULL, umemValueError, "no window");
  CHECK(umemMpi_start(MPI_COMM_NULL, &options) == umemValueError);
  expect(NULL, umemValueError, "MPI_COMM_NULL");
  CHECK(umemMpi_start(MPI_COMM_WORLD, NULL) == umemValueError);
  expect(NULL, umemValueError, "NULL");
  options.unit = 100;
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemValueError);
  expect(NULL, umemValueError, "power of two");
  options.unit = rank ? 64 : 128;
  if (ranks > 1) {
    CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemValueError);
    expect(NULL, umemValueError, "different options");
    options.unit = rank ? 64 : 63;
    CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == (rank ? umemRuntimeError : umemValueError));
    expect(NULL, rank ? umemRuntimeError : umemValueError, rank ? "failed in rank 0" : "power of");
  }
  options.unit = 64;
  options.capacity = (size_t)1 << 45;
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemMemoryError);
  expect(NULL, umemMemoryError, "/dev/shm has only");
  options.memory = umemMpiMemoryCreate;
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemMemoryError);
  expect(NULL, umemMemoryError, "but it has only");
  options.memory = umemMpiMemoryAuto;
  options.capacity = rank ? 1000 : 0; /* parts may differ, and be empty */
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemValueError);
  expect(NULL, umemValueError, "a window already");
  CHECK(umemMpi_ctor(&ctx, MPI_COMM_WORLD, ranks) == umemValueError);
  expect(NULL, umemValueError, "there is no rank");
  CHECK_OK(umemMpi_ctor(&ctx, MPI_COMM_WORLD, 0));
  CHECK(umem_alloc(&ctx, 1) == UINTPTR_MAX);
  expect(&ctx, umemMemoryError, "no room");
  barrier();
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  char byte = 0;
  CHECK(umem_alloc(&ctx, 1) == UINTPTR_MAX);
  expect(&ctx, umemRuntimeError, "has ended");
  CHECK(umem_copy_to(&ctx, 0, &host, (uintptr_t)&byte, 1) == umemRuntimeError);
  expect(&ctx, umemRuntimeError, "has ended");
  umem_dtor(&ctx);
}

/* A part is whole units, and all of it can be allocated. */
static void a_part_is_rounded_up_to_units(void) {
  start_window(300000);
  umemMpi *all = open_all();
  umemInfo info = UMEM_INFO_INIT;
  CHECK_OK(umem_get_info(&all[rank], &info));
  CHECK(info.capacity == 300032 && info.available == 300032);
  barrier();
  uintptr_t adr = umem_alloc(&all[rank], 300000);
  CHECK(adr == 0);
  CHECK_OK(umem_set(&all[rank], adr, 1, 300000));
  umem_free(&all[rank], adr);
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* MPI_Comm_free ends the window of its communicator, MPI_Finalize that of MPI_COMM_WORLD. */
static void communicators_have_windows_of_their_own(void) {
  MPI_Comm reversed, copy;
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = 4096;
  CHECK(MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &reversed) == MPI_SUCCESS);
  CHECK_OK(umemMpi_start(reversed, &options));
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
  CHECK(MPI_Comm_dup(reversed, &copy) == MPI_SUCCESS);
  umemMpi first, last, none;
  CHECK(umemMpi_ctor(&none, copy, 0) == umemValueError);
  expect(NULL, umemValueError, "no window");
  CHECK_OK(umemMpi_ctor(&first, MPI_COMM_WORLD, 0));
  CHECK_OK(umemMpi_ctor(&last, reversed, 0));
  int value = 42, seen = 0;
  if (rank == 0) CHECK_OK(umem_copy_to(&host, (uintptr_t)&value, &last, 64, sizeof value));
  barrier();
  CHECK_OK(umem_copy_to(&last, 64, &host, (uintptr_t)&seen, sizeof seen));
  CHECK(seen == 42);
  CHECK(!umem_is_same_device(&first, &last));
  barrier();
  CHECK(MPI_Comm_free(&reversed) == MPI_SUCCESS && MPI_Comm_free(&copy) == MPI_SUCCESS);
  CHECK(umem_copy_to(&last, 64, &host, (uintptr_t)&seen, 4) == umemRuntimeError);
  expect(&last, umemRuntimeError, "has ended");
  CHECK_OK(umem_copy_to(&first, 64, &host, (uintptr_t)&seen, sizeof seen));
  umem_dtor(&last);
  umem_dtor(&first);
}

static void names_open_ranks(void) {
  CHECK_OK(umemMpi_register());
  CHECK(!umem_open("mpi:0"));
  expect(NULL, umemValueError, "has no window");
  umemVirtual *ctx = umem_open("stats+pool+mpi:0?mpi.size=4M&mpi.unit=64");
  CHECK(ctx);
  CHECK(umemMpi_rank(umem_find_layer(ctx, "mpi"), NULL) == 0);
  uintptr_t adr = umem_calloc(ctx, 100, 8);
  uint64_t numbers[100], zeros[100] = {0};
  memset(numbers, 1, sizeof numbers);
  CHECK_OK(umem_copy_to(ctx, adr, &host, (uintptr_t)numbers, sizeof numbers));
  CHECK(!memcmp(numbers, zeros, sizeof numbers));
  umem_free(ctx, adr);
  umemVirtual *last = umem_open("mpi:0?size=1G"); /* started already: the size means nothing */
  CHECK(last);
  barrier();
  umem_close(last);
  umem_close(ctx);
  MPI_Comm own;
  char name[80];
  CHECK(MPI_Comm_dup(MPI_COMM_SELF, &own) == MPI_SUCCESS);
  snprintf(name, sizeof name, "mpi:0?size=4K&comm=%u", (unsigned)umemMpi_number(own));
  ctx = umem_open(name);
  umemInfo info = UMEM_INFO_INIT;
  CHECK(ctx && umem_get_info(ctx, &info) == umemOK && info.capacity == 4096);
  umem_close(ctx);
  CHECK(MPI_Comm_free(&own) == MPI_SUCCESS);
  barrier();
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* Turns a matrix of n rows and m columns of 4-byte numbers around, in the memory of the next rank
 * and on the way back. */
static void turn_matrix(umemMpi *ctx, size_t n, size_t m) {
  size_t const nbytes = n * m * sizeof(uint32_t), extents[2] = {n, m};
  ptrdiff_t const rows[2] = {(ptrdiff_t)m * 4, 4}, columns[2] = {4, (ptrdiff_t)n * 4};
  uint32_t *matrix = malloc(nbytes), *back = calloc(1, nbytes), *turned = malloc(nbytes);
  CHECK(matrix && back && turned);
  fill_random(matrix, nbytes, n);
  uintptr_t const adr = umem_alloc(ctx, nbytes);
  CHECK(adr != UINTPTR_MAX);
  umemLayout layout = {sizeof layout, 4, 2, extents, rows, columns};
  CHECK_OK(umem_copy_strided(&host, (uintptr_t)matrix, ctx, adr, &layout));
  CHECK_OK(umem_copy_to(ctx, adr, &host, (uintptr_t)turned, nbytes));
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < m; j++) CHECK(turned[j * n + i] == matrix[i * m + j]);
  layout.src_strides = columns;
  layout.dst_strides = rows;
  CHECK_OK(umem_copy_strided(ctx, adr, &host, (uintptr_t)back, &layout));
  CHECK(!memcmp(back, matrix, nbytes));
  umem_free(ctx, adr);
  free(matrix);
  free(back);
  free(turned);
}

/* Items without gaps in the window: in one run, in several, and in dimensions of which no run holds
 * one index. */
static void matrices_are_turned(void) {
  start_window(8 << 20);
  umemMpi *all = open_all();
  umemMpi *next = &all[(rank + 1) % ranks];
  turn_matrix(next, 3, 5);
  turn_matrix(next, 700, 900);
  turn_matrix(next, 300000, 2);
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* Each kind of memory works wherever ranks are; the ranks of a machine share what is shared. */
static void machines_share_their_memory(void) {
  umemMpiMemory const kinds[] = {umemMpiMemoryAuto, umemMpiMemoryShared, umemMpiMemoryAllocate,
                                 umemMpiMemoryCreate};
  for (int i = 0; i < 4; i++) {
    umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
    options.capacity = rank == ranks - 1 ? 0 : 4096;
    options.memory = kinds[i];
    CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
    umemMpi *all = open_all();
    for (int r = 0; r < ranks - 1; r++) {
      bool const shares = r == rank || (i < 2 && are_neighbours(r, rank));
      CHECK(shares == (umemMpi_pointer(&all[r], 0) != NULL));
      if (!shares) expect(&all[r], umemNotSupportedError, "does not share it");
      bool const prompt = all[r].super.capabilities & umemPrompt;
      CHECK(prompt == (i < 2 && !is_apart())); /* otherwise an allocation calls MPI */
    }
    barrier();
    close_all(all);
    CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  }
}

/* ---- allocation by all ranks at once ---- */

/* Each block is one of its allocator alone, and at the end all memory is free. */
static void ranks_allocate_from_each_other(void) {
  enum { most = 40, rounds = 60 };
  size_t const capacity = 1 << 20;
  start_window(capacity);
  umemMpi *all = open_all();
  Random random = {(uint64_t)rank};
  for (int round = 0; round < rounds; round++) {
    umemMpi *ctx = &all[below(&random, (uint64_t)ranks)];
    uintptr_t adr[most];
    size_t const unit = ctx->super.alignment;
    uint64_t mark = (uint64_t)rank << 32 | (uint64_t)round, seen;
    size_t sizes[most], count = 1 + below(&random, most);
    for (size_t i = 0; i < count; i++) {
      sizes[i] = 1 + below(&random, i % 8 ? 6 * unit : 100 * unit);
      adr[i] = umem_alloc(ctx, sizes[i]);
      CHECK(adr[i] != UINTPTR_MAX);
      for (size_t at = 0; at < sizes[i]; at += unit)
        CHECK_OK(umem_copy_to(&host, (uintptr_t)&mark, ctx, adr[i] + at, sizeof mark));
    }
    for (size_t i = 0; i < count; i++) {
      for (size_t at = 0; at < sizes[i]; at += unit) {
        CHECK_OK(umem_copy_to(ctx, adr[i] + at, &host, (uintptr_t)&seen, sizeof seen));
        CHECK(seen == mark);
      }
      umem_free(ctx, adr[i]);
    }
  }
  barrier();
  umemInfo info = UMEM_INFO_INIT;
  CHECK_OK(umem_get_info(&all[rank], &info));
  CHECK(info.available == capacity);
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* Any byte of a block that another rank has allocated is found, and no other byte. */
static void blocks_are_found_by_all_ranks(void) {
  enum { count = 3 };
  size_t const capacity = 1 << 20, sizes[count] = {1, 5000, 200000};
  uint64_t mine[count], others[64 * count];
  start_window(capacity);
  umemMpi *all = open_all();
  umemMpi *next = &all[(rank + 1) % ranks];
  size_t const unit = next->super.alignment;
  for (int i = 0; i < count; i++) mine[i] = umem_alloc(next, sizes[i]);
  CHECK(MPI_Allgather(mine, count, MPI_UINT64_T, others, count, MPI_UINT64_T, MPI_COMM_WORLD) ==
        MPI_SUCCESS);
  for (int i = 0; i < ranks * count; i++) {
    umemMpi *ctx = &all[(i / count + 1) % ranks];
    uintptr_t const adr = (uintptr_t)others[i];
    size_t const size = (sizes[i % count] + unit - 1) / unit * unit;
    uintptr_t const at[] = {adr, adr + size / 2, adr + size - 1};
    for (int k = 0; k < 3; k++) {
      umemFound found = UMEM_FOUND_INIT;
      CHECK(umem_find_in(ctx, at[k], &found));
      CHECK(found.ctx == ctx && found.adr == adr && found.nbytes == size);
      CHECK(!strcmp(found.name, "Mpi") && found.foreign == umemForeignNone && found.device == -1);
    }
    umemFound behind = UMEM_FOUND_INIT;
    CHECK(!umem_find_in(ctx, adr + size, &behind) || behind.adr == adr + size);
  }
  CHECK(!umem_find_in(next, capacity, NULL) && !umem_find_in(next, UINTPTR_MAX, NULL));
  umemFound found = UMEM_FOUND_INIT;
  CHECK(!umem_find((uintptr_t)mine[1], &found) || found.ctx != next); /* an offset */
  barrier();
  for (int i = 0; i < count; i++) umem_free(next, (uintptr_t)mine[i]);
  barrier();
  for (uintptr_t adr = 0; adr < capacity; adr += 4 * unit) CHECK(!umem_find_in(next, adr, NULL));
  barrier();
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  CHECK(!umem_find_in(next, 0, NULL));
  close_all(all);
}

/* All ranks want all of one part: one gets it, the others a status, and a rank that waits gets it
 * at last. */
static void ranks_compete_for_large_blocks(void) {
  size_t const capacity = 1 << 20;
  start_window(capacity);
  umemMpi *all = open_all();
  for (int round = 0; round < 20; round++) {
    int tries = 0;
    uintptr_t adr;
    while ((adr = umem_alloc(&all[0], capacity)) == UINTPTR_MAX) {
      expect(&all[0], umemMemoryError, "no room");
      CHECK(tries++ < 1000000);
    }
    CHECK(adr == 0);
    CHECK_OK(umem_set(&all[0], adr, rank, 64));
    umem_free(&all[0], adr);
  }
  barrier();
  umemInfo info = UMEM_INFO_INIT;
  CHECK_OK(umem_get_info(&all[0], &info));
  CHECK(info.available == capacity);
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* ---- threads ---- */

static void *allocate_much(void *data) {
  umemMpi *ctx = data;
  for (int i = 0; i < 200; i++) {
    uintptr_t adr = umem_alloc(ctx, 100 + (size_t)i);
    uint64_t mark = (uintptr_t)&ctx ^ (uint64_t)i, seen = 0;
    CHECK_OK(umem_copy_to(&host, (uintptr_t)&mark, ctx, adr, sizeof mark));
    CHECK_OK(umem_copy_to(ctx, adr, &host, (uintptr_t)&seen, sizeof seen));
    CHECK(seen == mark);
    umem_free(ctx, adr);
  }
  return NULL;
}

static void threads_use_one_context(void) {
  start_window(1 << 20);
  umemMpi *all = open_all();
  umemMpi *next = &all[(rank + 1) % ranks];
  int level = 0;
  MPI_Query_thread(&level);
  bool const all_shared = !getenv("UMEM_TEST_MPI_MEMORY") && !is_apart();
  bool const concurrent = next->super.capabilities & umemConcurrent;
  CHECK(concurrent == (all_shared || level == MPI_THREAD_MULTIPLE));
  pthread_t threads[3];
  for (int i = 0; concurrent && i < 3; i++)
    CHECK(pthread_create(&threads[i], NULL, allocate_much, next) == 0);
  for (int i = 0; concurrent && i < 3; i++) pthread_join(threads[i], NULL);
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* ---- cancellation ---- */

/* AddressSanitizer takes what a cancelled thread leaves on its stack for a fault of its own at the
 * end of the thread. */
enum {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  is_sanitized = 1
#else
  is_sanitized = 0
#endif
#else
  is_sanitized = 0
#endif
};

static int calls_done;

/* The request is pending from the beginning, and acts after the calls. */
static void *be_cancelled(void *unused) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  umemMpi ctx;
  uint64_t word = 1;
  options.capacity = 1 << 20;
  pthread_cancel(pthread_self());
  CHECK_OK(umemMpi_start(MPI_COMM_WORLD, &options));
  CHECK_OK(umemMpi_ctor(&ctx, MPI_COMM_WORLD, (rank + 1) % ranks));
  uintptr_t adr = umem_alloc(&ctx, 1000);
  CHECK_OK(umem_copy_to(&host, (uintptr_t)&word, &ctx, adr, sizeof word));
  CHECK_OK(umemMpi_sync(&ctx));
  umem_free(&ctx, adr);
  umem_dtor(&ctx);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  calls_done = 1;
  pthread_testcancel();
  return unused;
}

static void no_call_is_cancelled(void) {
  int level = 0;
  MPI_Query_thread(&level);
  if (is_sanitized || level < MPI_THREAD_SERIALIZED) return;
  pthread_t thread;
  void *result = NULL;
  calls_done = 0;
  CHECK(pthread_create(&thread, NULL, be_cancelled, NULL) == 0);
  CHECK(pthread_join(thread, &result) == 0);
  CHECK(calls_done && result == PTHREAD_CANCELED);
}

/* ---- a target that does not help ---- */

/* Rank 0 sleeps, or computes, and the others use its memory: they are done before it calls MPI
 * again. */
static void target_does_not_help(bool computes) {
  struct timespec const second = {1, 0};
  struct timespec begin, now;
  start_window(1 << 20);
  umemMpi *all = open_all();
  barrier();
  clock_gettime(CLOCK_MONOTONIC, &begin);
  if (rank == 0 && computes) {
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec - begin.tv_sec < 1 || now.tv_nsec < begin.tv_nsec);
  } else if (rank == 0) {
    nanosleep(&second, NULL);
  } else {
    for (int i = 0; i < 20; i++) {
      uint64_t mark = (uint64_t)rank + (uint64_t)i, seen;
      uintptr_t adr = umem_alloc(&all[0], 5000);
      CHECK_OK(umem_copy_to(&host, (uintptr_t)&mark, &all[0], adr, 8));
      CHECK_OK(umem_copy_to(&all[0], adr, &host, (uintptr_t)&seen, 8));
      CHECK(seen == mark);
      umem_free(&all[0], adr);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - begin.tv_sec) + 1e-9 * (double)(now.tv_nsec - begin.tv_nsec);
    CHECK(seconds < 0.95);
  }
  barrier();
  close_all(all);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

static void target_sleeps(void) { target_does_not_help(false); }
static void target_computes(void) { target_does_not_help(true); }

/* ---- the table ---- */

static struct {
  char const *name;
  void (*run)(void);
} const tests[] = {
    {"addresses", addresses_are_offsets},
    {"pointers", own_memory_has_pointers},
    {"units", a_part_is_rounded_up_to_units},
    {"bounds", bounds_are_checked},
    {"life", windows_begin_and_end},
    {"names", names_open_ranks},
    {"turn", matrices_are_turned},
    {"machines", machines_share_their_memory},
    {"allocate", ranks_allocate_from_each_other},
    {"find", blocks_are_found_by_all_ranks},
    {"compete", ranks_compete_for_large_blocks},
    {"threads", threads_use_one_context},
    {"cancel", no_call_is_cancelled},
    {"communicators", communicators_have_windows_of_their_own}, /* leaves a window */
    {"sleeps", target_sleeps},
    {"computes", target_computes},
};

/* Without arguments all tests but the last two, which take their time. */
int main(int argc, char **argv) {
  init_mpi(&argc, &argv);
  umemHost_ctor(&host);
  size_t const count = sizeof tests / sizeof *tests;
  for (size_t i = 0; i < count; i++) {
    bool wanted = argc < 2 && i + 2 < count;
    for (int k = 1; k < argc; k++) wanted |= !strcmp(argv[k], tests[i].name);
    if (!wanted) continue;
    tests[i].run();
    CHECK(umem_thread_status() == umemOK && umem_is_ok(&host));
    barrier();
    if (rank == 0) printf("ok - %s\n", tests[i].name);
  }
  umem_dtor(&host);
  end_mpi();
  return 0;
}
