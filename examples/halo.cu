/* halo.cu - halo.cpp with kernels. */
#include "halo.cpp"
