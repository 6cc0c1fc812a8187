/* umem/detail/checks_functions.hpp - what checks.hpp declares. */
#ifndef UMEM_DETAIL_CHECKS_FUNCTIONS_HPP
#define UMEM_DETAIL_CHECKS_FUNCTIONS_HPP

#include <umem/detail/checks.hpp>

#include <cstdio>
#include <cstdlib>
#include <umem/find.h>

namespace umem {
namespace detail {

/* ---- the list ---- */

struct WatchList {
  Watched *first = nullptr;
  bool taken = false; /* atomic */
};
inline WatchList watch_list;

/* Holds the list, for a few instructions. */
class WatchLock {
public:
  WatchLock() noexcept {
    while (__atomic_test_and_set(&watch_list.taken, __ATOMIC_ACQUIRE)) {
    }
  }
  WatchLock(WatchLock const &) = delete;
  WatchLock &operator=(WatchLock const &) = delete;
  ~WatchLock() { __atomic_clear(&watch_list.taken, __ATOMIC_RELEASE); }

  /* What threads know of the list is old from now on. */
  void change() noexcept { __atomic_add_fetch(&watch_changes, 1, __ATOMIC_RELEASE); }
};

UMEM_INLINE void watch(Watched &array) noexcept {
  WatchLock lock;
  array.next = watch_list.first;
  watch_list.first = &array;
  lock.change();
}

UMEM_INLINE void unwatch(Watched &array) noexcept {
  WatchLock lock;
  Watched **link = &watch_list.first;
  while (*link != &array) link = &(*link)->next;
  *link = array.next;
  lock.change();
}

UMEM_INLINE void watch_last_guard() noexcept {
  WatchLock lock;
  lock.change();
}

UMEM_INLINE void watch_memory(Watched &array, int side, std::uintptr_t first) noexcept {
  WatchLock lock;
  array.first[side] = first;
  lock.change();
}

/* ---- accesses ---- */

inline bool has_guards(Watched const &array, int side) noexcept {
  for (GuardCounts const *counts : array.guards[side])
    if (counts && counts->all() > 0) return true;
  return false;
}

/* The array with this address and its side, or NULL. Narrows *range, which contains at, to the memory of this side or
 * to addresses of no array. Under the lock. */
inline Watched *find_watched(std::uintptr_t at, AllowedRange &range, int &side) noexcept {
  for (Watched *array = watch_list.first; array; array = array->next)
    for (side = 0; side < 2; side++) {
      std::uintptr_t first = array->first[side], end = first + array->nbytes;
      if (!first) continue;
      if (is_in(at, first, array->nbytes)) {
        range = {first, array->nbytes};
        return array;
      }
      std::uintptr_t last = range.first + range.size;
      if (end <= at && end > range.first) range = {end, last - end};
      if (first > at && first < last) range.size = first - range.first;
    }
  return nullptr;
}

/* ' "a"' for a label, or nothing. */
struct QuotedLabel {
  char text[UMEM_LABEL_SIZE + 4];
  explicit QuotedLabel(char const *label) noexcept : text{} {
    if (*label) std::snprintf(text, sizeof text, " \"%s\"", label);
  }
};

/* " of the array "u" of shape (3, 4) on Host "grid"", behind `before`: what is known of the memory at data; nothing if
 * nothing is known. */
struct WordsOfMemory {
  char text[512];

  WordsOfMemory(char const *before, void const *data) noexcept : text{} {
    auto at = reinterpret_cast<std::uintptr_t>(data);
    char shape[sizeof Watched::shape + 16] = "";
    void *context = nullptr;
    {
      WatchLock lock;
      AllowedRange all{0, UINTPTR_MAX};
      int side = 0;
      if (Watched *array = find_watched(at, all, side)) {
        std::snprintf(shape, sizeof shape, " of shape %s", array->shape);
        context = array->contexts[side];
        at = array->first[side];
      }
    }
    umemFound found = UMEM_FOUND_INIT;
    if (!umem_find(at, &found) && !context) return;
    QuotedLabel label(context ? umem_get_label(context) : found.label), block(found.block_label);
    std::snprintf(text, sizeof text, "%s%s%s%s on %s%s", before, context ? "array" : "block",
                  block.text, shape, context ? umem_get_device_name(context) : found.name,
                  label.text);
  }
};

inline void print_check(CheckPlace const &place, char const *text) noexcept {
  std::fprintf(stderr, "%s:%u: %s: the check '%s' of umem failed: %s\n", place.file, place.line,
               place.function, place.condition, text);
}

UMEM_INLINE void check_guarded_slowly(void const *p, CheckPlace const &place) noexcept {
  auto at = reinterpret_cast<std::uintptr_t>(p);
  AllowedRanges &allowed = allowed_ranges;
  unsigned long changes = __atomic_load_n(&watch_changes, __ATOMIC_ACQUIRE);
  if (allowed.changes != changes) allowed = {changes, 0, {}};
  AllowedRange range{0, UINTPTR_MAX};
  int side = 0;
  bool good;
  {
    WatchLock lock;
    Watched const *array = find_watched(at, range, side);
    good = !array || has_guards(*array, side);
  }
  if (good) {
    allowed.ranges[allowed.next++ % 4] = range;
    return;
  }
  char text[800];
  std::snprintf(
      text, sizeof text,
      "a view is used after its guard has ended%s: no guard of the %s side lives. Keep the "
      "guard as long as its views",
      WordsOfMemory("; it is of the ", p).text, side == 0 ? "host" : "device");
  print_check(place, text);
  std::abort();
}

UMEM_INLINE void fail_indices(CheckPlace const &place, CheckedIndices const &checked,
                              void const *data) noexcept {
  int rank = checked.rank;
  InWords indices(checked.indices, checked.indices + rank),
      extents(checked.extents, checked.extents + rank), below(checked.below, checked.below + rank),
      above(checked.above, checked.above + rank);
  bool has_ghosts = false;
  for (int k = 0; k < rank; k++) has_ghosts = has_ghosts || checked.below[k] || checked.above[k];
  char ghosts[600] = "", text[2000];
  if (has_ghosts)
    std::snprintf(ghosts, sizeof ghosts, " with %s ghost cells before and %s after", below.text,
                  above.text);
  if (data)
    std::snprintf(text, sizeof text, "index %s is outside of a view of shape %s%s%s", indices.text,
                  extents.text, ghosts, WordsOfMemory(", which is in the ", data).text);
  else
    std::snprintf(text, sizeof text, "index %s is outside of shape %s%s", indices.text,
                  extents.text, ghosts);
  print_check(place, text);
  std::abort();
}

UMEM_INLINE void fail_ended(CheckPlace const &place, index_t const *extents, int rank,
                            void const *data) noexcept {
  char text[1000];
  std::snprintf(text, sizeof text,
                "a guard of shape %s is used after the end of its array%s: what it writes is lost. "
                "Keep the array as "
                "long as the guard",
                InWords(extents, extents + rank).text, WordsOfMemory(", the ", data).text);
  print_check(place, text);
  std::abort();
}

} // namespace detail
} // namespace umem

#endif
