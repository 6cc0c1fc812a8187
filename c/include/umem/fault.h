/* umem/fault.h - a context that injects failures, to test how a program handles them. */
#ifndef UMEM_FAULT_H
#define UMEM_FAULT_H

#include <umem/base.h>

/* A umemFault passes every call on to another context, upstream, but makes chosen calls fail. A
 * failing call records the chosen status and does not reach upstream. Only umem_synchronize first
 * waits for upstream, and then fails, so that no queued work uses memory that the program frees.
 * Whether a call fails depends only on the number of calls before it, so the same calls give the
 * same failures.
 *
 * ctx counts the calls that the program makes on it. A copy counts on both sides, but only once if
 * both sides are ctx. Work that umem does inside one call (staging, clearing) does not count again.
 *
 * Threads: as many as upstream allows; they share one count, in the order of their calls. */
typedef struct umemFault {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemFault;

/* Kinds of calls, or-ed together. */
typedef enum umemFaultCalls {
  umemFaultAlloc = 1 << 0,
  umemFaultCalloc = 1 << 1,
  umemFaultAligned = 1 << 2, /* umem_aligned_alloc */
  umemFaultRealloc = 1 << 3,
  umemFaultFree = 1 << 4, /* also umem_aligned_free; the block stays live */
  umemFaultSet = 1 << 5,
  umemFaultCopyTo = 1 << 6,   /* copies out of the context */
  umemFaultCopyFrom = 1 << 7, /* copies into it */
  umemFaultSynchronize = 1 << 8,
  umemFaultWait = 1 << 9,
  umemFaultFlush = 1 << 10,
  umemFaultTrim = 1 << 11,
  umemFaultAllocations = umemFaultAlloc | umemFaultCalloc | umemFaultAligned | umemFaultRealloc,
  umemFaultCopies = umemFaultCopyTo | umemFaultCopyFrom,
  umemFaultAll = (1 << 12) - 1
} umemFaultCalls;

/* Which calls fail, and how. */
typedef struct umemFaultPlan {
  size_t size;           /* sizeof(umemFaultPlan) as the caller was compiled */
  unsigned calls;        /* umemFaultCalls: only these fail, and only these are counted for nth */
  umemStatusType status; /* the status of the failures; not umemOK */
  uint64_t nth;          /* number of the first call that fails, from 1; 0: none */
  uint64_t times;        /* how many successive calls fail, beginning with nth */
  double share;  /* in addition, this share of the calls fails at random: 0 (none) to 1 (all) */
  uint64_t seed; /* of the random numbers: the same seed makes the same calls fail */
} umemFaultPlan;

/* The default: no call fails. Set nth, or share. */
#define UMEM_FAULT_PLAN_INIT                                                                       \
  { sizeof(umemFaultPlan), umemFaultAllocations, umemMemoryError, 0, 1, 0, 0 }

/* upstream: any context; borrowed, it must live longer than ctx. plan: borrowed for the call; NULL:
 * no call fails. Errors: umemValueError for NULL, or a plan with a wrong size, no calls or unknown
 * ones, umemOK as status, or a share that is not from 0 to 1; umemMemoryError; the status of an
 * upstream that is not constructed. */
UMEM_EXTERN umemStatusType umemFault_ctor(umemFault *ctx, void *upstream,
                                          umemFaultPlan const *plan);

/* Constructs ctx as umemFault_ctor does, but ctx owns upstream: umem_dtor(ctx) destructs it. The
 * caller still owns the memory of the struct. After a failure the caller still owns upstream. */
UMEM_EXTERN umemStatusType umemFault_adopt(umemFault *ctx, void *upstream,
                                           umemFaultPlan const *plan);

/* Starts another plan (NULL: no call fails) with all counts at 0.
 * Errors: as the constructor; then nothing changes. umemTypeError, here and below, for a context of
 * another kind. */
UMEM_EXTERN umemStatusType umemFault_set_plan(umemFault *ctx, umemFaultPlan const *plan);

/* Returns the number of calls of these kinds since the plan began, including failed ones. A copy
 * within ctx counts for both kinds of copies. */
UMEM_EXTERN uint64_t umemFault_count(umemFault *ctx, unsigned calls);

/* Returns how many failures ctx has injected since the plan began. */
UMEM_EXTERN uint64_t umemFault_failures(umemFault *ctx);

#endif
