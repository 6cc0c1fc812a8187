# CUDA's runtime, linked statically: the library loads on machines without a driver.
#
# UMEM_CUDA=AUTO uses the toolkit where there is one, ON insists on it, OFF builds without. A cross build
# uses the toolkit that CUDAToolkit_ROOT names, and no other. DRIVER needs no toolkit: the library looks for NVIDIA's
# driver, of CUDA 12 or later, when a program first uses a GPU.
# Sets UMEM_WITH_CUDA and umem_cuda_runtime, the file of the library. Without CUDA the constructors of
# its contexts answer "not supported".
set(UMEM_CUDA AUTO CACHE STRING "The CUDA contexts: AUTO (where the toolkit is), ON, DRIVER (without the toolkit) or OFF")
set_property(CACHE UMEM_CUDA PROPERTY STRINGS AUTO ON DRIVER OFF)
set(umem_cuda_oldest 12.2)

# Sets fits to whether programs of this build can link the runtime: another architecture's cannot.
function(umem_cuda_links fits)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/umem_cuda_links.c")
  file(WRITE "${program}" "int cudaRuntimeGetVersion(int *);\n"
                          "int main(void) { int v; return cudaRuntimeGetVersion(&v); }\n"
  )
  set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE) # some toolchain files choose a library, which links nothing
  try_compile(
    linked "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/umem_cuda_links" "${program}"
    LINK_LIBRARIES CUDA::cudart_static
  )
  set(${fits} ${linked} PARENT_SCOPE)
  unset(linked CACHE) # the toolkit may be another one the next time
endfunction()

# Sets umem_cuda_absence to why there is no CUDA here; to nothing if there is.
macro(umem_find_cuda)
  # The toolkit that lies here is this machine's: the target's has to be named.
  if(CMAKE_CROSSCOMPILING AND NOT DEFINED CUDAToolkit_ROOT AND "$ENV{CUDAToolkit_ROOT}" STREQUAL "")
    set(umem_cuda_absence "cross-compiling, and CUDAToolkit_ROOT does not name the target's CUDA toolkit")
  else()
    # Looks beside nvcc, then where the toolkit installs itself.
    find_package(CUDAToolkit ${umem_cuda_oldest} QUIET)
    if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart_static)
      set(umem_cuda_absence "found no CUDA toolkit ${umem_cuda_oldest} or newer with its static runtime")
    else()
      get_target_property(umem_cuda_runtime CUDA::cudart_static IMPORTED_LOCATION)
      umem_cuda_links(umem_cuda_fits)
      set(umem_cuda_absence "")
      if(NOT umem_cuda_fits)
        set(umem_cuda_absence "${umem_cuda_runtime} does not link to programs for ${CMAKE_SYSTEM_PROCESSOR}")
      endif()
    endif()
  endif()
endmacro()

set(UMEM_WITH_CUDA OFF)
string(TOUPPER "${UMEM_CUDA}" umem_cuda_wanted)
if(umem_cuda_wanted STREQUAL "DRIVER")
  message(STATUS "umem: with CUDA by NVIDIA's driver, which is looked for at run time")
elseif(umem_cuda_wanted STREQUAL "AUTO" OR UMEM_CUDA)
  umem_find_cuda()
  if(NOT umem_cuda_absence)
    set(UMEM_WITH_CUDA ON)
    set(umem_cuda_major ${CUDAToolkit_VERSION_MAJOR})
    set(umem_cuda_built_for ${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR})
    message(STATUS "umem: with CUDA ${CUDAToolkit_VERSION} (${umem_cuda_runtime})")
  elseif(NOT umem_cuda_wanted STREQUAL "AUTO")
    message(
      FATAL_ERROR
        "UMEM_CUDA=${UMEM_CUDA}, but ${umem_cuda_absence}. Name the toolkit with CUDAToolkit_ROOT, "
        "or build without CUDA: UMEM_CUDA=OFF."
    )
  else()
    message(STATUS "umem: without CUDA (${umem_cuda_absence})")
  endif()
endif()

# Lets source, a file of the calling directory, and it alone, include CUDA's headers.
function(umem_cuda_source source)
  if(umem_cuda_wanted STREQUAL "DRIVER")
    set_source_files_properties("${source}" PROPERTIES COMPILE_DEFINITIONS UMEM_CUDA_DRIVER=1)
  endif()
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
  elseif(umem_cuda_wanted STREQUAL "DRIVER")
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
  endif()
endfunction()
