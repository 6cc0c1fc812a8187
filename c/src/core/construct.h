/* construct.h - for constructors of the library. */
#ifndef UMEM_CONSTRUCT_H
#define UMEM_CONSTRUCT_H

#include "core/kind.h"

/* Makes *ctx the base of a context of this kind. */
void umem_construct(umemVirtual *ctx, umemKind const *kind, void *host);

/* For a constructor that has recorded a failure: from now on *ctx answers every call with a status. umem_null
 * and the recorded status stay. The library will not call the method dtor. */
void umem_construct_failed(umemVirtual *ctx);

#endif
