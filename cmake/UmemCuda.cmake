# CUDA's runtime, linked statically: the library loads on machines without a driver.
#
# UMEM_CUDA=AUTO uses the toolkit where there is one, ON insists on it, OFF builds without.
# Sets UMEM_WITH_CUDA and umem_cuda_runtime, the file of the library. Without CUDA the constructors of
# its contexts answer "not supported".
set(UMEM_CUDA AUTO CACHE STRING "The CUDA contexts: AUTO (where the toolkit is), ON or OFF")
set_property(CACHE UMEM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(umem_cuda_oldest 12.2)

set(UMEM_WITH_CUDA OFF)
string(TOUPPER "${UMEM_CUDA}" umem_cuda_wanted)
if(umem_cuda_wanted STREQUAL "AUTO" OR UMEM_CUDA)
  # Looks beside nvcc, then where the toolkit installs itself.
  find_package(CUDAToolkit ${umem_cuda_oldest} QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cudart_static)
    set(UMEM_WITH_CUDA ON)
    set(umem_cuda_major ${CUDAToolkit_VERSION_MAJOR})
    set(umem_cuda_built_for ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR})
    get_target_property(umem_cuda_runtime CUDA::cudart_static IMPORTED_LOCATION)
    message(STATUS "umem: with CUDA ${CUDAToolkit_VERSION} (${umem_cuda_runtime})")
  else()
    set(umem_cuda_absence "found no CUDA toolkit ${umem_cuda_oldest} or newer with its static runtime")
    if(NOT umem_cuda_wanted STREQUAL "AUTO")
      message(
        FATAL_ERROR
          "UMEM_CUDA=${UMEM_CUDA}, but ${umem_cuda_absence}. Say where it is with CUDAToolkit_ROOT, "
          "or build without CUDA: UMEM_CUDA=OFF."
      )
    endif()
    message(STATUS "umem: without CUDA (${umem_cuda_absence})")
  endif()
endif()

# Lets source, a file of the calling directory, and it alone, include CUDA's headers.
function(umem_cuda_source source)
  if(NOT UMEM_WITH_CUDA)
    return()
  endif()
  set(options "")
  foreach(directory IN LISTS CUDAToolkit_INCLUDE_DIRS)
    list(APPEND options -isystem "${directory}") # warnings about them are not ours
  endforeach()
  set_source_files_properties(
    "${source}" PROPERTIES COMPILE_DEFINITIONS UMEM_WITH_CUDA=1 COMPILE_OPTIONS "${options}"
  )
endfunction()

# Links the runtime to target, which does not hand it on to those that link the shared library.
function(umem_cuda_library target)
  if(UMEM_WITH_CUDA)
    target_link_libraries(${target} PRIVATE CUDA::cudart_static)
  endif()
endfunction()
