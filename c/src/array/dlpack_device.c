/* dlpack_device.c - see dlpack_device.h. */
#include "array/dlpack_device.h"
#include "core/context.h"

umemDLDevice umem_dlpack_device(umemVirtual *ctx) {
  int id = 0;
  umemDLDevice device = {umemDLDefault, 0};
  if (umem_can(ctx, umemOffsets)) return device;
  umemVirtual *layer = UMEM_LAYER_WITH(ctx, dlpack_device);
  if (layer)
    device.device_type = layer->vptr->dlpack_device(layer, &id);
  else if (umem_can(ctx, umemCpuReadable))
    device.device_type = umemDLCPU;
  device.device_id = id;
  return device;
}
