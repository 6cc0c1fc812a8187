/* handle_check.h - whether a handle can be one. */
#ifndef UMEM_HANDLE_CHECK_H
#define UMEM_HANDLE_CHECK_H

#include <umem/handle.h>

/* NULL, or what is wrong with it. Looks at nothing but the handle. */
char const *umemHandle_check(umemHandle const *handle);

#endif
