/* order_exchange.cu - arrays that are exported by DLPack while a slow kernel still writes them: the
 * consumer's stream waits for it, and the host does not. */
#include "order.cuh"

#include <umem/dlpack.hpp>

#include <chrono>

namespace {

using namespace order;

constexpr std::size_t n = 300'000;

umem::CArray make_array(Bed const &bed) {
  std::int64_t const shape[] = {std::int64_t(n)};
  umemStatusType status = umemOK;
  umem::CArray array(
      umemArray_create(bed.context.c_context(), umemUInt8, 1, shape, nullptr, &status));
  check(status);
  prepare(bed.context, umemArray_address(array.get()), n, old_byte);
  return array;
}

umemDLPackOptions options_for(std::int64_t stream) {
  umemDLPackOptions options = UMEM_DLPACK_OPTIONS_INIT;
  options.stream = stream;
  return options;
}
umemDLPackOptions options_for(Stream const &consumer) {
  return options_for(static_cast<std::int64_t>(number(consumer)));
}

umem::address data_of(umem::DLPackTensor const &tensor) {
  return reinterpret_cast<umem::address>(tensor.get()->dl_tensor.data);
}

/* The export, and whether it has taken as long as the kernel before it. */
umem::DLPackTensor export_at_once(umem::CArray const &array, umemDLPackOptions const &options,
                                  std::string &wrong) {
  auto begin = std::chrono::steady_clock::now();
  umem::DLPackTensor tensor = umem::to_dlpack(array, options);
  std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
  if (time.count() > slow_ns / 2)
    wrong = "the host waited for " + std::to_string(time.count() / 1e6) + " ms";
  return tensor;
}

/* A kernel of the consumer reads what a kernel of the producer writes. */
std::string consumer_waits(Bed const &bed, Stream const &producer, Stream const &consumer,
                           Log &log) {
  umem::CArray array = make_array(bed);
  std::string wrong;
  log.clear();
  slow_set(producer, umemArray_address(array.get()), n, new_byte);
  umem::DLPackTensor tensor = export_at_once(array, options_for(consumer), wrong);
  launch(consumer, data_of(tensor), n, log.data(), -1, 0);
  finish_all();
  return first_of(wrong, differ(log.data(), n, new_byte, "the kernel of the consumer"));
}

/* For a copy of umem on the consumer's stream. */
std::string import_waits(Bed const &bed, Stream const &producer, int device) {
  umem::CArray array = make_array(bed);
  umem::CudaAsync consumer(device);
  std::string wrong;
  slow_set(producer, umemArray_address(array.get()), n, new_byte);
  umem::DLPackTensor tensor =
      export_at_once(array, options_for(static_cast<std::int64_t>(consumer.stream())), wrong);
  {
    umem::CArray imported = umem::from_dlpack(consumer.c_context(), tensor);
    wrong = first_of(wrong, differ(consumer, umemArray_address(imported.get()), n, new_byte,
                                   "the copy of the consumer"));
  }
  finish_all();
  return wrong;
}

/* A copy on the GPU is queued, a copy in host memory is complete. */
std::string copies_are_in_order(Bed const &bed, Stream const &producer, Stream const &consumer,
                                Log &log) {
  umem::CArray array = make_array(bed);
  umemDLPackOptions options = options_for(consumer), to_host = UMEM_DLPACK_OPTIONS_INIT;
  options.copy = umemDLCopyAlways;
  to_host.copy = umemDLCopyAlways;
  to_host.device = umemDLCPU;
  log.clear();
  slow_set(producer, umemArray_address(array.get()), n, new_byte);
  umem::DLPackTensor tensor = umem::to_dlpack(array, options);
  launch(consumer, data_of(tensor), n, log.data(), -1, 0);
  finish_all();
  std::string wrong = differ(log.data(), n, new_byte, "the copy on the GPU");
  prepare(bed.context, umemArray_address(array.get()), n, old_byte);
  slow_set(producer, umemArray_address(array.get()), n, new_byte);
  tensor = umem::to_dlpack(array, to_host);
  wrong = first_of(wrong, differ(reinterpret_cast<Byte const *>(data_of(tensor)), n, new_byte,
                                 "the copy in host memory"));
  finish_all();
  return wrong;
}

/* A stream that is captured cannot wait for work outside; the capture stays whole. */
std::string captures_are_left_whole(Bed const &bed, int device) {
  umem::CArray array = make_array(bed);
  Stream const consumer = non_blocking(device);
  OnDevice here(device);
  cudaGraph_t graph = nullptr;
  std::string wrong = "the export did not fail";
  CUDA(cudaStreamBeginCapture(consumer.handle, cudaStreamCaptureModeRelaxed));
  try {
    umem::to_dlpack(array, options_for(consumer));
  } catch (umem::not_supported_error const &) {
    wrong.clear();
  }
  umem::to_dlpack(array, options_for(UMEM_DLPACK_NO_STREAM));
  CUDA(cudaStreamEndCapture(consumer.handle, &graph));
  CUDA(cudaGraphDestroy(graph));
  return wrong;
}

/* A stream of another GPU whose kernels can read memory of device. */
Stream stream_of_peer(int other, int device) {
  OnDevice here(other);
  cudaError_t error = cudaDeviceEnablePeerAccess(device, 0);
  if (error != cudaErrorPeerAccessAlreadyEnabled) CUDA(error);
  static_cast<void>(cudaGetLastError());
  Stream stream = non_blocking(other);
  stream.name += " of GPU " + std::to_string(other);
  return stream;
}

void test_bed(Bed const &bed, int device, int devices) {
  Log log(n);
  std::vector<Stream> consumers{legacy(device), blocking(device), per_thread(device),
                                non_blocking(device)};
  bool from_pool =
      bed.name.find("async") != std::string::npos; /* of the driver: closed to kernels of others */
  int can = 0;
  for (int other = 0; other < devices && !from_pool; other++)
    if (other != device && cudaDeviceCanAccessPeer(&can, other, device) == cudaSuccess && can)
      consumers.push_back(stream_of_peer(other, device));
  for (Stream const &producer : bed.streams) {
    std::string const from = bed.name + ", kernel on " + producer.name;
    for (Stream const &consumer : consumers)
      test("exchange: a stream waits: " + from + ", consumer " + consumer.name,
           [&] { return consumer_waits(bed, producer, consumer, log); });
    test("exchange: an import waits: " + from, [&] { return import_waits(bed, producer, device); });
    test("exchange: copies are in order: " + from,
         [&] { return copies_are_in_order(bed, producer, consumers[3], log); });
  }
  test("exchange: captures stay whole: " + bed.name,
       [&] { return captures_are_left_whole(bed, device); });
}

} // namespace

int main() {
  return run([](int devices) {
    for (int device = 0; device < devices; device++)
      for (Bed const &bed : beds_of(device))
        if (bed.has_kernels()) test_bed(bed, device, devices);
  });
}
