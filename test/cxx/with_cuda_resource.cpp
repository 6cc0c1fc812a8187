/* with_cuda_resource.cpp - contexts as resources of CCCL: what they satisfy, and that blocks pass
 * from stream to stream in order. Streams are those of a double of CUDA's runtime; the program's
 * own calls of CUDA and cuBLAS go to it, too. */
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE /* up to CCCL 3.0 */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/with/cuda_resource.hpp>
#if __has_include(<cublas_v2.h>)
#include <umem/with/cublas.hpp>
#endif

#include <cuda/std/version>

extern "C" {
#include "fake/cudart.h"
}

namespace mr = cuda::mr;
using OnDevice = umem::CudaResource<mr::device_accessible>;
using OnHost = umem::CudaResource<mr::host_accessible>;
using OnBoth = umem::CudaResource<mr::device_accessible, mr::host_accessible>;

#if CCCL_VERSION < 3001000
template <class R> constexpr bool is_resource = mr::resource<R> &&mr::async_resource<R>;
template <class R, class... P> constexpr bool has = mr::async_resource_with<R, P...>;
template <class... P> using Reference = mr::async_resource_ref<P...>;
#else
template <class R> constexpr bool is_resource = mr::synchronous_resource<R> &&mr::resource<R>;
template <class R, class... P> constexpr bool has = mr::resource_with<R, P...>;
template <class... P> using Reference = mr::resource_ref<P...>;
#endif
static_assert(is_resource<OnDevice> && is_resource<OnHost> && is_resource<OnBoth>);
static_assert(has<OnDevice, mr::device_accessible> && !has<OnDevice, mr::host_accessible>);
static_assert(has<OnHost, mr::host_accessible> && !has<OnHost, mr::device_accessible>);
static_assert(has<OnBoth, mr::device_accessible, mr::host_accessible>);
static_assert(std::is_nothrow_copy_constructible_v<OnDevice>);

/* Streams that the program has waited for. */
static std::vector<void *> waited;
static cudaError_t next_wait = cudaSuccess;

extern "C" cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream);
extern "C" cudaError_t __wrap_cudaStreamSynchronize(cudaStream_t stream) {
  waited.push_back(stream);
  if (next_wait != cudaSuccess) return std::exchange(next_wait, cudaSuccess);
  return static_cast<cudaError_t>(fake_cudart()->stream_synchronize(stream));
}

namespace {

ON_EACH_PLACE(CudaResourceOf);

template <class R> void expect_blocks(R resource) {
  void *one = resource.allocate(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one) % 256, 0u);
  void *two = resource.allocate_sync(100, 4096);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(two) % 4096, 0u);
  EXPECT_NE(one, two);
  EXPECT_THROW(resource.allocate(8, 3), umem::value_error);
  resource.deallocate(one, 100);
  resource.deallocate_sync(two, 100, 4096);
}

TEST_P(CudaResourceOf, is_there_if_the_memory_has_the_properties) {
  bool const pointers = !place.can(umemOffsets);
  bool const host = pointers && place.is_cpu_accessible();
  bool const device = pointers && place.can(umemDeviceAccessible);
  if (host) expect_blocks(OnHost(place));
  if (device) expect_blocks(OnDevice(place));
  if (host && device) expect_blocks(OnBoth(place));
  if (!host) {
    EXPECT_THROW(OnHost{place}, umem::not_supported_error);
  }
  if (!device) {
    EXPECT_THROW(OnDevice{place}, umem::not_supported_error);
  }
  if (!host || !device) {
    EXPECT_THROW(OnBoth{place}, umem::not_supported_error);
  }
}

TEST(CudaResource, equals_those_of_the_same_context) {
  umem::Host host;
  OnHost one(host), copy(one), same(host), other{umem::Host()};
  EXPECT_TRUE(one == copy);
  EXPECT_TRUE(one == same);
  EXPECT_TRUE(one != other);
  void *block = one.allocate(10);
  copy.deallocate(block, 10);
  EXPECT_THROW(OnHost{umem::Context()}, umem::value_error);
}

/* The real thing has no double's streams. */
bool has_double() { return fake_cudart_calls() > 0; }

struct OnStreams : testing::TestWithParam<int> {
  /* Memory of GPU 0: a pool, an ordered context, an ordered pool, and contexts whose frees wait. */
  static umem::Context memory(int which) {
    if (which == 0) return umem::Pool(umem::Cuda());
    if (which == 1) return umem::CudaAsync();
    if (which == 2) return umem::Pool(umem::CudaAsync());
    if (which == 3) return umem::Cuda();
    return umem::Limit(umem::Pool(umem::Cuda()), 1 << 30);
  }

  void SetUp() override {
    umem::CudaAsync ask;
    if (!has_double()) GTEST_SKIP() << "the streams are those of a double";
  }
};

/* Work that a stream has not begun yet: sets a byte when it is done. */
void set_later(void *stream, void *done) {
  umemCudaEntry entry;
  ASSERT_EQ(umemCuda_enter(&entry, 0), umemOK);
  EXPECT_EQ(fake_cudart_launch(
                stream, [](void *flag) { *static_cast<bool *>(flag) = true; }, done),
            0);
  EXPECT_EQ(umemCuda_leave(&entry), umemOK);
}

TEST_P(OnStreams, blocks_are_used_again_after_the_work_of_the_stream_that_has_freed_them) {
  umem::Context const context = memory(GetParam());
  umem::CudaAsync one, two; /* streams of the program */
  auto *first = reinterpret_cast<cudaStream_t>(one.stream()),
       *second = reinterpret_cast<cudaStream_t>(two.stream());
  OnDevice resource(context);
  Reference<mr::device_accessible> reference(resource);
  bool is_used = false, is_again = false;
  void *block = resource.allocate_async(1 << 20, 256, first);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 256, 0u);
  set_later(first, &is_used);
  resource.deallocate_async(block, 1 << 20, 256, first);
  std::vector<void *> others; /* a pool first uses what no stream has used */
  void *next = resource.allocate(second, 1 << 20);
  while (next != block && others.size() < 64) {
    others.push_back(next);
    next = resource.allocate(second, 1 << 20);
  }
  EXPECT_TRUE(next == block || GetParam() == 1 || GetParam() == 3); /* which use no address twice */
  set_later(second, &is_again);
  two.synchronize();
  EXPECT_TRUE(is_again);
  EXPECT_TRUE(is_used || next != block) << "work of the second stream has not waited";
  resource.deallocate(second, next, 1 << 20);
  for (void *other : others) resource.deallocate(second, other, 1 << 20);
  one.synchronize();
  resource.forget(first);
  resource.forget(second);
}

TEST_P(OnStreams, new_blocks_are_ready_for_the_stream) {
  umem::Context const context = memory(GetParam());
  umem::CudaAsync one;
  auto *stream = reinterpret_cast<cudaStream_t>(one.stream());
  OnDevice resource(context);
  /* What the block was before, in the order of the context. */
  umem::address old = context.allocate(1 << 20);
  bool is_done = false;
  set_later(reinterpret_cast<void *>(umemCudaAsync_stream(context.c_context())), &is_done);
  context.deallocate(old);
  void *block = resource.allocate_async(1 << 20, stream);
  bool is_again = false;
  set_later(stream, &is_again);
  one.synchronize();
  EXPECT_TRUE(is_again);
  if (context.can(umemOrdered)) {
    EXPECT_TRUE(is_done) << "the stream has not waited for the context";
  }
  resource.deallocate_async(block, 1 << 20, stream);
  context.synchronize();
  resource.forget(stream);
}

TEST_P(OnStreams, frees_wait_on_the_host_only_where_they_must) {
  umem::Context const context = memory(GetParam());
  umem::CudaAsync one;
  auto *stream = reinterpret_cast<cudaStream_t>(one.stream());
  OnDevice resource(context);
  bool is_used = false;
  void *block = resource.allocate_async(4096, stream);
  set_later(stream, &is_used);
  waited.clear();
  resource.deallocate_async(block, 4096, stream);
  bool const waits = GetParam() >= 3;
  EXPECT_EQ(is_used, waits);
  EXPECT_EQ(waited.size(), waits ? 1u : 0u);
  if (GetParam() == 1) { /* whose stream has the free behind the work */
    context.synchronize();
    EXPECT_TRUE(is_used);
  }
  one.synchronize();
  resource.forget(stream);
}

TEST_P(OnStreams, of_a_thread_and_of_the_legacy_stream_work_too) {
  umem::Context const context = memory(GetParam());
  OnDevice resource(context);
  for (auto *number : {FAKE_STREAM_PER_THREAD, FAKE_STREAM_LEGACY, static_cast<void *>(nullptr)}) {
    auto *stream = static_cast<cudaStream_t>(number);
    waited.clear();
    void *block = resource.allocate_async(1000, stream);
    resource.deallocate_async(block, 1000, stream);
    if (number == FAKE_STREAM_PER_THREAD) {
      EXPECT_EQ(waited.size(), 1u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(of, OnStreams, testing::Range(0, 5));

TEST(CudaResource, keeps_a_block_whose_stream_has_failed) {
  umem::Track track{umem::Cuda()};
  if (!has_double()) GTEST_SKIP() << "the streams are those of a double";
  OnDevice resource(track);
  umem::CudaAsync one;
  auto *stream = reinterpret_cast<cudaStream_t>(one.stream());
  void *block = resource.allocate_async(1000, stream);
  next_wait = cudaErrorLaunchFailure;
  resource.deallocate_async(block, 1000, stream);
  EXPECT_EQ(track.count(), 1u);
  EXPECT_EQ(umem_thread_status(), umemRuntimeError);
  umem_thread_clear();
  umem_clear_status(track.c_context());
  resource.deallocate_async(block, 1000, stream);
  EXPECT_EQ(track.count(), 0u);
}

#if __has_include(<cublas_v2.h>)

cudaStream_t handed_over = nullptr;
cublasStatus_t next_status = CUBLAS_STATUS_SUCCESS;

TEST(WithCublas, work_goes_to_the_stream_of_a_context) {
  auto *handle = reinterpret_cast<cublasHandle_t>(std::uintptr_t(64));
  umem::CudaAsync gpu;
  umem::set_stream(handle, gpu);
  EXPECT_EQ(handed_over, reinterpret_cast<cudaStream_t>(gpu.stream()));
  umem::set_stream(handle, umem::Cuda());
  EXPECT_EQ(handed_over, cudaStreamLegacy);
  EXPECT_THROW(umem::set_stream(handle, umem::Host()), umem::not_supported_error);
  next_status = CUBLAS_STATUS_NOT_INITIALIZED;
  EXPECT_THROW(umem::set_stream(handle, gpu), umem::runtime_error);
}

TEST(WithCublas, work_goes_to_the_stream_of_a_guard) {
  umem::Pool pool{umem::CudaAsync()};
  umem::Array<double, 1> array({4}, pool);
  auto guard = array.device(umem::write);
  umem::set_stream(reinterpret_cast<cublasHandle_t>(std::uintptr_t(64)), guard);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(handed_over), umemCudaAsync_stream(pool.c_context()));
}

#endif

} // namespace

#if __has_include(<cublas_v2.h>)
cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t stream) {
  handed_over = stream;
  return std::exchange(next_status, CUBLAS_STATUS_SUCCESS);
}
#endif
