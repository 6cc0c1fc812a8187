"""What calls of CuPy and RMM are in umem: the right columns of the tables."""
import umem

# What the lines below use.
host_array = umem.arange(1000.0)
callback = lambda nbytes, alignment, attempt: False  # noqa: E731

# CuPy
place = umem.Pool(umem.Cuda(0))
a = umem.zeros(1000, "f8", place)
a = umem.asarray(host_array, place=place)
a.numpy(copy=True)
a.to(umem.Host())
umem.asarray(host_array, place=umem.CudaHost())
umem.zeros(1000, place=umem.CudaManaged(0))
place = umem.CudaAsync(0)
place.synchronize()
place.info.stream
place = umem.Pool(umem.Cuda(0), max="8G")
place.figures["used"]
place.trim()
umem.from_dlpack(a)

# RMM
umem.Cuda(0)
umem.CudaManaged(0)
umem.CudaAsync(0, max="8G")
umem.CudaHost()
umem.Pool(umem.Cuda(0), initial="64M", max="8G")
umem.Fixed(umem.Cuda(0), "1M")
umem.Binning(umem.Cuda(0), [("1M", umem.Fixed(umem.Cuda(0), "1M"))])
umem.Limit(umem.Cuda(0), "8G")
umem.Stats(umem.Cuda(0)).figures["peak_bytes"]
umem.Track(umem.Cuda(0)).blocks
umem.Log(umem.Cuda(0), "run.umem")
umem.Retry(umem.Cuda(0), callback)
umem.CudaPrefetch(umem.CudaManaged(0))
umem.empty(100, "u1", place)
print("done")
