/* umem/config.hpp - what all C++ headers of umem share: markers of functions, checks, the type
 * of indices. */
#ifndef UMEM_CONFIG_HPP
#define UMEM_CONFIG_HPP

/* A missing file stops the compiler at once; the directive "error" would be followed by hundreds
 * of messages. Each public header includes this one before it uses C++17. */
#if __cplusplus < 201703L
#define UMEM_NEEDS "umem's C++ headers need C++17: -std=c++17, or link the CMake target umem::cxx"
#include UMEM_NEEDS
#endif

/* Other headers do not include these again. */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

/* Marks a function that runs on the host and, compiled for CUDA, on the device: also the call
 * operators of functors for kernels. */
#if defined(__CUDACC__)
#define UMEM_FUNCTION __host__ __device__
#else
#define UMEM_FUNCTION
#endif

/* Marks a class whose objects work while they live: compilers warn where a program drops one. Not
 * for nvcc, which warns of assignments, too. */
#if defined(__CUDACC__)
#define UMEM_NODISCARD
#else
#define UMEM_NODISCARD [[nodiscard]]
#endif

/* A condition that compilers move out of the way of the usual one. */
#define UMEM_RARELY(condition) __builtin_expect(!!(condition), 0)

/* Marks a host function that the compiler always inlines. */
#define UMEM_ALWAYS_INLINE __attribute__((always_inline)) inline

/* Functions of the host that are no templates stand at the end of their header. Each file of a
 * program compiles them, unless the program defines the macro below: then umem/compiled.cpp alone
 * does, which the CMake target umem::cxx_compiled adds to a program. They are weak because several
 * libraries of a program may have that file. Files with and without the macro may be in one
 * program. */
#if defined(UMEM_COMPILED)
#define UMEM_INLINE __attribute__((weak))
#else
#define UMEM_INLINE __attribute__((noinline)) inline
#endif

/* Whether access by indices, such as view(i, j), is checked: 1 or 0. A program may define it
 * (-DUMEM_CHECKS=1). Its default is 1 without optimisation, and 0 with any optimisation (also -Og)
 * or with NDEBUG. nvcc optimises kernels except with -G, so kernels have checks with -G by default.
 * A loop of checked accesses takes about ten times as long as one of unchecked accesses.
 *
 * Files of one program may have different values: each decides for its own accesses. */
#if !defined(UMEM_CHECKS)
#if defined(NDEBUG)
#define UMEM_CHECKS 0
#elif defined(__CUDA_ARCH__) && defined(__NVCC__)
#if defined(__CUDACC_DEBUG__)
#define UMEM_CHECKS 1
#else
#define UMEM_CHECKS 0
#endif
#elif defined(__OPTIMIZE__)
#define UMEM_CHECKS 0
#else
#define UMEM_CHECKS 1
#endif
#elif UMEM_CHECKS != 0 && UMEM_CHECKS != 1
#error "UMEM_CHECKS is 1, for bounds checks, or 0"
#endif

/* Marks functions for elements and indices that UMEM_ASSERT checks. The compiler always inlines
 * them: otherwise the linker would keep one of two functions with the same name, from files with
 * and without checks. */
#define UMEM_CHECKED __attribute__((always_inline))

/* If UMEM_CHECKS is 1 and the condition is false, ends the program with a line on stderr, or a
 * kernel as assert does (cudaErrorAssert). Does nothing if UMEM_CHECKS is 0. */
#if !UMEM_CHECKS
#define UMEM_ASSERT(...) static_cast<void>(0)
#elif defined(__CUDA_ARCH__)
#define UMEM_ASSERT(...)                                                                           \
  ((__VA_ARGS__) ? static_cast<void>(0) : __assert_fail(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#else
#define UMEM_ASSERT(...)                                                                           \
  ((__VA_ARGS__) ? static_cast<void>(0)                                                            \
                 : ::umem::detail::fail_check(#__VA_ARGS__, __FILE__, __LINE__, __func__))
#endif

/* Checks an argument in a function for host and device. If it is wrong, `otherwise` throws on
 * the host; the device has no exceptions and asserts. */
#if defined(__CUDA_ARCH__)
#define UMEM_CHECK(condition, otherwise) UMEM_ASSERT(condition)
#else
#define UMEM_CHECK(condition, otherwise) ((condition) ? static_cast<void>(0) : (otherwise))
#endif

/* Refuses -DUMEM_CHECKS=ON: to the preprocessor a word is 0. */
static_assert(UMEM_CHECKS == 0 || UMEM_CHECKS == 1, "UMEM_CHECKS is 1, for bounds checks, or 0");

namespace umem {

/* Indices, extents, strides and offsets, all in elements. Signed: strides may be negative, and so
 * are indices of ghost cells. */
using index_t = std::ptrdiff_t;
using index [[deprecated("write umem::index_t")]] = index_t; /* its name in 0.1 */

namespace detail {

/* What a failing assert does; NDEBUG does not switch it off. */
[[noreturn, gnu::noinline, gnu::cold]] inline void
fail_check(char const *condition, char const *file, unsigned line, char const *function) noexcept {
  std::fprintf(stderr, "%s:%u: %s: the check '%s' of umem failed\n", file, line, function,
               condition);
  std::abort();
}

} // namespace detail

} // namespace umem

#endif
