/* wrapped.h - the plainest adaptor: passes everything on to the context that it goes over. */
#ifndef UMEM_TEST_WRAPPED_H
#define UMEM_TEST_WRAPPED_H

#include <umem.h>

typedef struct Wrapped {
  umemVirtual super;
  umemVirtual *upstream; /* borrowed */
} Wrapped;

umemStatusType wrapped_ctor(Wrapped *ctx, umemVirtual *upstream);

#endif
