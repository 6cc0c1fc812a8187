# Sets UMEM_VERSION from the header, the one place where the version is written.
function(umem_read_version header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
  file(STRINGS "${header}" line REGEX "^#define UMEM_VERSION \"[0-9.]+\"$")
  if(NOT line MATCHES "\"([0-9.]+)\"")
    message(FATAL_ERROR "${header} defines no UMEM_VERSION")
  endif()
  set(UMEM_VERSION "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
