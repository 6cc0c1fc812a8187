# Sanitizers hold for a whole program: library, tests and examples alike.
if(UMEM_SANITIZE)
  add_compile_options("-fsanitize=${UMEM_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${UMEM_SANITIZE}")
endif()
