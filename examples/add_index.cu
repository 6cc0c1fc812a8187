/* add_index.cu - add_index.cpp with kernels. */
#include "add_index.cpp"
