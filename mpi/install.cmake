# Into the package of umem, as what find_package calls its component mpi. The components of installations are those of
# c/install.cmake.
set(umem_mpi_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/umem")
install(
  TARGETS ${umem_mpi_targets}
  EXPORT umem-mpi-targets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          COMPONENT runtime
          NAMELINK_COMPONENT development
)
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
install(
  EXPORT umem-mpi-targets
  NAMESPACE umem::
  DESTINATION "${umem_mpi_config_dir}"
  COMPONENT development
)
configure_file(umem-mpi.cmake.in umem-mpi.cmake @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-mpi.cmake"
        DESTINATION "${umem_mpi_config_dir}" COMPONENT development
)

# pkg-config, as of umem.
include("${CMAKE_CURRENT_SOURCE_DIR}/../cmake/UmemPkgConfig.cmake")
umem_pkg_config_directories()
get_filename_component(umem_mpi_pc_compiler "${MPI_C_COMPILER}" NAME)
configure_file(umem-mpi.pc.in umem-mpi.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-mpi.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development
)
