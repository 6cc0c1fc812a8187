/* faults.c - failures of MPI in one rank alone, and in the end of a window. The program has
 * functions of MPI of its own, which fail when a test asks for it, and otherwise call those of
 * MPI. */
#include "ranks.h"

int rank, ranks;
umemHost host;

static bool sync_fails, attribute_fails, free_fails;

int MPI_Win_sync(MPI_Win win) { return sync_fails ? MPI_ERR_OTHER : PMPI_Win_sync(win); }

int MPI_Comm_set_attr(MPI_Comm comm, int comm_keyval, void *attribute_val) {
  bool fails = attribute_fails && comm == MPI_COMM_WORLD;
  return fails ? MPI_ERR_OTHER : PMPI_Comm_set_attr(comm, comm_keyval, attribute_val);
}

int MPI_Win_free(MPI_Win *win) {
  int error = PMPI_Win_free(win);
  return free_fails ? MPI_ERR_OTHER : error;
}

/* The last rank has failed; there is no window, and the next start makes one. */
static void expect_failed_start(void) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  umemMpi ctx;
  options.capacity = 4096;
  bool const me = rank == ranks - 1;
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == (me ? umemIOError : umemRuntimeError));
  expect(NULL, me ? umemIOError : umemRuntimeError,
         me ? "umemMpi_start: MPI_" : "it failed in rank");
  sync_fails = attribute_fails = false;
  CHECK(umemMpi_ctor(&ctx, MPI_COMM_WORLD, 0) == umemValueError);
  expect(NULL, umemValueError, "has no window");
  start_window(4096);
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
}

/* By the program's own handler of errors, which ends it, or by a status. */
static void a_failure_at_the_end_is_a_status(void) {
  start_window(4096);
  free_fails = true;
  CHECK(umemMpi_stop(MPI_COMM_WORLD) == umemIOError);
  free_fails = false;
  expect(NULL, umemIOError, "umemMpi_stop");
}

/* The sum of the capacities does not fit 64 bits. */
static void sums_do_not_overflow(void) {
  umemMpiOptions options = UMEM_MPI_OPTIONS_INIT;
  options.capacity = PTRDIFF_MAX / 2;
  CHECK(umemMpi_start(MPI_COMM_WORLD, &options) == umemMemoryError);
  expect(NULL, umemMemoryError, "/dev/shm has only");
}

int main(int argc, char **argv) {
  init_mpi(&argc, &argv);
  sync_fails = rank == ranks - 1;
  expect_failed_start();
  attribute_fails = rank == ranks - 1;
  expect_failed_start();
  sums_do_not_overflow();
  a_failure_at_the_end_is_a_status();
  if (rank == 0) printf("ok\n");
  end_mpi();
  return 0;
}
