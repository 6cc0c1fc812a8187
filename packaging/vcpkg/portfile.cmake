# An overlay port in a checkout of the sources: vcpkg install umem --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" UMEM_SHARED)
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS FEATURES tools UMEM_BUILD_TOOLS
                     formats UMEM_FORMATS)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DUMEM_CUDA=DRIVER -DUMEM_BUILD_EXAMPLES=OFF -DUMEM_SHARED=${UMEM_SHARED} ${FEATURE_OPTIONS}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/umem)
vcpkg_fixup_pkgconfig()
if(UMEM_BUILD_TOOLS)
  vcpkg_copy_tools(TOOL_NAMES umem umem-trace AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
