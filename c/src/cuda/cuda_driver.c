/* cuda_driver.c - fills the table of CUDA's functions from NVIDIA's driver alone: see
 * umemCudaDriver_get. */
#include "cuda/cuda_driver.h"
#include "cuda/cuda_rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static char const library[] = "libcuda.so.1";

/* All of them, or none. */
static struct {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
  UMEM_CU_FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

#define CALL(name, ...) (driver.name ? driver.name(__VA_ARGS__) : umemCudaInsufficientDriver)

/* ---- the library ---- */

static struct {
  pthread_once_t once;
  char absence[256]; /* why there are no functions */
} found = {.once = PTHREAD_ONCE_INIT};

/* memcpy: ISO C converts no pointer to an object into one to a function. */
static bool find_one(void *handle, char const *symbol, void *function) {
  void *at = dlsym(handle, symbol);
  memcpy(function, &at, sizeof at);
  if (!at)
    snprintf(found.absence, sizeof found.absence, "%s is too old: it lacks %s", library, symbol);
  return at != NULL;
}

static bool find_all(void *handle) {
#define FIND(name, symbol, parameters) find_one(handle, #symbol, &driver.name) &&
  return UMEM_CU_FUNCTIONS(FIND) true;
#undef FIND
}

/* The library stays loaded: it may have threads. */
static void find_library(void) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  char const *error = handle ? NULL : dlerror();
  if (!handle)
    snprintf(found.absence, sizeof found.absence, "%s", error ? error : library);
  else if (!find_all(handle))
    memset(&driver, 0, sizeof driver);
}

static char const *absence(void) { return driver.init ? NULL : found.absence; }

/* ---- errors and devices ---- */

static char const *error_name(int error) {
  char const *name = NULL;
  if (error == umemCudaInsufficientDriver) return "no driver";
  return CALL(get_name, error, &name) || !name ? "unknown error" : name;
}

static char const *error_string(int error) {
  char const *text = NULL;
  if (error == umemCudaInsufficientDriver) return found.absence;
  return CALL(get_string, error, &text) || !text ? "unknown error" : text;
}

/* The driver keeps none. */
static int last_error(void) { return umemCudaSuccess; }

static int driver_version(int *version) { return CALL(get_version, version); }

/* The oldest that has all functions. */
static int runtime_version(int *version) {
  *version = 12000;
  return umemCudaSuccess;
}

/* What all other calls need, once. */
static int start(void) {
  static bool started;
  if (__atomic_load_n(&started, __ATOMIC_ACQUIRE)) return umemCudaSuccess;
  int error = CALL(init, 0);
  if (!error) __atomic_store_n(&started, true, __ATOMIC_RELEASE);
  return error;
}

static int device_count(int *count) {
  int error = start();
  return error ? error : CALL(get_count, count);
}

static int context_current(void **context) {
  int error = start();
  return error ? error : CALL(get_current, context);
}

/* Of a thread without a context that is the first GPU. */
static int get_device(int *device) {
  void *context = NULL;
  int error = context_current(&context);
  *device = 0;
  return error || !context ? error : CALL(context_device, device);
}

static int attribute(int *value, umemCudaAttribute what, int device) {
  static int const theirs[] = {
      [umemCudaHasPools] = umemCuMemoryPools,
      [umemCudaHasManaged] = umemCuManagedMemory,
      [umemCudaConcurrentManaged] = umemCuConcurrentManaged,
      [umemCudaHasPages] = umemCuVirtualMemory,
      [umemCudaBusReachesPages] = umemCuRdmaWithVirtualMemory,
      [umemCudaSharesPools] = umemCuPoolHandles,
  };
  int error = CALL(device_get_attribute, value, theirs[what], device);
  if (!error && what == umemCudaSharesPools) *value &= umemCuByDescriptor;
  return error;
}

static int device_name(char *name, size_t size, int device) {
  return CALL(device_get_name, name, (int)size, device);
}

static int uuid(uint64_t words[2], int device) {
  return CALL(get_uuid, (umemCuUuid *)words, device);
}

static int bus_id(char *text, size_t size, int device) {
  return CALL(get_bus_id, text, (int)size, device);
}

static int memory_info(size_t *available, size_t *capacity) {
  return CALL(get_info, available, capacity);
}
static int can_access_peer(int *can, int device, int peer) {
  return CALL(can_access, can, device, peer);
}

static int pointer(void const *adr, umemCudaMemory *kind, int *device) {
  enum { count = 3 };
  unsigned type = umemCudaUnregistered, managed = 0;
  int which[count] = {umemCuMemoryType, umemCuIsManaged, umemCuDeviceOrdinal};
  void *values[count] = {&type, &managed, device};
  int error = start();
  if (!error) error = CALL(get_attributes, count, which, values, adr);
  if (!error) *kind = managed ? umemCudaManagedMemory : (umemCudaMemory)type;
  return error;
}

static int range(void const *adr, uintptr_t *base, size_t *nbytes) {
  void *first = NULL;
  int error = CALL(get_range, &first, nbytes, adr);
  if (!error) *base = (uintptr_t)first;
  return error;
}

/* ---- contexts ---- */

static int context_push(void *context) { return CALL(push, context); }
static int context_pop(void **context) { return CALL(pop, context); }

/* The primary contexts of the GPUs that umem has used; atomic. umem keeps one use of each until the
 * process ends, as the runtime does: making a context takes some 0.2 s, and access of a peer ends
 * with it. */
static void *primaries[64];

static int primary_retain(void **context, int device) {
  void *kept; /* if that fails, only time is lost */
  int error = CALL(retain, context, device);
  if (!error && !__atomic_exchange_n(&primaries[device], *context, __ATOMIC_ACQ_REL))
    CALL(retain, &kept, device);
  return error;
}
static int primary_release(int device) { return CALL(release, device); }

/* The primary context of a GPU that no context of umem need use. */
static int primary_of(void **context, int device) {
  *context = __atomic_load_n(&primaries[device], __ATOMIC_ACQUIRE);
  if (*context) return umemCudaSuccess;
  int error = primary_retain(context, device);
  return error ? error : primary_release(device);
}

static int enable_peer_access(int peer) {
  void *context;
  int error = primary_of(&context, peer);
  return error ? error : CALL(enable_access, context, 0);
}

static int exchange_capture_mode(int *mode) { return CALL(exchange_mode, mode); }

/* ---- memory ---- */

static int device_malloc(void **adr, size_t nbytes) { return CALL(mem_alloc, adr, nbytes); }
static int malloc_managed(void **adr, size_t nbytes) {
  return CALL(alloc_managed, adr, nbytes, umemCuAttachGlobal);
}
static int device_free(void *adr) { return CALL(mem_free, adr); }

static int prefetch(void const *adr, size_t nbytes, int device, void *stream) {
  return CALL(prefetch, adr, nbytes, device, stream);
}

static int advise(void const *adr, size_t nbytes, umemCudaAdvice advice, int device) {
  static int const theirs[] = {
      [umemCudaPreferDevice] = umemCuPreferredLocation,
      [umemCudaReadMostly] = umemCuReadMostly,
      [umemCudaAccessedByDevice] = umemCuAccessedBy,
  };
  return CALL(advise, adr, nbytes, theirs[advice], device);
}

static int host_alloc(void **adr, size_t nbytes, unsigned flags) {
  return CALL(host_alloc, adr, nbytes, flags);
}
static int host_free(void *adr) { return CALL(host_free, adr); }
static int host_register(void *adr, size_t nbytes, unsigned flags) {
  return CALL(host_register, adr, nbytes, flags);
}
static int host_unregister(void *adr) { return CALL(host_unregister, adr); }

/* ---- pools ---- */

static int pool_create(void **pool, int device, size_t most, bool shared) {
  umemCuPoolProps properties = {
      .allocation = umemCuPinnedAllocation, .location = {umemCuOnDevice, device}, .most = most};
  if (shared) properties.handles = umemCuByDescriptor;
  return CALL(pool_create, pool, &properties);
}

static int pool_destroy(void *pool) { return CALL(pool_destroy, pool); }
static int pool_set_threshold(void *pool, uint64_t nbytes) {
  return CALL(pool_set, pool, umemCuReleaseThreshold, &nbytes);
}
static int pool_trim(void *pool, size_t keep) { return CALL(pool_trim, pool, keep); }

static int pool_sizes(void *pool, uint64_t *reserved, uint64_t *used) {
  int error = CALL(pool_get, pool, umemCuReserved, reserved);
  return error ? error : CALL(pool_get, pool, umemCuUsed, used);
}

static int pool_allow(void *pool, int device) {
  umemCuAccess access = {{umemCuOnDevice, device}, umemCuReadWrite};
  return CALL(pool_access, pool, &access, 1);
}

static int pool_malloc(void **adr, size_t nbytes, void *pool, void *stream) {
  return CALL(pool_alloc, adr, nbytes, pool, stream);
}
static int pool_free(void *adr, void *stream) { return CALL(free_async, adr, stream); }

/* ---- pages ---- */

static umemCuPageProps page_of(int device, bool for_bus) {
  return (umemCuPageProps){.allocation = umemCuPinnedAllocation,
                           .location = {umemCuOnDevice, device},
                           .flags = {.rdma = for_bus}};
}

static int page_size(size_t *nbytes, int device) {
  umemCuPageProps properties = page_of(device, false);
  return CALL(get_granularity, nbytes, &properties, umemCuLeastGranularity);
}

static int range_reserve(void **adr, size_t nbytes, size_t alignment) {
  return CALL(range_reserve, adr, nbytes, alignment, 0, 0);
}
static int range_free(void *adr, size_t nbytes) { return CALL(range_free, adr, nbytes); }

static int page_create(uint64_t *page, size_t nbytes, int device, bool for_bus) {
  umemCuPageProps properties = page_of(device, for_bus);
  return CALL(page_create, page, nbytes, &properties, 0);
}

static int page_retain(uint64_t *page, void *adr) { return CALL(page_retain, page, adr); }
static int page_release(uint64_t page) { return CALL(page_release, page); }
static int page_map(void *adr, size_t nbytes, uint64_t page) {
  return CALL(page_map, adr, nbytes, 0, page, 0);
}
static int page_unmap(void *adr, size_t nbytes) { return CALL(page_unmap, adr, nbytes); }

static int page_allow(void *adr, size_t nbytes, uint64_t devices) {
  umemCuAccess access[64];
  size_t count = 0;
  for (int device = 0; device < 64; device++)
    if (devices >> device & 1)
      access[count++] = (umemCuAccess){{umemCuOnDevice, device}, umemCuReadWrite};
  return CALL(page_access, adr, nbytes, access, count);
}

/* ---- copies and sets ---- */

static int copy(void *dst, void const *src, size_t nbytes, umemCudaDirection direction) {
  return direction == umemCudaToDevice       ? CALL(copy_in, dst, src, nbytes)
         : direction == umemCudaToHost       ? CALL(copy_out, dst, src, nbytes)
         : direction == umemCudaWithinDevice ? CALL(copy_within, dst, src, nbytes)
                                             : CALL(copy, dst, src, nbytes);
}

static int copy_async(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                      void *stream) {
  return direction == umemCudaToDevice       ? CALL(copy_in_async, dst, src, nbytes, stream)
         : direction == umemCudaToHost       ? CALL(copy_out_async, dst, src, nbytes, stream)
         : direction == umemCudaWithinDevice ? CALL(copy_within_async, dst, src, nbytes, stream)
                                             : CALL(copy_async, dst, src, nbytes, stream);
}

static int copy_peer_async(void *dst, int dst_device, void const *src, int src_device,
                           size_t nbytes, void *stream) {
  void *from, *to;
  int error = primary_of(&from, src_device);
  if (!error) error = primary_of(&to, dst_device);
  if (error) return error;
  return CALL(copy_peer_async, dst, to, src, from, nbytes, stream);
}

/* CUmemorytype of a side of a copy that is in host memory where the direction is of_host. */
static int type_of(umemCudaDirection direction, umemCudaDirection of_host) {
  return direction == umemCudaAnyDirection ? umemCuUnified
         : direction == of_host            ? umemCuHost
                                           : umemCuDevice;
}

static umemCuSide side(int type, void const *adr, size_t pitch, size_t rows) {
  return (umemCuSide){.type = type, .host = adr, .device = adr, .pitch = pitch, .height = rows};
}

static umemCuCopy3D box_of(umemCudaBox const *box, umemCudaDirection direction) {
  int from = type_of(direction, umemCudaToDevice), to = type_of(direction, umemCudaToHost);
  return (umemCuCopy3D){.src = side(from, box->src, box->src_pitch, box->src_rows),
                        .dst = side(to, box->dst, box->dst_pitch, box->dst_rows),
                        .width = box->width,
                        .height = box->height,
                        .depth = box->depth};
}

static int copy_3d_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  umemCuCopy3D all = box_of(box, direction);
  return CALL(copy_3d_async, &all, stream);
}

static umemCuPlane plane(int type, void const *adr, size_t pitch) {
  return (umemCuPlane){.type = type, .host = adr, .device = adr, .pitch = pitch};
}

static int copy_2d_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  umemCuCopy2D all = {.src = plane(type_of(direction, umemCudaToDevice), box->src, box->src_pitch),
                      .dst = plane(type_of(direction, umemCudaToHost), box->dst, box->dst_pitch),
                      .width = box->width,
                      .height = box->height};
  return CALL(copy_2d_async, &all, stream);
}

static int copy_box_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  umemCudaBox rows;
  if (box->depth > 1) return copy_3d_async(box, direction, stream);
  if (umemCudaBox_is_split(box, direction, &rows)) return copy_3d_async(&rows, direction, stream);
  return copy_2d_async(box, direction, stream);
}

static int copy_box_peer_async(umemCudaBox const *box, int dst_device, int src_device,
                               void *stream) {
  umemCuCopy3D all = box_of(box, umemCudaWithinDevice);
  int error = primary_of(&all.src.context, src_device);
  if (!error) error = primary_of(&all.dst.context, dst_device);
  return error ? error : CALL(copy_3d_peer_async, &all, stream);
}

static int set_async(void *adr, int c, size_t nbytes, void *stream) {
  return CALL(set_async, adr, (unsigned char)c, nbytes, stream);
}

/* ---- streams and events ---- */

static int stream_create(void **stream) { return CALL(stream_create, stream, umemCuNonBlocking); }
static int stream_destroy(void *stream) { return CALL(stream_destroy, stream); }
static int stream_synchronize(void *stream) { return CALL(stream_synchronize, stream); }
static int stream_wait(void *stream, void *event) { return CALL(stream_wait, stream, event, 0); }

static int stream_device(void *stream, int *device) {
  void *context = NULL;
  int error = start();
  if (!error) error = CALL(stream_context, stream, &context);
  if (!error) error = CALL(push, context);
  if (error) return error;
  error = CALL(context_device, device);
  int popped = CALL(pop, &context);
  return error ? error : popped;
}

static int stream_capture(void *stream, umemCudaCapture *capture, uint64_t *id) {
  int status = umemCudaNoCapture;
  if (id) *id = 0;
  int error = id ? CALL(capture_info, stream, &status, id, NULL, NULL, NULL)
                 : CALL(is_capturing, stream, &status);
  *capture = umemCudaCapture_of(error, status);
  return error;
}

static int event_create(void **event) { return CALL(event_create, event, umemCuDisableTiming); }
static int event_destroy(void *event) { return CALL(event_destroy, event); }
static int event_record(void *event, void *stream) { return CALL(event_record, event, stream); }
static int event_synchronize(void *event) { return CALL(event_synchronize, event); }

/* ---- other processes ---- */

_Static_assert(sizeof(umemCudaIpc) == sizeof(umemCuIpc), "handles have 64 bytes");

static int ipc_memory(umemCudaIpc *handle, void *adr) {
  return CALL(ipc_memory, (umemCuIpc *)handle, adr);
}
static int ipc_open(void **adr, umemCudaIpc const *handle) {
  umemCuIpc theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return CALL(ipc_open, adr, theirs, umemCuLazyPeerAccess);
}
static int ipc_close(void *adr) { return CALL(ipc_close, adr); }

static int ipc_event_create(void **event) {
  return CALL(event_create, event, umemCuDisableTiming | umemCuInterprocess);
}
static int ipc_event(umemCudaIpc *handle, void *event) {
  return CALL(ipc_event, (umemCuIpc *)handle, event);
}
static int ipc_event_open(void **event, umemCudaIpc const *handle) {
  umemCuIpc theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return CALL(ipc_event_open, event, theirs);
}

static int pool_export(int *fd, void *pool) {
  return CALL(pool_export, fd, pool, umemCuByDescriptor, 0);
}
static int pool_import(void **pool, int fd) {
  return CALL(pool_import, pool, (void *)(uintptr_t)fd, umemCuByDescriptor, 0);
}
static int pool_export_pointer(umemCudaIpc *data, void *adr) {
  return CALL(pool_export_pointer, (umemCuIpc *)data, adr);
}
static int pool_import_pointer(void **adr, void *pool, umemCudaIpc const *data) {
  return CALL(pool_import_pointer, adr, pool, (umemCuIpc const *)data);
}

static umemCudaRt table = {
    .error_name = error_name,
    .error_string = error_string,
    .last_error = last_error,
    .driver_version = driver_version,
    .runtime_version = runtime_version,
    .device_count = device_count,
    .get_device = get_device,
    .attribute = attribute,
    .device_name = device_name,
    .memory_info = memory_info,
    .can_access_peer = can_access_peer,
    .pointer = pointer,
    .uuid = uuid,
    .bus_id = bus_id,
    .range = range,
    .context_current = context_current,
    .context_push = context_push,
    .context_pop = context_pop,
    .primary_retain = primary_retain,
    .primary_release = primary_release,
    .enable_peer_access = enable_peer_access,
    .exchange_capture_mode = exchange_capture_mode,
    .malloc = device_malloc,
    .free = device_free,
    .malloc_managed = malloc_managed,
    .prefetch = prefetch,
    .advise = advise,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .pool_create = pool_create,
    .pool_destroy = pool_destroy,
    .pool_set_threshold = pool_set_threshold,
    .pool_trim = pool_trim,
    .pool_sizes = pool_sizes,
    .pool_allow = pool_allow,
    .pool_malloc = pool_malloc,
    .pool_free = pool_free,
    .page_size = page_size,
    .range_reserve = range_reserve,
    .range_free = range_free,
    .page_create = page_create,
    .page_retain = page_retain,
    .page_release = page_release,
    .page_map = page_map,
    .page_unmap = page_unmap,
    .page_allow = page_allow,
    .memcpy = copy,
    .memcpy_async = copy_async,
    .memcpy_peer_async = copy_peer_async,
    .memcpy_box_async = copy_box_async,
    .memcpy_box_peer_async = copy_box_peer_async,
    .memset_async = set_async,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_device = stream_device,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .stream_capture = stream_capture,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_synchronize = event_synchronize,
    .ipc_memory = ipc_memory,
    .ipc_open = ipc_open,
    .ipc_close = ipc_close,
    .ipc_event_create = ipc_event_create,
    .ipc_event = ipc_event,
    .ipc_event_open = ipc_event_open,
    .pool_export = pool_export,
    .pool_import = pool_import,
    .pool_export_pointer = pool_export_pointer,
    .pool_import_pointer = pool_import_pointer,
    .absence = absence,
};

umemCudaRt const *umemCudaDriver_get(struct umemCufileRt const *(*cufile)(void)) {
  pthread_once(&found.once, find_library);
  __atomic_store_n(&table.cufile, cufile, __ATOMIC_RELAXED);
  return &table;
}
