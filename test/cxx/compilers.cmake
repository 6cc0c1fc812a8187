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
  target_link_options(cxx_gtest_libcxx PUBLIC -stdlib=libc++)
  add_library(cxx_main_libcxx OBJECT main.cpp)
  target_link_libraries(cxx_main_libcxx PRIVATE umem_backends)
  umem_cxx_program(cxx_main_libcxx cxx_gtest_libcxx)
  foreach(name IN ITEMS array array_guard buffer error npy part print shape vector view)
    add_executable(cxx_${name}_libcxx ${name}.cpp $<TARGET_OBJECTS:cxx_main_libcxx>)
    target_link_libraries(cxx_${name}_libcxx PRIVATE umem_backends)
    umem_cxx_program(cxx_${name}_libcxx cxx_gtest_libcxx)
    umem_command_test(cxx.${name}.libc++ cxx cxx_${name}_libcxx)
  endforeach()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # what takes long is done once
  # Each header compiles alone, in all standards.
  foreach(header IN LISTS cxx_headers)
    foreach(standard IN ITEMS 17 20 2b)
      umem_command_test(
        "cxx.alone.c++${standard}.${header}" cxx_compilers
        "${CMAKE_CXX_COMPILER}" -std=c++${standard} ${cxx_strict} -x c++ "${cxx_include}/${header}"
      )
    endforeach()
  endforeach()

  # Kernels take views, with assertions and without.
  find_program(UMEM_NVCC_PROGRAM nvcc HINTS "${CUDAToolkit_BIN_DIR}" /usr/local/cuda/bin)
  mark_as_advanced(UMEM_NVCC_PROGRAM)
  if(UMEM_NVCC_PROGRAM)
    foreach(standard IN ITEMS 17 20)
      foreach(assertions IN ITEMS -UNDEBUG -DNDEBUG)
        set(name view_kernel.c++${standard}${assertions})
        umem_command_test(
          "cxx.nvcc.${name}" cxx_compilers
          "${UMEM_NVCC_PROGRAM}" -std=c++${standard} ${assertions} -Werror all-warnings
          -Xcompiler -Wall,-Wextra,-Werror ${cxx_flags}
          -c "${CMAKE_CURRENT_SOURCE_DIR}/view_kernel.cu" -o ${name}.o
        )
      endforeach()
    endforeach()
  endif()
endif()

# What must not compile says why.
file(GLOB refused CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/refused"
     "${CMAKE_CURRENT_SOURCE_DIR}/refused/*.cpp"
)
foreach(file IN LISTS refused)
  string(REGEX REPLACE "\\.cpp$" "" name "${file}")
  umem_command_test(
    "cxx.refused.${name}" cxx_compilers
    python3 "${CMAKE_CURRENT_SOURCE_DIR}/refused.py" "${CMAKE_CURRENT_SOURCE_DIR}/refused/${file}"
    "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict}
  )
endforeach()

# Without exceptions the first thing said is how to go on.
umem_command_test(
  cxx.no_exceptions cxx_compilers
  python3 "${CMAKE_CURRENT_SOURCE_DIR}/no_exceptions.py" "${cxx_include}/umem.hpp"
  "${CMAKE_CXX_COMPILER}" -std=c++17 ${cxx_strict}
)

# Access through views is the machine code of raw pointers.
foreach(level IN ITEMS 2 3)
  umem_command_test(
    "cxx.machine_code.O${level}" cxx_compilers
    python3 "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.py"
    "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.cpp"
    "${CMAKE_CXX_COMPILER}" -std=c++17 -O${level} -DNDEBUG ${cxx_flags}
  )
endforeach()
umem_command_test(
  cxx.machine_code.finds_more cxx_compilers
  python3 "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.py" --must-fail
  "${CMAKE_CURRENT_SOURCE_DIR}/machine_code.cpp"
  "${CMAKE_CXX_COMPILER}" -std=c++17 -O2 -UNDEBUG ${cxx_flags}
)
