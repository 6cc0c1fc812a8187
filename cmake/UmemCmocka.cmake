# Finds CMocka and provides it as PkgConfig::CMOCKA: by pkg-config, or without it as cmocka.h and
# libcmocka in the folders that CMake searches, those of CMAKE_PREFIX_PATH first.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
endif()
if(NOT TARGET PkgConfig::CMOCKA)
  find_path(UMEM_CMOCKA_INCLUDE_DIR cmocka.h)
  find_library(UMEM_CMOCKA_LIBRARY cmocka)
  mark_as_advanced(UMEM_CMOCKA_INCLUDE_DIR UMEM_CMOCKA_LIBRARY)
  if(NOT UMEM_CMOCKA_INCLUDE_DIR OR NOT UMEM_CMOCKA_LIBRARY)
    message(
      FATAL_ERROR
        "The tests need CMocka. Say where it is with PKG_CONFIG_PATH or CMAKE_PREFIX_PATH, or build "
        "without them: UMEM_BUILD_TESTS=OFF."
    )
  endif()
  add_library(PkgConfig::CMOCKA UNKNOWN IMPORTED)
  set_target_properties(
    PkgConfig::CMOCKA PROPERTIES IMPORTED_LOCATION "${UMEM_CMOCKA_LIBRARY}"
                                 INTERFACE_INCLUDE_DIRECTORIES "${UMEM_CMOCKA_INCLUDE_DIR}"
  )
endif()
