/* array_dlpack.h - what export and import of DLPack tensors share. */
#ifndef UMEM_ARRAY_DLPACK_H
#define UMEM_ARRAY_DLPACK_H

#include <umem/dlpack.h>

#include "array/array_handle.h"

/* Where memory of ctx is; device_type is umemDLDefault where no tensor can name it. */
umemDLDevice umem_dlpack_device(umemVirtual *ctx);

#endif
