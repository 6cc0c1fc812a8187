/* cuda_rt.h - CUDA and cuFile as umem sees them: a table of functions each.
 *
 * Nothing else of umem calls them. cuda_driver.c fills the table from NVIDIA's driver, and
 * cuda_rt.c chooses the table in use. So the contexts are compiled, and tested with a double of the
 * table, on machines without CUDA; and every call can be made to fail.
 *
 * Functions return CUDA's error numbers (cudaError_t; those of the driver are the same numbers),
 * 0 being success. Streams, events, pools and contexts are CUDA's handles as void *; stream NULL
 * is the legacy default stream. All of them may be called from many threads. */
#ifndef UMEM_CUDA_RT_H
#define UMEM_CUDA_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ==== cuFile (GPUDirect Storage) ====
 *
 * The functions are those of libcufile.so.0, which cuda_driver.c opens at run time; umem needs
 * neither its header nor the library to be built or to run. The structs here are those of its
 * binary interface, stable since its first release. test/compile/cufile_layout.c compares them with
 * an installed header. Tests put another table in the place of the library's (the member cufile of
 * umemCudaRt). */

/* The codes that umem or its tests distinguish. A transfer returns them negated. */
enum {
  umemCufileSuccess = 0,
  umemCufileBase = 5000, /* all others are greater */
  umemCufileNoDriver = 5001,
  umemCufileDriverClosing = 5006,
  umemCufileNoPlatform = 5007,
  umemCufileNoFile = 5008,
  umemCufileNoDevice = 5009,
  umemCufileNvfsError = 5010,
  umemCufileCudaError = 5011,
  umemCufileBadPointer = 5012,
  umemCufileBadMemory = 5013,
  umemCufilePointerRange = 5014,
  umemCufileContextMismatch = 5015,
  umemCufileMappingSize = 5016,
  umemCufileMappingRange = 5017,
  umemCufileBadFileType = 5018,
  umemCufileBadFlags = 5019,
  umemCufileNoDirectIO = 5020,
  umemCufileInvalidValue = 5022,
  umemCufileNoPermission = 5025,
  umemCufileNotRegistered = 5027,
  umemCufileInternal = 5030,
  umemCufileDisabled = 5034,
  umemCufileNoPinning = 5036,
  umemCufileNoMemory = 5043,
  umemCufileIOError = 5044,
  umemCufileBadContext = 5047,
  umemCufileNvfsInternal = 5048
};

/* What functions return that transfer nothing. cuda is an error of the driver where code is
 * umemCufileCudaError, and means nothing elsewhere. */
typedef struct umemCufileError {
  int code, cuda;
} umemCufileError;

/* Bits of umemCufileProperties.controls: each lets cuFile move bytes through host memory
 * silently. */
enum {
  umemCufileAllowsCompat = 1 << 1,
  umemCufilePosixIO = 1 << 2,
  umemCufileFallback = 1 << 4,
  umemCufileDetours = umemCufileAllowsCompat | umemCufilePosixIO | umemCufileFallback
};

/* What the driver is and may do. */
typedef struct umemCufileProperties {
  unsigned major, minor; /* version of nvidia-fs; 0.0: it is not loaded */
  size_t poll_most, direct_most;
  unsigned file_systems; /* a bit for each kind of storage that has a direct path */
  unsigned controls;
  unsigned features;
  unsigned device_cache, buffer_cache, device_pinned, batch_most, batch_timeout;
  unsigned room[64]; /* for what later versions append */
} umemCufileProperties;

enum { umemCufileDescriptor = 1 }; /* umemCufileFile.type */

typedef struct umemCufileFile {
  int type;
  union {
    int fd;
    void *other;
  } handle;
  void const *operations; /* NULL: the kernel's */
} umemCufileFile;

/* All of them may be called from many threads, those that get addresses of a GPU in its context.
 * They are of no use in a child of fork. */
typedef struct umemCufileRt {
  umemCufileError (*driver_open)(void);
  umemCufileError (*driver_close)(void);
  long (*use_count)(void); /* how often the driver is open in this process */
  umemCufileError (*driver_properties)(umemCufileProperties *properties);
  umemCufileError (*handle_register)(void **handle, umemCufileFile *file);
  void (*handle_deregister)(void *handle);
  /* Between the file at file_offset and base + base_offset. Return the bytes transferred, -1 with
   * errno, or a code below -umemCufileBase. They wait for no stream. */
  ssize_t (*read)(void *handle, void *base, size_t size, off_t file_offset, off_t base_offset);
  ssize_t (*write)(void *handle, void const *base, size_t size, off_t file_offset,
                   off_t base_offset);
} umemCufileRt;

/* ==== CUDA ==== */

/* The errors that umem or its tests distinguish. cuda_rt.c checks the numbers against CUDA's
 * header. */
enum {
  umemCudaSuccess = 0,
  umemCudaInvalidValue = 1,
  umemCudaOutOfMemory = 2,
  umemCudaInitializationError = 3,
  umemCudaUnloading = 4,
  umemCudaStubLibrary = 34,
  umemCudaInsufficientDriver = 35,
  umemCudaNoGpu = 100,
  umemCudaInvalidOrdinal = 101,
  umemCudaInvalidContext = 201,
  umemCudaMapFailed = 205,
  umemCudaUncorrectable = 214,     /* of memory */
  umemCudaLinkUncorrectable = 220, /* of NVLink */
  umemCudaInvalidHandle = 400,
  umemCudaNotReady = 600,
  umemCudaIllegalAddress = 700,
  umemCudaLaunchTimeout = 702,
  umemCudaPeerAlreadyEnabled = 704,
  umemCudaContextDestroyed = 709,
  umemCudaAssert = 710,
  umemCudaAlreadyRegistered = 712,
  umemCudaNotRegistered = 713,
  umemCudaHardwareStackError = 714,
  umemCudaIllegalInstruction = 715,
  umemCudaMisalignedAddress = 716,
  umemCudaInvalidAddressSpace = 717,
  umemCudaInvalidPc = 718,
  umemCudaLaunchFailure = 719,
  umemCudaNotPermitted = 800,
  umemCudaNotSupported = 801,
  umemCudaCaptureUnsupported = 900,
  umemCudaCaptureInvalidated = 901,
  umemCudaCaptureIsolation = 905,
  umemCudaCaptureImplicit = 906,
  umemCudaCapturedEvent = 907
};

/* Attributes of a device. */
typedef enum umemCudaAttribute {
  umemCudaHasPools,          /* memory pools */
  umemCudaHasManaged,        /* managed memory */
  umemCudaConcurrentManaged, /* the CPU may use managed memory while kernels run */
  umemCudaHasPages,          /* addresses without memory, and memory that is mapped there */
  umemCudaBusReachesPages,   /* other devices of the bus can use such memory (GPUDirect RDMA) */
  umemCudaSharesPools        /* other processes can have pools, by POSIX descriptors */
} umemCudaAttribute;

/* cudaMemcpyKind */
typedef enum umemCudaDirection {
  umemCudaToDevice = 1,
  umemCudaToHost = 2,
  umemCudaWithinDevice = 3,
  umemCudaAnyDirection = 4 /* CUDA finds it out from the addresses */
} umemCudaDirection;

/* What an address is. */
typedef enum umemCudaMemory {
  umemCudaUnregistered = 0, /* nothing that CUDA knows: pageable host memory */
  umemCudaPinned = 1,       /* page-locked host memory */
  umemCudaDeviceMemory = 2,
  umemCudaManagedMemory = 3
} umemCudaMemory;

/* Hints for managed memory. */
typedef enum umemCudaAdvice {
  umemCudaPreferDevice,
  umemCudaReadMostly,
  umemCudaAccessedByDevice
} umemCudaAdvice;

/* Whether a stream is being captured into a graph. */
typedef enum umemCudaCapture {
  umemCudaNoCapture = 0,
  umemCudaCapturing = 1,
  umemCudaCaptureBroken = 2
} umemCudaCapture;

/* Handles for other processes: of memory, of an event, of a pointer into a pool
 * (cudaIpcMemHandle_t, cudaIpcEventHandle_t, cudaMemPoolPtrExportData). */
typedef struct umemCudaIpc {
  uint64_t words[8];
} umemCudaIpc;

/* height rows of width bytes in each of depth planes. A pitch is the bytes from row to row, rows
 * those from plane to plane. */
typedef struct umemCudaBox {
  void *dst;
  size_t dst_pitch, dst_rows;
  void const *src;
  size_t src_pitch, src_rows;
  size_t width, height, depth;
} umemCudaBox;

/* Flags of host_register and host_alloc: cudaHostRegister..., cudaHostAlloc... */
enum { umemCudaPortable = 1, umemCudaMapped = 2, umemCudaWriteCombined = 4 };

typedef struct umemCudaRt {
  /* ---- errors ---- */
  char const *(*error_name)(int error);   /* "cudaErrorMemoryAllocation"; static */
  char const *(*error_string)(int error); /* "out of memory"; static */
  int (*last_error)(void); /* this thread's last error, which is forgotten if it is not sticky */

  /* ---- what there is; none of these makes or needs a context, but for memory_info ---- */
  int (*driver_version)(int *version); /* 1000 * major + 10 * minor; 0 without a driver */
  int (*runtime_version)(int *version);
  int (*device_count)(int *count);
  int (*get_device)(int *device); /* the caller's current one */
  int (*attribute)(int *value, umemCudaAttribute what, int device);
  int (*device_name)(char *name, size_t size, int device);
  int (*memory_info)(size_t *available, size_t *capacity); /* of the current context's device */
  int (*can_access_peer)(int *can, int device, int peer);
  int (*pointer)(void const *adr, umemCudaMemory *kind, int *device);
  int (*uuid)(uint64_t words[2], int device);
  int (*bus_id)(char *text, size_t size, int device); /* "0000:3B:00.0" */
  int (*range)(void const *adr, uintptr_t *base,
               size_t *nbytes); /* the allocation that contains adr */

  /* ---- contexts (cuCtx..., cuDevicePrimaryCtx...) ---- */
  int (*context_current)(void **context); /* NULL: none */
  int (*context_push)(void *context);
  int (*context_pop)(void **context);
  int (*primary_retain)(void **context, int device);
  int (*primary_release)(int device);
  int (*enable_peer_access)(int peer); /* from the current context's device */
  /* Sets this thread's capture mode to *mode, and *mode to what it was; 2 is relaxed. */
  int (*exchange_capture_mode)(int *mode);

  /* ---- memory ---- */
  int (*malloc)(void **adr, size_t nbytes);
  int (*free)(void *adr);
  int (*malloc_managed)(void **adr, size_t nbytes);
  int (*prefetch)(void const *adr, size_t nbytes, int device, void *stream);
  int (*advise)(void const *adr, size_t nbytes, umemCudaAdvice advice, int device);
  int (*host_alloc)(void **adr, size_t nbytes, unsigned flags);
  int (*host_free)(void *adr);
  int (*host_register)(void *adr, size_t nbytes, unsigned flags);
  int (*host_unregister)(void *adr);

  /* ---- pools ---- */
  /* A pool of device memory; most is its maximum size, 0 for none. shared: pool_export can pass
   * it. */
  int (*pool_create)(void **pool, int device, size_t most, bool shared);
  int (*pool_destroy)(void *pool);
  int (*pool_set_threshold)(void *pool, uint64_t nbytes); /* kept over a synchronisation */
  int (*pool_trim)(void *pool, size_t keep);
  int (*pool_sizes)(void *pool, uint64_t *reserved, uint64_t *used);
  int (*pool_allow)(void *pool, int device); /* lets another device read and write */
  int (*pool_malloc)(void **adr, size_t nbytes, void *pool, void *stream);
  int (*pool_free)(void *adr, void *stream);

  /* ---- pages (cuMem...); none of these is in the order of a stream ---- */
  int (*page_size)(size_t *nbytes, int device); /* the smallest */
  int (*range_reserve)(void **adr, size_t nbytes, size_t alignment);
  int (*range_free)(void *adr, size_t nbytes);
  /* Memory that is nowhere yet. It ends when it is released as often as it was created or retained,
   * and is mapped nowhere. for_bus: with umemCudaBusReachesPages. */
  int (*page_create)(uint64_t *page, size_t nbytes, int device, bool for_bus);
  int (*page_retain)(uint64_t *page, void *adr); /* what is mapped at adr */
  int (*page_release)(uint64_t page);
  int (*page_map)(void *adr, size_t nbytes,
                  uint64_t page);              /* all of page; no device may use it yet */
  int (*page_unmap)(void *adr, size_t nbytes); /* what one call has mapped */
  /* Lets the devices of these bits use what is mapped. */
  int (*page_allow)(void *adr, size_t nbytes, uint64_t devices);

  /* ---- copies and sets ---- */
  int (*memcpy)(void *dst, void const *src, size_t nbytes, umemCudaDirection direction);
  int (*memcpy_async)(void *dst, void const *src, size_t nbytes, umemCudaDirection direction,
                      void *stream);
  int (*memcpy_peer_async)(void *dst, int dst_device, void const *src, int src_device,
                           size_t nbytes, void *stream);
  int (*memcpy_box_async)(umemCudaBox const *box, umemCudaDirection direction, void *stream);
  int (*memcpy_box_peer_async)(umemCudaBox const *box, int dst_device, int src_device,
                               void *stream);
  /* count copies in one call, in any order between them, on a stream that is neither the legacy one
   * nor captured; all memory is known to CUDA. umemCudaNotSupported: the driver has no such call
   * (before CUDA 12.8), and has not begun. */
  int (*memcpy_batch_async)(void *const *dst, void const *const *src, size_t const *nbytes,
                            size_t count, void *stream);
  int (*memset_async)(void *adr, int c, size_t nbytes, void *stream);

  /* ---- streams and events ---- */
  int (*stream_create)(void **stream); /* one that the legacy stream does not wait for */
  int (*stream_destroy)(void *stream);
  int (*stream_device)(void *stream, int *device);
  int (*stream_synchronize)(void *stream);
  int (*stream_wait)(void *stream, void *event);
  /* id: which capture; NULL does not ask, which is faster. */
  int (*stream_capture)(void *stream, umemCudaCapture *capture, uint64_t *id);
  int (*event_create)(void **event); /* without times */
  int (*event_destroy)(void *event);
  int (*event_record)(void *event, void *stream);
  int (*event_synchronize)(void *event);
  int (*event_query)(void *event); /* umemCudaNotReady: not reached yet */

  /* ---- other processes (cudaIpc..., cudaMemPoolExport..., cudaMemPoolImport...) ---- */
  int (*ipc_memory)(umemCudaIpc *handle, void *adr); /* of the allocation that begins at adr */
  int (*ipc_open)(void **adr, umemCudaIpc const *handle);
  int (*ipc_close)(void *adr);
  int (*ipc_event_create)(void **event); /* without times, that other processes can open */
  int (*ipc_event)(umemCudaIpc *handle, void *event);
  int (*ipc_event_open)(void **event, umemCudaIpc const *handle);
  int (*pool_export)(int *fd, void *pool); /* a new descriptor, which is the caller's */
  int (*pool_import)(void **pool, int fd); /* fd remains the caller's */
  int (*pool_export_pointer)(umemCudaIpc *data, void *adr);
  int (*pool_import_pointer)(void **adr, void *pool, umemCudaIpc const *data);

  /* ---- files ---- */
  /* The functions of cuFile for this runtime; NULL where there are none. Not a call
   * of CUDA. */
  umemCufileRt const *(*cufile)(void);

  /* ---- no call of CUDA ---- */
  /* Why there is no driver, if the table knows it, else NULL. */
  char const *(*absence)(void);
} umemCudaRt;

/* What stream_capture says where CUDA answered with error and status. CUDA does not answer for the
 * legacy stream while a stream that it must wait for is captured: what is queued on it would break
 * that capture. */
static inline umemCudaCapture umemCudaCapture_of(int error, int status) {
  if (error == umemCudaCaptureImplicit) return umemCudaCapturing;
  return error == umemCudaSuccess ? (umemCudaCapture)status : umemCudaNoCapture;
}

/* Whether the box, of one plane, is copied faster as planes of one row each, which rows becomes:
 * within a device, where its rows are not short (H200, CUDA 13.0: rows of 2 KiB 12 us and 10 us,
 * rows of 4 bytes 53 us and 168 us). */
static inline bool umemCudaBox_is_split(umemCudaBox const *box, umemCudaDirection direction,
                                        umemCudaBox *rows) {
  if (direction != umemCudaWithinDevice || box->width < 256) return false;
  *rows = *box;
  rows->src_rows = rows->dst_rows = rows->height = 1;
  rows->depth = box->height;
  return true;
}

/* ==== the table in use ==== */

/* The table in use: CUDA's, or what a test has put in its place; NULL in a build without CUDA. */
umemCudaRt const *umemCudaRt_get(void);

/* For tests: uses table, which must outlive its use, until called with NULL. No context may
 * live. */
void umemCudaRt_replace(umemCudaRt const *table);

/* The table filled from NVIDIA's driver alone, whose cufile is the given function.
 *
 * The library of the driver, libcuda.so.1, is wherever a GPU works. umem looks for it when the
 * table is first requested, so it needs no CUDA toolkit, and serves drivers of CUDA 12 and
 * later. Memory, streams and events are the same for the runtime, also for one that is in the
 * process: both use the primary contexts of the GPUs. Where there is no driver, or one without a
 * function that umem needs, absence of the table returns the reason, and all calls fail with
 * umemCudaInsufficientDriver. */
umemCudaRt const *umemCudaDriver_get(umemCufileRt const *(*cufile)(void));

/* The functions of cuFile's library; NULL where it is not installed, lacks one
 * of them, or the kernel lacks nvidia-fs. Looks for it once in the process, at the first call.
 * Only in builds with CUDA. */
umemCufileRt const *umemCufileRt_get(void);

#endif
