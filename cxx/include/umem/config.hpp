/* umem/config.hpp - what all C++ headers of umem share: marks of functions, assertions, the type of
 * indices. */
#ifndef UMEM_CONFIG_HPP
#define UMEM_CONFIG_HPP

/* A file that is missing ends the compiler's work, where an #error would be the first of hundreds. Each
 * public header includes this one before what is C++17. */
#if __cplusplus < 201703L
#define UMEM_NEEDS "umem's C++ headers need C++17: -std=c++17, or link the CMake target umem::cxx"
#include UMEM_NEEDS
#endif

#include <cassert>
#include <cstddef>

/* Marks a function that runs on the host and, compiled for CUDA, on the device. Call operators of
 * functors that kernels take carry it. */
#if defined(__CUDACC__)
#define UMEM_FUNCTION __host__ __device__
#else
#define UMEM_FUNCTION
#endif

/* Marks a function of the host that is always a part of its caller. */
#define UMEM_ALWAYS_INLINE __attribute__((always_inline)) inline

/* Checks what unchecked access relies on, on host and device; nothing where NDEBUG is defined. */
#if defined(NDEBUG)
#define UMEM_ASSERT(...) static_cast<void>(0)
#else
#define UMEM_ASSERT(...) assert((__VA_ARGS__))
#endif

/* Checks what a caller gave in a function of both sides: on the host, `otherwise` throws; the
 * device has no exceptions and asserts. */
#if defined(__CUDA_ARCH__)
#define UMEM_CHECK(condition, otherwise) UMEM_ASSERT(condition)
#else
#define UMEM_CHECK(condition, otherwise) ((condition) ? static_cast<void>(0) : (otherwise))
#endif

namespace umem {

/* Indices, extents, strides and offsets, all in elements. Signed: strides may be negative, and so
 * are indices of ghost cells. */
using index = std::ptrdiff_t;

} // namespace umem

#endif
