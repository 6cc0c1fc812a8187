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
#include "core/order.h"
#include "core/stage.h"

bool umem_copy_direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                      uintptr_t dst_adr, umemLayout const *layout) {
  bool (*slot)(umemVirtual *, umemVirtual *, uintptr_t, umemVirtual *, uintptr_t,
               umemLayout const *) = UMEM_SLOT(self, copy_direct);
  return slot && slot(self, src, src_adr, dst, dst_adr, layout);
}

/* dst's addresses are pointers: src reads into them. It does so in the order of both queues, and after the
 * work that a GPU may still do there. */
static void read_into(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                      size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(dst, umemOrdered);
  if (!host || (ordered && umem_wait(src, dst) != umemOK) || !umem_settle(dst)) return;
  umem_read_run(src, src_adr, host, (void *)dst_adr, nbytes);
  if (ordered) umem_wait(dst, src);
}

static void write_from(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                       size_t nbytes) {
  umemVirtual *host = umem_host_between(src, dst);
  bool ordered = umem_can(src, umemOrdered);
  if (!host || (ordered && umem_wait(dst, src) != umemOK) || !umem_settle(src)) return;
  umem_write_run(dst, dst_adr, host, (void const *)src_adr, nbytes);
  if (ordered) umem_wait(src, dst);
}

void umem_copy_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                   size_t nbytes) {
  umemLayout layout = {.size = sizeof layout, .item_size = nbytes};
  if (umem_copy_direct(src, src, src_adr, dst, dst_adr, &layout) ||
      umem_copy_direct(dst, src, src_adr, dst, dst_adr, &layout))
    return;
  if (umem_cpu_writes(dst))
    read_into(src, src_adr, dst, dst_adr, nbytes);
  else if (umem_cpu_reads(src))
    write_from(src, src_adr, dst, dst_adr, nbytes);
  else
    umem_stage(src, src_adr, dst, dst_adr, nbytes);
}
