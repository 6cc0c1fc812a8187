/* cuda_layout.c - prints the sizes, offsets and values that cuda/cuda_rt.c takes from CUDA's
 * headers. One object of umem serves all newer minor versions of a runtime, so within a major
 * version none of them may change. */
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdio.h>

#define SIZE(type) printf("sizeof %s %zu\n", #type, sizeof(struct type))
#define OFFSET(type, member) printf("%s.%s %zu\n", #type, #member, offsetof(struct type, member))
#define VALUE(name) printf("%s %lld\n", #name, (long long)(name))

static void print_layouts(void) {
  SIZE(cudaDeviceProp), OFFSET(cudaDeviceProp, name);
  SIZE(cudaPointerAttributes);
  OFFSET(cudaPointerAttributes, type), OFFSET(cudaPointerAttributes, device);
  SIZE(cudaMemLocation), OFFSET(cudaMemLocation, type), OFFSET(cudaMemLocation, id);
  SIZE(cudaMemPoolProps), OFFSET(cudaMemPoolProps, allocType);
  OFFSET(cudaMemPoolProps, handleTypes), SIZE(cudaMemPoolPtrExportData);
  SIZE(cudaIpcMemHandle_st), SIZE(cudaIpcEventHandle_st);
  OFFSET(cudaMemPoolProps, location), OFFSET(cudaMemPoolProps, maxSize);
  SIZE(cudaMemAccessDesc);
  OFFSET(cudaMemAccessDesc, location), OFFSET(cudaMemAccessDesc, flags);
  SIZE(cudaPitchedPtr), OFFSET(cudaPitchedPtr, ptr), OFFSET(cudaPitchedPtr, pitch);
  OFFSET(cudaPitchedPtr, xsize), OFFSET(cudaPitchedPtr, ysize);
  SIZE(cudaExtent), OFFSET(cudaExtent, width), OFFSET(cudaExtent, height);
  OFFSET(cudaExtent, depth);
  SIZE(cudaMemcpy3DParms), OFFSET(cudaMemcpy3DParms, srcPtr), OFFSET(cudaMemcpy3DParms, dstPtr);
  OFFSET(cudaMemcpy3DParms, extent), OFFSET(cudaMemcpy3DParms, kind);
  SIZE(cudaMemcpy3DPeerParms), OFFSET(cudaMemcpy3DPeerParms, srcPtr);
  OFFSET(cudaMemcpy3DPeerParms, srcDevice), OFFSET(cudaMemcpy3DPeerParms, dstPtr);
  OFFSET(cudaMemcpy3DPeerParms, dstDevice), OFFSET(cudaMemcpy3DPeerParms, extent);
}

static void print_values(void) {
  VALUE(cudaDevAttrMemoryPoolsSupported), VALUE(cudaDevAttrManagedMemory);
  VALUE(cudaDevAttrConcurrentManagedAccess);
  VALUE(cudaMemAdviseSetPreferredLocation), VALUE(cudaMemAdviseSetReadMostly);
  VALUE(cudaMemAdviseSetAccessedBy), VALUE(cudaMemAttachGlobal);
  VALUE(cudaMemAllocationTypePinned), VALUE(cudaMemLocationTypeDevice);
  VALUE(cudaMemAccessFlagsProtReadWrite), VALUE(cudaMemPoolAttrReleaseThreshold);
  VALUE(cudaMemPoolAttrReservedMemCurrent), VALUE(cudaMemPoolAttrUsedMemCurrent);
  VALUE(cudaDevAttrMemoryPoolSupportedHandleTypes), VALUE(cudaMemHandleTypePosixFileDescriptor);
  VALUE(cudaIpcMemLazyEnablePeerAccess), VALUE(cudaEventInterprocess);
  VALUE(cudaStreamNonBlocking), VALUE(cudaEventDisableTiming), VALUE(cudaEventWaitDefault);
  VALUE(cudaEnableDefault), VALUE(cudaDriverEntryPointSuccess);
}

int main(void) {
  print_layouts();
  print_values();
  return 0;
}
