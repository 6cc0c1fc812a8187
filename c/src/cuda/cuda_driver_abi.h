/* cuda_driver_abi.h - what umem passes to the functions of NVIDIA's driver: their binary interface since CUDA 12.0.
 *
 * test/compile/cuda_driver_layout.c compares it with cuda.h. Contexts, pools, streams and events are pointers; a device
 * is an int, its number. */
#ifndef UMEM_CUDA_DRIVER_ABI_H
#define UMEM_CUDA_DRIVER_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned long long umemCuAddress; /* CUdeviceptr */
_Static_assert(sizeof(umemCuAddress) == sizeof(void *), "addresses have 64 bits");

/* CUmemorytype */
enum { umemCuHost = 1, umemCuDevice = 2, umemCuUnified = 4 };

enum {
  umemCuNonBlocking = 1,   /* CU_STREAM_NON_BLOCKING */
  umemCuDisableTiming = 2, /* CU_EVENT_DISABLE_TIMING */
  umemCuInterprocess = 4,  /* CU_EVENT_INTERPROCESS */
  umemCuAttachGlobal = 1   /* CU_MEM_ATTACH_GLOBAL */
};

/* CUdevice_attribute */
enum {
  umemCuManagedMemory = 83,
  umemCuConcurrentManaged = 89,
  umemCuVirtualMemory = 102,
  umemCuRdmaWithVirtualMemory = 110,
  umemCuMemoryPools = 115,
  umemCuPoolHandles = 119 /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES */
};

enum {
  umemCuLazyPeerAccess = 1, /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
  umemCuByDescriptor = 1    /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
};

/* CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData; the first two are passed by value */
typedef struct umemCuIpc {
  char reserved[64];
} umemCuIpc;

/* CUuuid */
typedef struct umemCuUuid {
  char bytes[16];
} umemCuUuid;

/* CUpointer_attribute; an unsigned int, an unsigned int that is 0 or 1, and an int */
enum { umemCuMemoryType = 2, umemCuIsManaged = 8, umemCuDeviceOrdinal = 9 };

/* CUmem_advise */
enum { umemCuReadMostly = 1, umemCuPreferredLocation = 3, umemCuAccessedBy = 5 };

/* CUmemPool_attribute; of type uint64_t */
enum { umemCuReleaseThreshold = 4, umemCuReserved = 5, umemCuUsed = 7 };

/* CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE */
enum { umemCuPinnedAllocation = 1, umemCuOnDevice = 1, umemCuReadWrite = 3 };

/* One side of a copy of a box: the first members of CUDA_MEMCPY3D for the source, the next ones for the destination. In
 * CUDA_MEMCPY3D_PEER context is its context; otherwise it is NULL. */
typedef struct umemCuSide {
  size_t x, y, z, level;
  int type;
  void const *host;
  umemCuAddress device;
  void *array, *context;
  size_t pitch, height;
} umemCuSide;

/* CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER */
typedef struct umemCuCopy3D {
  umemCuSide src, dst;
  size_t width, height, depth;
} umemCuCopy3D;

/* CUDA_MEMCPY2D */
typedef struct umemCuPlane {
  size_t x, y;
  int type;
  void const *host;
  umemCuAddress device;
  void *array;
  size_t pitch;
} umemCuPlane;
typedef struct umemCuCopy2D {
  umemCuPlane src, dst;
  size_t width, height;
} umemCuCopy2D;

/* CUmemLocation */
typedef struct umemCuLocation {
  int type, id;
} umemCuLocation;

/* CUmemPoolProps */
typedef struct umemCuPoolProps {
  int allocation, handles;
  umemCuLocation location;
  void *security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
} umemCuPoolProps;

/* CUmemGenericAllocationHandle */
typedef unsigned long long umemCuPage;

/* CUmemAllocationProp */
typedef struct umemCuPageProps {
  int allocation, handles;
  umemCuLocation location;
  void *security;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} umemCuPageProps;

enum { umemCuLeastGranularity = 0 }; /* CU_MEM_ALLOC_GRANULARITY_MINIMUM */

/* CUmemAccessDesc */
typedef struct umemCuAccess {
  umemCuLocation location;
  int flags;
} umemCuAccess;

#endif
