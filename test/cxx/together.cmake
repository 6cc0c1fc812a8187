# Several tests of the C++ headers compiled as one file and linked as one program, which costs less than half. Each
# file stays a test of its own: ctest runs the program once for each, with the name of the file.
option(UMEM_TEST_CXX_TOGETHER "Compile the tests of the C++ headers in groups" OFF)
mark_as_advanced(UMEM_TEST_CXX_TOGETHER)

# The groups. Tests in none, and all tests without the option, are programs of their own: those with options, main
# functions or macros of their own, those that look at their process as a whole, and those that take long by themselves.
set(cxx_groups short arrays contexts views loops optimised)
set(cxx_group_short array_guard context npy_save open view) # those of test/run quick
set(cxx_group_arrays array_assign array_failures array_lock array_order array_threads npy npy_map part place_guard print)
set(cxx_group_contexts allocator buffer compare error external guarded kinds resources retry scalar vector)
set(cxx_group_views blas dynamic_view elements indexer layouts shape slices static strided_layout view_parts)
set(cxx_group_loops array kernels_arrays operands)
set(cxx_group_optimised kernels_indices kernels_order)
if(NOT UMEM_TEST_CXX_TOGETHER)
  set(cxx_groups "")
endif()
set(cxx_grouped "")
foreach(group IN LISTS cxx_groups)
  list(APPEND cxx_grouped ${cxx_group_${group}})
endforeach()

# Writes the file output that includes the tests named after it, each in a namespace of its own so that their names do
# not meet; what they include comes first, in none.
function(umem_cxx_write_together output)
  set(includes "")
  set(tests "")
  foreach(name IN LISTS ARGN)
    set(file "${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" lines REGEX "^#include ")
    list(APPEND includes ${lines})
    string(APPEND tests "namespace file_${name} {\n#include \"${file}\"\n}\n")
  endforeach()
  list(REMOVE_DUPLICATES includes)
  list(JOIN includes "\n" includes)
  file(GENERATE OUTPUT "${output}" CONTENT "${includes}\n${tests}")
endfunction()

# A program cxx_together_GROUP of the tests of this group that become programs here: for each a test cxx.NAME, and a
# target cxx_NAME that builds it.
function(umem_cxx_together group)
  set(tests "")
  foreach(name IN LISTS cxx_group_${group})
    umem_cxx_is_program(${name} wanted)
    if(wanted)
      list(APPEND tests ${name})
    endif()
  endforeach()
  if(NOT tests)
    return()
  endif()
  set(program cxx_together_${group})
  umem_cxx_write_together("${CMAKE_CURRENT_BINARY_DIR}/${program}.cpp" ${tests})
  add_executable(${program} "${CMAKE_CURRENT_BINARY_DIR}/${program}.cpp" $<TARGET_OBJECTS:cxx_main>)
  target_link_libraries(${program} PRIVATE umem_backends)
  umem_cxx_program(${program})
  umem_cxx_precompiled(${program})
  foreach(name IN LISTS tests)
    add_custom_target(cxx_${name})
    add_dependencies(cxx_${name} ${program})
    umem_command_test(cxx.${name} cxx ${program} --file=${name}.cpp)
  endforeach()
endfunction()
