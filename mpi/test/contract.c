/* contract.c - the contract of all contexts (test/contract) on the memory of another rank, which
 * does not help: it sleeps, computes, or dies, or in MPI alone, which needs that without threads.
 *
 *     mpirun -n 2 contract sleeps|computes|dies|helps [arguments of the contract]
 *
 * Rank 0 runs the contract, with the row "mpi", which is "mpi:1". Rank 1 calls MPI only before and
 * after, and looks at its memory to find out when that is. It dies when the contract has begun:
 * rank 0 then goes on, if MPI lets it, and cannot end MPI. It prints "the contract holds" at last,
 * and first its number if the output goes to a file. More ranks sleep: with them the window is one
 * of several machines (UMEM_TEST_MPI_MACHINES: machines.c). */
#include "ranks.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

int rank, ranks;
umemHost host;

int contract_main(int argc, char **argv);

enum { part = 72 << 20 };

/* What rank 0 writes to the memory of rank 1. */
enum { is_waiting = 0, has_begun = 1, has_ended = 2 };

static void say(umemMpi *ctx, int what) {
  CHECK_OK(umem_copy_to(&host, (uintptr_t)&what, ctx, 0, sizeof what));
}

static void do_something_else(char const *how, int volatile const *said) {
  struct timespec const pause = {0, 5000000};
  bool const dies = !strcmp(how, "dies"), sleeps = !strcmp(how, "sleeps");
  bool const helps = !strcmp(how, "helps");
  while (*said != has_ended) {
    if (dies && *said == has_begun) kill(getpid(), SIGKILL);
    if (sleeps) nanosleep(&pause, NULL);
    int found;
    if (helps) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
}

/* Rank 1. */
static void be_used(char const *how) {
  umemMpi own;
  CHECK_OK(umemMpi_ctor(&own, MPI_COMM_WORLD, 1));
  barrier();
  do_something_else(how, umemMpi_pointer(&own, 0));
  umem_dtor(&own);
}

/* Rank 0. */
static int run(char const *how, int argc, char **argv) {
  umemMpi other;
  CHECK_OK(umemMpi_ctor(&other, MPI_COMM_WORLD, 1));
  uintptr_t adr = umem_calloc(&other, 1, sizeof(int));
  CHECK(adr == 0);
  barrier();
  say(&other, has_begun);
  if (!strcmp(how, "dies")) sleep(1);
  int failed = contract_main(argc, argv);
  say(&other, has_ended);
  umem_dtor(&other);
  printf("%s\n", failed ? "the contract does not hold" : "the contract holds");
  fflush(stdout);
  return failed;
}

/* MPICH's mpirun reports a dead rank by a signal, and ends: output goes to a file that the
 * environment names. */
static void write_to_file(void) {
  char const *path = getenv("UMEM_TEST_MPI_OUTPUT");
  signal(SIGUSR1, SIG_IGN);
  if (!path || rank != 0) return;
  CHECK(freopen(path, "w", stdout) && dup2(fileno(stdout), STDERR_FILENO) >= 0);
  printf("%ld\n", (long)getpid());
  fflush(stdout);
}

int main(int argc, char **argv) {
  int failed = 0;
  init_mpi(&argc, &argv);
  write_to_file();
  umemHost_ctor(&host);
  start_window(part);
  char *words[16] = {argv[0], "alone", "*mpi*"};
  int count = 3;
  for (int i = 2; i < argc && count < 15; i++) words[count++] = argv[i];
  CHECK(argc > 1 && ranks > 1);
  if (rank == 0)
    failed = run(argv[1], count, words);
  else if (rank == 1)
    be_used(argv[1]);
  else
    barrier();
  if (!strcmp(argv[1], "dies")) _exit(failed);
  sleep_to_barrier();
  CHECK_OK(umemMpi_stop(MPI_COMM_WORLD));
  umem_dtor(&host);
  end_mpi();
  return failed;
}
