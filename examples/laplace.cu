/* laplace.cu - laplace.cpp with kernels. */
#include "laplace.cpp"
