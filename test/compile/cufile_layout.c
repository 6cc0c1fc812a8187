/* cufile_layout.c - compares what cuda/cuda_rt.h declares of cuFile with cuFile's header:
 * numbers, sizes, offsets and functions. It is right if it compiles. */
#include <cufile.h>
#include <cuda/cuda_rt.h>

#define SAME(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME(umemCufileSuccess, CU_FILE_SUCCESS);
SAME(umemCufileBase, CUFILEOP_BASE_ERR);
SAME(umemCufileNoDriver, CU_FILE_DRIVER_NOT_INITIALIZED);
SAME(umemCufileDriverClosing, CU_FILE_DRIVER_CLOSING);
SAME(umemCufileNoPlatform, CU_FILE_PLATFORM_NOT_SUPPORTED);
SAME(umemCufileNoFile, CU_FILE_IO_NOT_SUPPORTED);
SAME(umemCufileNoDevice, CU_FILE_DEVICE_NOT_SUPPORTED);
SAME(umemCufileNvfsError, CU_FILE_NVFS_DRIVER_ERROR);
SAME(umemCufileCudaError, CU_FILE_CUDA_DRIVER_ERROR);
SAME(umemCufileBadPointer, CU_FILE_CUDA_POINTER_INVALID);
SAME(umemCufileBadMemory, CU_FILE_CUDA_MEMORY_TYPE_INVALID);
SAME(umemCufilePointerRange, CU_FILE_CUDA_POINTER_RANGE_ERROR);
SAME(umemCufileContextMismatch, CU_FILE_CUDA_CONTEXT_MISMATCH);
SAME(umemCufileMappingSize, CU_FILE_INVALID_MAPPING_SIZE);
SAME(umemCufileMappingRange, CU_FILE_INVALID_MAPPING_RANGE);
SAME(umemCufileBadFileType, CU_FILE_INVALID_FILE_TYPE);
SAME(umemCufileBadFlags, CU_FILE_INVALID_FILE_OPEN_FLAG);
SAME(umemCufileNoDirectIO, CU_FILE_DIO_NOT_SET);
SAME(umemCufileInvalidValue, CU_FILE_INVALID_VALUE);
SAME(umemCufileNoPermission, CU_FILE_PERMISSION_DENIED);
SAME(umemCufileNotRegistered, CU_FILE_HANDLE_NOT_REGISTERED);
SAME(umemCufileInternal, CU_FILE_INTERNAL_ERROR);
SAME(umemCufileDisabled, CU_FILE_IO_DISABLED);
SAME(umemCufileNoPinning, CU_FILE_GPU_MEMORY_PINNING_FAILED);
#if CUDA_VERSION >= 13000 /* earlier headers do not have them */
SAME(umemCufileNoMemory, CU_FILE_NOMEM_ERROR);
SAME(umemCufileIOError, CU_FILE_IO_ERROR);
SAME(umemCufileBadContext, CU_FILE_INVALID_CONTEXT_ERROR);
SAME(umemCufileNvfsInternal, CU_FILE_NVFS_INTERNAL_DRIVER_ERROR);
#endif
SAME(umemCufileAllowsCompat, 1 << CU_FILE_ALLOW_COMPAT_MODE);
SAME(umemCufilePosixIO, 1 << 2);  /* CU_FILE_POSIX_IO_MODE and */
SAME(umemCufileFallback, 1 << 4); /* CU_FILE_FALLBACK_IO_MODE of later versions */
SAME(umemCufileDescriptor, CU_FILE_HANDLE_TYPE_OPAQUE_FD);

#define AT(ours, member, theirs, path)                                                             \
  _Static_assert(offsetof(ours, member) == offsetof(theirs, path), #path);                         \
  _Static_assert(sizeof((ours){0}.member) == sizeof((theirs){0}.path), "size of " #path)
_Static_assert(sizeof(umemCufileError) == sizeof(CUfileError_t), "CUfileError_t");
AT(umemCufileError, code, CUfileError_t, err);
AT(umemCufileError, cuda, CUfileError_t, cu_err);
_Static_assert(sizeof(umemCufileFile) == sizeof(CUfileDescr_t), "CUfileDescr_t");
AT(umemCufileFile, type, CUfileDescr_t, type);
AT(umemCufileFile, handle.fd, CUfileDescr_t, handle.fd);
AT(umemCufileFile, handle.other, CUfileDescr_t, handle.handle);
AT(umemCufileFile, operations, CUfileDescr_t, fs_ops);
_Static_assert(sizeof(umemCufileProperties) > sizeof(CUfileDrvProps_t), "room for later members");
AT(umemCufileProperties, major, CUfileDrvProps_t, nvfs.major_version);
AT(umemCufileProperties, minor, CUfileDrvProps_t, nvfs.minor_version);
AT(umemCufileProperties, poll_most, CUfileDrvProps_t, nvfs.poll_thresh_size);
AT(umemCufileProperties, direct_most, CUfileDrvProps_t, nvfs.max_direct_io_size);
AT(umemCufileProperties, file_systems, CUfileDrvProps_t, nvfs.dstatusflags);
AT(umemCufileProperties, controls, CUfileDrvProps_t, nvfs.dcontrolflags);
AT(umemCufileProperties, features, CUfileDrvProps_t, fflags);
AT(umemCufileProperties, device_cache, CUfileDrvProps_t, max_device_cache_size);
AT(umemCufileProperties, buffer_cache, CUfileDrvProps_t, per_buffer_cache_size);
AT(umemCufileProperties, device_pinned, CUfileDrvProps_t, max_device_pinned_mem_size);

/* The types of the functions are the same but for names of structs: each argument and result has
 * the same size. */
#define IS(function, type)                                                                         \
  _Static_assert(__builtin_types_compatible_p(__typeof__(&function), type), #function)
IS(cuFileDriverOpen, CUfileError_t (*)(void));
IS(cuFileDriverClose, CUfileError_t (*)(void));
IS(cuFileUseCount, long (*)(void));
IS(cuFileDriverGetProperties, CUfileError_t (*)(CUfileDrvProps_t *));
IS(cuFileHandleRegister, CUfileError_t (*)(void **, CUfileDescr_t *));
IS(cuFileHandleDeregister, void (*)(void *));
IS(cuFileRead, __typeof__((umemCufileRt){0}.read));
IS(cuFileWrite, __typeof__((umemCufileRt){0}.write));
