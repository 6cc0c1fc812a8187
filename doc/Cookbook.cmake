# The programs of the page cookbook: each examples/cookbook/NAME.cpp, which prints examples/cookbook/NAME.out.
#
# With the option UMEM_TEST_PCH they are compiled as one file and linked as one program, since the headers take longer
# than the programs: each in a namespace of its own, its main renamed.

file(
  GLOB cookbook
  RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/examples/cookbook"
  CONFIGURE_DEPENDS examples/cookbook/*.cpp
)
list(TRANSFORM cookbook REPLACE "\\.cpp$" "")

# Makes a program of the source.
function(umem_doc_cookbook_program target source)
  add_executable(${target} "${source}")
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_link_libraries(${target} PRIVATE umem::cxx Threads::Threads)
  umem_warnings(${target})
  if(UMEM_BUILD_TESTS)
    target_compile_options(${target} PRIVATE -O0 -g0)
  endif()
  umem_doc_precompiled(${target})
endfunction()

# Writes the file output that holds all programs named after it, and runs the one that its first argument names. What
# they include comes first, in no namespace. A main function may end without a return, other functions may not.
function(umem_doc_write_cookbook output)
  set(includes "#include <cstring>")
  set(programs "")
  set(calls "")
  foreach(name IN LISTS ARGN)
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/examples/cookbook/${name}.cpp")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" lines REGEX "^#include ")
    list(APPEND includes ${lines})
    file(READ "${file}" program)
    string(REPLACE "int main() {" "void run() {" program "${program}")
    string(APPEND programs "namespace ${name}_ {\n#line 1 \"${file}\"\n${program}}\n")
    string(APPEND calls "  if (std::strcmp(arguments[1], \"${name}\") == 0) return ${name}_::run(), 0;\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  set(main "int main(int count, char **arguments) {\n  if (count != 2) return 2;\n${calls}  return 2;\n}\n")
  file(GENERATE OUTPUT "${output}" CONTENT "${includes}\n${programs}${main}")
endfunction()

if(cxx_programs AND UMEM_TEST_PCH)
  umem_doc_write_cookbook("${CMAKE_CURRENT_BINARY_DIR}/cookbook.cpp" ${cookbook})
  umem_doc_cookbook_program(doc_cookbook "${CMAKE_CURRENT_BINARY_DIR}/cookbook.cpp")
  foreach(name IN LISTS cookbook)
    umem_doc_test(cookbook.${name} doc_cookbook examples/cookbook/${name}.out examples/check ${name})
  endforeach()
elseif(cxx_programs)
  foreach(name IN LISTS cookbook)
    umem_doc_cookbook_program(doc_cookbook_${name} examples/cookbook/${name}.cpp)
    umem_doc_test(cookbook.${name} doc_cookbook_${name} examples/cookbook/${name}.out)
  endforeach()
endif()
