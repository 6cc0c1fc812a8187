/* umem/compiled.cpp - the functions of the C++ headers that are no templates. A program that
 * defines UMEM_COMPILED for its files compiles this file, too; the CMake target umem::cxx_compiled
 * does both. */
#if !defined(UMEM_COMPILED)
#define UMEM_COMPILED
#endif
#define UMEM_COMPILES

/* In the order in which their functions use each other: what a precompiled header has included
 * leaves those out. */
#include <umem/error.hpp>
#include <umem/extents.hpp>
#include <umem/context.hpp>
#include <umem/detail/checks.hpp>
#include <umem/detail/array_side.hpp>
#include <umem/array_mirror.hpp>
#include <umem/part.hpp>
#include <umem/detail/open_memory.hpp>
#include <umem/detail/host_loops.hpp>
#include <umem/print.hpp>
