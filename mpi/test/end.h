/* end.h - how programs of the tests end MPI, in C and C++. */
#ifndef UMEM_TEST_MPI_END_H
#define UMEM_TEST_MPI_END_H

#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What MPI_Finalize tells MPICH's launcher. A process that ends without it counts as one that has
 * died, if the launcher sees that its connection is closed before it sees that its output is: then
 * it kills the other ranks. */
static inline void leave_launcher(void) {
  static char const message[] = "cmd=finalize\n";
  char const *connection = getenv("PMI_FD");
  char answer[64];
  if (!connection) return;
  int fd = atoi(connection);
  if (write(fd, message, sizeof message - 1) < 0 || read(fd, answer, sizeof answer) <= 0)
    fprintf(stderr, "MPICH's launcher does not answer\n");
}

/* MPICH 4.0 over TCP by UCX does not always come back from MPI_Finalize, also in a program that
 * does nothing else than to begin and end MPI: it is left out there. */
static inline void end_mpi(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length, here, ranks, done = 0;
  MPI_Comm machine;
  MPI_Request request;
  MPI_Get_library_version(version, &length);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &here);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_free(&machine);
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  while (!done) { /* lets other processes run, as barrier in ranks.h */
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    sched_yield();
  }
  fflush(NULL);
  if (here < ranks && !getenv("UMEM_TEST_MPI_MACHINES") && strstr(version, "ch4:ucx")) {
    leave_launcher();
    _exit(0);
  }
  MPI_Finalize();
}

#endif
