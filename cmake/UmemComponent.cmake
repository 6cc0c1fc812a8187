# Installs a component of umem, which has a library of its own, into the package of umem: find_package calls it by its name.
# The components of installations are those of c/install.cmake.
#
# umem_install_component(name target...): the folder of the caller has include/, umem-NAME.cmake.in and umem-NAME.pc.in.
function(umem_install_component name)
  include(GNUInstallDirs)
  set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/umem")
  install(
    TARGETS ${ARGN}
    EXPORT umem-${name}-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            COMPONENT runtime
            NAMELINK_COMPONENT development
  )
  install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
  install(
    EXPORT umem-${name}-targets
    NAMESPACE umem::
    DESTINATION "${config_dir}"
    COMPONENT development
  )
  configure_file(umem-${name}.cmake.in umem-${name}.cmake @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-${name}.cmake" DESTINATION "${config_dir}" COMPONENT development)

  # pkg-config, as of umem.
  include("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/UmemPkgConfig.cmake")
  umem_pkg_config_directories()
  configure_file(umem-${name}.pc.in umem-${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/umem-${name}.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development
  )
endfunction()
