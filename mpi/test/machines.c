/* machines.c - lets ranks of one machine seem to be on several: a function of MPI for the programs
 * of the tests. MPI then has more ways between them than it would have, but umem treats them as it
 * treats ranks of several machines.
 *
 *     UMEM_TEST_MPI_MACHINES=0011     ranks 0 and 1 are on one machine, 2 and 3 on another one */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm) {
  char const *machines = getenv("UMEM_TEST_MPI_MACHINES");
  int rank;
  if (!machines || split_type != MPI_COMM_TYPE_SHARED)
    return PMPI_Comm_split_type(comm, split_type, key, info, newcomm);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank); /* comm may have another order */
  if ((size_t)rank >= strlen(machines)) return MPI_ERR_OTHER;
  return PMPI_Comm_split(comm, machines[rank], key, newcomm);
}
