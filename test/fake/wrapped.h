/* wrapped.h - the plainest adaptor: passes everything on to the context that it goes over. */
#pragma once

#include <umem.h>

typedef struct Wrapped {
  umemVirtual super;
  umemVirtual *upstream; /* borrowed */
} Wrapped;

umemStatusType wrapped_ctor(Wrapped *ctx, umemVirtual *upstream);
