/* cuda_driver.c - fills the tables of CUDA's and of cuFile's functions from NVIDIA's libraries,
 * which it opens at run time: libcuda.so.1, the driver, and libcufile.so.0. */
#include "cuda/cuda_driver.h"
#include "base/system.h"
#include "cuda/cuda_rt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char const library[] = "libcuda.so.1";

/* What this file calls itself. Without a driver all of them, and of the table, are `absent`. */
static struct {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
  UMEM_CU_FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

static umemCudaRt table;

static struct {
  pthread_once_t once;
  char absence[256]; /* why there is no driver; "" if there is one */
} found = {.once = PTHREAD_ONCE_INIT};

/* ---- errors and devices ---- */

static char const *error_name(int error) {
  char const *name = NULL;
  if (error == umemCudaInsufficientDriver) return "no driver";
  return driver.get_name(error, &name) || !name ? "unknown error" : name;
}

static char const *error_string(int error) {
  char const *text = NULL;
  if (error == umemCudaInsufficientDriver) return found.absence;
  return driver.get_string(error, &text) || !text ? "unknown error" : text;
}

static char const *absence(void) { return *found.absence ? found.absence : NULL; }

/* The driver keeps none. */
static int last_error(void) { return umemCudaSuccess; }

/* The oldest that has all functions. */
static int runtime_version(int *version) {
  *version = 12000;
  return umemCudaSuccess;
}

/* What all other calls need, once. */
static int start(void) {
  static bool started;
  if (__atomic_load_n(&started, __ATOMIC_ACQUIRE)) return umemCudaSuccess;
  int error = driver.init(0);
  if (!error) __atomic_store_n(&started, true, __ATOMIC_RELEASE);
  return error;
}

static int device_count(int *count) {
  int error = start();
  return error ? error : driver.get_count(count);
}

static int context_current(void **context) {
  int error = start();
  return error ? error : driver.get_current(context);
}

/* Of a thread without a context that is the first GPU. */
static int get_device(int *device) {
  void *context = NULL;
  int error = context_current(&context);
  *device = 0;
  return error || !context ? error : driver.context_device(device);
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
  int error = driver.device_get_attribute(value, theirs[what], device);
  if (!error && what == umemCudaSharesPools) *value &= umemCuByDescriptor;
  return error;
}

static int device_name(char *name, size_t size, int device) {
  return driver.device_get_name(name, (int)size, device);
}

static int bus_id(char *text, size_t size, int device) {
  return driver.get_bus_id(text, (int)size, device);
}

static int pointer(void const *adr, umemCudaMemory *kind, int *device) {
  enum { count = 3 };
  unsigned type = umemCudaUnregistered, managed = 0;
  int which[count] = {umemCuMemoryType, umemCuIsManaged, umemCuDeviceOrdinal};
  void *values[count] = {&type, &managed, device};
  int error = start();
  if (!error) error = driver.get_attributes(count, which, values, adr);
  if (!error) *kind = managed ? umemCudaManagedMemory : (umemCudaMemory)type;
  return error;
}

static int range(void const *adr, uintptr_t *base, size_t *nbytes) {
  void *first = NULL;
  int error = driver.get_range(&first, nbytes, adr);
  if (!error) *base = (uintptr_t)first;
  return error;
}

/* ---- contexts ---- */

/* The primary contexts of the GPUs that umem has used; atomic. umem keeps one use of each until the
 * process ends, as the runtime does: making a context takes some 0.2 s, and access of a peer ends
 * with it. */
static void *primaries[64];

static int primary_retain(void **context, int device) {
  void *kept; /* if that fails, only time is lost */
  int error = driver.retain(context, device);
  if (!error && !__atomic_exchange_n(&primaries[device], *context, __ATOMIC_ACQ_REL))
    driver.retain(&kept, device);
  return error;
}

/* The primary context of a GPU that no context of umem need use. */
static int primary_of(void **context, int device) {
  *context = __atomic_load_n(&primaries[device], __ATOMIC_ACQUIRE);
  if (*context) return umemCudaSuccess;
  int error = primary_retain(context, device);
  return error ? error : table.primary_release(device);
}

static int enable_peer_access(int peer) {
  void *context;
  int error = primary_of(&context, peer);
  return error ? error : driver.enable_access(context, 0);
}

/* ---- memory ---- */

static int malloc_managed(void **adr, size_t nbytes) {
  return driver.alloc_managed(adr, nbytes, umemCuAttachGlobal);
}

static int advise(void const *adr, size_t nbytes, umemCudaAdvice advice, int device) {
  static int const theirs[] = {
      [umemCudaPreferDevice] = umemCuPreferredLocation,
      [umemCudaReadMostly] = umemCuReadMostly,
      [umemCudaAccessedByDevice] = umemCuAccessedBy,
  };
  return driver.advise(adr, nbytes, theirs[advice], device);
}

/* ---- pools ---- */

static int pool_create(void **pool, int device, size_t most, bool shared) {
  umemCuPoolProps properties = {
      .allocation = umemCuPinnedAllocation, .location = {umemCuOnDevice, device}, .most = most};
  if (shared) properties.handles = umemCuByDescriptor;
  return driver.pool_create(pool, &properties);
}

static int pool_set_threshold(void *pool, uint64_t nbytes) {
  return driver.pool_set(pool, umemCuReleaseThreshold, &nbytes);
}

static int pool_sizes(void *pool, uint64_t *reserved, uint64_t *used) {
  int error = driver.pool_get(pool, umemCuReserved, reserved);
  return error ? error : driver.pool_get(pool, umemCuUsed, used);
}

static int pool_allow(void *pool, int device) {
  umemCuAccess access = {{umemCuOnDevice, device}, umemCuReadWrite};
  return driver.pool_access(pool, &access, 1);
}

/* ---- pages ---- */

static umemCuPageProps page_of(int device, bool for_bus) {
  return (umemCuPageProps){.allocation = umemCuPinnedAllocation,
                           .location = {umemCuOnDevice, device},
                           .flags = {.rdma = for_bus}};
}

static int page_size(size_t *nbytes, int device) {
  umemCuPageProps properties = page_of(device, false);
  return driver.get_granularity(nbytes, &properties, umemCuLeastGranularity);
}

static int range_reserve(void **adr, size_t nbytes, size_t alignment) {
  return driver.range_reserve(adr, nbytes, alignment, 0, 0);
}

static int page_create(uint64_t *page, size_t nbytes, int device, bool for_bus) {
  umemCuPageProps properties = page_of(device, for_bus);
  return driver.page_create(page, nbytes, &properties, 0);
}

static int page_map(void *adr, size_t nbytes, uint64_t page) {
  return driver.page_map(adr, nbytes, 0, page, 0);
}

static int page_allow(void *adr, size_t nbytes, uint64_t devices) {
  umemCuAccess access[64];
  size_t count = 0;
  for (int device = 0; device < 64; device++)
    if (devices >> device & 1)
      access[count++] = (umemCuAccess){{umemCuOnDevice, device}, umemCuReadWrite};
  return driver.page_access(adr, nbytes, access, count);
}

/* ---- copies and sets ---- */

static int copy(void *dst, void const *src, size_t nbytes, umemCudaDirection direction) {
  return direction == umemCudaToDevice       ? driver.copy_in(dst, src, nbytes)
         : direction == umemCudaToHost       ? driver.copy_out(dst, src, nbytes)
         : direction == umemCudaWithinDevice ? driver.copy_within(dst, src, nbytes)
                                             : driver.copy(dst, src, nbytes);
}

static int copy_async(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                      void *stream) {
  return direction == umemCudaToDevice       ? driver.copy_in_async(dst, src, nbytes, stream)
         : direction == umemCudaToHost       ? driver.copy_out_async(dst, src, nbytes, stream)
         : direction == umemCudaWithinDevice ? driver.copy_within_async(dst, src, nbytes, stream)
                                             : driver.copy_async(dst, src, nbytes, stream);
}

static int copy_peer_async(void *dst, int dst_device, void const *src, int src_device,
                           size_t nbytes, void *stream) {
  void *from, *to;
  int error = primary_of(&from, src_device);
  if (!error) error = primary_of(&to, dst_device);
  if (error) return error;
  return driver.copy_peer_async(dst, to, src, from, nbytes, stream);
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
  return driver.copy_3d_async(&all, stream);
}

static umemCuPlane plane(int type, void const *adr, size_t pitch) {
  return (umemCuPlane){.type = type, .host = adr, .device = adr, .pitch = pitch};
}

static int copy_2d_async(umemCudaBox const *box, umemCudaDirection direction, void *stream) {
  umemCuCopy2D all = {.src = plane(type_of(direction, umemCudaToDevice), box->src, box->src_pitch),
                      .dst = plane(type_of(direction, umemCudaToHost), box->dst, box->dst_pitch),
                      .width = box->width,
                      .height = box->height};
  return driver.copy_2d_async(&all, stream);
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
  return error ? error : driver.copy_3d_peer_async(&all, stream);
}

static umemCuCopyBatch *copy_batch; /* NULL: the driver has none */

static int copy_batch_async(void *const *dst, void const *const *src, size_t const *nbytes,
                            size_t count, void *stream) {
  umemCuBatch attributes = {.order = umemCuInStreamOrder};
  size_t first = 0, failed;
  if (!copy_batch) return umemCudaNotSupported;
  return copy_batch(dst, src, nbytes, count, &attributes, &first, 1, &failed, stream);
}

static int set_async(void *adr, int c, size_t nbytes, void *stream) {
  return driver.set_async(adr, (unsigned char)c, nbytes, stream);
}

/* ---- streams and events ---- */

static int stream_create(void **stream) { return driver.stream_create(stream, umemCuNonBlocking); }
static int stream_wait(void *stream, void *event) { return driver.stream_wait(stream, event, 0); }

static int stream_device(void *stream, int *device) {
  void *context = NULL;
  int error = start();
  if (!error) error = driver.stream_context(stream, &context);
  if (!error) error = table.context_push(context);
  if (error) return error;
  error = driver.context_device(device);
  int popped = table.context_pop(&context);
  return error ? error : popped;
}

static int stream_capture(void *stream, umemCudaCapture *capture, uint64_t *id) {
  int status = umemCudaNoCapture;
  if (id) *id = 0;
  int error = id ? driver.capture_info(stream, &status, id, NULL, NULL, NULL)
                 : driver.is_capturing(stream, &status);
  *capture = umemCudaCapture_of(error, status);
  return error;
}

static int event_create(void **event) { return driver.event_create(event, umemCuDisableTiming); }

/* ---- other processes ---- */

_Static_assert(sizeof(umemCudaIpc) == sizeof(umemCuIpc), "handles have 64 bytes");

static int ipc_open(void **adr, umemCudaIpc const *handle) {
  umemCuIpc theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return driver.ipc_open(adr, theirs, umemCuLazyPeerAccess);
}

static int ipc_event_create(void **event) {
  return driver.event_create(event, umemCuDisableTiming | umemCuInterprocess);
}
static int ipc_event_open(void **event, umemCudaIpc const *handle) {
  umemCuIpc theirs;
  memcpy(&theirs, handle, sizeof theirs);
  return driver.ipc_event_open(event, theirs);
}

static int pool_export(int *fd, void *pool) {
  return driver.pool_export(fd, pool, umemCuByDescriptor, 0);
}
static int pool_import(void **pool, int fd) {
  return driver.pool_import(pool, (void *)(uintptr_t)fd, umemCuByDescriptor, 0);
}

/* UMEM_CU_SLOTS are the other members. */
static umemCudaRt table = {
    .error_name = error_name,
    .error_string = error_string,
    .last_error = last_error,
    .runtime_version = runtime_version,
    .device_count = device_count,
    .get_device = get_device,
    .attribute = attribute,
    .device_name = device_name,
    .pointer = pointer,
    .bus_id = bus_id,
    .range = range,
    .context_current = context_current,
    .primary_retain = primary_retain,
    .enable_peer_access = enable_peer_access,
    .malloc_managed = malloc_managed,
    .advise = advise,
    .pool_create = pool_create,
    .pool_set_threshold = pool_set_threshold,
    .pool_sizes = pool_sizes,
    .pool_allow = pool_allow,
    .page_size = page_size,
    .range_reserve = range_reserve,
    .page_create = page_create,
    .page_map = page_map,
    .page_allow = page_allow,
    .memcpy = copy,
    .memcpy_async = copy_async,
    .memcpy_peer_async = copy_peer_async,
    .memcpy_box_async = copy_box_async,
    .memcpy_box_peer_async = copy_box_peer_async,
    .memcpy_batch_async = copy_batch_async,
    .memset_async = set_async,
    .stream_create = stream_create,
    .stream_device = stream_device,
    .stream_wait = stream_wait,
    .stream_capture = stream_capture,
    .event_create = event_create,
    .ipc_open = ipc_open,
    .ipc_event_create = ipc_event_create,
    .ipc_event_open = ipc_event_open,
    .pool_export = pool_export,
    .pool_import = pool_import,
    .absence = absence,
};

/* ---- the library of the driver ---- */

static int absent(void) { return umemCudaInsufficientDriver; }

/* memcpy: ISO C converts no pointer to an object into one to a function. */
static bool find_one(void *handle, char const *symbol, void *function) {
  void *at = dlsym(handle, symbol);
  if (at) memcpy(function, &at, sizeof at);
  return at != NULL;
}

static bool find_of_driver(void *handle, char const *symbol, void *function) {
  if (find_one(handle, symbol, function)) return true;
  snprintf(found.absence, sizeof found.absence, "%s is too old: it lacks %s", library, symbol);
  return false;
}

static bool find_all(void *handle) {
#define FIND(name, symbol, parameters) find_of_driver(handle, #symbol, &driver.name) &&
#define FILL(member, symbol) find_of_driver(handle, #symbol, &table.member) &&
  return UMEM_CU_FUNCTIONS(FIND) UMEM_CU_SLOTS(FILL) true;
#undef FIND
#undef FILL
}

static void lose_all(void) {
  int (*const none)(void) = absent;
#define LOSE(name, symbol, parameters) memcpy(&driver.name, &none, sizeof none);
#define EMPTY(member, symbol) memcpy(&table.member, &none, sizeof none);
  UMEM_CU_FUNCTIONS(LOSE)
  UMEM_CU_SLOTS(EMPTY)
#undef LOSE
#undef EMPTY
}

/* The library stays loaded: it may have threads. */
static void find_library(void) {
  char const *error = NULL;
  void *handle = umem_open_library(library, RTLD_NOW, &error);
  if (!handle) snprintf(found.absence, sizeof found.absence, "%s", error ? error : library);
  if (!handle || !find_all(handle))
    lose_all();
  else
    find_one(handle, "cuMemcpyBatchAsync", &copy_batch);
}

umemCudaRt const *umemCudaDriver_get(umemCufileRt const *(*cufile)(void)) {
  pthread_once(&found.once, find_library);
  __atomic_store_n(&table.cufile, cufile, __ATOMIC_RELAXED);
  return &table;
}

/* ==== the library of cuFile ==== */

_Static_assert(sizeof(off_t) == 8, "files have 64-bit offsets");
_Static_assert(sizeof(umemCufileError) == 8, "two enumerations");
_Static_assert(sizeof(umemCufileFile) == 24, "type, handle, operations");
_Static_assert(offsetof(umemCufileFile, handle) == 8, "the union holds a pointer");
_Static_assert(offsetof(umemCufileFile, operations) == 16, "follows the union");
_Static_assert(offsetof(umemCufileProperties, poll_most) == 8, "follows the version");
_Static_assert(offsetof(umemCufileProperties, file_systems) == 24, "follows two sizes");
_Static_assert(offsetof(umemCufileProperties, features) == 32, "the nested struct ends before");
_Static_assert(offsetof(umemCufileProperties, room) == 56, "follows six numbers");

static struct {
  pthread_once_t once;
  umemCufileRt table;
  bool found;
} cufile = {.once = PTHREAD_ONCE_INIT};

/* Later versions of the library rename the function, so that a program keeps the meaning that it
 * was compiled for. */
static bool find_close(void *handle) {
  return find_one(handle, "cuFileDriverClose_v2", &cufile.table.driver_close) ||
         find_one(handle, "cuFileDriverClose", &cufile.table.driver_close);
}

static bool find_cufile(void *handle) {
  return find_one(handle, "cuFileDriverOpen", &cufile.table.driver_open) && find_close(handle) &&
         find_one(handle, "cuFileUseCount", &cufile.table.use_count) &&
         find_one(handle, "cuFileDriverGetProperties", &cufile.table.driver_properties) &&
         find_one(handle, "cuFileHandleRegister", &cufile.table.handle_register) &&
         find_one(handle, "cuFileHandleDeregister", &cufile.table.handle_deregister) &&
         find_one(handle, "cuFileRead", &cufile.table.read) &&
         find_one(handle, "cuFileWrite", &cufile.table.write);
}

/* Without the module nvidia-fs there is nothing to use, so that the library is not even opened: it
 * takes milliseconds to load, and its driver writes a log file into the current folder where the
 * module is missing. The library stays loaded: it may have threads. */
static void find_cufile_library(void) {
  if (access("/proc/driver/nvidia-fs", F_OK) != 0) return;
  char const *error = NULL;
  void *handle = umem_open_library("libcufile.so.0", RTLD_LAZY, &error);
  if (!handle) handle = umem_open_library("libcufile.so", RTLD_LAZY, &error);
  cufile.found = handle && find_cufile(handle);
}

umemCufileRt const *umemCufileRt_get(void) {
  pthread_once(&cufile.once, find_cufile_library);
  return cufile.found ? &cufile.table : NULL;
}
