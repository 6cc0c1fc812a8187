# What the package umem of Python is to CMake: the targets for extensions. find_package(umem) finds it with
# umem_ROOT set to what `python -m umem --cmake-dir` prints. An installed umem has these targets, too, and the library.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
get_filename_component(umem_include "${CMAKE_CURRENT_LIST_DIR}/../include" ABSOLUTE)
foreach(name IN ITEMS with_nanobind with_pybind11)
  if(NOT TARGET umem::${name})
    add_library(umem::${name} INTERFACE IMPORTED)
    set_target_properties(
      umem::${name}
      PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${umem_include}"
        INTERFACE_SOURCES "${umem_include}/umem/with/python.cpp"
        INTERFACE_COMPILE_FEATURES cxx_std_17
        INTERFACE_LINK_LIBRARIES Threads::Threads
    )
  endif()
endforeach()
