# The programs of the page cookbook: each examples/cookbook/NAME.cpp, which prints examples/cookbook/NAME.out.
#
# With the option UMEM_TEST_PCH they are compiled as one file and linked as one program, since the headers take longer
# than the programs: each in a namespace of its own, its main renamed. So are most programs of examples/cxx.

file(
  GLOB cookbook
  RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/examples/cookbook"
  CONFIGURE_DEPENDS examples/cookbook/*.cpp
)
list(TRANSFORM cookbook REPLACE "\\.cpp$" "")

# Libraries that some programs use: what these include, and where it is. A program whose library is missing is skipped.
find_path(UMEM_EIGEN_INCLUDE_DIR Eigen/Core PATH_SUFFIXES eigen3)
find_path(UMEM_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas)
find_library(UMEM_CBLAS_LIBRARY NAMES openblas cblas blas)
if(NOT UMEM_CBLAS_LIBRARY)
  set(UMEM_CBLAS_INCLUDE_DIR "")
endif()
mark_as_advanced(UMEM_EIGEN_INCLUDE_DIR UMEM_CBLAS_INCLUDE_DIR UMEM_CBLAS_LIBRARY)
set(cookbook_others "<Eigen/|UMEM_EIGEN_INCLUDE_DIR" "<cblas.h>|UMEM_CBLAS_INCLUDE_DIR")

# Sets missing to the library that the program lacks, or to nothing.
function(umem_doc_cookbook_lacks name missing)
  set(${missing} "" PARENT_SCOPE)
  file(READ "${CMAKE_CURRENT_SOURCE_DIR}/examples/cookbook/${name}.cpp" program)
  foreach(other IN LISTS cookbook_others)
    string(REPLACE "|" ";" other "${other}")
    list(GET other 0 include)
    list(GET other 1 folder)
    string(FIND "${program}" "#include ${include}" found)
    if(NOT found EQUAL -1 AND NOT ${folder})
      set(${missing} "${include}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()
foreach(name IN LISTS cookbook)
  umem_doc_cookbook_lacks(${name} missing)
  if(missing AND cxx_programs AND UMEM_BUILD_TESTS)
    list(REMOVE_ITEM cookbook ${name})
    add_test(NAME doc.cookbook.${name} COMMAND sh -c "echo 'there is no library with ${missing}'; exit 77")
    set_tests_properties(doc.cookbook.${name} PROPERTIES LABELS doc SKIP_RETURN_CODE 77)
  elseif(missing)
    list(REMOVE_ITEM cookbook ${name})
  endif()
endforeach()

# Makes a program of the source.
function(umem_doc_cookbook_program target source)
  add_executable(${target} "${source}")
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE umem::cxx Threads::Threads)
  if(UMEM_EIGEN_INCLUDE_DIR)
    target_include_directories(${target} SYSTEM PRIVATE "${UMEM_EIGEN_INCLUDE_DIR}")
  endif()
  if(UMEM_CBLAS_INCLUDE_DIR)
    target_include_directories(${target} SYSTEM PRIVATE "${UMEM_CBLAS_INCLUDE_DIR}")
    target_link_libraries(${target} PRIVATE "${UMEM_CBLAS_LIBRARY}")
  endif()
  umem_warnings(${target})
  if(UMEM_BUILD_TESTS)
    target_compile_options(${target} PRIVATE -O0 -g0)
  endif()
  umem_doc_precompiled(${target})
endfunction()

# What programs use, and the header that it takes: where they are compiled together, the includes of one would serve
# another.
set(doc_headers
    "std::(printf|fprintf|puts|fflush)|cstdio" "std::(cout|boolalpha)|iostream" "std::vector|vector"
    "std::(string|to_string)[^_]|string" "std::(sort|min|unique)[^_]|algorithm" "std::(accumulate|iota)|numeric"
    "std::(out_of_range|length_error)|stdexcept" "std::(sqrt|fabs|lround)|cmath" "std::strcpy|cstring"
    "std::ofstream|fstream"
)
function(umem_doc_check_includes file program)
  foreach(line IN LISTS doc_headers)
    string(REGEX MATCH "^(.*)\\|([a-z]+)$" line "${line}")
    if(program MATCHES "${CMAKE_MATCH_1}" AND NOT program MATCHES "#include <${CMAKE_MATCH_2}>")
      message(SEND_ERROR "${file} includes no <${CMAKE_MATCH_2}>")
    endif()
  endforeach()
endfunction()

# Makes one program of the programs examples/PAGE/NAME.cpp for the names, and of each a test doc.PAGE.NAME. The first
# argument says which of them runs. What they include comes first, in no namespace. A main function may end without a
# return, other functions may not.
function(umem_doc_together page)
  set(includes "#include <cstring>")
  set(programs "")
  set(calls "")
  foreach(name IN LISTS ARGN)
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/examples/${page}/${name}.cpp")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" lines REGEX "^#include ")
    list(APPEND includes ${lines})
    file(READ "${file}" program)
    umem_doc_check_includes("${file}" "${program}")
    string(REPLACE "int main() {" "void run() {" program "${program}")
    string(APPEND programs "namespace ${name}_ {\n#line 1 \"${file}\"\n${program}}\n")
    string(APPEND calls "  if (std::strcmp(arguments[1], \"${name}\") == 0) return ${name}_::run(), 0;\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(main "int main(int count, char **arguments) {\n  if (count != 2) return 2;\n${calls}  return 2;\n}\n")
  set(source "${CMAKE_CURRENT_BINARY_DIR}/together_${page}.cpp")
  file(GENERATE OUTPUT "${source}" CONTENT "${includes}\n${programs}${main}")
  umem_doc_cookbook_program(doc_together_${page} "${source}")
  foreach(name IN LISTS ARGN)
    umem_doc_test(${page}.${name} doc_together_${page} examples/${page}/${name}.out examples/check ${name})
  endforeach()
endfunction()

if(cxx_programs AND UMEM_TEST_PCH)
  umem_doc_together(cookbook ${cookbook})
  get_property(together DIRECTORY PROPERTY doc_together)
  umem_doc_together(cxx ${together})
elseif(cxx_programs)
  foreach(name IN LISTS cookbook)
    umem_doc_cookbook_program(doc_cookbook_${name} examples/cookbook/${name}.cpp)
    umem_doc_test(cookbook.${name} doc_cookbook_${name} examples/cookbook/${name}.out)
  endforeach()
endif()
