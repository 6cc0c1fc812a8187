# Programs that nvcc compiles, where CMake has found the CUDA toolkit and its compiler works. Not in builds
# with sanitizers, whose options nvcc does not take.
#
# umem_find_nvcc() sets UMEM_NVCC, and enables the language CUDA in the calling directory if so.
option(UMEM_CUDA_PROGRAMS "Build the examples and tests that nvcc compiles, where it is" ON)
mark_as_advanced(UMEM_CUDA_PROGRAMS)
macro(umem_find_nvcc)
  set(UMEM_NVCC OFF)
  if(UMEM_WITH_CUDA AND UMEM_CUDA_PROGRAMS AND NOT UMEM_SANITIZE) # which nvcc knows nothing of
    if(NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
      set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    if(NOT CMAKE_CUDA_ARCHITECTURES AND "$ENV{CUDAARCHS}" STREQUAL "")
      set(CMAKE_CUDA_ARCHITECTURES 80-virtual 90-real) # newer ones compile the former at start
    endif()
    include(CheckLanguage)
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      enable_language(CUDA)
      set(UMEM_NVCC ON)
    endif()
  endif()
endmacro()

# Compiles target as C++17, against the C++ headers, with a complaint of nvcc an error where UMEM_WERROR
# is on.
function(umem_nvcc_program target)
  set_target_properties(
    ${target} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
  )
  target_include_directories(
    ${target} PRIVATE "${PROJECT_SOURCE_DIR}/cxx/include" "${PROJECT_SOURCE_DIR}/c/include"
  )
  if(UMEM_WERROR)
    target_compile_options(
      ${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror>
    )
  endif()
endfunction()
