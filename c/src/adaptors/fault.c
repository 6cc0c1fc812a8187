/* fault.c - fails on purpose. */
#include "core/adaptor.h"
#include "base/number.h"

#include <inttypes.h>
#include <string.h>
#include <umem/fault.h>

enum { kinds = 12 };
_Static_assert(umemFaultAll == (1 << kinds) - 1, "a count for each kind of call");

typedef struct Fault {
  umemAdaptor adaptor;
  umemLock lock; /* of all that follows */
  umemFaultPlan plan;
  uint64_t counts[kinds];
  uint64_t planned; /* calls of the kinds in the plan */
  uint64_t failures;
} Fault;

static Fault *fault_of(umemVirtual *ctx) { return umemAdaptor_impl(ctx); }

/* ---- which calls fail ---- */

/* A number from 0 on below 1 for the n-th call: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood:
 * "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014), which needs no state but n. */
static double chance(uint64_t seed, uint64_t n) {
  uint64_t z = seed + n * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return (double)(z >> 11) * 0x1p-53;
}

static bool is_due(umemFaultPlan const *plan, uint64_t n) {
  return (plan->nth && n >= plan->nth && n - plan->nth < plan->times) ||
         chance(plan->seed, n) < plan->share;
}

/* Counts a call of these kinds. Whether it fails, which is then recorded. */
static bool fails(umemVirtual *ctx, unsigned calls) {
  Fault *fault = fault_of(ctx);
  umemLock_acquire(&fault->lock);
  for (int i = 0; i < kinds; i++) fault->counts[i] += calls >> i & 1;
  umemStatusType status = fault->plan.status;
  bool planned = calls & fault->plan.calls;
  uint64_t n = fault->planned += planned;
  bool due = planned && is_due(&fault->plan, n);
  fault->failures += due;
  umemLock_release(&fault->lock);
  if (due) umemVirtual_fail(ctx, status, "a fault on purpose, at call %" PRIu64, n);
  return due;
}

/* ---- methods ---- */

_Static_assert(umemFaultAlloc << umemByCalloc == umemFaultCalloc &&
                   umemFaultAlloc << umemByAligned == umemFaultAligned &&
                   umemFaultAlloc << umemByRealloc == umemFaultRealloc,
               "the calls that allocate are in the order of umemHow");

UMEM_ADAPTOR_INLINE uintptr_t fault_allocate(umemVirtual *ctx, umemRequest const *request) {
  if (fails(ctx, (unsigned)umemFaultAlloc << request->how)) return umem_null_of(ctx);
  return umemAdaptor_allocate(ctx, request);
}
UMEM_ADAPTOR_ALLOCATES(fault_allocate)

UMEM_ADAPTOR_INLINE void fault_free(umemVirtual *ctx, uintptr_t adr, bool aligned) {
  if (!fails(ctx, umemFaultFree)) umemAdaptor_give_back(ctx, adr, aligned);
}
UMEM_ADAPTOR_FREES(fault_free)

static void fault_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  if (!fails(ctx, umemFaultSet)) umemAdaptor_set(ctx, adr, c, nbytes);
}

static bool fault_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  unsigned calls = (src == ctx ? umemFaultCopyTo : 0u) | (dst == ctx ? umemFaultCopyFrom : 0u);
  return fails(ctx, calls) || umemAdaptor_copy_direct(ctx, src, src_adr, dst, dst_adr, layout);
}

/* The failures of the following three become ctx's in the public function. */

static void fault_synchronize(umemVirtual *ctx) {
  umem_synchronize(umemAdaptor_upstream(ctx));
  fails(ctx, umemFaultSynchronize);
}

static void fault_flush(umemVirtual *ctx) {
  if (!fails(ctx, umemFaultFlush)) umem_flush(umemAdaptor_upstream(ctx));
}

static void fault_trim(umemVirtual *ctx, size_t keep) {
  if (!fails(ctx, umemFaultTrim)) umem_trim(umemAdaptor_upstream(ctx), keep);
}

static void fault_wait(umemVirtual *ctx, umemVirtual *other) {
  if (!fails(ctx, umemFaultWait)) umemAdaptor_wait(ctx, other);
}

static void fault_dtor(umemVirtual *ctx) {
  umemLock_destroy(&fault_of(ctx)->lock);
  umemAdaptor_dtor(ctx);
}

static struct umemVtbl const fault_vtbl = {
    .dtor = fault_dtor,
    .set = fault_set,
    UMEM_ADAPTOR_COPIES_BY(fault_copy_direct),
    .synchronize = fault_synchronize,
    .wait = fault_wait,
    .flush = fault_flush,
    .trim = fault_trim,
    UMEM_ADAPTOR_ALLOCATION_BY(fault_allocate),
    UMEM_ADAPTOR_FREE_BY(fault_free),
    UMEM_ADAPTOR_ALWAYS,
};

/* ---- plans ---- */

static bool check_plan(umemVirtual *ctx, umemFaultPlan const *plan) {
  if (!plan->calls || plan->calls & ~(unsigned)umemFaultAll)
    umemVirtual_fail(ctx, umemValueError, "the calls 0x%x are none of umemFaultCalls", plan->calls);
  else if (plan->status == umemOK)
    umemVirtual_fail(ctx, umemValueError, "umemOK is no failure");
  else if (!(plan->share >= 0 && plan->share <= 1))
    umemVirtual_fail(ctx, umemValueError, "a share of %s is not from 0 to 1",
                     umem_number_text(plan->share, 6).text);
  else
    return true;
  return false;
}

extern umemKind const umem_fault_kind; /* below */

/* Whether ctx is one; false with a status otherwise. */
static bool is_fault(umemFault *ctx) { return umemKind_check(ctx, &umem_fault_kind) != NULL; }

umemStatusType umemFault_set_plan(umemFault *ctx, umemFaultPlan const *plan) {
  UMEM_ENTER();
  umemFaultPlan full = UMEM_FAULT_PLAN_INIT;
  if (!is_fault(ctx) || !umem_read_sized(ctx, &full, sizeof full, plan, "umemFaultPlan") ||
      !check_plan(&ctx->super, &full))
    return UMEM_RESULT();
  Fault *fault = fault_of(&ctx->super);
  UMEM_LOCKED(&fault->lock);
  fault->plan = full;
  memset(fault->counts, 0, sizeof fault->counts);
  fault->planned = fault->failures = 0;
  return umemOK;
}

uint64_t umemFault_count(umemFault *ctx, unsigned calls) {
  UMEM_ENTER();
  if (!is_fault(ctx)) return 0;
  Fault *fault = fault_of(&ctx->super);
  uint64_t count = 0;
  UMEM_LOCKED(&fault->lock);
  for (int i = 0; i < kinds; i++)
    if (calls >> i & 1) count += fault->counts[i];
  return count;
}

uint64_t umemFault_failures(umemFault *ctx) {
  UMEM_ENTER();
  if (!is_fault(ctx)) return 0;
  Fault *fault = fault_of(&ctx->super);
  UMEM_LOCKED(&fault->lock);
  uint64_t failures = fault->failures;
  return failures;
}

/* ---- construction ---- */

static bool fault_start(umemVirtual *ctx, void const *plan) {
  if (!check_plan(ctx, plan)) return false;
  fault_of(ctx)->plan = *(umemFaultPlan const *)plan;
  umemLock_init(&fault_of(ctx)->lock);
  return true;
}

UMEM_ADAPTOR_CTORS(umemFault, umem_fault_kind, plan, void *upstream, umemFaultPlan const *plan)

/* ---- by name: "fault+host:?nth=3" ---- */

enum { by_calls, by_status };

/* The first words of calls are in the order of umemFaultCalls, those of status from 1 in that of
 * umemStatusType. */
static umemOption const options[] = {
    [by_calls] =
        UMEM_OPTION_OWN("calls", umemWordsOption,
                        "alloc calloc aligned realloc free set copy-to copy-from synchronize wait "
                        "flush trim allocations copies all",
                        "of which some fail; default: allocations"),
    [by_status] =
        UMEM_OPTION_OWN("status", umemWordOption,
                        "MemoryError RuntimeError IOError ValueError TypeError IndexError "
                        "NotImplementedError NotSupportedError AssertError CancelledError",
                        "what they fail as; default: MemoryError"),
    UMEM_OPTION(umemFaultPlan, nth, "nth", umemNumberOption,
                "the first call that fails, from 1; default: none"),
    UMEM_OPTION(umemFaultPlan, times, "times", umemNumberOption, "how many in a row; default: 1"),
    UMEM_OPTION(umemFaultPlan, share, "share", umemShareOption,
                "of the calls, which fails at random; default: 0"),
    UMEM_OPTION(umemFaultPlan, seed, "seed", umemNumberOption, "of the random share; default: 0"),
};

static unsigned calls_of(uint64_t words) {
  unsigned calls = (unsigned)words & umemFaultAll;
  if (words & 1 << kinds) calls |= umemFaultAllocations;
  if (words & 2 << kinds) calls |= umemFaultCopies;
  if (words & 4 << kinds) calls |= umemFaultAll;
  return calls;
}

static umemStatusType open_fault(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  umemFaultPlan plan;
  if (!umemKind_read(&umem_fault_kind, given, &plan)) return umemValueError;
  if (given[by_calls].given) plan.calls = calls_of(given[by_calls].number);
  if (given[by_status].given) plan.status = (umemStatusType)(given[by_status].number + 1);
  return umemFault_ctor(ctx, upstream, &plan);
}

static umemFaultPlan const no_plan = UMEM_FAULT_PLAN_INIT;

umemKind const umem_fault_kind = {
    .scheme = {UMEM_ADAPTOR_KIND(umemFault, "fault", &fault_vtbl), UMEM_OPTIONS(options),
               .construct = open_fault, .help = "fails on purpose"},
    .label = "Fault",
    .impl_size = sizeof(Fault),
    UMEM_KIND_OPTIONS(umemFaultPlan, no_plan),
    .start = fault_start,
};
