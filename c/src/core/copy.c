/* copy.c - the router: finds the way between any two contexts. Nobody else pairs contexts.
 *
 *   1. validate
 *   2. what source or destination can do by themselves (copy_direct)
 *   3. the CPU can address one side: the other reads from it or writes to it
 *   4. through host memory in chunks (stage.c)
 *
 * Strided copies take the same steps; their step 3 and 4 are in strided.c. */
#include "core/core.h"

/* ---- the ends of a route ---- */

/* A host whose buffers a GPU can use is pinned memory: copies through it are faster. */
umemVirtual *umem_host_between(umemVirtual *src, umemVirtual *dst) {
  if (umem_is_plain_host(dst)) return dst;
  if (umem_is_plain_host(src)) return src;
  umemVirtual *host = src->host ? src->host : dst->host, *other = dst->host;
  if (other && umem_can(other, umemDeviceAccessible)) host = other;
  if (!host)
    umemVirtual_fail(src, umemNotImplementedError, "neither %s nor %s has a host for buffers",
                     umem_get_device_name(src), umem_get_device_name(dst));
  return host;
}

void umem_read_run(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n) {
  if (src->vptr->copy_to)
    src->vptr->copy_to(src, src_adr, host, (uintptr_t)buffer, n);
  else
    umemVirtual_fail(src, umemNotImplementedError, "%s has no method copy_to",
                     umem_get_device_name(src));
}

void umem_write_run(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n) {
  if (dst->vptr->copy_from)
    dst->vptr->copy_from(dst, dst_adr, host, (uintptr_t)buffer, n);
  else
    umemVirtual_fail(dst, umemNotImplementedError, "%s has no method copy_from",
                     umem_get_device_name(dst));
}

/* ---- the route ---- */

static bool direct(umemVirtual *self, umemVirtual *src, uintptr_t src_adr, umemVirtual *dst,
                   uintptr_t dst_adr, umemLayout const *layout) {
  bool (*slot)(umemVirtual *, umemVirtual *, uintptr_t, umemVirtual *, uintptr_t,
               umemLayout const *) = UMEM_SLOT(self, copy_direct);
  return slot && slot(self, src, src_adr, dst, dst_adr, layout);
}

/* dst's addresses are pointers: src reads into them, in the order of both queues, and after what a GPU may
 * still be doing there. */
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

void umem_route(umemVirtual *src, uintptr_t src_adr, umemVirtual *dst, uintptr_t dst_adr,
                umemLayout const *layout) {
  if (direct(src, src, src_adr, dst, dst_adr, layout)) return;
  if (direct(dst, src, src_adr, dst, dst_adr, layout)) return;
  if (layout->rank)
    umem_copy_items(src, src_adr, dst, dst_adr, layout);
  else if (umem_cpu_writes(dst))
    read_into(src, src_adr, dst, dst_adr, layout->item_size);
  else if (umem_cpu_reads(src))
    write_from(src, src_adr, dst, dst_adr, layout->item_size);
  else
    umem_stage(src, src_adr, dst, dst_adr, layout->item_size);
}

/* ---- the public functions ---- */

static umemStatusType copy(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                           size_t nbytes) {
  uint64_t before = umem_thread.failures;
  umemVirtual *from = umem_guard(src);
  umemVirtual *to = umem_guard(dst);
  if (!from || !to || !nbytes) return umem_result(before);
  if (umem_validate(from, src_adr, nbytes, umemReadable) &&
      umem_validate(to, dst_adr, nbytes, umemWritable))
    umem_route(from, src_adr, to, dst_adr,
               &(umemLayout){.size = sizeof(umemLayout), .item_size = nbytes});
  return umem_result(before);
}

umemStatusType umem_copy_to(void *src, uintptr_t src_adr, void *dst, uintptr_t dst_adr,
                            size_t nbytes) {
  UMEM_ENTER();
  return copy(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_from(void *dst, uintptr_t dst_adr, void *src, uintptr_t src_adr,
                              size_t nbytes) {
  UMEM_ENTER();
  return copy(src, src_adr, dst, dst_adr, nbytes);
}

static bool within(void *ctx, size_t size, size_t nbytes) {
  umemVirtual *self = umem_guard(ctx);
  if (!self) return false;
  if (nbytes <= size) return true;
  umemVirtual_fail(self, umemIndexError, "%zu bytes exceed the %zu bytes given of %s", nbytes, size,
                   umem_get_device_name(self));
  return false;
}

bool umem_both_within(void *src, size_t src_size, void *dst, size_t dst_size, size_t nbytes) {
  bool inside = within(src, src_size, nbytes);
  return within(dst, dst_size, nbytes) && inside; /* both tell, if both are at fault */
}

static umemStatusType copy_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  uint64_t before = umem_thread.failures;
  if (!umem_both_within(src, src_size, dst, dst_size, nbytes)) return umem_result(before);
  return copy(src, src_adr, dst, dst_adr, nbytes);
}

umemStatusType umem_copy_to_safe(void *src, uintptr_t src_adr, size_t src_size, void *dst,
                                 uintptr_t dst_adr, size_t dst_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}

umemStatusType umem_copy_from_safe(void *dst, uintptr_t dst_adr, size_t dst_size, void *src,
                                   uintptr_t src_adr, size_t src_size, size_t nbytes) {
  UMEM_ENTER();
  return copy_safe(src, src_adr, src_size, dst, dst_adr, dst_size, nbytes);
}
