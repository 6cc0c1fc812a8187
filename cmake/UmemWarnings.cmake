# The warnings that all code of this project compiles without.
function(umem_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(UMEM_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
