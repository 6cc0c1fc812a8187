# liburing, to compare lists of pieces of cold files with io_uring by hand, if it is installed
# (liburing-dev). The library does not use it.
find_path(UMEM_BENCH_URING_INCLUDE NAMES liburing.h DOC "liburing's header, or nothing")
find_library(UMEM_BENCH_URING_LIBRARY NAMES uring DOC "liburing, or nothing")
if(NOT UMEM_BENCH_URING_INCLUDE OR NOT UMEM_BENCH_URING_LIBRARY)
  message(STATUS "umem: without liburing")
  return()
endif()
message(STATUS "umem: with liburing (${UMEM_BENCH_URING_LIBRARY})")
target_sources(umem_ratios PRIVATE by_hand_uring.cpp)
set_source_files_properties(
  by_hand_uring.cpp PROPERTIES INCLUDE_DIRECTORIES "${UMEM_BENCH_URING_INCLUDE}" COMPILE_OPTIONS
                               "-Wno-conversion;-Wno-sign-conversion;-Wno-pedantic"
)
target_compile_definitions(umem_ratios PRIVATE UMEM_BENCH_URING=1)
target_link_libraries(umem_ratios PRIVATE "${UMEM_BENCH_URING_LIBRARY}")
