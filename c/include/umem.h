/* umem.h - one set of calls for arrays in RAM, files and GPUs.
 *
 * Read in this order: context.h (what a context is), memory.h (allocate and free), copy.h and
 * connect.h (move and pair), transfer.h (copies that go on), status.h (failures), then the header
 * of the place you want, or open.h to let a text name it. blocks.h is for arrays larger than
 * memory, ledger.h for those who want to know what copies cost, threads.h for those who count
 * threads, virtual.h for those who add a place, scheme.h to give it a name. */
#ifndef UMEM_H
#define UMEM_H

#include <umem/base.h>
#include <umem/threads.h>
#include <umem/blocks.h>
#include <umem/ledger.h>
#include <umem/element.h>
#include <umem/array.h>
#include <umem/array_check.h>
#include <umem/array_convert.h>
#include <umem/array_random.h>
#include <umem/npy.h>
#include <umem/arrow.h>
#include <umem/dlpack.h>

/* The kinds of contexts. This is the one list of them: behind each header stand the names of the
 * kinds that it declares, and c/kinds.cmake makes the library's table of it. */
#include <umem/host.h>     /* host */
#include <umem/file.h>     /* file */
#include <umem/mmap.h>     /* mmap */
#include <umem/shm.h>      /* shm */
#include <umem/url.h>      /* http https */
#include <umem/s3.h>       /* s3 */
#include <umem/cuda.h>     /* cuda cuda-async cuda-host cuda-managed cuda-prefetch */
#include <umem/pool.h>     /* pool */
#include <umem/pool_on.h>  /* pool-on */
#include <umem/fixed.h>    /* fixed */
#include <umem/binning.h>  /* binning */
#include <umem/limit.h>    /* limit */
#include <umem/stats.h>    /* stats */
#include <umem/track.h>    /* track */
#include <umem/debug.h>    /* debug */
#include <umem/retry.h>    /* retry */
#include <umem/fault.h>    /* fault */
#include <umem/log.h>      /* log */
#include <umem/guarded.h>  /* guarded */
#include <umem/external.h> /* external */

#endif
