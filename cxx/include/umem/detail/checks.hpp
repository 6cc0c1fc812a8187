/* umem/detail/checks.hpp - what bounds checks print, the arrays that they watch, and how uses of
 * arrays are counted, which checks ask for.
 *
 * If UMEM_CHECKS is 1 where a program takes a guard of an array, umem watches this array from then
 * on: it knows the address of its elements and how many guards live. Access by indices then finds
 * out that no guard lives any more. */
#ifndef UMEM_DETAIL_CHECKS_HPP
#define UMEM_DETAIL_CHECKS_HPP

#include <umem/find.h>
#include <umem/ghosts.hpp>

#include <atomic>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define UMEM_HAS_ONE_THREAD __libc_single_threaded
#else
#define UMEM_HAS_ONE_THREAD false
#endif

namespace umem::detail {

/* Where a check is in the source. */
struct CheckPlace {
  char const *condition, *file;
  unsigned line;
  char const *function;
};

/* N numbers for each: the indices, and where they may be. */
struct CheckedIndices {
  index_t const *indices, *extents, *below, *above;
  int rank;
};

/* ---- arrays that are watched; any thread ---- */

/* A different address in each thread that runs. */
inline void const *this_thread() noexcept {
  static thread_local char mark;
  return &mark;
}

/* Adds n to a number, and returns the sum. add_alone: no other thread changes it meanwhile. */
template <class Number>
UMEM_ALWAYS_INLINE Number add_alone(std::atomic<Number> &to, Number n) noexcept {
  Number const sum = to.load(std::memory_order_relaxed) + n;
  to.store(sum, std::memory_order_relaxed);
  return sum;
}
template <class Number> UMEM_ALWAYS_INLINE Number add(std::atomic<Number> &to, Number n) noexcept {
  if (UMEM_HAS_ONE_THREAD) return add_alone(to, n);
  return to.fetch_add(n, std::memory_order_acq_rel) + n;
}

/* What uses the memory of an array: guards and loops of each side and, together as one, the owners
 * of the memory, which are arrays, locks and parts. All are in one number, so that a guard ends by
 * one atomic addition, after which the memory is freed if the number is 0. A process of one thread
 * adds without. The thread that made the array counts what it begins in own_. No other thread
 * changes it, and after the last owner nothing begins. */
class ArrayUses {
public:
  static constexpr std::uint64_t of_host = std::uint64_t(1) << 32, of_device = 1;

  /* Guards and loops of a side. */
  unsigned host() const noexcept { return static_cast<unsigned>(sum() >> 32); }
  unsigned device() const noexcept { return static_cast<unsigned>(sum() & (owners - 1)); }
  unsigned all() const noexcept { return host() + device(); }
  bool has_owners() const noexcept { return (sum() & owners) != 0; }

  /* Counts what begins, or a loop that ends where it began. */
  void add(std::uint64_t use) noexcept { detail::add(count_, use); }
  void add_own(std::uint32_t n) noexcept { add_alone(own_, n); }

  /* Counts an end. Returns whether nothing is left: then the memory is the caller's. */
  bool end(std::uint64_t use) noexcept { return detail::add(count_, 0 - use) == 0; }
  bool end_owners() noexcept { return end(owners - own()); }

private:
  static constexpr std::uint64_t owners = std::uint64_t(1) << 31;

  std::uint64_t own() const noexcept { return std::uint64_t(own_) << 32; }
  /* What has ended by count_ has begun by own_. */
  std::uint64_t sum() const noexcept {
    std::uint64_t const count = count_.load(std::memory_order_acquire);
    return (count & owners) ? count + own() : count;
  }

  std::atomic<std::uint64_t> count_{owners};
  std::atomic<std::uint32_t> own_{0};
};

/* An array; of each side, the host's first. Under the lock of the list. */
struct Watched {
  Watched *next;
  std::uintptr_t first[2]; /* 0: the side has no memory. If both share one, it is the host's */
  std::size_t nbytes;
  ArrayUses const *uses;
  void *contexts[2]; /* umemVirtual, borrowed */
  char shape[256];   /* "(3, 4)" */
};

/* Adds to the list, removes from it; for a side whose last guard has ended; enters the first byte
 * of a side, or 0 where its memory has gone. */
void watch(Watched &array) noexcept;
void unwatch(Watched &array) noexcept;
void watch_last_guard() noexcept;
void watch_memory(Watched &array, int side, std::uintptr_t first) noexcept;

/* Counts the changes of the list; 0: no array was ever watched. Atomic. */
inline unsigned long watch_changes = 0;

/* Addresses that the calling thread may access until the list changes: the last that it has asked
 * for. */
struct AllowedRange {
  std::uintptr_t first;
  std::size_t size;
};
struct AllowedRanges {
  unsigned long changes;
  unsigned next;
  AllowedRange ranges[4];
};
inline thread_local AllowedRanges allowed_ranges;

[[gnu::always_inline]] inline bool is_in(std::uintptr_t at, std::uintptr_t first,
                                         std::size_t size) noexcept {
  return at - first < size;
}

/* Ends the program if p points to an element of an array that is watched, and no guard of its side
 * lives. */
void check_guarded_slowly(void const *p, CheckPlace const &place) noexcept;

[[gnu::always_inline]] inline void check_guarded(void const *p, char const *file, unsigned line,
                                                 char const *function) noexcept {
  unsigned long changes = __atomic_load_n(&watch_changes, __ATOMIC_RELAXED);
  if (changes == 0) return;
  auto at = reinterpret_cast<std::uintptr_t>(p);
  AllowedRanges const &allowed = allowed_ranges;
  if (allowed.changes == changes)
    for (AllowedRange const &range : allowed.ranges)
      if (is_in(at, range.first, range.size)) return;
  check_guarded_slowly(p, {"a guard lives", file, line, function});
}

/* ---- what failing checks print; they end the program ---- */

/* Indices out of range. data: element (0, ..., 0). */
[[noreturn]] void fail_indices(CheckPlace const &place, CheckedIndices const &checked,
                               void const *data) noexcept;

/* An access through a guard whose array has ended. data: as above. */
[[noreturn]] void fail_ended(CheckPlace const &place, index_t const *extents, int rank,
                             void const *data) noexcept;

/* Out of line, so that the code around an access stays small. */
template <int Rank>
[[noreturn, gnu::noinline, gnu::cold]] void
fail_indices(CheckPlace const &place, Extents<Rank> const &indices, Extents<Rank> const &extents,
             Ghosts<Rank> const &ghosts, void const *data) noexcept {
  fail_indices(place, {indices.at, extents.at, ghosts.below.at, ghosts.above.at, Rank}, data);
}

#if defined(__CUDACC__)
/* Prints indices in a kernel, whose output is short. */
template <int Rank>
__device__ __attribute__((noinline)) void print_indices(Extents<Rank> const &indices,
                                                        Extents<Rank> const &extents,
                                                        Ghosts<Rank> const &ghosts) {
  if constexpr (Rank == 1) {
    std::printf("umem: index (%lld,) is not in the ranges ([%lld, %lld),)\n",
                (long long)indices.at[0], -(long long)ghosts.below.at[0],
                (long long)(extents.at[0] + ghosts.above.at[0]));
  } else if constexpr (Rank == 2) {
    std::printf("umem: index (%lld, %lld) is not in the ranges ([%lld, %lld), [%lld, %lld))\n",
                (long long)indices.at[0], (long long)indices.at[1], -(long long)ghosts.below.at[0],
                (long long)(extents.at[0] + ghosts.above.at[0]), -(long long)ghosts.below.at[1],
                (long long)(extents.at[1] + ghosts.above.at[1]));
  } else if constexpr (Rank == 3) {
    std::printf("umem: index (%lld, %lld, %lld) is not in the ranges ([%lld, %lld), [%lld, %lld), "
                "[%lld, %lld))\n",
                (long long)indices.at[0], (long long)indices.at[1], (long long)indices.at[2],
                -(long long)ghosts.below.at[0], (long long)(extents.at[0] + ghosts.above.at[0]),
                -(long long)ghosts.below.at[1], (long long)(extents.at[1] + ghosts.above.at[1]),
                -(long long)ghosts.below.at[2], (long long)(extents.at[2] + ghosts.above.at[2]));
  } else {
    for (int k = 0; k < Rank; k++)
      std::printf(
          "umem: of an index that is out of range: %lld, range [%lld, %lld), in dimension %d\n",
          (long long)indices.at[k], -(long long)ghosts.below.at[k],
          (long long)(extents.at[k] + ghosts.above.at[k]), k);
  }
}
#endif

} // namespace umem::detail

/* Of an access to the element at `indices` of a view, by the function that the program has called;
 * each is an expression without side effects. */
#define UMEM_ASSERT_INDICES(condition, indices, view)                                              \
  UMEM_ASSERT_INDICES_OF(__func__, condition, indices, view)
#define UMEM_ASSERT_GUARDED(pointer) UMEM_ASSERT_GUARDED_OF(__func__, pointer)
#if !UMEM_CHECKS
#define UMEM_ASSERT_INDICES_OF(function, condition, indices, view) static_cast<void>(0)
#define UMEM_ASSERT_GUARDED_OF(function, pointer) static_cast<void>(0)
#elif defined(__CUDA_ARCH__)
#define UMEM_ASSERT_INDICES_OF(function, condition, indices, view)                                 \
  ((condition) ? static_cast<void>(0)                                                              \
               : (::umem::detail::print_indices(indices, (view).extents, (view).ghosts),           \
                  __assert_fail(#condition, __FILE__, __LINE__, function)))
#define UMEM_ASSERT_GUARDED_OF(function, pointer) static_cast<void>(0)
#else
#define UMEM_ASSERT_INDICES_OF(function, condition, indices, view)                                 \
  ((condition) ? static_cast<void>(0)                                                              \
               : ::umem::detail::fail_indices({#condition, __FILE__, __LINE__, function}, indices, \
                                              (view).extents, (view).ghosts, (view).data))
#define UMEM_ASSERT_GUARDED_OF(function, pointer)                                                  \
  (__builtin_is_constant_evaluated()                                                               \
       ? static_cast<void>(0)                                                                      \
       : ::umem::detail::check_guarded((pointer), __FILE__, __LINE__, function))
#endif

/* Of an access through a guard: mirror points to the Mirror that it keeps alive, or is null. */
#if UMEM_CHECKS && !defined(__CUDA_ARCH__)
#define UMEM_ASSERT_OWNED(mirror, view)                                                            \
  (!(mirror) || !(mirror)->is_ended()                                                              \
       ? static_cast<void>(0)                                                                      \
       : ::umem::detail::fail_ended({"the array lives", __FILE__, __LINE__, __func__},             \
                                    (view).extents.begin(), (view).rank, (view).data))
#else
#define UMEM_ASSERT_OWNED(mirror, view) static_cast<void>(0)
#endif

#endif

#if !defined(UMEM_CHECKS_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_CHECKS_FUNCTIONS

namespace umem::detail {

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
  ArrayUses const &uses = *array.uses;
  bool const has_both = array.first[1] != 0;
  return (side == 1 ? uses.device() : has_both ? uses.host() : uses.all()) > 0;
}

/* The array with this address and its side, or NULL. Narrows *range, which contains at, to the
 * memory of this side or to addresses of no array. Under the lock. */
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

/* " of the array "u" of shape (3, 4) on Host "grid"", behind `before`: what is known of the memory
 * at data; nothing if nothing is known. */
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

} // namespace umem::detail

#endif
