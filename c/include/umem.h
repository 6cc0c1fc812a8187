/* umem.h - one set of calls for arrays in RAM, files and GPUs.
 *
 * Read in this order: context.h (what a context is), memory.h (allocate and free), copy.h and
 * connect.h (move and pair), status.h (failures), then the header of the place you want, or
 * open.h to let a text name it. threads.h is for those who count threads, virtual.h for those who add a
 * place, scheme.h to give it a name. */
#ifndef UMEM_H
#define UMEM_H

#include <umem/base.h>

#include <umem/binning.h>
#include <umem/cuda.h>
#include <umem/debug.h>
#include <umem/fault.h>
#include <umem/file.h>
#include <umem/fixed.h>
#include <umem/host.h>
#include <umem/limit.h>
#include <umem/log.h>
#include <umem/mmap.h>
#include <umem/pool.h>
#include <umem/pool_on.h>
#include <umem/retry.h>
#include <umem/stats.h>
#include <umem/threads.h>
#include <umem/track.h>

#endif
