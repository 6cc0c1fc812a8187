"""A MemoryResource of cuda.core over a place."""
import umem
from cuda.core import Device

device = Device(0)
device.set_current()
stream = device.create_stream()
resource = umem.cuda_core_resource(umem.Pool(umem.Cuda(0), max="2G"))
buffer = resource.allocate(1000, stream=stream)
print(buffer.size, resource.blocks)
buffer.close(stream)
print(resource.blocks)
