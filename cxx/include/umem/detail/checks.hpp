/* umem/detail/checks.hpp - what bounds checks print, and the arrays that they watch.
 *
 * If UMEM_CHECKS is 1 where a program takes a guard of an array, umem watches this array from then on: it knows the
 * address of its elements and how many guards live. Access by indices then finds out that no guard lives any more. */
#ifndef UMEM_DETAIL_CHECKS_HPP
#define UMEM_DETAIL_CHECKS_HPP

#include <umem/config.hpp>
#include <umem/extents.hpp>
#include <umem/ghosts.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace umem {
namespace detail {

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

/* How many guards of a side of an array live. */
struct GuardCounts {
  std::atomic<int> readers{0}, writers{0};

  std::atomic<int> &of(bool writes) noexcept { return writes ? writers : readers; }
  int all() const noexcept { return readers + writers; }
};

/* An array; of each side, the host's first. Under the lock of the list. */
struct Watched {
  Watched *next;
  std::uintptr_t first[2]; /* 0: the side has no memory. If both share one, it is the host's */
  std::size_t nbytes;
  GuardCounts const
      *guards[2][2]; /* null: none. If both sides share one memory, the host's are those of both */
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

/* Addresses that the calling thread may access until the list changes: the last that it has asked for. */
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

/* Ends the program if p points to an element of an array that is watched, and no guard of its side lives. */
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
/* The same in a kernel, whose output is short. */
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

} // namespace detail
} // namespace umem

/* Of an access to the element at `indices` of a view; each is an expression without side effects. */
#if !UMEM_CHECKS
#define UMEM_ASSERT_INDICES(condition, indices, view) static_cast<void>(0)
#define UMEM_ASSERT_GUARDED(pointer) static_cast<void>(0)
#elif defined(__CUDA_ARCH__)
#define UMEM_ASSERT_INDICES(condition, indices, view)                                              \
  ((condition) ? static_cast<void>(0)                                                              \
               : (::umem::detail::print_indices(indices, (view).extents, (view).ghosts),           \
                  __assert_fail(#condition, __FILE__, __LINE__, __func__)))
#define UMEM_ASSERT_GUARDED(pointer) static_cast<void>(0)
#else
#define UMEM_ASSERT_INDICES(condition, indices, view)                                              \
  ((condition) ? static_cast<void>(0)                                                              \
               : ::umem::detail::fail_indices({#condition, __FILE__, __LINE__, __func__}, indices, \
                                              (view).extents, (view).ghosts, (view).data))
#define UMEM_ASSERT_GUARDED(pointer)                                                               \
  (__builtin_is_constant_evaluated()                                                               \
       ? static_cast<void>(0)                                                                      \
       : ::umem::detail::check_guarded((pointer), __FILE__, __LINE__, __func__))
#endif

/* Of an access through a guard: mirror is the std::shared_ptr to what it keeps alive. */
#if UMEM_CHECKS && !defined(__CUDA_ARCH__)
#define UMEM_ASSERT_OWNED(mirror, view)                                                            \
  (!::umem::detail::is_ended(mirror)                                                               \
       ? static_cast<void>(0)                                                                      \
       : ::umem::detail::fail_ended({"the array lives", __FILE__, __LINE__, __func__},             \
                                    (view).extents.begin(), (view).rank, (view).data))
#else
#define UMEM_ASSERT_OWNED(mirror, view) static_cast<void>(0)
#endif

#if !defined(UMEM_COMPILED)
#include <umem/detail/checks_functions.hpp>
#endif

#endif
