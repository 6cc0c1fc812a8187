/* mpi_units.h - the records of the blocks of one rank, in the control window.
 *
 * The part of a rank is divided into units. Each has a state of two bits; 32 units are a word.
 * Ranks change words by MPI_Compare_and_swap alone, and read them by MPI_Get_accumulate with
 * MPI_NO_OP: MPI promises that these are atomic with respect to each other. If all ranks share
 * memory, they do so by instructions of the CPU.
 *
 *     free   nobody's
 *     start  the first unit of a block
 *     more   the following units of a block
 *     held   of a call that is not complete: an allocation or a free
 *
 * The units of a block are its start and the run of `more` behind it. A block in one word is
 * allocated and freed by one operation. A block in several words is held, word by word, until all
 * its units are; only then it gets its start, and after that its `more`. It is freed the same way:
 * its start is held first, then all its units are, and only then they are free. So a run of `more`
 * always belongs to the start before it, or to a held unit before it. */
#ifndef UMEM_MPI_UNITS_H
#define UMEM_MPI_UNITS_H

#include "mpi_state.h"

enum { umemMpiUnitsPerWord = 32 };

typedef enum MpiUnitsResult {
  mpiUnitsDone,
  mpiUnitsFull,    /* no run of free units is long enough */
  mpiUnitsNoBlock, /* no live block begins there */
  mpiUnitsFailed   /* MPI has returned units->error */
} MpiUnitsResult;

/* What a context knows of the records of its rank. The words are as this context last saw them: a
 * guess, which each operation corrects. Callers hold lock. */
typedef struct MpiUnits {
  pthread_mutex_t lock;
  MPI_Win window;   /* borrowed: the control window */
  uint64_t *shared; /* borrowed: the words themselves, if all ranks share memory; else NULL */
  int rank;
  uint64_t unit;   /* bytes */
  uint64_t count;  /* units of the part */
  uint64_t *words; /* owned: [mpi_words(count)] */
  uint64_t next;   /* the unit where the next search begins */
  int error;
} MpiUnits;

/* The bytes of a unit of a part of capacity bytes; asked: of the options. */
uint64_t mpi_unit_of(uint64_t capacity, uint64_t asked);

/* The units in capacity bytes; what is left over at the end is nobody's. */
uint64_t mpi_units_in(uint64_t capacity, uint64_t unit);

/* The words for so many units. */
uint64_t mpi_words(uint64_t units);

/* Makes the words of a part without blocks: units that do not exist are in use. */
void mpi_units_clear(uint64_t *words, uint64_t units);

/* All units seem to be in use, until the first search. False without memory. */
bool mpi_units_open(MpiUnits *units, MpiWindow *window, int rank);
void mpi_units_close(MpiUnits *units);

/* Allocates count units at a multiple of alignment units. */
MpiUnitsResult mpi_units_alloc(MpiUnits *units, uint64_t count, uint64_t alignment,
                               uint64_t *first);

/* Frees the block that begins at first. */
MpiUnitsResult mpi_units_free(MpiUnits *units, uint64_t first);

/* How many units the block that begins at first has. */
MpiUnitsResult mpi_units_length(MpiUnits *units, uint64_t first, uint64_t *count);

/* The block that has the unit: where it begins, and how many units it has. A block that another
 * call allocates or frees meanwhile may be found or not. */
MpiUnitsResult mpi_units_find(MpiUnits *units, uint64_t unit, uint64_t *first, uint64_t *count);

/* How many units are free. */
MpiUnitsResult mpi_units_available(MpiUnits *units, uint64_t *count);

#endif
