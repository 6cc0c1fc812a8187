/* cudart_functions.h - the functions of umemCudaRt of which each call is counted and can be made to
 * fail. Whoever includes this defines FUNCTION before: name, parameters, arguments, what a call
 * needs (cudart_state.h), and what it makes (1) or ends (-1), of CudartWrapLive. */

/* ---- what there is ---- */

FUNCTION(driver_version, (int *version), (version), needNothing, nothing, 0)
FUNCTION(runtime_version, (int *version), (version), needNothing, nothing, 0)
FUNCTION(device_count, (int *count), (count), needDriver, nothing, 0)
FUNCTION(get_device, (int *device), (device), needDriver, nothing, 0)
FUNCTION(attribute, (int *value, umemCudaAttribute what, int device), (value, what, device),
         needDriver, nothing, 0)
FUNCTION(device_name, (char *name, size_t size, int device), (name, size, device), needDriver,
         nothing, 0)
FUNCTION(memory_info, (size_t * available, size_t *capacity), (available, capacity), needContext,
         nothing, 0)
FUNCTION(can_access_peer, (int *can, int device, int peer), (can, device, peer), needDriver,
         nothing, 0)
FUNCTION(pointer, (void const *adr, umemCudaMemory *kind, int *device), (adr, kind, device),
         needDriver, nothing, 0)
FUNCTION(uuid, (uint64_t words[2], int device), (words, device), needDriver, nothing, 0)
FUNCTION(bus_id, (char *text, size_t size, int device), (text, size, device), needDriver, nothing,
         0)
FUNCTION(range, (void const *adr, uintptr_t *base, size_t *nbytes), (adr, base, nbytes),
         needContext, nothing, 0)

/* ---- contexts ---- */

FUNCTION(context_current, (void **context), (context), needDriver, nothing, 0)
FUNCTION(context_push, (void *context), (context), needDriver, nothing, 0)
FUNCTION(context_pop, (void **context), (context), needDriver, nothing, 0)
FUNCTION(primary_retain, (void **context, int device), (context, device), needDriver, primaries, 1)
FUNCTION(primary_release, (int device), (device), needDriver, primaries, -1)
FUNCTION(enable_peer_access, (int peer), (peer), needContext, nothing, 0)
FUNCTION(exchange_capture_mode, (int *mode), (mode), needContext, nothing, 0)

/* ---- memory ---- */

FUNCTION(malloc, (void **adr, size_t nbytes), (adr, nbytes), needUncaptured, blocks, 1)
FUNCTION(free, (void *adr), (adr), needUncaptured, blocks, -1)
FUNCTION(malloc_managed, (void **adr, size_t nbytes), (adr, nbytes), needUncaptured, blocks, 1)
FUNCTION(prefetch, (void const *adr, size_t nbytes, int device, void *stream),
         (adr, nbytes, device, stream), needContext, nothing, 0)
FUNCTION(advise, (void const *adr, size_t nbytes, umemCudaAdvice advice, int device),
         (adr, nbytes, advice, device), needContext, nothing, 0)
FUNCTION(host_alloc, (void **adr, size_t nbytes, unsigned flags), (adr, nbytes, flags),
         needUncaptured, pinned, 1)
FUNCTION(host_free, (void *adr), (adr), needUncaptured, pinned, -1)
FUNCTION(host_register, (void *adr, size_t nbytes, unsigned flags), (adr, nbytes, flags),
         needUncaptured, registered, 1)
FUNCTION(host_unregister, (void *adr), (adr), needUncaptured, registered, -1)

/* ---- pools ---- */

FUNCTION(pool_create, (void **pool, int device, size_t most, bool shared),
         (pool, device, most, shared), needUncaptured, pools, 1)
FUNCTION(pool_destroy, (void *pool), (pool), needUncaptured, pools, -1)
FUNCTION(pool_set_threshold, (void *pool, uint64_t nbytes), (pool, nbytes), needContext, nothing, 0)
FUNCTION(pool_trim, (void *pool, size_t keep), (pool, keep), needUncaptured, nothing, 0)
FUNCTION(pool_sizes, (void *pool, uint64_t *reserved, uint64_t *used), (pool, reserved, used),
         needContext, nothing, 0)
FUNCTION(pool_allow, (void *pool, int device), (pool, device), needContext, nothing, 0)
FUNCTION(pool_malloc, (void **adr, size_t nbytes, void *pool, void *stream),
         (adr, nbytes, pool, stream), needUncaptured, blocks, 1)
FUNCTION(pool_free, (void *adr, void *stream), (adr, stream), needUncaptured, blocks, -1)

/* ---- pages ---- */

FUNCTION(page_size, (size_t * nbytes, int device), (nbytes, device), needDriver, nothing, 0)
FUNCTION(range_reserve, (void **adr, size_t nbytes, size_t alignment), (adr, nbytes, alignment),
         needDriver, ranges, 1)
FUNCTION(range_free, (void *adr, size_t nbytes), (adr, nbytes), needDriver, ranges, -1)
FUNCTION(page_create, (uint64_t * page, size_t nbytes, int device, bool for_bus),
         (page, nbytes, device, for_bus), needDriver, nothing, 0)
FUNCTION(page_retain, (uint64_t * page, void *adr), (page, adr), needDriver, nothing, 0)
FUNCTION(page_release, (uint64_t page), (page), needDriver, nothing, 0)
FUNCTION(page_map, (void *adr, size_t nbytes, uint64_t page), (adr, nbytes, page), needDriver,
         nothing, 0)
FUNCTION(page_unmap, (void *adr, size_t nbytes), (adr, nbytes), needDriver, nothing, 0)
FUNCTION(page_allow, (void *adr, size_t nbytes, uint64_t devices), (adr, nbytes, devices),
         needDriver, nothing, 0)

/* ---- copies and sets ---- */

FUNCTION(memcpy, (void *dst, void const *src, size_t nbytes, umemCudaDirection kind),
         (dst, src, nbytes, kind), needContext, nothing, 0)
FUNCTION(memcpy_async,
         (void *dst, void const *src, size_t nbytes, umemCudaDirection kind, void *stream),
         (dst, src, nbytes, kind, stream), needContext, nothing, 0)
FUNCTION(memcpy_peer_async,
         (void *dst, int dst_device, void const *src, int src_device, size_t nbytes, void *stream),
         (dst, dst_device, src, src_device, nbytes, stream), needContext, nothing, 0)
FUNCTION(memcpy_box_async, (umemCudaBox const *box, umemCudaDirection kind, void *stream),
         (box, kind, stream), needContext, nothing, 0)
FUNCTION(memcpy_box_peer_async,
         (umemCudaBox const *box, int dst_device, int src_device, void *stream),
         (box, dst_device, src_device, stream), needContext, nothing, 0)
FUNCTION(memcpy_batch_async,
         (void *const *dst, void const *const *src, size_t const *nbytes, size_t count,
          void *stream),
         (dst, src, nbytes, count, stream), needContext, nothing, 0)
FUNCTION(memset_async, (void *adr, int c, size_t nbytes, void *stream), (adr, c, nbytes, stream),
         needContext, nothing, 0)

/* ---- streams and events ---- */

FUNCTION(stream_create, (void **stream), (stream), needContext, streams, 1)
FUNCTION(stream_destroy, (void *stream), (stream), needContext, streams, -1)
FUNCTION(stream_device, (void *stream, int *device), (stream, device), needDriver, nothing, 0)
FUNCTION(stream_synchronize, (void *stream), (stream), needContext, nothing, 0)
FUNCTION(stream_wait, (void *stream, void *event), (stream, event), needContext, nothing, 0)
FUNCTION(stream_capture, (void *stream, umemCudaCapture *capture, uint64_t *id),
         (stream, capture, id), needContext, nothing, 0)
FUNCTION(event_create, (void **event), (event), needContext, events, 1)
FUNCTION(event_destroy, (void *event), (event), needContext, events, -1)
FUNCTION(event_record, (void *event, void *stream), (event, stream), needContext, nothing, 0)
FUNCTION(event_synchronize, (void *event), (event), needContext, nothing, 0)
FUNCTION(event_query, (void *event), (event), needContext, nothing, 0)

/* ---- other processes ---- */

FUNCTION(ipc_memory, (umemCudaIpc * handle, void *adr), (handle, adr), needContext, nothing, 0)
FUNCTION(ipc_open, (void **adr, umemCudaIpc const *handle), (adr, handle), needUncaptured, blocks,
         1)
FUNCTION(ipc_close, (void *adr), (adr), needUncaptured, blocks, -1)
FUNCTION(ipc_event_create, (void **event), (event), needContext, events, 1)
FUNCTION(ipc_event, (umemCudaIpc * handle, void *event), (handle, event), needContext, nothing, 0)
FUNCTION(ipc_event_open, (void **event, umemCudaIpc const *handle), (event, handle), needContext,
         events, 1)
FUNCTION(pool_export, (int *fd, void *pool), (fd, pool), needContext, nothing, 0)
FUNCTION(pool_import, (void **pool, int fd), (pool, fd), needUncaptured, pools, 1)
FUNCTION(pool_export_pointer, (umemCudaIpc * data, void *adr), (data, adr), needContext, nothing, 0)
FUNCTION(pool_import_pointer, (void **adr, void *pool, umemCudaIpc const *data), (adr, pool, data),
         needUncaptured, blocks, 1)

#undef FUNCTION
