/* core.h - all headers of the core at once. */
#ifndef UMEM_CORE_H
#define UMEM_CORE_H

#include "base/number.h"
#include "base/thread.h"
#include "core/access.h"
#include "core/construct.h"
#include "core/ends.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/layers.h"
#include "core/order.h"
#include "core/ram.h"
#include "core/realloc.h"
#include "core/sized.h"
#include "core/status.h"

#endif
