# The package, which works from wherever it is moved to: nothing in it is an absolute path but, for who links
# the static library by pkg-config, that of the CUDA toolkit.
include(CMakePackageConfigHelpers)

set(umem_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/umem")

install(
  TARGETS ${umem_targets}
  EXPORT umem-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# find_package(umem)
install(EXPORT umem-targets NAMESPACE umem:: DESTINATION "${umem_config_dir}")
configure_package_config_file(
  umem-config.cmake.in umem-config.cmake INSTALL_DESTINATION "${umem_config_dir}"
  NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(umem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/umem-config-version.cmake"
        DESTINATION "${umem_config_dir}"
)
if(UMEM_WITH_CUDA)
  configure_file(umem-cuda.cmake.in umem-cuda.cmake @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-cuda.cmake" DESTINATION "${umem_config_dir}")
endif()

# pkg-config. Directories are written relative to the file itself.
set(pc_dir "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR and CMAKE_INSTALL_INCLUDEDIR must be relative")
endif()
file(RELATIVE_PATH umem_pc_prefix "${pc_dir}" "/prefix")
set(umem_pc_private "-lpthread")
if(UMEM_WITH_CUDA)
  get_filename_component(umem_pc_cuda "${umem_cuda_runtime}" DIRECTORY)
  string(REPLACE " " "\\ " umem_pc_cuda "${umem_pc_cuda}")
  set(umem_pc_private "-L${umem_pc_cuda} -lcudart_static -ldl -lrt -lpthread")
endif()
configure_file(umem.pc.in umem.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
)
