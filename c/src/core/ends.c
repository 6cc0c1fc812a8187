/* ends.c - see ends.h. */
#include "core/ends.h"
#include "core/guard.h"
#include "core/route.h"

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

void umem_read_leg(umemVirtual *src, uintptr_t src_adr, umemVirtual *host, void *buffer, size_t n) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, src, NULL, umemWayMethod, n);
    leg.dst = umem_buffer_place(host);
  }
  umem_read_run(src, src_adr, host, buffer, n);
}

void umem_write_leg(umemVirtual *dst, uintptr_t dst_adr, umemVirtual *host, void const *buffer,
                    size_t n) {
  __attribute__((cleanup(umem_leg_close))) umemOpenLeg leg = {0};
  if (umem_is_watched()) {
    umem_leg_open(&leg, NULL, dst, umemWayMethod, n);
    leg.src = umem_buffer_place(host);
  }
  umem_write_run(dst, dst_adr, host, buffer, n);
}
