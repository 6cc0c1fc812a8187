# An optimised build when nobody has asked for another.
get_property(umem_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(PROJECT_IS_TOP_LEVEL AND NOT umem_multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

# A shared library or a plugin that links the static library target does not export its functions: another umem of the
# process could take their place. Programs do, if they export their own, so that their plugins find them.
function(umem_hide_in_libraries target)
  set(type "$<TARGET_PROPERTY:TYPE>")
  target_link_options(
    ${target}
    INTERFACE
    "$<$<OR:$<STREQUAL:${type},SHARED_LIBRARY>,$<STREQUAL:${type},MODULE_LIBRARY>>:LINKER:--exclude-libs,$<TARGET_FILE_NAME:$<TARGET_NAME:${target}>>>"
  )
endfunction()
