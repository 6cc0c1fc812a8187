/* checks_default.cu - compiled only, also as C++: what UMEM_CHECKS is where the program does not
 * say. EXPECTED and, for kernels, EXPECTED_ON_DEVICE tell what it should be. */
#include <umem/config.hpp>

#if defined(__CUDA_ARCH__)
static_assert(UMEM_CHECKS == EXPECTED_ON_DEVICE, "of code for the device");
#else
static_assert(UMEM_CHECKS == EXPECTED, "of code for the host");
#endif
