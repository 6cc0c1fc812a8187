# RMM's pool, to compare umem's with it, if it is installed. Its own CMake package wants a newer CMake than
# umem does, so its parts are looked for one by one. Older releases have other interfaces.
set(umem_oldest_rmm 26.10)

find_path(UMEM_BENCH_RMM_INCLUDE NAMES rmm/version_config.hpp DOC "RMM's headers, or nothing")
find_path(
  UMEM_BENCH_CCCL_INCLUDE
  NAMES cuda/memory_resource
  HINTS "${UMEM_BENCH_RMM_INCLUDE}"
  PATH_SUFFIXES rapids
  DOC "CUDA's C++ headers, as RMM brings them"
)
find_path(UMEM_BENCH_LOGGER_INCLUDE NAMES rapids_logger/logger.hpp DOC "RMM's logger, its headers")
find_library(UMEM_BENCH_RMM_LIBRARY NAMES rmm DOC "RMM, or nothing")
find_library(UMEM_BENCH_LOGGER_LIBRARY NAMES rapids_logger DOC "RMM's logger")

set(umem_rmm_version "")
if(UMEM_BENCH_RMM_INCLUDE)
  file(STRINGS "${UMEM_BENCH_RMM_INCLUDE}/rmm/version_config.hpp" umem_rmm_version
       REGEX "define RMM_VERSION \"")
  string(REGEX REPLACE ".*\"(.*)\".*" "\\1" umem_rmm_version "${umem_rmm_version}")
endif()

if(NOT UMEM_BENCH_RMM_LIBRARY OR NOT UMEM_BENCH_CCCL_INCLUDE OR NOT UMEM_BENCH_LOGGER_LIBRARY
   OR NOT UMEM_BENCH_LOGGER_INCLUDE OR umem_rmm_version VERSION_LESS umem_oldest_rmm
)
  message(STATUS "umem: without RMM ${umem_oldest_rmm} or newer")
  return()
endif()
message(STATUS "umem: with RMM ${umem_rmm_version} (${UMEM_BENCH_RMM_LIBRARY})")

add_library(umem_heap_rmm OBJECT heap_rmm.cpp)
set_target_properties(
  umem_heap_rmm PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
)
target_include_directories(
  umem_heap_rmm SYSTEM PRIVATE "${UMEM_BENCH_RMM_INCLUDE}" "${UMEM_BENCH_CCCL_INCLUDE}"
                               "${UMEM_BENCH_LOGGER_INCLUDE}"
)
target_link_libraries(umem_heap_rmm PRIVATE umem_backends umem::umem)
umem_cuda_library(umem_heap_rmm)
umem_warnings(umem_heap_rmm)

foreach(program IN ITEMS umem_ratios umem_traces)
  target_compile_definitions(${program} PRIVATE UMEM_BENCH_RMM=1)
  target_link_libraries(
    ${program} PRIVATE umem_heap_rmm "${UMEM_BENCH_RMM_LIBRARY}" -Wl,--no-as-needed
                       "${UMEM_BENCH_LOGGER_LIBRARY}"
  )
endforeach()
