/* umem/compiled.cpp - the functions of the C++ headers that are no templates. A program that defines UMEM_COMPILED for
 * its files compiles this file, too; the CMake target umem::cxx_compiled does both. */
#if !defined(UMEM_COMPILED)
#define UMEM_COMPILED
#endif

#include <umem/detail/array_functions.hpp>
#include <umem/detail/checks_functions.hpp>
#include <umem/detail/context_functions.hpp>
#include <umem/detail/error_functions.hpp>
#include <umem/detail/extents_functions.hpp>
#include <umem/detail/open_functions.hpp>
#include <umem/detail/part_functions.hpp>
#include <umem/detail/print_functions.hpp>
#include <umem/detail/thread_functions.hpp>
#include <umem/detail/view_error_functions.hpp>
