/* units.c - the records of the blocks (mpi_units.h) between any two steps of a call. One process
 * stands for several ranks that share memory: before the n-th swap of a call, other ranks make
 * complete calls, or the call ends there, as if its rank had died. For each n: no block has units
 * of another one, each has its length, and what is free afterwards is what must be. Needs no MPI
 * that runs. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static bool swap_word(uint64_t *word, uint64_t *seen, uint64_t wanted);
#define __atomic_compare_exchange_n(word, seen, wanted, weak, good, bad)                           \
  swap_word(word, seen, wanted)
#define nanosleep(moment, rest) ((void)(moment)) /* nobody to wait for */
#include "../src/mpi_units.c" /* NOLINT(bugprone-suspicious-include): it gets the functions above */
#undef __atomic_compare_exchange_n

enum { words = 6, all = words * per_word, most_blocks = all };

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) check_failed(__LINE__, #condition);                                          \
  } while (0)

static uint64_t memory[words];
static MpiUnits first_rank, other_rank;
static uint64_t left; /* swaps until something happens; 0: nothing will */
static bool dies;
static bool happened;
static jmp_buf end_of_rank;

static void check_failed(int line, char const *condition) {
  fprintf(stderr, "units.c:%d: not %s\n", line, condition);
  exit(1);
}

/* ---- what other ranks do ---- */

static uint64_t length_of(MpiUnits *units, uint64_t at) {
  uint64_t count = 0;
  CHECK(mpi_units_length(units, at, &count) == mpiUnitsDone);
  return count;
}

/* Each unit of the block is found, and what is around the block is not in it. */
static void expect_found(MpiUnits *units, uint64_t at, uint64_t length) {
  uint64_t first, count;
  for (uint64_t k = at; k < at + length; k++) {
    CHECK(mpi_units_find(units, k, &first, &count) == mpiUnitsDone);
    CHECK(first == at && count == length);
  }
  if (at) CHECK(mpi_units_find(units, at - 1, &first, &count) != mpiUnitsDone || first != at);
  CHECK(mpi_units_find(units, at + length, &first, &count) != mpiUnitsDone || first != at);
}

/* Allocates all that is free in blocks of at most so many units, checks them, and frees them. */
static uint64_t use_all(MpiUnits *units, uint64_t most) {
  uint64_t at[most_blocks], counts[most_blocks], sum = 0;
  bool used[all] = {false};
  unsigned n = 0;
  for (uint64_t count = most; count; count /= 2)
    while (mpi_units_alloc(units, count, 1, &at[n]) == mpiUnitsDone) counts[n++] = count;
  for (unsigned i = 0; i < n; i++) {
    CHECK(length_of(units, at[i]) == counts[i]);
    expect_found(units, at[i], counts[i]);
    for (uint64_t k = at[i]; k < at[i] + counts[i]; k++) {
      CHECK(!used[k]);
      used[k] = true;
    }
    sum += counts[i];
  }
  for (unsigned i = 0; i < n; i++) CHECK(mpi_units_free(units, at[i]) == mpiUnitsDone);
  return sum;
}

static bool swap_word(uint64_t *word, uint64_t *seen, uint64_t wanted) {
  if (left && --left == 0) {
    happened = true;
    if (dies) longjmp(end_of_rank, 1);
    use_all(&other_rank, per_word);
  }
  if (*word == *seen) {
    *word = wanted;
    return true;
  }
  *seen = *word;
  return false;
}

/* ---- the ranks ---- */

static void open_rank(MpiUnits *units, int rank) {
  uint64_t capacities[2] = {all * least_unit, all * least_unit}, *records[2] = {memory, memory};
  MpiWindow window = {.capacities = capacities, .records = records, .rank = rank, .ranks = 2};
  CHECK(mpi_units_open(units, &window, 0));
}

static void begin(void) {
  mpi_units_clear(memory, all);
  open_rank(&first_rank, 0);
  open_rank(&other_rank, 1);
  happened = false;
}

static void end(void) {
  mpi_units_close(&first_rank);
  mpi_units_close(&other_rank);
}

static uint64_t available(void) {
  uint64_t count = 0;
  CHECK(mpi_units_available(&other_rank, &count) == mpiUnitsDone);
  return count;
}

/* ---- the tests ---- */

/* Blocks of these units, which begin at these units; 0 ends the table. */
static struct {
  uint64_t from, count;
} const shapes[] = {{0, 1}, {5, 27}, {3, 40}, {0, 64}, {10, 150}, {20, 76}, {0, 192}, {0, 0}};

/* A block at from: what is before it is allocated first, and freed at last. */
static uint64_t block_at(uint64_t from, uint64_t count) {
  uint64_t before = 0, at;
  if (from) CHECK(mpi_units_alloc(&first_rank, from, 1, &before) == mpiUnitsDone && before == 0);
  CHECK(mpi_units_alloc(&first_rank, count, 1, &at) == mpiUnitsDone && at == from);
  return at;
}

static void others_call_between(void) {
  for (int i = 0; shapes[i].count; i++)
    for (uint64_t n = 1;; n++) {
      uint64_t const from = shapes[i].from, count = shapes[i].count;
      begin();
      uint64_t at = block_at(from, count);
      left = n;
      CHECK(mpi_units_free(&first_rank, at) == mpiUnitsDone);
      if (happened) left = 0;
      MpiUnitsResult result = mpi_units_alloc(&first_rank, count, 1, &at);
      left = 0;
      CHECK(result == mpiUnitsDone && length_of(&other_rank, at) == count);
      CHECK(mpi_units_free(&other_rank, at) == mpiUnitsDone);
      if (from) CHECK(length_of(&other_rank, 0) == from);
      if (from) CHECK(mpi_units_free(&other_rank, 0) == mpiUnitsDone);
      CHECK(available() == all && use_all(&other_rank, all) == all);
      end();
      if (!happened) break;
    }
}

/* A rank dies before the n-th swap of a call: at most the block of the call is lost. */
static void rank_dies_before(uint64_t n, uint64_t from, uint64_t count, bool in_free) {
  uint64_t const kept = in_free ? from : 0;
  begin();
  uint64_t at = in_free ? block_at(from, count) : 0;
  if (setjmp(end_of_rank) == 0) {
    left = n;
    if (in_free)
      mpi_units_free(&first_rank, from);
    else
      mpi_units_alloc(&first_rank, count, 1, &at);
  }
  left = 0;
  uint64_t const free_now = available();
  if (kept) CHECK(length_of(&other_rank, 0) == kept);
  CHECK(free_now >= all - kept - count);
  CHECK(use_all(&other_rank, per_word) == free_now);
  CHECK(available() == free_now);
  end();
}

static void ranks_die_between(bool in_free) {
  dies = true;
  for (int i = 0; shapes[i].count; i++) {
    happened = true;
    for (uint64_t n = 1; happened; n++)
      rank_dies_before(n, shapes[i].from, shapes[i].count, in_free);
  }
  dies = false;
}

static void units_of_no_block_are_not_found(void) {
  uint64_t first, count;
  begin();
  for (uint64_t unit = 0; unit <= all; unit++)
    CHECK(mpi_units_find(&other_rank, unit, &first, &count) == mpiUnitsNoBlock);
  CHECK(mpi_units_find(&other_rank, UINT64_MAX, &first, &count) == mpiUnitsNoBlock);
  uint64_t at = block_at(0, 100);
  memory[1] =
      in_state(~UINT64_C(0), unit_held); /* a call of another rank holds the units 32 to 63 */
  CHECK(mpi_units_find(&other_rank, 40, &first, &count) == mpiUnitsNoBlock);
  CHECK(mpi_units_find(&other_rank, 70, &first, &count) == mpiUnitsNoBlock);
  CHECK(mpi_units_find(&other_rank, 31, &first, &count) == mpiUnitsDone);
  CHECK(first == at && count == per_word);
  end();
}

/* A rank has seen all units free, and another one has taken some since. */
static void what_was_seen_is_a_guess(void) {
  enum { count = 100 }; /* more than a half, in several words */
  uint64_t at, other = nowhere;
  begin();
  CHECK(mpi_units_alloc(&other_rank, count, 1, &at) == mpiUnitsDone);
  CHECK(mpi_units_free(&other_rank, at) == mpiUnitsDone);
  CHECK(mpi_units_alloc(&first_rank, count, 1, &at) == mpiUnitsDone);
  CHECK(mpi_units_alloc(&other_rank, count, 1, &other) == mpiUnitsFull);
  CHECK(length_of(&first_rank, at) == count);
  CHECK(mpi_units_free(&first_rank, at) == mpiUnitsDone);
  end();
}

int main(void) {
  what_was_seen_is_a_guess();
  printf("ok - what was seen is a guess\n");
  units_of_no_block_are_not_found();
  printf("ok - units of no block are not found\n");
  others_call_between();
  printf("ok - others call between two swaps\n");
  ranks_die_between(true);
  printf("ok - a rank dies in a free\n");
  ranks_die_between(false);
  printf("ok - a rank dies in an allocation\n");
  return 0;
}
