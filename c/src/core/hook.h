/* hook.h - where the room watch hooks into copies, to find out how their bytes move, and into the
 * end of contexts, which waits for transfers; and where cuda hooks into searches.
 *
 * umem_watched is 0 while no copy is watched: then a copy costs one branch on it. Otherwise a copy
 * is done in steps, each of which moves bytes from one place to another one: umem_step_hook calls
 * the work of a step, and notes how long it took (watch/watch.h). */
#ifndef UMEM_CORE_HOOK_H
#define UMEM_CORE_HOOK_H

#include <stddef.h>
#include <umem/base.h>
#include <umem/find.h>

/* By which means bytes move. */
typedef enum umemWay {
  umemWayMethod,    /* a method of the context that says no more */
  umemWayMemcpy,    /* the CPU, from pointer to pointer */
  umemWayItems,     /* the CPU, item by item */
  umemWayWindow,    /* the CPU, item by item through a mapping of the file */
  umemWayPageCache, /* read or write */
  umemWayDirect,    /* O_DIRECT */
  umemWayDma,       /* a copy engine, or what the driver takes for one */
  umemWayBoxes,     /* a copy engine, for rows and planes */
  umemWayPacked,    /* a copy engine, after the GPU has packed the rows */
  umemWayPeer,      /* from GPU to GPU */
  umemWayGds,       /* cuFile */
  umemWayHttp       /* requests to a web server */
} umemWay;

/* Moves nbytes from src to dst. */
typedef struct umemStep {
  umemVirtual *src, *dst; /* NULL: that of the outer step */
  umemWay way;
  size_t nbytes;
  unsigned workers;            /* threads that share it; 0: one */
  bool from_buffer, to_buffer; /* src, or dst, is the umemHost of a buffer of umem */
  bool is_copy;                /* the whole copy, if it is no part of another one */
} umemStep;

/* Moves the bytes of a step. Returns false if it has not touched them, and leaves them to
 * others. */
typedef bool umemWork(void *job);

/* How many ledgers that are on and open routes there are in the process; atomic. */
extern unsigned umem_watched __attribute__((visibility("hidden")));

/* Returns what work(job) returns. Call it only while umem_is_watched. */
extern bool (*umem_step_hook)(umemStep const *step, umemWork *work, void *job)
    __attribute__((visibility("hidden")));

/* How many transfers (umem/transfer.h) there are that name contexts; atomic. While there is one, a
 * context that ends calls umem_leave_hook first, and who frees a block of ctx umem_block_hook: they
 * return when no transfer needs the context, or the block. */
extern unsigned umem_transfers __attribute__((visibility("hidden")));
extern void (*umem_leave_hook)(umemVirtual *ctx) __attribute__((visibility("hidden")));
extern void (*umem_block_hook)(umemVirtual *ctx, uintptr_t adr)
    __attribute__((visibility("hidden")));

static inline bool umem_has_transfers(void) {
  return __builtin_expect(__atomic_load_n(&umem_transfers, __ATOMIC_RELAXED) != 0, 0);
}

static inline void umem_leave_block(umemVirtual *ctx, uintptr_t adr) {
  if (umem_has_transfers()) umem_block_hook(ctx, adr);
}

/* Lets exit end transfers before what is in the process now, such as a library that takes its
 * memory along. Its user calls it once; NULL: there are no transfers. */
extern void (*umem_exit_hook)(void) __attribute__((visibility("hidden")));

static inline bool umem_is_watched(void) {
  return __builtin_expect(__atomic_load_n(&umem_watched, __ATOMIC_RELAXED) != 0, 0);
}

/* ---- find ---- */

/* Sets foreign, name, device, and adr and nbytes if they are known, of *found, and returns true, if
 * it knows the memory. Records nothing. */
typedef bool umemFindForeign(uintptr_t adr, umemFound *found);

/* umem_find calls this one, too. */
void umemFind_set_foreign(umemFindForeign *ask);

#endif
