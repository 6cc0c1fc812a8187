/* open.cpp - contexts by name, and the default ones, as handles. */
#include "places.h"
#include "temporary.h"

#include <umem/adaptors.hpp>
#include <umem/array_of.hpp>
#include <umem/limit.h>
#include <umem/open.hpp>
#include <umem/pool.hpp>

#include <fstream>
#include <list>

namespace {

using umem::Array;
using umem::Context;

TEST(OpenTest, makes_all_layers) {
  for (char const *name : {"host:", "file:", "mmap:", "stats+pool+host:",
                           "track+limit+file:?limit=1M", "pool+cuda-async:0"}) {
    SCOPED_TRACE(name);
    Context place;
    try {
      place = umem::open(name);
    } catch (umem::not_supported_error const &) {
      continue; /* a build without GPUs */
    }
    auto u = umem::Array<int, 1>::full({100}, 7, place);
    place = Context(); /* the array keeps it */
    u.release_host();
    EXPECT_EQ((*u.host(umem::read))(99), 7);
  }
}

TEST(OpenTest, ends_with_the_last_handle) {
  umem::address leaked;
  {
    Context track = umem::open("track+host:");
    Context other = track;
    track = Context();
    EXPECT_EQ(umem_thread_status(), umemOK);
    leaked = other.allocate(123);
  }
  EXPECT_EQ(umem_thread_status(), umemRuntimeError); /* the leak: it has ended */
  umem_thread_clear();
  umem::Host().deallocate(leaked);
}

TEST(OpenTest, leads_to_inner_layers) {
  Context limit = umem::open("pool+limit+host:?limit=8M").upstream(); /* keeps all layers */
  EXPECT_STREQ(limit.name(), "Limit");
  umem::Buffer buffer(limit, 1000);
  EXPECT_EQ(umem::Limit::of(limit).used(), 1000u);
}

/* Handle::of finds layer in outer, a stack over it, keeps both alive, and finds none in a stack
 * without one. ask: calls what only the class has. */
template <class Handle, class Ask> void expect_of(Context layer, Ask &&ask) {
  SCOPED_TRACE(layer.name());
  Context outer = umem::Limit(umem::Stats(layer), 1 << 30);
  if (std::is_same_v<Handle, umem::Limit>) outer = umem::Stats(layer);
  if (std::is_same_v<Handle, umem::Stats>) outer = umem::Limit(layer, 1 << 30);
  Handle found = Handle::of(outer);
  EXPECT_EQ(found, layer);
  EXPECT_EQ(Handle::of(layer), layer);
  outer = Context();
  layer = Context();
  ask(found); /* which keeps it alive */
  found.deallocate(found.allocate(64));
  Context other = std::is_same_v<Handle, umem::Host> ? Context(umem::Cuda()) : umem::Host();
  std::uint64_t before = umem_thread_failures();
  EXPECT_THROW(Handle::of(other), umem::type_error);
  EXPECT_THROW(Handle::of(Context()), umem::value_error);
  EXPECT_TRUE(umem_is_ok(other.c_context())); /* only thrown */
  EXPECT_EQ(umem_thread_failures(), before);
}

template <class Handle> void expect_of(Context layer) {
  expect_of<Handle>(layer, [](Handle const &) {});
}

TEST(LayerTest, has_its_class_for_each_place) {
  expect_of<umem::Host>(umem::Host());
  expect_of<umem::File>(umem::File::scratch());
  expect_of<umem::MMap>(umem::MMap::scratch());
  expect_of<umem::Cuda>(umem::Cuda());
  expect_of<umem::CudaHost>(umem::CudaHost());
  expect_of<umem::CudaManaged>(umem::CudaManaged());
  expect_of<umem::CudaAsync>(umem::CudaAsync(), [](auto const &h) { EXPECT_NE(h.stream(), 0u); });
}

TEST(LayerTest, has_its_class_for_each_adaptor) {
  umem::Host host;
  expect_of<umem::Stats>(umem::Stats(host),
                         [](auto const &h) { EXPECT_EQ(h.figures().current_count, 0u); });
  expect_of<umem::Limit>(umem::Limit(host, 1000), [](auto const &h) { EXPECT_EQ(h.used(), 0u); });
  expect_of<umem::Track>(umem::Track(host), [](auto const &h) { EXPECT_EQ(h.count(), 0u); });
  expect_of<umem::Debug>(umem::Debug(host),
                         [](auto const &h) { EXPECT_EQ(h.figures().live_blocks, 0u); });
  expect_of<umem::Fault>(umem::Fault(host), [](auto const &h) { EXPECT_EQ(h.failures(), 0u); });
  expect_of<umem::Retry>(umem::Retry(host, [](umem::RetryRequest const &) { return false; }));
  expect_of<umem::CudaPrefetch>(umem::CudaPrefetch(umem::CudaManaged()));
  TempFile log;
  expect_of<umem::Log>(umem::Log(host, log.path), [](auto const &h) { EXPECT_EQ(h.number(), 1u); });
  umem::Log const own(host, log.path, 0, true); /* each process has its file */
  EXPECT_EQ(std::remove((std::string(log.path) + '.' + std::to_string(getpid())).c_str()), 0);
}

TEST(LayerTest, has_its_class_for_each_pool) {
  umem::Host host;
  umem::Pool pool(host);
  expect_of<umem::Pool>(pool, [](auto const &h) { EXPECT_EQ(h.stats().blocks, 0u); });
  expect_of<umem::PoolOn>(umem::PoolOn(pool, host));
  expect_of<umem::Fixed>(umem::Fixed(host, 64),
                         [](auto const &h) { EXPECT_EQ(h.stats().block_size, 64u); });
  expect_of<umem::Binning>(umem::Binning(host, {{100, pool}}));
}

TEST(LayerTest, is_found_by_its_name) {
  Context place = umem::open("limit+stats+pool+stats+host:?limit=1M");
  EXPECT_EQ(place.find_layer("limit"), place);
  EXPECT_EQ(place.find_layer("stats"), place.upstream()); /* the outermost of two */
  Context inner = place.find_layer("pool").upstream();
  EXPECT_NE(inner, place.upstream());
  EXPECT_EQ(inner.find_layer("stats"), inner);
  place = Context();
  inner.deallocate(inner.allocate(8)); /* which keeps the stack alive */
  EXPECT_THROW(inner.find_layer("pool"), umem::value_error);
  EXPECT_THROW(inner.find_layer("stat"), umem::value_error);
  EXPECT_THROW(inner.find_layer(nullptr), umem::value_error);
  EXPECT_THROW(Context().find_layer("host"), umem::value_error);
  EXPECT_TRUE(umem_is_ok(inner.c_context()));
}

TEST(OpenTest, tells_what_its_layers_count) {
  Context place = umem::open("stats+pool+host:");
  umem::Stats stats = umem::Stats::of(place);
  umem::Pool pool = umem::Pool::of(place);
  place = Context();
  umem::Buffer buffer(pool, 1000), other(stats, 1000);
  EXPECT_EQ(stats.figures().current_bytes, 1000u);
  EXPECT_EQ(pool.stats().blocks, 2u);
  EXPECT_EQ(thrown_by<umem::type_error>([&] { umem::Stats::of(pool); }),
            "umem_find_layer: there is no \"stats\" in this stack: Pool, Host");
}

TEST(OpenTest, throws_what_is_wrong_with_a_name) {
  EXPECT_THROW(umem::open(""), umem::value_error);
  EXPECT_THROW(umem::open("nowhere:"), umem::value_error);
  EXPECT_THROW(umem::open(std::string("host:\0", 6)), umem::value_error);
  EXPECT_THROW(umem::open("file:/nonexistent/file?mode=r"), umem::io_error);
  expect_words(thrown_by<umem::value_error>([] { umem::open("limit+host:?limt=1M"); }), "limt");
}

TEST(OpenTest, changes_no_file_when_it_throws) {
  char name[256];
  temporary_name(name, sizeof name);
  std::string path = name;
  std::ofstream(path) << "what was there";
  for (std::string const kind : {"file", "mmap"}) {
    std::string end = kind + ":" + path + "?mode=w&";
    EXPECT_THROW(umem::open("log+" + end + "log.file=/nonexistent/log"), umem::io_error);
    EXPECT_THROW(umem::open("pool+" + end + "max=0"), umem::value_error);
    EXPECT_THROW(umem::open("pool+" + end + "initial=4000T"), umem::memory_error);
    std::string text;
    std::getline(std::ifstream(path), text);
    EXPECT_EQ(text, "what was there");
  }
  std::remove(path.c_str());
  EXPECT_THROW(umem::open("pool+file:" + path + "?mode=w&max=0"), umem::value_error);
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(OpenTest, keeps_to_schemes_and_folders) {
  umem::OpenOptions options;
  options.schemes = {"host", "pool", "file"};
  EXPECT_TRUE(umem::open("pool+host:", options));
  EXPECT_THROW(umem::open("stats+host:", options), umem::value_error);
  options.folders = {"/proc/self"};
  EXPECT_THROW(umem::open("file:/tmp/umem-not-here?mode=w", options), umem::value_error);
  EXPECT_TRUE(umem::open("pool+host:", options));
  options.folders->clear();
  EXPECT_THROW(umem::open("file:/tmp/umem-not-here?mode=w", options), umem::value_error);
  options.folders = {"/nonexistent"};
  EXPECT_THROW(umem::open("host:", options), umem::io_error);
  options = {};
  options.schemes.emplace();
  EXPECT_THROW(umem::open("host:", options), umem::value_error);
  EXPECT_TRUE(umem::open("host:", umem::OpenOptions()));
}

TEST(OpenTest, is_the_struct_of_its_scheme) {
  Context place = umem::open("limit+host:?limit=1M");
  umem::Buffer buffer(place, 100);
  EXPECT_EQ(umemLimit_used(reinterpret_cast<umemLimit *>(place.c_context())), 100u);
}

/* ---- defaults ---- */

struct DefaultTest : testing::Test {
  void TearDown() override {
    umem::set_default_context(Context());
    umem::set_default_context(3, Context());
  }
};

TEST_F(DefaultTest, begins_as_one_of_the_library) {
  Context first = umem::default_context();
  EXPECT_EQ(first.c_context(), umem_default());
  umem::Buffer buffer(first, 8);
}

TEST_F(DefaultTest, keeps_what_is_set) {
  umemVirtual *pool;
  {
    umem::Pool own{umem::Host()};
    pool = own.c_context();
    umem::set_default_context(own);
  }
  EXPECT_EQ(umem::default_context().c_context(), pool);
  umem::Buffer buffer(umem::default_context(), 8);
  umem::set_default_context(Context());
  EXPECT_NE(umem::default_context().c_context(), pool);
  EXPECT_EQ(buffer.context().c_context(), pool); /* which the buffer keeps alive */
}

TEST_F(DefaultTest, has_none_of_a_GPU_beyond_the_numbers) {
  umem::set_default_context(umem::Host());
  for (int device : {-1, UMEM_DEFAULT_DEVICES}) {
    EXPECT_THROW(static_cast<void>(umem::default_context(device)), umem::value_error);
    EXPECT_THROW(umem::set_default_context(device, umem::Host()), umem::value_error);
  }
}

TEST_F(DefaultTest, ends_what_was_set_before) {
  bool ended = false;
  umem::Host ram;
  umem::set_default_context(
      Context(std::shared_ptr<umemVirtual>(ram.c_context(), [&](umemVirtual *) { ended = true; })));
  Context handle = umem::default_context();
  umem::set_default_context(Context());
  EXPECT_FALSE(ended);
  handle = Context();
  EXPECT_TRUE(ended);
}

TEST_F(DefaultTest, borrows_what_C_has_set) {
  umemHost ram;
  ASSERT_EQ(umemHost_ctor(&ram), umemOK);
  umem::set_default_context(umem::Pool{umem::Host()});
  umem_set_default(&ram);
  EXPECT_EQ(umem::default_context().c_context(), &ram.super);
  umem::set_default_context(Context());
  umem_dtor(&ram);
}

/* Arrays that name no context are on it. */
void expect_arrays_on(Context const &context) {
  EXPECT_EQ((Array<int, 1>({3}).context()), context);
  EXPECT_EQ((Array<int, 2>({3, 2}, umem::column_major).context()), context);
  EXPECT_EQ((Array<int, 1>::zeros({3}).context()), context);
  EXPECT_EQ((Array<int, 1>::full({3}, 7).context()), context);
  EXPECT_EQ((Array<int, 1>::full({3}, 7, umem::column_major).context()), context);
  EXPECT_EQ(umem::array_of({1, 2}).context(), context);
  EXPECT_EQ(umem::array_of(std::vector<int>{1, 2}).context(), context);
  EXPECT_EQ(umem::array_of(std::list<int>{1, 2}, umem::Extents{2, 1}).context(), context);
}

TEST_F(DefaultTest, is_where_arrays_are_that_name_no_context) {
  expect_arrays_on(umem::default_context());
  umem::Pool pool{umem::Host()};
  umem::set_default_context(pool);
  expect_arrays_on(pool);
  EXPECT_NE((Array<int, 1>({3}, umem::Host()).context()), pool);
  int three[3] = {};
  EXPECT_NE((Array<int, 1>::wrap_unowned(three, {3}).context()), pool); /* a pointer is of RAM */
}

TEST_F(DefaultTest, may_be_another_one_in_a_block_of_one_thread) {
  umem::Pool pool{umem::Host()};
  Context before = umem::default_context();
  Array<int, 1> kept;
  {
    umem::Using here(pool);
    expect_arrays_on(pool);
    EXPECT_EQ(umem_default(), pool.c_context()); /* C agrees */
    std::thread([&] { expect_arrays_on(before); }).join();
    {
      umem::Using inner(umem::File::scratch()); /* which the array keeps alive */
      expect_arrays_on(inner.context());
      kept = Array<int, 1>::full({3}, 5);
      umem::set_default_context(umem::Host());
      expect_arrays_on(inner.context());
    }
    expect_arrays_on(pool);
  }
  EXPECT_EQ(kept.get(2), 5);
  EXPECT_NE(umem::default_context(), pool);
  EXPECT_EQ(umem_thread_default(), nullptr);
  EXPECT_THROW(static_cast<void>(umem::Using{Context()}), umem::value_error);
}

TEST_F(DefaultTest, of_a_thread_may_be_set_in_C) {
  umem::Pool pool{umem::Host()};
  umem_set_thread_default(pool.c_context());
  expect_arrays_on(pool);
  {
    umem::Using here{umem::Host()};
    EXPECT_NE(umem::default_context(), pool);
  }
  EXPECT_EQ(umem::default_context(), pool);
  umem_set_thread_default(nullptr);
}

TEST_F(DefaultTest, has_one_of_each_device) {
  umem::Pool pool{umem::Host()};
  umem::set_default_context(3, pool);
  EXPECT_EQ(umem::default_context(3), pool);
  EXPECT_NE(umem::default_context(), pool);
  for (int device : {-1, UMEM_DEFAULT_DEVICES}) {
    EXPECT_THROW(umem::default_context(device), umem::value_error);
    EXPECT_THROW(umem::set_default_context(device, pool), umem::value_error);
  }
}

} // namespace
