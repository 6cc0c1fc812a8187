# Views and memory of umem with libraries and debuggers that a machine may lack. Where one is missing, its test is skipped by name.

# A program NAME.cpp with the include folders of a library. With UMEM_TEST_CXX_PROGRAMS other than ALL there is none:
# these libraries take the compiler long.
function(umem_cxx_with name library found kind)
  if(NOT UMEM_TEST_CXX_PROGRAMS STREQUAL "ALL")
    return()
  endif()
  if(NOT found)
    add_test(NAME cxx.${name} COMMAND sh -c "echo '${library} is not installed'; exit 77")
    set_tests_properties(cxx.${name} PROPERTIES LABELS cxx SKIP_RETURN_CODE 77)
    return()
  endif()
  cmake_language(CALL umem_cxx_${kind} ${name})
  target_include_directories(cxx_${name} SYSTEM PRIVATE ${ARGN})
endfunction()

find_path(UMEM_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3)
find_path(UMEM_XTENSOR_INCLUDE_DIR NAMES xtensor/xadapt.hpp xtensor/containers/xadapt.hpp)
find_path(UMEM_KOKKOS_INCLUDE_DIR Kokkos_Core.hpp PATH_SUFFIXES trilinos) # Debian's CMake files name wrong folders
find_library(UMEM_KOKKOS_LIBRARY NAMES kokkoscore trilinos_kokkoscore)
find_path(UMEM_CUDART_INCLUDE_DIR cuda_runtime_api.h HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include)
mark_as_advanced(UMEM_EIGEN_INCLUDE_DIR UMEM_XTENSOR_INCLUDE_DIR UMEM_KOKKOS_INCLUDE_DIR
                 UMEM_KOKKOS_LIBRARY UMEM_CUDART_INCLUDE_DIR
)

umem_cxx_with(with_eigen Eigen "${UMEM_EIGEN_INCLUDE_DIR}" test "${UMEM_EIGEN_INCLUDE_DIR}")
umem_cxx_with(with_xtensor xtensor "${UMEM_XTENSOR_INCLUDE_DIR}" test "${UMEM_XTENSOR_INCLUDE_DIR}")
if(UMEM_EIGEN_INCLUDE_DIR AND UMEM_TEST_CXX_PROGRAMS STREQUAL "ALL" AND UMEM_TEST_CXX_ALL)
  umem_command_test(
    cxx.refused.with_eigen cxx_compilers
    python3 "${CMAKE_CURRENT_SOURCE_DIR}/refused.py" refused_with_eigen.cpp
    "${CMAKE_CURRENT_SOURCE_DIR}/refused/with_eigen.txt" --
    "${CMAKE_CXX_COMPILER}" -std=c++17 -fsyntax-only ${cxx_flags} -isystem "${UMEM_EIGEN_INCLUDE_DIR}"
  )
endif()
set(kokkos OFF)
if(UMEM_KOKKOS_INCLUDE_DIR AND UMEM_KOKKOS_LIBRARY)
  set(kokkos ON)
endif()
umem_cxx_with(with_kokkos Kokkos "${kokkos}" test "${UMEM_KOKKOS_INCLUDE_DIR}")
if(TARGET cxx_with_kokkos)
  target_link_libraries(cxx_with_kokkos PRIVATE "${UMEM_KOKKOS_LIBRARY}")
endif()

# The CUDA toolkit, as Thrust for the CPU and without a GPU.
set(toolkit OFF)
if(UMEM_CCCL_INCLUDE_DIR AND UMEM_CUDART_INCLUDE_DIR AND TARGET CUDA::cudart_static)
  set(toolkit ON)
endif()
umem_cxx_with(with_thrust "The CUDA toolkit" "${toolkit}" place_test "${UMEM_CCCL_INCLUDE_DIR}" "${UMEM_CUDART_INCLUDE_DIR}")
umem_cxx_with(with_cuda_resource "The CUDA toolkit" "${toolkit}" place_test "${UMEM_CCCL_INCLUDE_DIR}" "${UMEM_CUDART_INCLUDE_DIR}")
if(TARGET cxx_with_thrust)
  target_compile_definitions(cxx_with_thrust PRIVATE THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)
  target_link_libraries(cxx_with_thrust PRIVATE CUDA::cudart_static)
  target_link_libraries(cxx_with_cuda_resource PRIVATE CUDA::cudart_static)
  target_include_directories(cxx_with_cuda_resource PRIVATE "${PROJECT_SOURCE_DIR}/c/src")
  target_link_options(cxx_with_cuda_resource PRIVATE "LINKER:--wrap=cudaStreamSynchronize")
  # Its streams are those of the double, on a machine with a GPU too.
  set_property(TEST cxx.with_cuda_resource APPEND PROPERTY ENVIRONMENT "UMEM_TEST_GPU=")
endif()

# Variables in GDB, and what the natvis file names.
if(UMEM_TEST_CXX_PROGRAMS STREQUAL "ALL" AND NOT UMEM_SANITIZE)
  add_executable(cxx_debuggers debuggers.cpp)
  umem_cxx_program(cxx_debuggers Threads::Threads)
  target_compile_options(cxx_debuggers PRIVATE -O0 -g)
  umem_command_test(
    cxx.debuggers cxx python3 "${CMAKE_CURRENT_SOURCE_DIR}/debuggers.py" $<TARGET_FILE:cxx_debuggers>
    "${PROJECT_SOURCE_DIR}/cxx/debuggers/umem_printers.py" "${PROJECT_SOURCE_DIR}/cxx/debuggers/umem.natvis"
  )
  set_tests_properties(cxx.debuggers PROPERTIES SKIP_RETURN_CODE 77)
endif()
