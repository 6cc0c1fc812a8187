#include "cudart_wrap.h"

#include <stdatomic.h>

static umemCudaRt const *inner;

static struct {
  atomic_bool held;
  atomic_long left; /* calls until the one that fails; below 1: it has failed, or none is to */
  atomic_int error;
  _Atomic(char const *) failed;
} plan;

static struct {
  atomic_long blocks, pinned, registered, streams, events, pools, ranges, primaries;
} live;

/* ---- the plan ---- */

void cudart_wrap_fail(unsigned long nth, int error) {
  atomic_store(&plan.failed, NULL);
  atomic_store(&plan.error, error);
  atomic_store(&plan.left, (long)nth);
}

char const *cudart_wrap_off(void) {
  atomic_store(&plan.left, 0);
  return cudart_wrap_failed();
}

char const *cudart_wrap_failed(void) { return atomic_load(&plan.failed); }

void cudart_wrap_hold(bool hold) { atomic_store(&plan.held, hold); }

/* The error that a call of function must return, or 0. */
static int enter(char const *function) {
  if (atomic_load(&plan.held) || atomic_fetch_sub(&plan.left, 1) != 1) return umemCudaSuccess;
  atomic_store(&plan.failed, function);
  return atomic_load(&plan.error);
}

CudartWrapLive cudart_wrap_live(void) {
  return (CudartWrapLive){live.blocks, live.pinned, live.registered, live.streams,
                          live.events, live.pools,  live.ranges,     live.primaries};
}

/* ---- the functions ---- */

static char const *wrap_error_name(int error) { return inner->error_name(error); }
static char const *wrap_error_string(int error) { return inner->error_string(error); }
static int wrap_last_error(void) { return inner->last_error(); }

#define PLAIN(name, parameters, arguments)                                                         \
  static int wrap_##name parameters {                                                              \
    int error = enter(#name);                                                                      \
    return error ? error : inner->name arguments;                                                  \
  }
/* One that makes (1) or destroys (-1) something that is counted. */
#define COUNTED(name, parameters, arguments, what, change)                                         \
  static int wrap_##name parameters {                                                              \
    int error = enter(#name);                                                                      \
    if (!error) error = inner->name arguments;                                                     \
    if (!error) atomic_fetch_add(&live.what, (change));                                            \
    return error;                                                                                  \
  }

PLAIN(driver_version, (int *version), (version))
PLAIN(runtime_version, (int *version), (version))
PLAIN(device_count, (int *count), (count))
PLAIN(get_device, (int *device), (device))
PLAIN(attribute, (int *value, umemCudaAttribute what, int device), (value, what, device))
PLAIN(device_name, (char *name, size_t size, int device), (name, size, device))
PLAIN(memory_info, (size_t * available, size_t *capacity), (available, capacity))
PLAIN(can_access_peer, (int *can, int device, int peer), (can, device, peer))
PLAIN(pointer, (void const *adr, umemCudaMemory *kind, int *device), (adr, kind, device))
PLAIN(uuid, (uint64_t words[2], int device), (words, device))
PLAIN(bus_id, (char *text, size_t size, int device), (text, size, device))
PLAIN(range, (void const *adr, uintptr_t *base, size_t *nbytes), (adr, base, nbytes))

PLAIN(context_current, (void **context), (context))
PLAIN(context_push, (void *context), (context))
PLAIN(context_pop, (void **context), (context))
COUNTED(primary_retain, (void **context, int device), (context, device), primaries, 1)
COUNTED(primary_release, (int device), (device), primaries, -1)
PLAIN(enable_peer_access, (int peer), (peer))
PLAIN(exchange_capture_mode, (int *mode), (mode))

COUNTED(malloc, (void **adr, size_t nbytes), (adr, nbytes), blocks, 1)
COUNTED(free, (void *adr), (adr), blocks, -1)
COUNTED(malloc_managed, (void **adr, size_t nbytes), (adr, nbytes), blocks, 1)
PLAIN(prefetch, (void const *adr, size_t nbytes, int device, void *stream),
      (adr, nbytes, device, stream))
PLAIN(advise, (void const *adr, size_t nbytes, umemCudaAdvice advice, int device),
      (adr, nbytes, advice, device))
COUNTED(host_alloc, (void **adr, size_t nbytes, unsigned flags), (adr, nbytes, flags), pinned, 1)
COUNTED(host_free, (void *adr), (adr), pinned, -1)
COUNTED(host_register, (void *adr, size_t nbytes, unsigned flags), (adr, nbytes, flags), registered,
        1)
COUNTED(host_unregister, (void *adr), (adr), registered, -1)

COUNTED(pool_create, (void **pool, int device, size_t most, bool shared),
        (pool, device, most, shared), pools, 1)
COUNTED(pool_destroy, (void *pool), (pool), pools, -1)
PLAIN(pool_set_threshold, (void *pool, uint64_t nbytes), (pool, nbytes))
PLAIN(pool_trim, (void *pool, size_t keep), (pool, keep))
PLAIN(pool_sizes, (void *pool, uint64_t *reserved, uint64_t *used), (pool, reserved, used))
PLAIN(pool_allow, (void *pool, int device), (pool, device))
COUNTED(pool_malloc, (void **adr, size_t nbytes, void *pool, void *stream),
        (adr, nbytes, pool, stream), blocks, 1)
COUNTED(pool_free, (void *adr, void *stream), (adr, stream), blocks, -1)

PLAIN(page_size, (size_t * nbytes, int device), (nbytes, device))
COUNTED(range_reserve, (void **adr, size_t nbytes, size_t alignment), (adr, nbytes, alignment),
        ranges, 1)
COUNTED(range_free, (void *adr, size_t nbytes), (adr, nbytes), ranges, -1)
PLAIN(page_create, (uint64_t * page, size_t nbytes, int device, bool for_bus),
      (page, nbytes, device, for_bus))
PLAIN(page_retain, (uint64_t * page, void *adr), (page, adr))
PLAIN(page_release, (uint64_t page), (page))
PLAIN(page_map, (void *adr, size_t nbytes, uint64_t page), (adr, nbytes, page))
PLAIN(page_unmap, (void *adr, size_t nbytes), (adr, nbytes))
PLAIN(page_allow, (void *adr, size_t nbytes, uint64_t devices), (adr, nbytes, devices))

PLAIN(memcpy, (void *dst, void const *src, size_t nbytes, umemCudaDirection kind),
      (dst, src, nbytes, kind))
PLAIN(memcpy_async,
      (void *dst, void const *src, size_t nbytes, umemCudaDirection kind, void *stream),
      (dst, src, nbytes, kind, stream))
PLAIN(memcpy_peer_async,
      (void *dst, int dst_device, void const *src, int src_device, size_t nbytes, void *stream),
      (dst, dst_device, src, src_device, nbytes, stream))
PLAIN(memcpy_box_async, (umemCudaBox const *box, umemCudaDirection kind, void *stream),
      (box, kind, stream))
PLAIN(memcpy_box_peer_async, (umemCudaBox const *box, int dst_device, int src_device, void *stream),
      (box, dst_device, src_device, stream))
PLAIN(memset_async, (void *adr, int c, size_t nbytes, void *stream), (adr, c, nbytes, stream))

COUNTED(stream_create, (void **stream), (stream), streams, 1)
COUNTED(stream_destroy, (void *stream), (stream), streams, -1)
PLAIN(stream_device, (void *stream, int *device), (stream, device))
PLAIN(stream_synchronize, (void *stream), (stream))
PLAIN(stream_wait, (void *stream, void *event), (stream, event))
PLAIN(stream_capture, (void *stream, umemCudaCapture *capture, uint64_t *id), (stream, capture, id))
COUNTED(event_create, (void **event), (event), events, 1)
COUNTED(event_destroy, (void *event), (event), events, -1)
PLAIN(event_record, (void *event, void *stream), (event, stream))
PLAIN(event_synchronize, (void *event), (event))

COUNTED(ipc_event_create, (void **event), (event), events, 1)
COUNTED(ipc_event_open, (void **event, umemCudaIpc const *handle), (event, handle), events, 1)
PLAIN(ipc_memory, (umemCudaIpc * handle, void *adr), (handle, adr))
PLAIN(ipc_event, (umemCudaIpc * handle, void *event), (handle, event))
COUNTED(ipc_open, (void **adr, umemCudaIpc const *handle), (adr, handle), blocks, 1)
COUNTED(ipc_close, (void *adr), (adr), blocks, -1)
PLAIN(pool_export, (int *fd, void *pool), (fd, pool))
COUNTED(pool_import, (void **pool, int fd), (pool, fd), pools, 1)
PLAIN(pool_export_pointer, (umemCudaIpc * data, void *adr), (data, adr))
COUNTED(pool_import_pointer, (void **adr, void *pool, umemCudaIpc const *data), (adr, pool, data),
        blocks, 1)

static struct umemCufileRt const *wrap_cufile(void) { return inner->cufile(); }
static char const *wrap_absence(void) { return inner->absence(); }

#define MEMBER(name) .name = wrap_##name

umemCudaRt const *cudart_wrap(umemCudaRt const *behind) {
  static umemCudaRt const table = {
      MEMBER(error_name),
      MEMBER(error_string),
      MEMBER(last_error),
      MEMBER(driver_version),
      MEMBER(runtime_version),
      MEMBER(device_count),
      MEMBER(get_device),
      MEMBER(attribute),
      MEMBER(device_name),
      MEMBER(memory_info),
      MEMBER(can_access_peer),
      MEMBER(pointer),
      MEMBER(uuid),
      MEMBER(bus_id),
      MEMBER(range),
      MEMBER(context_current),
      MEMBER(context_push),
      MEMBER(context_pop),
      MEMBER(primary_retain),
      MEMBER(primary_release),
      MEMBER(enable_peer_access),
      MEMBER(exchange_capture_mode),
      MEMBER(malloc),
      MEMBER(free),
      MEMBER(malloc_managed),
      MEMBER(prefetch),
      MEMBER(advise),
      MEMBER(host_alloc),
      MEMBER(host_free),
      MEMBER(host_register),
      MEMBER(host_unregister),
      MEMBER(pool_create),
      MEMBER(pool_destroy),
      MEMBER(pool_set_threshold),
      MEMBER(pool_trim),
      MEMBER(pool_sizes),
      MEMBER(pool_allow),
      MEMBER(pool_malloc),
      MEMBER(pool_free),
      MEMBER(page_size),
      MEMBER(range_reserve),
      MEMBER(range_free),
      MEMBER(page_create),
      MEMBER(page_retain),
      MEMBER(page_release),
      MEMBER(page_map),
      MEMBER(page_unmap),
      MEMBER(page_allow),
      MEMBER(memcpy),
      MEMBER(memcpy_async),
      MEMBER(memcpy_peer_async),
      MEMBER(memcpy_box_async),
      MEMBER(memcpy_box_peer_async),
      MEMBER(memset_async),
      MEMBER(stream_create),
      MEMBER(stream_destroy),
      MEMBER(stream_device),
      MEMBER(stream_synchronize),
      MEMBER(stream_wait),
      MEMBER(stream_capture),
      MEMBER(event_create),
      MEMBER(event_destroy),
      MEMBER(event_record),
      MEMBER(event_synchronize),
      MEMBER(ipc_memory),
      MEMBER(ipc_open),
      MEMBER(ipc_close),
      MEMBER(ipc_event_create),
      MEMBER(ipc_event),
      MEMBER(ipc_event_open),
      MEMBER(pool_export),
      MEMBER(pool_import),
      MEMBER(pool_export_pointer),
      MEMBER(pool_import_pointer),
      MEMBER(cufile),
      MEMBER(absence),
  };
  inner = behind;
  return &table;
}
