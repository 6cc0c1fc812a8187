"""What a program of RMM uses, with umem: a pool over a GPU, statistics, a limit, a log, buffers."""
import umem

try:
    gpu = umem.CudaAsync(0)  # rmm.mr.CudaAsyncMemoryResource
except umem.NotSupportedError:
    gpu = umem.Host()
pool = umem.Pool(gpu)  # rmm.mr.PoolMemoryResource
limited = umem.Limit(pool, 1 << 20)  # rmm.mr.LimitingResourceAdaptor
counted = umem.Stats(limited)  # rmm.mr.StatisticsResourceAdaptor
logged = umem.Log(counted, "memory.log")  # rmm.mr.LoggingResourceAdaptor

buffer = umem.empty(100000, "uint8", logged)  # rmm.DeviceBuffer(size=100000)
vector = umem.empty(1000, "float32", logged)
print(counted.figures["current_bytes"], "bytes in", counted.figures["current_count"], "blocks")
try:
    umem.empty(2 << 20, "uint8", logged)
except umem.MemoryError as error:
    print(error)
