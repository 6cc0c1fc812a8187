/* umem/base.h - everything that holds for all contexts. The headers of contexts include only
 * this. */
#ifndef UMEM_BASE_H
#define UMEM_BASE_H

#include <umem/advise.h>
#include <umem/config.h>
#include <umem/connect.h>
#include <umem/context.h>
#include <umem/copy.h>
#include <umem/default.h>
#include <umem/find.h>
#include <umem/handle.h>
#include <umem/memory.h>
#include <umem/open.h>
#include <umem/scheme.h>
#include <umem/status.h>
#include <umem/transfer.h>
#include <umem/virtual.h>

#endif
