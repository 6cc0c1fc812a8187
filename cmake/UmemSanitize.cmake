# Sanitizers hold for a whole program: library, tests and examples alike.
if(UMEM_SANITIZE)
  add_compile_options("-fsanitize=${UMEM_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${UMEM_SANITIZE}")
  # AddressSanitizer finds these too, and the compiler would write code for each access.
  if(UMEM_SANITIZE MATCHES "undefined" AND UMEM_SANITIZE MATCHES "address")
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
  # Each program holds the sanitizer's own library: LLVM's linker, where it is, takes half of the time.
  find_program(UMEM_LLD ld.lld)
  mark_as_advanced(UMEM_LLD)
  if(UMEM_LLD AND CMAKE_C_COMPILER_ID MATCHES "Clang")
    add_link_options(-fuse-ld=lld)
  endif()
endif()
