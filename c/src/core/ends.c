/* ends.c - see ends.h. */
#include "core/ends.h"
#include "core/guard.h"

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
