/* construct.h - for constructors of the library. */
#ifndef UMEM_CONSTRUCT_H
#define UMEM_CONSTRUCT_H

#include <stddef.h>
#include <umem/base.h>

/* Makes *ctx the base of a context of this kind. */
void umem_construct(umemVirtual *ctx, struct umemVtbl const *vtbl, umemDeviceType type,
                    char const *name, uint32_t capabilities, size_t alignment, void *host);

/* For a constructor that has recorded a failure: from now on *ctx answers every call with a status. umem_null
 * and the recorded status stay. The library will not call the method dtor. */
void umem_construct_failed(umemVirtual *ctx);

#endif
