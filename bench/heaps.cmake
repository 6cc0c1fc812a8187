# Heaps of other libraries, to compare umem with them, if they are installed; none is needed. Each is looked
# for in the usual places and in CMAKE_PREFIX_PATH.
set_property(GLOBAL PROPERTY FIND_LIBRARY_USE_LIB64_PATHS ON)

# Loaded by the program at run time, and so without headers: linked, they would replace its malloc.
foreach(name IN ITEMS mimalloc jemalloc)
  string(TOUPPER ${name} umem_heap)
  find_library(
    UMEM_BENCH_${umem_heap}_LIBRARY NAMES lib${name}.so lib${name}.so.2 DOC "A library, or nothing"
  )
  if(UMEM_BENCH_${umem_heap}_LIBRARY)
    target_sources(umem_ratios PRIVATE heap_${name}.cpp)
    target_compile_definitions(
      umem_ratios PRIVATE "UMEM_BENCH_${umem_heap}=\"${UMEM_BENCH_${umem_heap}_LIBRARY}\""
    )
    message(STATUS "umem: with ${name} (${UMEM_BENCH_${umem_heap}_LIBRARY})")
  else()
    message(STATUS "umem: without ${name}")
  endif()
endforeach()
target_link_libraries(umem_ratios PRIVATE ${CMAKE_DL_LIBS})

find_package(umf 1.0 CONFIG QUIET)
if(umf_FOUND)
  target_sources(umem_ratios PRIVATE heap_umf.cpp)
  target_compile_definitions(umem_ratios PRIVATE "UMEM_BENCH_UMF=\"${umf_VERSION}\"")
  target_link_libraries(umem_ratios PRIVATE umf::umf)
  message(STATUS "umem: with UMF ${umf_VERSION} (${umf_DIR})")
else()
  message(STATUS "umem: without UMF")
endif()
