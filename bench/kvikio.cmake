# kvikIO, to compare copies between files and GPUs with it, if it is installed (pip install libkvikio-cu13). Its
# folders libkvikio and rapids_logger belong in CMAKE_PREFIX_PATH.
find_path(UMEM_BENCH_KVIKIO_INCLUDE NAMES kvikio/file_handle.hpp DOC "kvikIO's headers, or nothing")
find_library(
  UMEM_BENCH_KVIKIO_LIBRARY
  NAMES kvikio
  PATH_SUFFIXES lib64
  DOC "kvikIO, or nothing"
)
find_path(UMEM_BENCH_LOGGER_INCLUDE NAMES rapids_logger/logger.hpp DOC "RMM's logger, its headers")
find_library(
  UMEM_BENCH_LOGGER_LIBRARY
  NAMES rapids_logger
  PATH_SUFFIXES lib64
  DOC "RMM's logger"
)

if(NOT UMEM_BENCH_KVIKIO_INCLUDE OR NOT UMEM_BENCH_KVIKIO_LIBRARY OR NOT UMEM_BENCH_LOGGER_INCLUDE
   OR NOT UMEM_BENCH_LOGGER_LIBRARY
)
  message(STATUS "umem: without kvikIO")
  return()
endif()
message(STATUS "umem: with kvikIO (${UMEM_BENCH_KVIKIO_LIBRARY})")

add_library(umem_bench_kvikio OBJECT kvikio.cpp)
set_target_properties(
  umem_bench_kvikio PROPERTIES CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
)
target_include_directories(
  umem_bench_kvikio SYSTEM PRIVATE "${UMEM_BENCH_KVIKIO_INCLUDE}" "${UMEM_BENCH_LOGGER_INCLUDE}"
)
umem_cuda_library(umem_bench_kvikio)
umem_warnings(umem_bench_kvikio)

target_compile_definitions(umem_bench_kvikio PRIVATE KVIKIO_CUFILE_FOUND=1 KVIKIO_CUFILE_VERSION_API_FOUND=1)
target_compile_definitions(umem_ratios PRIVATE UMEM_BENCH_KVIKIO=1)
target_link_libraries(
  umem_ratios PRIVATE umem_bench_kvikio "${UMEM_BENCH_KVIKIO_LIBRARY}" -Wl,--no-as-needed
                      "${UMEM_BENCH_LOGGER_LIBRARY}"
)
