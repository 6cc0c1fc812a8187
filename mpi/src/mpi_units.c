#include "mpi_units.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  unit_free = 0,
  unit_start = 1,
  unit_more = 2,
  unit_held = 3,
  per_word = umemMpiUnitsPerWord,
  least_unit = 64,
  most_units = 65536, /* of a part, unless the options say otherwise */
  batch = 64,         /* words of which operations are under way at a time */
  most_waits = 200    /* for calls of other ranks that are not complete */
};

static uint64_t const low_bits = UINT64_C(0x5555555555555555);
static uint64_t const nowhere = UINT64_MAX;

/* ---- words ---- */

/* Units [from, to) of a part. */
typedef struct Run {
  uint64_t from, to;
} Run;

uint64_t mpi_unit_of(uint64_t capacity, uint64_t asked) {
  uint64_t unit = least_unit;
  if (asked) return asked;
  while (unit < capacity / most_units + (capacity % most_units != 0)) unit *= 2;
  return unit;
}

uint64_t mpi_units_in(uint64_t capacity, uint64_t unit) { return capacity / unit; }

uint64_t mpi_words(uint64_t units) { return units / per_word + (units % per_word != 0); }

/* The bits of the units of run that are in a word. */
static uint64_t mask_of(uint64_t word, Run run) {
  uint64_t const first = word * per_word;
  uint64_t from = run.from > first ? run.from - first : 0;
  uint64_t to = run.to - first < per_word ? run.to - first : per_word;
  uint64_t mask = ~UINT64_C(0) << 2 * from;
  return to < per_word ? mask & ~(~UINT64_C(0) << 2 * to) : mask;
}

/* These bits with one state. */
static uint64_t in_state(uint64_t mask, uint64_t state) { return mask & low_bits * state; }

/* The bits of a block that begins in this word. */
static uint64_t begun(uint64_t word, Run run) {
  uint64_t const at = 2 * (run.from - word * per_word);
  return in_state(mask_of(word, run), unit_more) - (UINT64_C(1) << at);
}

static unsigned state_at(uint64_t word, uint64_t unit) {
  return (unsigned)(word >> 2 * (unit % per_word)) & 3;
}

static uint64_t first_word(Run run) { return run.from / per_word; }
static uint64_t end_word(Run run) { return mpi_words(run.to); }

void mpi_units_clear(uint64_t *words, uint64_t units) {
  uint64_t const count = mpi_words(units);
  memset(words, 0, count * sizeof *words);
  Run const beyond = {units, count * per_word};
  if (units % per_word) words[count - 1] = in_state(mask_of(count - 1, beyond), unit_start);
}

bool mpi_units_open(MpiUnits *units, MpiWindow *window, int rank) {
  uint64_t const capacity = window->capacities[rank];
  units->window = window->control;
  units->shared = window->records ? window->records[rank] : NULL;
  units->rank = rank;
  units->unit = mpi_unit_of(capacity, window->unit);
  units->count = mpi_units_in(capacity, units->unit);
  uint64_t const words = mpi_words(units->count);
  units->words = malloc(words ? words * sizeof *units->words : 1);
  if (!units->words) return false;
  memset(units->words, 0x55, words * sizeof *units->words);
  /* Ranks begin to search at different places, so that they rarely want the same word. */
  units->next = words * (uint64_t)window->rank / (uint64_t)window->ranks * per_word;
  if (pthread_mutex_init(&units->lock, NULL) == 0) return true;
  free(units->words);
  return false;
}

void mpi_units_close(MpiUnits *units) {
  pthread_mutex_destroy(&units->lock);
  free(units->words);
}

/* ---- operations of MPI ---- */

static MpiUnitsResult check(MpiUnits *units, int error) {
  units->error = error;
  return error == MPI_SUCCESS ? mpiUnitsDone : mpiUnitsFailed;
}

/* Reads words again. */
static MpiUnitsResult look(MpiUnits *units, uint64_t word, uint64_t count) {
  if (units->shared) {
    for (uint64_t i = word; i < word + count; i++)
      units->words[i] = __atomic_load_n(&units->shared[i], __ATOMIC_ACQUIRE);
    return mpiUnitsDone;
  }
  int error = MPI_Get_accumulate(NULL, 0, MPI_UINT64_T, units->words + word, (int)count,
                                 MPI_UINT64_T, units->rank, (MPI_Aint)word, (int)count,
                                 MPI_UINT64_T, MPI_NO_OP, units->window);
  if (error == MPI_SUCCESS) error = MPI_Win_flush_local(units->rank, units->window);
  return check(units, error);
}

/* Swaps by the CPU. */
static int swap_here(MpiUnits *units, uint64_t word, unsigned count, uint64_t const wanted[],
                     uint64_t seen[]) {
  for (unsigned i = 0; i < count; i++) {
    seen[i] = units->words[word + i];
    __atomic_compare_exchange_n(&units->shared[word + i], &seen[i], wanted[i], false,
                                __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  }
  return MPI_SUCCESS;
}

/* Swaps by MPI, all at a time. */
static int swap_there(MpiUnits *units, uint64_t word, unsigned count, uint64_t const wanted[],
                      uint64_t seen[]) {
  int error = MPI_SUCCESS;
  for (unsigned i = 0; i < count && error == MPI_SUCCESS; i++)
    error = MPI_Compare_and_swap(&wanted[i], &units->words[word + i], &seen[i], MPI_UINT64_T,
                                 units->rank, (MPI_Aint)(word + i), units->window);
  int flushed = MPI_Win_flush(units->rank, units->window);
  return error == MPI_SUCCESS ? flushed : error;
}

/* Changes at most `batch` words from what they seem to be. *changed: bit n stands for the n-th. The
 * words are then as they are. */
static MpiUnitsResult swap(MpiUnits *units, uint64_t word, unsigned count, uint64_t const wanted[],
                           uint64_t *changed) {
  uint64_t seen[batch];
  int error = units->shared ? swap_here(units, word, count, wanted, seen)
                            : swap_there(units, word, count, wanted, seen);
  *changed = 0;
  if (error != MPI_SUCCESS) return check(units, error);
  for (unsigned i = 0; i < count; i++) {
    bool same = seen[i] == units->words[word + i];
    *changed |= (uint64_t)same << i;
    units->words[word + i] = same ? wanted[i] : seen[i];
  }
  return mpiUnitsDone;
}

/* ---- runs ---- */

/* What changes: run in the words from begin to end. */
typedef struct Change {
  Run run;
  uint64_t begin, end;
  unsigned state;  /* that its units get */
  bool with_start; /* the first one becomes a start */
  bool if_free;    /* only where all units are free; otherwise they are this call's */
} Change;

static uint64_t wanted_of(uint64_t now, uint64_t word, Change const *change) {
  uint64_t const mask = mask_of(word, change->run);
  uint64_t bits = in_state(mask, change->state);
  if (change->with_start && word == first_word(change->run)) bits = begun(word, change->run);
  return (now & ~mask) | bits;
}

/* Changes some words. Returns mpiUnitsFull if units were not free; *done: bit n, whether the n-th
 * is changed. */
static MpiUnitsResult change_batch(MpiUnits *units, uint64_t word, unsigned count,
                                   Change const *change, uint64_t *done) {
  uint64_t const all = count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0);
  *done = 0;
  for (unsigned first = 0; first < count;) {
    uint64_t wanted[batch], changed;
    unsigned n = 0;
    for (; first + n < count && !(*done >> (first + n) & 1); n++) {
      uint64_t const at = word + first + n;
      if (change->if_free && units->words[at] & mask_of(at, change->run)) return mpiUnitsFull;
      wanted[n] = wanted_of(units->words[at], at, change);
    }
    MpiUnitsResult result = swap(units, word + first, n, wanted, &changed);
    *done |= changed << first;
    if (result != mpiUnitsDone) return result;
    first = *done == all ? count : (unsigned)__builtin_ctzll(~*done);
  }
  return mpiUnitsDone;
}

static MpiUnitsResult change_words(MpiUnits *units, Change change);

/* Gives back what a change of free units has taken: words [begin, word), and those of done
 * behind. */
static MpiUnitsResult undo(MpiUnits *units, Change const *change, uint64_t word, uint64_t done) {
  Change back = {change->run, change->begin, word, unit_free, false, false};
  MpiUnitsResult result = change_words(units, back);
  for (; done && result == mpiUnitsDone; done &= done - 1) {
    back.begin = word + (unsigned)__builtin_ctzll(done);
    back.end = back.begin + 1;
    result = change_words(units, back);
  }
  return result == mpiUnitsDone ? mpiUnitsFull : result;
}

static MpiUnitsResult change_words(MpiUnits *units, Change change) {
  for (uint64_t word = change.begin; word < change.end; word += batch) {
    unsigned count = change.end - word < batch ? (unsigned)(change.end - word) : batch;
    uint64_t done;
    MpiUnitsResult result = change_batch(units, word, count, &change, &done);
    if (result == mpiUnitsFull) return undo(units, &change, word, done);
    if (result != mpiUnitsDone) return result;
  }
  return mpiUnitsDone;
}

/* ---- searching ---- */

/* The first run of count units in [from, to) that seem to be free, at a multiple of alignment.
 * within: in one word. */
static uint64_t find_between(MpiUnits const *units, uint64_t from, uint64_t to, uint64_t count,
                             uint64_t alignment, bool within) {
  uint64_t run = from;
  for (uint64_t at = from; at < to;) {
    uint64_t const word = units->words[at / per_word];
    if (within && at % per_word == 0) run = at;
    if ((word | word >> 1) == ~UINT64_C(0) && at % per_word == 0) {
      at += per_word;
      run = at;
      continue;
    }
    if (word == 0 && at % per_word == 0 && !within && to - at >= per_word)
      at += per_word;
    else if (state_at(word, at) == unit_free)
      at++;
    else
      run = ++at;
    uint64_t const first = (run + alignment - 1) / alignment * alignment;
    if (first < at && at - first >= count) return first;
  }
  return nowhere;
}

/* A run that seems to be free; behind the last allocation first, and a small one in one word if
 * there is such. */
static uint64_t find(MpiUnits const *units, uint64_t count, uint64_t alignment) {
  uint64_t const start = units->next < units->count ? units->next : 0;
  for (int within = count <= per_word; within >= 0; within--) {
    uint64_t at = find_between(units, start, units->count, count, alignment, within);
    if (at == nowhere) at = find_between(units, 0, units->count, count, alignment, within);
    if (at != nowhere) return at;
  }
  return nowhere;
}

/* Whether calls of others seem to be under way. */
static bool has_held(MpiUnits const *units) {
  for (uint64_t word = 0; word < mpi_words(units->count); word++)
    if (units->words[word] & units->words[word] >> 1 & low_bits) return true;
  return false;
}

static MpiUnitsResult look_at_all(MpiUnits *units) {
  uint64_t const words = mpi_words(units->count), most = 1 << 20;
  for (uint64_t word = 0; word < words; word += most) {
    MpiUnitsResult result = look(units, word, words - word < most ? words - word : most);
    if (result != mpiUnitsDone) return result;
  }
  return mpiUnitsDone;
}

/* ---- allocating ---- */

static MpiUnitsResult claim(MpiUnits *units, Run run) {
  uint64_t const begin = first_word(run), end = end_word(run);
  if (end - begin == 1)
    return change_words(units, (Change){run, begin, end, unit_more, true, true});
  MpiUnitsResult result = change_words(units, (Change){run, begin, end, unit_held, false, true});
  if (result == mpiUnitsDone)
    result = change_words(units, (Change){run, begin, begin + 1, unit_more, true, false});
  if (result == mpiUnitsDone)
    result = change_words(units, (Change){run, begin + 1, end, unit_more, false, false});
  return result;
}

/* A moment in which others may complete their calls. */
static void wait_for_others(void) {
  struct timespec const moment = {0, 20000};
  MPI_DEFER_CANCEL();
  nanosleep(&moment, NULL);
}

MpiUnitsResult mpi_units_alloc(MpiUnits *units, uint64_t count, uint64_t alignment,
                               uint64_t *first) {
  bool fresh = false;
  if (count > units->count) return mpiUnitsFull;
  for (unsigned waits = 0, conflicts = 0;;) {
    uint64_t const at = find(units, count, alignment);
    if (at == nowhere && fresh) {
      if (!has_held(units) || waits++ == most_waits) return mpiUnitsFull;
      wait_for_others();
      fresh = false;
    }
    MpiUnitsResult result;
    if (at == nowhere) {
      result = look_at_all(units);
      fresh = true;
      if (result != mpiUnitsDone) return result;
      continue;
    }
    result = claim(units, (Run){at, at + count});
    fresh = false;
    if (result == mpiUnitsFull && ++conflicts % 16 == 0) wait_for_others();
    if (result == mpiUnitsFull) continue;
    if (result == mpiUnitsDone) units->next = at + count;
    *first = at;
    return result;
  }
}

/* ---- blocks ---- */

/* The end of the run of `more` that goes on at unit, in words that are read again, some at a
 * time. */
static MpiUnitsResult find_end(MpiUnits *units, uint64_t unit, uint64_t *end) {
  uint64_t const words = mpi_words(units->count);
  uint64_t known = unit / per_word, step = 8;
  for (;; unit++) {
    if (unit / per_word >= known && unit < units->count) {
      uint64_t const count = words - known < step ? words - known : step;
      MpiUnitsResult result = look(units, known, count);
      if (result != mpiUnitsDone) return result;
      known += count;
      step = step < 4096 ? 2 * step : step;
    }
    if (unit >= units->count || state_at(units->words[unit / per_word], unit) != unit_more) break;
  }
  *end = unit;
  return mpiUnitsDone;
}

/* The end of the block in the word of its first unit. */
static uint64_t end_in_word(MpiUnits const *units, uint64_t first) {
  uint64_t end = first + 1;
  while (end % per_word && state_at(units->words[first / per_word], end) == unit_more) end++;
  return end;
}

/* The word of first as it is, which must have a start there. */
static MpiUnitsResult look_at_start(MpiUnits *units, uint64_t first) {
  MpiUnitsResult result = look(units, first / per_word, 1);
  if (result != mpiUnitsDone) return result;
  bool is_start = state_at(units->words[first / per_word], first) == unit_start;
  return is_start ? mpiUnitsDone : mpiUnitsNoBlock;
}

MpiUnitsResult mpi_units_length(MpiUnits *units, uint64_t first, uint64_t *count) {
  if (first >= units->count) return mpiUnitsNoBlock;
  MpiUnitsResult result = look_at_start(units, first);
  if (result != mpiUnitsDone) return result;
  uint64_t end = end_in_word(units, first);
  if (end % per_word == 0) result = find_end(units, end, &end);
  *count = end - first;
  return result;
}

/* The last unit up to `unit` that is not `more`, in words that are read again, some at a time. */
static MpiUnitsResult find_begin(MpiUnits *units, uint64_t unit, uint64_t *begin) {
  uint64_t known = unit / per_word + 1, step = 1;
  for (;; unit--) {
    if (unit / per_word < known) {
      uint64_t const count = known < step ? known : step;
      MpiUnitsResult result = look(units, known - count, count);
      if (result != mpiUnitsDone) return result;
      known -= count;
      step = step < 4096 ? 2 * step : step;
    }
    *begin = unit;
    if (unit == 0 || state_at(units->words[unit / per_word], unit) != unit_more)
      return mpiUnitsDone;
  }
}

/* The words are read one after the other. So the length is that of now: if the block that was read
 * is not live any more, one that begins before the unit may end before it, too. */
MpiUnitsResult mpi_units_find(MpiUnits *units, uint64_t unit, uint64_t *first, uint64_t *count) {
  if (unit >= units->count) return mpiUnitsNoBlock;
  MpiUnitsResult result = find_begin(units, unit, first);
  if (result == mpiUnitsDone) result = mpi_units_length(units, *first, count);
  if (result == mpiUnitsDone && unit - *first >= *count) return mpiUnitsNoBlock;
  return result;
}

/* Frees a block that may go on in the next word. Its start is held: it is this call's. All its
 * units are held before one is free: otherwise a block of another call in the first free ones would
 * seem to go on in those that are not. */
static MpiUnitsResult free_held(MpiUnits *units, uint64_t first, uint64_t end) {
  MpiUnitsResult result = find_end(units, end, &end);
  if (result != mpiUnitsDone) return result;
  Run const run = {first, end};
  uint64_t const word = first_word(run);
  result = change_words(units, (Change){run, word, end_word(run), unit_held, false, false});
  if (result != mpiUnitsDone) return result;
  return change_words(units, (Change){run, word, end_word(run), unit_free, false, false});
}

MpiUnitsResult mpi_units_free(MpiUnits *units, uint64_t first) {
  if (first >= units->count) return mpiUnitsNoBlock;
  uint64_t const at = first / per_word;
  uint64_t changed = 0, end = 0;
  bool in_one = false;
  while (!changed) {
    MpiUnitsResult result = mpiUnitsDone;
    if (state_at(units->words[at], first) != unit_start) result = look_at_start(units, first);
    if (result != mpiUnitsDone) return result;
    end = end_in_word(units, first);
    in_one = end % per_word != 0;
    uint64_t const mask = mask_of(at, (Run){first, in_one ? end : first + 1});
    uint64_t const wanted =
        (units->words[at] & ~mask) | in_state(mask, in_one ? unit_free : unit_held);
    result = swap(units, at, 1, &wanted, &changed);
    if (result != mpiUnitsDone) return result;
  }
  return in_one ? mpiUnitsDone : free_held(units, first, end);
}

MpiUnitsResult mpi_units_available(MpiUnits *units, uint64_t *count) {
  MpiUnitsResult result = look_at_all(units);
  *count = 0;
  for (uint64_t word = 0; word < mpi_words(units->count); word++) {
    uint64_t const used = (units->words[word] | units->words[word] >> 1) & low_bits;
    *count += (uint64_t)(per_word - __builtin_popcountll(used));
  }
  return result;
}
