# What compilers say of the C++ headers, and what they make of them: tests with the label cxx_compilers.
set(cxx_strict -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Werror ${cxx_flags})
file(GLOB cxx_headers CONFIGURE_DEPENDS RELATIVE "${cxx_include}" "${cxx_include}/*.hpp"
     "${cxx_include}/umem/*.hpp"
)

# All of them together, in all standards.
set(together "${CMAKE_CURRENT_BINARY_DIR}/together.cpp")
list(TRANSFORM cxx_headers REPLACE "(.+)" "#include <\\1>\n" OUTPUT_VARIABLE lines)
string(CONCAT lines ${lines})
file(GENERATE OUTPUT "${together}" CONTENT "${lines}")
foreach(standard IN ITEMS 17 20 2b)
  umem_command_test(
    cxx.together.c++${standard} cxx_compilers
    "${CMAKE_CXX_COMPILER}" -std=c++${standard} ${cxx_strict} "${together}"
  )
endforeach()

# After macros of a program: umem's names are none of these.
set(macros -include "${PROJECT_SOURCE_DIR}/test/compile/macros.h")
umem_command_test(
  cxx.macros cxx_compilers "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict} ${macros} "${together}"
)

# What C++20 asks of iterators and ranges.
umem_command_test(
  cxx.ranges cxx_compilers
  "${CMAKE_CXX_COMPILER}" -std=c++20 ${cxx_strict} "${CMAKE_CURRENT_SOURCE_DIR}/ranges.cpp"
)

# Under the warnings that programs turn on for themselves and, with CMake's add_subdirectory, for umem: the
# headers, and what templates become where they are used.
set(cxx_users -fsyntax-only -Werror -Wall -Wextra -Wpedantic -Wcast-align -Wcast-qual -Wconversion
    -Wdouble-promotion -Wextra-semi -Wformat=2 -Wold-style-cast -Wshadow -Wsign-conversion -Wundef
)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND cxx_users -Wduplicated-branches -Wduplicated-cond -Wlogical-op -Wuseless-cast)
else()
  list(APPEND cxx_users -Wcomma -Wshadow-all -Wshorten-64-to-32)
endif()
foreach(file IN ITEMS "${together}" plain.cpp kernels_units.cpp)
  get_filename_component(file "${file}" ABSOLUTE)
  get_filename_component(name "${file}" NAME_WE)
  umem_command_test(
    cxx.users_warnings.${name} cxx_compilers
    "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_users} ${cxx_flags} "-I${PROJECT_SOURCE_DIR}/test" "${file}"
  )
endforeach()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # whose warnings depend on optimisation
  umem_command_test(
    cxx.users_warnings.of_optimiser cxx_compilers
    "${CMAKE_CXX_COMPILER}" -std=c++17 -Werror -O2 -Wall -Wextra -Waddress -Wnull-dereference ${cxx_flags}
    "-I${PROJECT_SOURCE_DIR}/test" -S -o - "${CMAKE_CURRENT_SOURCE_DIR}/plain.cpp"
  )
endif()

# In an older standard there is one error, which says what to do: GCC looks at each header, Clang at the first.
set(too_old_headers umem.hpp)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND too_old_headers ${cxx_headers})
endif()
list(TRANSFORM too_old_headers PREPEND "${cxx_include}/")
umem_command_test(
  cxx.too_old cxx_compilers
  python3 "${CMAKE_CURRENT_SOURCE_DIR}/too_old.py" ${too_old_headers} --
  "${CMAKE_CXX_COMPILER}" -fsyntax-only ${cxx_flags}
)

# With the standard library libc++, which Clang can use. The installed GoogleTest is built with the
# other one, so programs of GoogleTest get one of their own from its sources, where they are.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  include(CheckCXXSourceCompiles)
  if(NOT UMEM_HAS_LIBCXX) # it may have been installed since
    unset(UMEM_HAS_LIBCXX CACHE)
  endif()
  set(CMAKE_REQUIRED_FLAGS -stdlib=libc++)
  check_cxx_source_compiles("#include <string>\nint main() { return std::string().size() != 0; }"
                            UMEM_HAS_LIBCXX)
  unset(CMAKE_REQUIRED_FLAGS)
  find_path(UMEM_GTEST_SOURCES src/gtest-all.cc PATHS /usr/src/googletest/googletest)
  mark_as_advanced(UMEM_GTEST_SOURCES)
endif()
if(UMEM_HAS_LIBCXX)
  # All headers together, in all standards. Its older versions have no <memory_resource>.
  set(together_libcxx "${CMAKE_CURRENT_BINARY_DIR}/together_libcxx.cpp")
  string(REPLACE "#include <umem/memory_resource.hpp>\n"
                 "#if __has_include(<memory_resource>)\n#include <umem/memory_resource.hpp>\n#endif\n"
                 libcxx_lines "${lines}"
  )
  file(GENERATE OUTPUT "${together_libcxx}" CONTENT "${libcxx_lines}")
  foreach(standard IN ITEMS 17 20 2b)
    umem_command_test(
      cxx.together.libc++.c++${standard} cxx_compilers
      "${CMAKE_CXX_COMPILER}" -stdlib=libc++ -std=c++${standard} ${cxx_strict} "${together_libcxx}"
    )
  endforeach()

  umem_cxx_plain(cxx_plain_libcxx)
  target_compile_options(cxx_plain_libcxx PRIVATE -stdlib=libc++)
  target_link_options(cxx_plain_libcxx PRIVATE -stdlib=libc++)
  umem_command_test(cxx.plain.libc++ cxx cxx_plain_libcxx)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(STATUS "The tests with libc++ are left out: there is no libc++.")
endif()
if(UMEM_HAS_LIBCXX AND UMEM_GTEST_SOURCES)
  add_library(cxx_gtest_libcxx STATIC "${UMEM_GTEST_SOURCES}/src/gtest-all.cc")
  target_include_directories(
    cxx_gtest_libcxx SYSTEM
    PRIVATE "${UMEM_GTEST_SOURCES}"
    PUBLIC "${UMEM_GTEST_SOURCES}/include"
  )
  target_compile_options(cxx_gtest_libcxx PUBLIC -stdlib=libc++ PRIVATE -O0)
  target_compile_definitions(cxx_gtest_libcxx PUBLIC UMEM_TEST_FEW_TYPES) # the library is what differs, not the types
  target_link_options(cxx_gtest_libcxx PUBLIC -stdlib=libc++)
  add_library(cxx_main_libcxx OBJECT main.cpp)
  target_link_libraries(cxx_main_libcxx PRIVATE umem_backends)
  umem_cxx_program(cxx_main_libcxx cxx_gtest_libcxx)
  # Those whose headers use most of it, as one program.
  set(libcxx_tests array buffer error kernels_arrays npy print vector)
  umem_cxx_write_together("${CMAKE_CURRENT_BINARY_DIR}/cxx_libcxx.cpp" ${libcxx_tests})
  add_executable(cxx_libcxx "${CMAKE_CURRENT_BINARY_DIR}/cxx_libcxx.cpp" $<TARGET_OBJECTS:cxx_main_libcxx>)
  target_link_libraries(cxx_libcxx PRIVATE umem_backends)
  umem_cxx_program(cxx_libcxx cxx_gtest_libcxx)
  foreach(name IN LISTS libcxx_tests)
    umem_command_test(cxx.${name}.libc++ cxx cxx_libcxx --file=${name}.cpp)
  endforeach()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # what takes long is done once
  # Each header compiles alone, in the standard whose own headers include each other least: of GCC's, each includes
  # in C++17 a part of what it includes in C++20 and later. Only mdspan.hpp may include more in C++23. A header that
  # another one includes before anything else is compiled alone with that one.
  set(included_first "")
  foreach(header IN LISTS cxx_headers)
    file(STRINGS "${cxx_include}/${header}" first REGEX "^ *# *(include|define) " LIMIT_COUNT 2)
    if(first MATCHES "^#define UMEM_[A-Z_]+_HPP;#include <(umem/[a-z_]+\\.hpp)>")
      list(APPEND included_first "${CMAKE_MATCH_1}")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${cxx_include}/${header}")
  endforeach()
  foreach(header IN LISTS cxx_headers)
    if(NOT header IN_LIST included_first)
      umem_command_test(
        "cxx.alone.${header}" cxx_compilers
        "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict} -x c++ "${cxx_include}/${header}"
      )
    endif()
  endforeach()
  umem_command_test(
    cxx.alone.umem/mdspan.hpp.c++2b cxx_compilers
    "${CMAKE_CXX_COMPILER}" -std=c++2b ${cxx_strict} -x c++ "${cxx_include}/umem/mdspan.hpp"
  )

  # All of them, those of kernels and calls of every algorithm together under nvcc, with checks and without. As C++20
  # and without checks for the GPU alone; as C++17 and with checks they are a unit of the programs cxx.kernels_units.
  find_program(UMEM_NVCC_PROGRAM nvcc HINTS "${CUDAToolkit_BIN_DIR}" /usr/local/cuda/bin)
  mark_as_advanced(UMEM_NVCC_PROGRAM)
  if(UMEM_NVCC_PROGRAM)
    file(GLOB cuda_headers CONFIGURE_DEPENDS RELATIVE "${cxx_include}" "${cxx_include}/umem/*.cuh"
         "${cxx_include}/umem/detail/*.cuh"
    )
    set(together_cu "${CMAKE_CURRENT_BINARY_DIR}/together.cu")
    set(cuda_lines ${cuda_headers} ${cxx_headers} view_kernel.cu)
    list(TRANSFORM cuda_lines REPLACE "(.+)" "#include <\\1>\n")
    string(CONCAT cuda_lines ${cuda_lines})
    file(GENERATE OUTPUT "${together_cu}" CONTENT "${cuda_lines}")
    umem_command_test(
      cxx.nvcc.together.c++20 cxx_compilers
      "${UMEM_NVCC_PROGRAM}" -std=c++20 -DUMEM_CHECKS=0 -ptx -Werror all-warnings
      -Xcompiler -Wall,-Wextra,-Werror ${cxx_flags} "-I${CMAKE_CURRENT_SOURCE_DIR}"
      -include "${together_cu}" "${CMAKE_CURRENT_SOURCE_DIR}/kernels_units.cu" -o together.c++20.out
    )

    # CUDA's mdspan does not survive the macros. What is for the GPU: the headers for nvcc have nothing for the host
    # alone, and what the others have, the test cxx.macros reads.
    list(TRANSFORM cuda_headers REPLACE "(.+)" "-include;\\1")
    umem_command_test(
      cxx.nvcc.macros cxx_compilers
      "${UMEM_NVCC_PROGRAM}" -std=c++17 -ptx -Werror all-warnings ${cxx_flags}
      -include cuda/std/mdspan ${macros} ${cuda_headers} "${together}" -x cu -o macros.ptx
    )

    umem_command_test(
      cxx.refused.nvcc cxx_compilers
      python3 "${CMAKE_CURRENT_SOURCE_DIR}/refused.py" refused.cu "${CMAKE_CURRENT_SOURCE_DIR}/refused/device.txt" --
      "${UMEM_NVCC_PROGRAM}" -std=c++17 --extended-lambda -Werror all-warnings ${cxx_flags} -ptx -o refused.ptx
    )
  endif()
endif()

# The programs of the documentation of 0.1, as one unit: they compile with the headers of today,
# which may say that a name is deprecated. A main of a namespace returns nothing by itself.
file(GLOB programs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/test/compat/cxx-0.1/*.cpp")
set(compat_includes)
set(compat_lines)
foreach(program IN LISTS programs)
  get_filename_component(name "${program}" NAME_WE)
  file(STRINGS "${program}" includes REGEX "^#include <")
  list(APPEND compat_includes ${includes})
  string(APPEND compat_lines "namespace of_${name} {\n#include \"${program}\"\n}\n")
endforeach()
list(REMOVE_DUPLICATES compat_includes)
list(JOIN compat_includes "\n" compat_includes)
set(compat "${CMAKE_CURRENT_BINARY_DIR}/compat.cpp")
file(GENERATE OUTPUT "${compat}" CONTENT "${compat_includes}\n${compat_lines}")
umem_command_test(
  cxx.compat.0.1 cxx_compilers "${CMAKE_CXX_COMPILER}" -std=c++17 -fsyntax-only -Wall -Wextra -Werror
  -Wno-deprecated-declarations -Wno-return-type ${cxx_flags} "${compat}"
)

# What must not compile says why.
set(refused arrays loops others reductions umem views)
list(TRANSFORM refused REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/refused/\\1.txt")
set(all_errors -fmax-errors=0)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(all_errors -ferror-limit=0)
endif()
umem_command_test(
  cxx.refused cxx_compilers
  python3 "${CMAKE_CURRENT_SOURCE_DIR}/refused.py" refused.cpp ${refused} --
  "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict} ${all_errors}
)

# Without exceptions the first thing said is how to go on.
foreach(header IN ITEMS umem.hpp umem/reduce.hpp)
  umem_command_test(
    cxx.no_exceptions.${header} cxx_compilers
    python3 "${CMAKE_CURRENT_SOURCE_DIR}/no_exceptions.py" "${cxx_include}/${header}"
    "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict}
  )
endforeach()

# What UMEM_CHECKS is by default. nvcc hands an option on to the compiler of the host, and optimises kernels
# without any.
function(umem_checks_test name expected compiler)
  umem_command_test(
    "cxx.checks.${name}" cxx_compilers
    ${compiler} ${cxx_flags} ${ARGN} -DEXPECTED=${expected}
    "${CMAKE_CURRENT_SOURCE_DIR}/checks_default.cu"
  )
endfunction()
set(cxx_compiler "${CMAKE_CXX_COMPILER}" -std=c++17 -fsyntax-only)
set(number 0)
foreach(expected_and_options IN ITEMS "1" "1 -O0 -g" "0 -O1" "0 -O2" "0 -O3" "0 -Os" "0 -O0 -DNDEBUG"
                             "0 -O2 -DNDEBUG" "1 -O2 -DUMEM_CHECKS=1" "1 -O3 -DNDEBUG -DUMEM_CHECKS=1"
                             "1 -O2 -DUMEM_CHECKS" "0 -O0 -DUMEM_CHECKS=0")
  math(EXPR number "${number} + 1")
  separate_arguments(expected_and_options)
  list(POP_FRONT expected_and_options expected)
  umem_checks_test(${number} ${expected} "${cxx_compiler}" ${expected_and_options} -x c++)
endforeach()
if(UMEM_NVCC_PROGRAM)
  set(nvcc "${UMEM_NVCC_PROGRAM}" -std=c++17 -c -o checks_default.o)
  umem_checks_test(nvcc 1 "${nvcc}" -DEXPECTED_ON_DEVICE=0)
  umem_checks_test(nvcc.O2 0 "${nvcc}" -O2 -DEXPECTED_ON_DEVICE=0)
  umem_checks_test(nvcc.G 1 "${nvcc}" -G -DEXPECTED_ON_DEVICE=1)
  umem_checks_test(nvcc.asked 1 "${nvcc}" -O2 -DNDEBUG -DUMEM_CHECKS=1 -DEXPECTED_ON_DEVICE=1)
  umem_checks_test(nvcc.NDEBUG 0 "${nvcc}" -G -DNDEBUG -DEXPECTED_ON_DEVICE=0)
endif()

# Access through views and loops of generic calls are the machine code of raw pointers; of loops, where
# the compiler vectorises those. That takes nothing but the optimisation: no NDEBUG.
# Clang 19 vectorises both, but arranges them differently: of it only access at -O3 is compared.
set(machine_code_alike ON)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 15)
  set(machine_code_alike OFF)
endif()
set(machine_code python3 "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.py")
set(machine_code_compiler "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_flags})
foreach(level IN ITEMS 2 3)
  if(level EQUAL 3 OR machine_code_alike)
    umem_command_test(
      cxx.machine_code.O${level} cxx_compilers
      ${machine_code} "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.cpp"
      ${machine_code_compiler} -O${level}
    )
  endif()
  if(machine_code_alike AND (level EQUAL 3 OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU"))
    umem_command_test(
      cxx.machine_loops.O${level} cxx_compilers
      ${machine_code} "${CMAKE_CURRENT_SOURCE_DIR}/machine_loops.cpp"
      ${machine_code_compiler} -O${level}
    )
  endif()
endforeach()
umem_command_test(
  cxx.machine_code.finds_more cxx_compilers
  ${machine_code} --must-fail "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.cpp"
  ${machine_code_compiler} -O2 -DUMEM_CHECKS=1
)
umem_command_test(
  cxx.machine_loops.finds_worse cxx_compilers
  ${machine_code} --must-fail "${CMAKE_CURRENT_SOURCE_DIR}/machine_loops.cpp"
  ${machine_code_compiler} -O3 -DSPOILED
)
