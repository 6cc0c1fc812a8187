# Into the package of umem, as what find_package calls its component formats. The components of installations are those of
# c/install.cmake.
set(umem_formats_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/umem")
install(
  TARGETS ${umem_formats_targets}
  EXPORT umem-formats-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT runtime
          NAMELINK_COMPONENT development
)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(
  EXPORT umem-formats-targets
  NAMESPACE umem::
  DESTINATION "${umem_formats_config_dir}"
  COMPONENT development
)
install(FILES umem-formats.cmake DESTINATION "${umem_formats_config_dir}" COMPONENT development)

# pkg-config, as of umem.
include("${CMAKE_CURRENT_SOURCE_DIR}/../cmake/UmemPkgConfig.cmake")
umem_pkg_config_directories()
configure_file(umem-formats.pc.in umem-formats.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-formats.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development
)
