/* blocks.cu - blocks.cpp with kernels. */
#include "blocks.cpp"
