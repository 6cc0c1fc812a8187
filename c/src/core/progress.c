/* progress.c - copies that report how far they are, and can be cancelled.
 *
 * Such a copy is a series of shorter ones, each through the router and, on ordered contexts, waited
 * for. Steps are long enough that what is lost between them is little. */
#include "core/access.h"
#include "base/thread.h"
#include "core/enter.h"
#include "core/guard.h"
#include "core/run.h"
#include "core/sized.h"

static size_t const default_step = 64 << 20;

typedef struct Progress {
  umemVirtual *src, *dst;
  uintptr_t src_adr, dst_adr;
  size_t nbytes;
  umemCopyOptions const *options;
} Progress;

/* Whether to go on. */
static bool report(Progress const *copy, size_t done) {
  umemCopyOptions const *options = copy->options;
  UMEM_STEP_ASIDE(running);
  return options->progress(options->user, done, copy->nbytes) || done == copy->nbytes;
}

/* Returns when what is queued on both sides is done. */
static umemStatusType settle(Progress const *copy) {
  uint64_t before = umem_thread.failures;
  if (umem_can(copy->src, umemOrdered)) umem_synchronize(copy->src);
  if (umem_thread.failures == before && umem_can(copy->dst, umemOrdered))
    umem_synchronize(copy->dst);
  return umem_result(before);
}

static umemStatusType copy_step(Progress const *copy, size_t done, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umem_copy_run(copy->src, copy->src_adr + done, copy->dst, copy->dst_adr + done, nbytes);
  return umem_thread.failures == before ? settle(copy) : umem_result(before);
}

static umemStatusType copy_in_steps(Progress const *copy) {
  size_t step = copy->options->step ? copy->options->step : default_step;
  umemStatusType settled = settle(copy); /* where that is refused, nothing may be queued */
  if (settled != umemOK) return settled;
  for (size_t done = 0;;) {
    if (!report(copy, done))
      return umemVirtual_fail(copy->dst, umemCancelledError, "cancelled after %zu of %zu bytes",
                              done, copy->nbytes);
    size_t rest = copy->nbytes - done;
    if (!rest) return umemOK;
    size_t nbytes = rest < step ? rest : step;
    umemStatusType status = copy_step(copy, done, nbytes);
    if (status != umemOK) return status;
    done += nbytes;
  }
}

umemStatusType umem_copy_to_with(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                                 size_t nbytes, umemCopyOptions const *options) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  umemCopyOptions full = UMEM_COPY_OPTIONS_INIT;
  if (!from || !to || !umem_read_sized(from, &full, sizeof full, options, "umemCopyOptions"))
    return umem_result(before);
  if (!full.progress) return umem_copy_to(src, src_adr, dst, dst_adr, nbytes);
  if (nbytes && !(umem_validate(from, src_adr, nbytes, umemReadable) &&
                  umem_validate(to, dst_adr, nbytes, umemWritable)))
    return umem_result(before);
  return copy_in_steps(&(Progress){from, to, src_adr, dst_adr, nbytes, &full});
}
