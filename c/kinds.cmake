# The table of the kinds of contexts, kinds.c in the build folder, made of the list in include/umem.h:
#
#     #include <umem/file.h> /* file */
#
# adds the kind "file", which some source defines as the umemKind umem_file_kind.
set(umem_list_of_kinds "${CMAKE_CURRENT_SOURCE_DIR}/include/umem.h")
set(umem_kinds "${CMAKE_CURRENT_BINARY_DIR}/kinds.c")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${umem_list_of_kinds}")

set(declarations "")
set(addresses "")
set(kind_line "^#include <umem/[a-z0-9_]+\\.h> +/\\* ([-a-z0-9 ]+) \\*/$")
file(STRINGS "${umem_list_of_kinds}" lines REGEX "${kind_line}")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "${kind_line}" "\\1" names "${line}")
  separate_arguments(names)
  foreach(name IN LISTS names)
    string(REPLACE "-" "_" name "${name}")
    string(APPEND declarations "extern umemKind const umem_${name}_kind;\n")
    string(APPEND addresses "    &umem_${name}_kind,\n")
  endforeach()
endforeach()
if(NOT addresses)
  message(FATAL_ERROR "${umem_list_of_kinds} lists no kind of context")
endif()

file(
  CONFIGURE
  OUTPUT "${umem_kinds}"
  CONTENT
    "/* kinds.c - made by kinds.cmake of the list in umem.h. */
#include \"open/open.h\"

@declarations@
umemKind const *const umem_kinds[] = {
@addresses@};

size_t const umem_kind_count = sizeof umem_kinds / sizeof *umem_kinds;
"
  @ONLY
)
