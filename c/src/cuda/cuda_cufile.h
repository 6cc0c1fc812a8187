/* cuda_cufile.h - cuFile (GPUDirect Storage) as umem sees it: one table of functions.
 *
 * The functions are those of libcufile.so.0, which cuda_cufile.c opens at run time; umem needs
 * neither its header nor the library to be built or to run. The structs here are those of its
 * binary interface, stable since its first release. test/compile/cufile_layout.c compares them with
 * an installed header. Tests put another table in the place of the library's (the member cufile of
 * umemCudaRt). */
#ifndef UMEM_CUDA_CUFILE_H
#define UMEM_CUDA_CUFILE_H

#include <stddef.h>
#include <sys/types.h>

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

#endif
