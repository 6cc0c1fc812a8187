/* gpu.c - puts the double of CUDA under the program umem before it begins. */
#include "fake/doubles.h"

__attribute__((constructor)) static void use_doubles(void) { doubles_use(); }
