/* external.cpp - umem::External: resources of others as places. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/external.hpp>
#include <umem/memory_resource.hpp>
#include <umem/pool.hpp>

#include <memory_resource>

namespace {

using umem::External;

/* What a resource of cuda::mr has, and what it has seen. */
struct Calls {
  int live = 0, on_stream = 0, copies = 0, ended = 0;
  CUstream_st *stream = nullptr;
  std::exception_ptr thrown; /* by the next call */
};

class Resource {
public:
  explicit Resource(std::shared_ptr<Calls> calls, umem::Context const &from)
      : calls_(std::move(calls)), from_(from) {}
  Resource(Resource const &other) : calls_(other.calls_), from_(other.from_) { calls_->copies++; }
  Resource(Resource &&other) noexcept = default;
  ~Resource() {
    if (calls_) calls_->ended++;
  }

  void *allocate_sync(std::size_t nbytes, std::size_t alignment) {
    check();
    calls_->live++;
    return reinterpret_cast<void *>(from_.allocate(nbytes, alignment));
  }
  void deallocate_sync(void *block, std::size_t, std::size_t alignment) {
    umem_aligned_free(from_.c_context(), reinterpret_cast<umem::address>(block));
    static_cast<void>(alignment);
    calls_->live--;
    check();
  }

protected:
  void check() {
    if (calls_->thrown) std::rethrow_exception(std::exchange(calls_->thrown, nullptr));
  }
  std::shared_ptr<Calls> calls_;
  umem::Context from_;
};

class StreamResource : public Resource {
public:
  using Resource::Resource;
  void *allocate(CUstream_st *stream, std::size_t nbytes, std::size_t alignment) {
    calls_->on_stream++, calls_->stream = stream;
    return allocate_sync(nbytes, alignment);
  }
  void deallocate(CUstream_st *stream, void *block, std::size_t nbytes, std::size_t alignment) {
    calls_->on_stream++, calls_->stream = stream;
    deallocate_sync(block, nbytes, alignment);
  }
};

class OldStreamResource : public Resource {
public:
  using Resource::Resource;
  void *allocate_async(std::size_t nbytes, std::size_t alignment, CUstream_st *stream) {
    calls_->on_stream++, calls_->stream = stream;
    return allocate_sync(nbytes, alignment);
  }
  void deallocate_async(void *block, std::size_t nbytes, std::size_t alignment,
                        CUstream_st *stream) {
    calls_->on_stream++, calls_->stream = stream;
    deallocate_sync(block, nbytes, alignment);
  }
};

static_assert(umem::detail::has_streams<StreamResource>);
static_assert(umem::detail::has_streams<OldStreamResource>);
static_assert(!umem::detail::has_streams<std::pmr::memory_resource>);
static_assert(!umem::detail::has_streams<Resource>);
static_assert(!std::is_constructible_v<External, int, umem::Host>);
static_assert(std::is_constructible_v<External, std::pmr::memory_resource *, umem::Host>);
static_assert(
    std::is_constructible_v<External, std::shared_ptr<std::pmr::memory_resource>, umem::Host>);

/* An array on a place, there and back. */
void use(umem::Context const &place) {
  auto u = umem::Array<int, 1>::full({1000}, 7, place);
  u.release_host();
  EXPECT_EQ((*u.host(umem::read))(999), 7);
  umem::Buffer wide(place, 100, 1024);
  EXPECT_EQ(wide.adr() % 1024, 0u);
}

/* ---- std::pmr ---- */

TEST(ExternalTest, resources_of_the_standard_library_are_places) {
  std::pmr::synchronized_pool_resource pool;
  External place(&pool, umem::Host());
  EXPECT_STREQ(place.name(), "External");
  EXPECT_TRUE(place.is_same_device(umem::Host()));
  use(place);
  use(umem::Pool(umem::Limit(place, 1 << 20)));
  umem::Stats stats{umem::Context(place)};
  use(stats);
  EXPECT_EQ(stats.figures().current_count, 0);
  EXPECT_EQ(stats.figures().total_count, 2);
}

TEST(ExternalTest, a_resource_for_one_thread_is_called_by_one_at_a_time) {
  std::pmr::unsynchronized_pool_resource pool;
  External place(&pool, umem::Host(), External::serial);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (std::size_t i = 1; i < 300; i++) umem::Buffer(place, i);
    });
  for (auto &thread : threads) thread.join();
  use(place);
}

/* Pools of libstdc++ give blocks of 24 bytes for 20, at multiples of 24. */
TEST(ExternalTest, blocks_of_pools_of_the_standard_library_are_aligned) {
  std::pmr::unsynchronized_pool_resource pool;
  External place(&pool, umem::Host());
  std::vector<umem::Buffer> blocks;
  for (std::size_t i = 1; i < 600; i++) {
    blocks.emplace_back(place, i);
    EXPECT_EQ(blocks.back().adr() % place.c_context()->alignment, 0u);
    blocks.emplace_back(place, i, 64);
    EXPECT_EQ(blocks.back().adr() % 64, 0u);
  }
}

TEST(ExternalTest, a_block_is_freed_in_another_thread) {
  std::pmr::synchronized_pool_resource pool;
  External place(&pool, umem::Host());
  umem::Buffer block(place, 100);
  std::thread([moved = std::move(block)] {}).join();
}

TEST(ExternalTest, no_memory_is_the_exception_of_the_resource) {
  External place(std::pmr::null_memory_resource(), umem::Host());
  try {
    umem::Buffer block(place, 100);
    FAIL();
  } catch (std::bad_alloc const &exception) {
    EXPECT_EQ(dynamic_cast<umem::error const *>(&exception), nullptr);
  }
  EXPECT_EQ(umem_alloc(place.c_context(), 100), 0u); /* and in C */
  EXPECT_EQ(umem_thread_status(), umemMemoryError);
  EXPECT_NE(std::strstr(umem_thread_message(), "allocate of the resource has thrown"), nullptr);
  umem_thread_clear();
}

TEST(ExternalTest, its_memory_goes_back_to_a_resource_of_umem) {
  umem::Track track{umem::Host()};
  umem::MemoryResource lent(track);
  {
    External place(&lent, umem::Host());
    use(place);
    umem::Buffer block(place, 100);
    EXPECT_EQ(track.count(), 1u);
  }
  EXPECT_EQ(track.count(), 0u);
}

TEST(ExternalTest, a_part_of_what_is_free_is_known) {
  std::pmr::synchronized_pool_resource pool;
  umem::Limit limit(External(&pool, umem::Host()), 1 << 20);
  EXPECT_EQ(limit.available_share(0.5), 1u << 19);
  EXPECT_THROW(limit.available_share(2), umem::value_error);
}

/* ---- lifetimes ---- */

TEST(ExternalTest, the_last_block_keeps_the_resource) {
  auto calls = std::make_shared<Calls>();
  {
    umem::Buffer block;
    {
      External place(Resource(calls, umem::Host()), umem::Host());
      EXPECT_EQ(calls->copies, 0);
      block = umem::Buffer(place, 100);
    }
    EXPECT_EQ(calls->ended, 0);
  }
  EXPECT_EQ(calls->ended, 1);
  EXPECT_EQ(calls->live, 0);
}

TEST(ExternalTest, a_shared_resource_is_kept_and_a_pointer_borrows) {
  auto calls = std::make_shared<Calls>();
  auto shared = std::make_shared<Resource>(calls, umem::Host());
  {
    External place(shared, umem::Host());
    shared.reset();
    EXPECT_EQ(calls->ended, 0);
    use(place);
  }
  EXPECT_EQ(calls->ended, 1);
  Resource mine(calls, umem::Host());
  use(External(&mine, umem::Host()));
  EXPECT_EQ(calls->ended, 1);
  Resource const &copied = mine;
  use(External(copied, umem::Host()));
  EXPECT_EQ(calls->copies, 1);
  EXPECT_EQ(calls->live, 0);
  EXPECT_THROW(External(shared, umem::Host()), umem::value_error); /* NULL by now */
  EXPECT_THROW(External(static_cast<Resource *>(nullptr), umem::Host()), umem::value_error);
}

/* ---- exceptions ---- */

struct no_memory : std::bad_alloc {
  char const *what() const noexcept override { return "the card is full"; }
};

TEST(ExternalTest, exceptions_arrive) {
  auto calls = std::make_shared<Calls>();
  External place(Resource(calls, umem::Host()), umem::Host());
  calls->thrown = std::make_exception_ptr(no_memory());
  EXPECT_THROW(umem::Buffer(place, 100), no_memory);
  calls->thrown = std::make_exception_ptr(std::logic_error("this is no stream"));
  expect_words(thrown_by<umem::runtime_error>([&] { umem::Buffer(place, 100); }),
               "has thrown: this is no stream");
  calls->thrown = std::make_exception_ptr(3);
  EXPECT_THROW(umem::Buffer(place, 100), umem::runtime_error);
  EXPECT_EQ(calls->live, 0);
  {
    umem::Buffer block(place, 100);
    calls->thrown = std::make_exception_ptr(std::logic_error("lost"));
  }
  EXPECT_EQ(umem_thread_status(), umemRuntimeError);
  expect_words(umem_thread_message(), "deallocate of the resource has thrown: lost");
  umem_thread_clear();
  umem_clear_status(place.c_context());
}

/* A layer above that frees memory gets to see that there is none. */
TEST(ExternalTest, a_retry_frees_memory_of_the_resource) {
  auto calls = std::make_shared<Calls>();
  int asked = 0;
  umem::Retry retry(External(Resource(calls, umem::Host()), umem::Host()),
                    [&](umem::RetryRequest const &) { return ++asked < 3; });
  calls->thrown = std::make_exception_ptr(std::bad_alloc());
  umem::Buffer block(retry, 100);
  EXPECT_EQ(asked, 1);
}

/* ---- streams ---- */

template <class Kind> void expect_streams() {
  auto calls = std::make_shared<Calls>();
  umem::CudaAsync queue(0);
  auto *stream = reinterpret_cast<CUstream_st *>(queue.stream());
  {
    External place(Kind(calls, queue), queue);
    umem::Buffer block(place, 100);
    EXPECT_EQ(calls->on_stream, 1);
    EXPECT_EQ(calls->stream, stream);
    use(place);
  }
  EXPECT_EQ(calls->on_stream % 2, 0);
  EXPECT_EQ(calls->live, 0);
  int const before = calls->on_stream;
  use(External(Kind(calls, umem::Cuda(0)), umem::Cuda(0)));
  EXPECT_EQ(calls->on_stream, before); /* for all streams at once */
}

bool has_gpu() {
  try {
    umem::CudaAsync(0);
    return true;
  } catch (umem::not_supported_error const &) {
    return false;
  }
}

TEST(ExternalTest, streams_of_a_pool_come_in_turn) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  static_assert(!std::is_copy_constructible_v<umem::CudaStreams>);
  umem::CudaStreams streams(0, 2);
  std::uintptr_t const first = streams.next();
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(streams.next(), streams.at(1));
  EXPECT_EQ(streams.next(), first);
  EXPECT_THROW(streams.at(2), umem::index_error);
  umem::CudaStreams moved = std::move(streams);
  EXPECT_EQ(moved.at(0), first);
  EXPECT_THROW(streams.next(), umem::value_error);
  use(umem::CudaAsync(0, moved.next()));
  EXPECT_THROW(umem::CudaStreams(0, 0), umem::value_error);
}

TEST(ExternalTest, streams_are_passed_through) {
  if (!has_gpu()) GTEST_SKIP() << "there is no GPU";
  expect_streams<StreamResource>();
  expect_streams<OldStreamResource>();
  umem::CudaAsync queue(0);
  auto calls = std::make_shared<Calls>();
  use(External(Resource(calls, umem::Cuda(0)), queue)); /* whose frees wait */
  EXPECT_EQ(calls->live, 0);
}

} // namespace
