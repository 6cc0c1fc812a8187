/* decorated.h - the plainest decorator: passes everything on to what it decorates. */
#ifndef UMEM_TEST_DECORATED_H
#define UMEM_TEST_DECORATED_H

#include <umem.h>

typedef struct Decorated {
  umemVirtual super;
  umemVirtual *upstream; /* borrowed */
} Decorated;

umemStatusType decorated_ctor(Decorated *ctx, umemVirtual *upstream);

#endif
