/* run.c - the router for runs. Nobody but the router pairs contexts; it tries in this order:
 *
 *   1. what source or destination can do by themselves (copy_direct)
 *   2. the CPU can address one side: the other reads from it or writes to it
 *   3. through host memory in chunks (stage.c)
 *
 * The callers have validated both sides. */
#include "core/run.h"
#include "core/ends.h"
#include "core/guard.h"
#include "core/layout.h"
#include "core/order.h"
#include "core/route.h"
#include "core/stage.h"

/* Offers the copy to self; false where it has no method for it, or does not take it. */
static inline __attribute__((always_inline)) bool offer(umemVirtual *self, umemVirtual *src,
                                                        uintptr_t src_adr, umemVirtual *dst,
                                                        uintptr_t dst_adr,
                                                        umemLayout const *layout) {
  bool (*slot)(umemVirtual *, umemVirtual *, uintptr_t, umemVirtual *, uintptr_t,
               umemLayout const *) = UMEM_SLOT(self, copy_direct);
  return slot && slot(self, src, src_adr, dst, dst_adr, layout);
}

bool umem_copy_direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout) {
  return offer(self, src, src_adr, dst, dst_adr, layout);
}

/* No leg where self does not take the copy. */
bool umem_copy_direct_watched(umemVirtual *self, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  umem_leg_open(&leg, src, dst, umemWayMethod, umem_count_items(layout) * layout->item_size);
  bool taken = offer(self, src, src_adr, dst, dst_adr, layout);
  if (!taken) leg.nbytes = 0;
  return taken;
}

/* dst's addresses are pointers: src reads into them. It does so in the order of both queues, and after the
 * work that a GPU may still do there. */
static inline __attribute__((always_inline)) void
read_into(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr, size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(dst, umemOrdered);
  if (!host || (ordered && umem_wait(src, dst) != umemOK) || !umem_settle(dst)) return;
  umem_read_run(src, src_adr, host, (void *)dst_adr, nbytes);
  if (ordered) umem_wait(dst, src);
}

static inline __attribute__((always_inline)) void write_from(umemVirtual *src, uintptr_t src_adr,
                                                             umemVirtual *dst, uintptr_t dst_adr,
                                                             size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(src, umemOrdered);
  if (!host || (ordered && umem_wait(dst, src) != umemOK) || !umem_settle(src)) return;
  umem_write_run(dst, dst_adr, host, (void const *)src_adr, nbytes);
  if (ordered) umem_wait(src, dst);
}

/* By the way of the CPU's pointers, where one side is RAM. */
static umemWay way_of(umemVirtual *src, umemVirtual *dst) {
  return umem_cpu_reads(src) && umem_cpu_writes(dst) ? umemWayMemcpy : umemWayMethod;
}

/* Compiled twice: what nobody watches asks no more whether somebody does. */
static inline __attribute__((always_inline)) void copy_run(umemVirtual *src, uintptr_t src_adr,
                                                           umemVirtual *dst, uintptr_t dst_adr,
                                                           size_t nbytes, bool watched) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  if (watched ? umem_copy_direct_watched(src, src, src_adr, dst, dst_adr, &layout) ||
                    umem_copy_direct_watched(dst, src, src_adr, dst, dst_adr, &layout)
              : offer(src, src, src_adr, dst, dst_adr, &layout) ||
                    offer(dst, src, src_adr, dst, dst_adr, &layout))
    return;
  if (umem_cpu_writes(dst))
    read_into(src, src_adr, dst, dst_adr, nbytes);
  else if (umem_cpu_reads(src))
    write_from(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_stage(src, src_adr, dst, dst_adr, nbytes);
}

static __attribute__((noinline)) void watched_run(umemVirtual *src, uintptr_t src_adr,
                                                  umemVirtual *dst, uintptr_t dst_adr,
                                                  size_t nbytes) {
  umemTrace trace;
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg whole;
  umem_trace_open(&trace, &whole, src, dst, nbytes);
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg;
  umem_leg_open(&leg, src, dst, way_of(src, dst), nbytes);
  copy_run(src, src_adr, dst, dst_adr, nbytes, true);
}

void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes) {
  if (umem_is_watched())
    watched_run(src, src_adr, dst, dst_adr, nbytes);
  else
    copy_run(src, src_adr, dst, dst_adr, nbytes, false);
}
