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
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(umem_mpi_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH umem_mpi_pc_prefix "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(PREPEND umem_mpi_pc_prefix "\${pcfiledir}/")
endif()
foreach(directory IN ITEMS LIBDIR INCLUDEDIR)
  set(umem_mpi_pc_${directory} "${CMAKE_INSTALL_${directory}}")
  if(NOT IS_ABSOLUTE "${umem_mpi_pc_${directory}}")
    string(PREPEND umem_mpi_pc_${directory} "\${prefix}/")
  endif()
endforeach()
get_filename_component(umem_mpi_pc_compiler "${MPI_C_COMPILER}" NAME)
configure_file(umem-mpi.pc.in umem-mpi.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-mpi.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development
)
