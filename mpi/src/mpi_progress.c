/* mpi_progress.c - a thread that calls MPI again and again. Operations of other ranks on this
 * rank's memory, in which MPI needs its help, then complete although the program computes or
 * sleeps. */
#include "mpi_state.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef struct MpiProgress {
  pthread_t thread;
  MPI_Comm comm; /* borrowed; nobody sends messages on it */
  bool stop;     /* atomic */
} MpiProgress;

/* Sleeps between: a blocking receive would take a processor. */
static void *run(void *data) {
  MpiProgress *progress = data;
  struct timespec const pause = {0, 50000};
  while (!__atomic_load_n(&progress->stop, __ATOMIC_ACQUIRE)) {
    int found;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, progress->comm, &found, MPI_STATUS_IGNORE);
    nanosleep(&pause, NULL);
  }
  return NULL;
}

struct MpiProgress *mpi_progress_start(MPI_Comm comm, int *error) {
  MpiProgress *progress = calloc(1, sizeof *progress);
  *error = ENOMEM;
  if (!progress) return NULL;
  progress->comm = comm;
  *error = pthread_create(&progress->thread, NULL, run, progress);
  if (*error == 0) return progress;
  free(progress);
  return NULL;
}

void mpi_progress_stop(struct MpiProgress *progress) {
  if (!progress) return;
  __atomic_store_n(&progress->stop, true, __ATOMIC_RELEASE);
  pthread_join(progress->thread, NULL);
  free(progress);
}
