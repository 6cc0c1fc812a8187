# The package, which works from wherever it is moved to: nothing in it is an absolute path but, for who links
# the static library by pkg-config, that of the CUDA toolkit. Absolute CMAKE_INSTALL_LIBDIR and
# CMAKE_INSTALL_INCLUDEDIR are the exception: the package then stays where it was configured for.
#
# Its components are those that distributions make packages of: runtime (the shared library), development (headers, the
# static library, what CMake, pkg-config and debuggers read) and tools (programs).
include(CMakePackageConfigHelpers)

set(umem_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/umem")

install(
  TARGETS ${umem_targets}
  EXPORT umem-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT runtime
          NAMELINK_COMPONENT development
)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT runtime)

# find_package(umem)
install(
  EXPORT umem-targets
  NAMESPACE umem::
  DESTINATION "${umem_config_dir}"
  COMPONENT development
)
# The build folder is a package, too: umem_DIR is then the folder c in it.
export(EXPORT umem-targets NAMESPACE umem:: FILE "${CMAKE_CURRENT_BINARY_DIR}/umem-targets.cmake")
configure_package_config_file(
  umem-config.cmake.in umem-config.cmake INSTALL_DESTINATION "${umem_config_dir}"
  NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(umem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/umem-config-version.cmake"
        DESTINATION "${umem_config_dir}" COMPONENT development
)
if(UMEM_WITH_CUDA)
  configure_file(umem-cuda.cmake.in umem-cuda.cmake @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-cuda.cmake" DESTINATION "${umem_config_dir}"
          COMPONENT development
  )
endif()

# pkg-config.
include("${CMAKE_CURRENT_SOURCE_DIR}/../cmake/UmemPkgConfig.cmake")
umem_pkg_config_directories()
set(umem_pc_private "-lpthread")
if(UMEM_WITH_CUDA)
  get_filename_component(umem_pc_cuda "${umem_cuda_runtime}" DIRECTORY)
  string(REPLACE " " "\\ " umem_pc_cuda "${umem_pc_cuda}")
  set(umem_pc_private "-L${umem_pc_cuda} -lcudart_static -ldl -lrt -lpthread")
elseif(umem_cuda_wanted STREQUAL "DRIVER")
  set(umem_pc_private "-ldl -lpthread")
endif()
configure_file(umem.pc.in umem.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development
)
