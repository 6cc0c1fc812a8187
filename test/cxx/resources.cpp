/* resources.cpp - handles of contexts that go over others: on every context, and for each kind. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/pool.hpp>

namespace {

using umem::Context;

static_assert(std::is_nothrow_move_constructible_v<umem::Pool>);
static_assert(std::is_copy_constructible_v<umem::Retry>);
static_assert(!std::is_convertible_v<Context, umem::Stats>);
static_assert(!std::is_constructible_v<umem::Retry, Context, void (*)(int)>);

bool gives_up(umem::RetryRequest const &) { return false; }

using Over = std::function<Context(Context const &)>;

/* A context of each kind over a given one. */
std::vector<std::pair<char const *, Over>> kinds(TempFile const &log) {
  return {
      {"Pool", [](Context const &c) { return umem::Pool(c); }},
      {"PoolOn", [](Context const &c) { return umem::PoolOn(umem::Pool(c), c); }},
      {"Fixed", [](Context const &c) { return umem::Fixed(c, 4096); }},
      {"Binning",
       [](Context const &c) {
         return umem::Binning(c, {{64, umem::Fixed(c, 64)}});
       }},
      {"Limit", [](Context const &c) { return umem::Limit(c, 4096); }},
      {"Stats", [](Context const &c) { return umem::Stats(c); }},
      {"Track", [](Context const &c) { return umem::Track(c); }},
      {"Debug", [](Context const &c) { return umem::Debug(c); }},
      {"Retry", [](Context const &c) { return umem::Retry(c, gives_up); }},
      {"Fault", [](Context const &c) { return umem::Fault(c); }},
      {"Log", [&log](Context const &c) { return umem::Log(c, log.path, 65536); }},
  };
}

/* ---- on every context ---- */

ON_EACH_PLACE(ResourcesTest);

TEST_P(ResourcesTest, hold_buffers_and_arrays) {
  TempFile log;
  for (auto const &[name, over] : kinds(log)) {
    SCOPED_TRACE(name);
    Context context = over(place);
    EXPECT_STREQ(context.name(), name);
    EXPECT_TRUE(context.is_same_device(place));

    umem::Buffer buffer = umem::Buffer::zeroed(context, 40);
    buffer.copy_from("abc", 3);
    char found[5] = "----";
    buffer.copy_to(found, 4);
    EXPECT_STREQ(found, "abc");

    auto u = umem::Array<int, 1>::full({40}, 7, context);
    u.release_host(); /* to the context, and back */
    EXPECT_EQ((*u.host(umem::read))(39), 7);
  }
}

/* A context that ends before its upstream has given back what it took from it. */
TEST_P(ResourcesTest, keep_their_upstream_until_they_have_ended) {
  TempFile log;
  for (auto const &[name, over] : kinds(log)) {
    SCOPED_TRACE(name);
    umem::Track track(place);
    std::size_t left = SIZE_MAX; /* blocks, when the last handle of the upstream was dropped */
    Context upstream(std::shared_ptr<umemVirtual>(
        track.c_context(), [&left, &track](umemVirtual *) { left = track.count(); }));
    Context context = over(upstream);
    upstream = Context();
    {
      umem::Buffer buffer(context, 40);
      context = Context();
      EXPECT_EQ(left, SIZE_MAX);
      EXPECT_GT(track.count(), 0u);
    }
    EXPECT_EQ(left, 0u);
  }
}

TEST_P(ResourcesTest, a_binning_keeps_a_later_bin) {
  umem::Binning binning(place, {{64, umem::Fixed(place, 64)}});
  umem::Buffer block;
  {
    umem::Stats later{umem::Context(umem::Fixed(place, 4096))};
    if (place.can(umemOrdered) || place.can(umemOffsets)) later = umem::Stats(place);
    binning.add({4096, later});
    block = umem::Buffer(binning, 1000);
    EXPECT_EQ(later.figures().current_count, 1);
    EXPECT_THROW(binning.add({4096, later}), umem::value_error);
    EXPECT_THROW(umem::Binning::of(binning).add({9, later}), umem::not_supported_error);
  }
  block.set(7);
}

TEST_P(ResourcesTest, stand_on_each_other) {
  umem::Stats stats{umem::Pool(umem::Limit(place, 64u << 20))};
  umem::Pool outer{Context(stats)};
  umem::Pool above{Context(outer)};
  EXPECT_NE(above, outer);
  EXPECT_EQ(umem::Pool(outer), outer); /* a copy */
  umem::Buffer buffer(above, 100);
  EXPECT_GE(stats.figures().current_bytes, 100);
}

TEST_P(ResourcesTest, that_cannot_be_leave_the_upstream_usable) {
  umemPoolOptions few = UMEM_POOL_OPTIONS_INIT;
  few.initial = 2;
  few.maximum = 1;
  EXPECT_THROW(umem::Pool(place, few), umem::value_error);
  EXPECT_THROW(umem::Fixed(place, 0), umem::value_error);
  EXPECT_THROW(umem::Binning(place, {{64, place}, {64, place}}), umem::value_error);
  EXPECT_THROW(umem::Track(place, UMEM_TRACK_FRAMES + 1), umem::value_error);
  umemDebugOptions no_guard = UMEM_DEBUG_OPTIONS_INIT;
  no_guard.guard = 0;
  EXPECT_THROW(umem::Debug(place, no_guard), umem::value_error);
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.share = 2;
  EXPECT_THROW(umem::Fault(place, plan), umem::value_error);
  EXPECT_THROW(umem::Log(place, ""), umem::value_error);
  EXPECT_THROW(umem::Log(place, std::string("a\0b", 3)), umem::value_error);
  EXPECT_THROW(umem::Log(place, "/nonexistent/log"), umem::io_error);
  bool (*none)(umem::RetryRequest const &) = gives_up;
  EXPECT_THROW(umem::Retry(Context(), none), umem::value_error);
  forget_failure();
  umem::Buffer buffer(place, 8);
}

/* ---- pools ---- */

TEST(PoolTest, knows_what_it_holds) {
  umemPoolOptions options = UMEM_POOL_OPTIONS_INIT;
  options.initial = 1 << 20;
  umem::Pool pool(umem::Host(), options);
  EXPECT_GE(pool.stats().reserved, 1u << 20);
  umem::Buffer buffer(pool, 100000);
  EXPECT_GE(pool.stats().used, 100000u);
  EXPECT_EQ(pool.stats().blocks, 1u);
}

TEST(PoolTest, views_share_it) {
  umem::Host ram;
  umem::Pool pool(ram);
  umem::PoolOn one(pool, ram), other(pool, umem::Host());
  EXPECT_EQ(umem::PoolOn(one), one);
  {
    umem::Buffer a(one, 1000), b(other, 2000);
    EXPECT_EQ(pool.stats().blocks, 2u);
    EXPECT_TRUE(one.is_same_device(other));
  }
  EXPECT_EQ(pool.stats().blocks, 0u);
  EXPECT_EQ(pool.stats().chunks, 1u);
}

TEST(PoolTest, views_keep_pool_and_queue) {
  int ended = 0;
  umem::Host below, order;
  auto ends = [&ended](umemVirtual *) { ended++; };
  Context upstream(std::shared_ptr<umemVirtual>(below.c_context(), ends));
  Context queue(std::shared_ptr<umemVirtual>(order.c_context(), ends));
  {
    umem::PoolOn view(umem::Pool(upstream), queue);
    upstream = Context();
    queue = Context();
    umem::Buffer buffer(view, 100);
    view = umem::PoolOn(umem::Pool(below), order);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 2);
}

TEST(PoolTest, views_of_other_memory_cannot_be) {
  umem::Pool pool{umem::Host()};
  EXPECT_THROW(umem::PoolOn(pool, umem::File::scratch()), umem::value_error);
  EXPECT_THROW(umem::PoolOn(pool, Context()), umem::value_error);
  umem_thread_clear();
  EXPECT_EQ(pool.stats().blocks, 0u);
}

TEST(PoolTest, fixed_tells_what_it_holds) {
  umemFixedOptions options = UMEM_FIXED_OPTIONS_INIT;
  options.alignment = 256;
  umem::Fixed fixed(umem::Host(), 800, options);
  umem::Buffer buffer(fixed, 800);
  EXPECT_EQ(fixed.stats().block_size, 1024u);
  EXPECT_EQ(fixed.stats().blocks, 1u);
  EXPECT_THROW(umem::Buffer(fixed, 1025), umem::memory_error);
}

TEST(PoolTest, binning_goes_by_size) {
  umem::Host ram;
  umem::Stats small(ram), middle(ram), large(ram);
  umem::Binning binning(large, {{64, small}, {4096, middle}});
  umem::Buffer a(binning, 64), b(binning, 65), c(binning, 4097);
  EXPECT_EQ(small.figures().current_bytes, 64);
  EXPECT_EQ(middle.figures().current_bytes, 65);
  EXPECT_EQ(large.figures().current_bytes, 4097);
}

TEST(PoolTest, binning_keeps_its_bins) {
  bool ended = false;
  umem::Host ram;
  Context bin(std::shared_ptr<umemVirtual>(ram.c_context(), [&](umemVirtual *) { ended = true; }));
  {
    umem::Binning binning(ram, {{64, bin}});
    bin = Context();
    EXPECT_FALSE(ended);
    umem::Buffer buffer(binning, 64);
  }
  EXPECT_TRUE(ended);
}

TEST(PoolTest, binning_refuses_another_memory) {
  EXPECT_THROW(umem::Binning(umem::Host(), {{64, umem::File::scratch()}}), umem::value_error);
  EXPECT_THROW(umem::Binning(umem::Host(), {{64, Context()}}), umem::value_error);
}

TEST(PoolTest, of_an_empty_handle_throws) {
  EXPECT_THROW(umem::Pool{Context()}, umem::value_error);
  umem::Pool pool{umem::Host()};
  umem::Pool moved = std::move(pool);
  EXPECT_TRUE(moved);
  EXPECT_THROW(pool.stats(), umem::error); // NOLINT(bugprone-use-after-move): what it then does
}

/* ---- adaptors ---- */

TEST(LimitTest, refuses_what_is_beyond) {
  umem::Limit limit(umem::Host(), 100);
  umem::Buffer buffer(limit, 60);
  EXPECT_EQ(limit.used(), 60u);
  EXPECT_THROW(umem::Buffer(limit, 41), umem::memory_error);
}

TEST(StatsTest, counts) {
  umem::Stats stats{umem::Host()};
  umem::Buffer(stats, 100);
  umem::Buffer buffer(stats, 10);
  umemStatsFigures figures = stats.figures();
  EXPECT_EQ(figures.current_bytes, 10);
  EXPECT_EQ(figures.peak_bytes, 100);
  EXPECT_EQ(figures.total_bytes, 110);
  EXPECT_EQ(figures.total_count, 2);
  stats.reset();
  EXPECT_EQ(stats.figures().peak_bytes, 10);
}

TEST(StatsTest, scopes_nest) {
  umem::Stats stats{umem::Host()};
  umem::Buffer before(stats, 1000);
  stats.push();
  {
    umem::StatsScope inner(stats);
    umem::Buffer buffer(stats, 10);
    EXPECT_EQ(inner.end().current_bytes, 10);
    EXPECT_THROW(inner.end(), umem::value_error);
  }
  { umem::StatsScope by_its_end(stats); }
  EXPECT_EQ(stats.pop().peak_bytes, 10);
  EXPECT_THROW(stats.pop(), umem::value_error); /* the scopes have ended, each once */
}

TEST(TrackTest, knows_every_block) {
  umem::Track track{umem::Host()};
  std::vector<umem::Buffer> buffers;
  for (std::size_t i = 1; i <= 3; i++) buffers.emplace_back(track, 10 * i);
  EXPECT_EQ(track.count(), 3u);
  EXPECT_EQ(track.nbytes(), 60u);

  umem::address adr = buffers[1].adr();
  ASSERT_TRUE(track.find(adr + 19));
  EXPECT_EQ(track.find(adr + 19)->adr, adr);
  EXPECT_EQ(track.find(adr + 19)->nbytes, 20u);
  ASSERT_TRUE(umem::Track::find_owner(adr));
  EXPECT_EQ(umem::Track::find_owner(adr)->ctx, track.c_context());

  std::size_t nbytes = 0;
  umem::address last = 0;
  track.for_each([&](umemTrackBlock const &block) {
    EXPECT_GT(block.adr, last);
    last = block.adr;
    nbytes += block.nbytes;
  });
  EXPECT_EQ(nbytes, 60u);
  buffers.clear();
  EXPECT_FALSE(track.find(adr));
  EXPECT_FALSE(umem::Track::find_owner(adr));
}

TEST(TrackTest, walks_over_offsets) {
  umem::Track track{umem::File::scratch()};
  umem::Buffer one(track, 10), other(track, 10);
  std::vector<umem::address> found;
  track.for_each([&](umemTrackBlock const &block) { found.push_back(block.adr); });
  EXPECT_EQ(found, (std::vector<umem::address>{one.adr(), other.adr()}));
}

TEST(TrackTest, finds_a_free_of_what_is_no_block) {
  umem::Track track{umem::Host()};
  umem::address adr = track.allocate(8);
  EXPECT_THROW(track.deallocate(adr + 1), umem::value_error);
  track.deallocate(adr);
  EXPECT_THROW(track.deallocate(adr), umem::value_error);
}

TEST(TrackTest, tells_leaks_to_the_hook_and_the_thread) {
  std::string reported;
  umem_set_failure_hook([](void *, umemStatusType, char const *message,
                           void *data) { *static_cast<std::string *>(data) += message; },
                        &reported);
  umem::Host ram;
  umem::address leaked;
  {
    umem::Track track(ram);
    leaked = track.allocate(123);
  }
  umem_set_failure_hook(nullptr, nullptr);
  EXPECT_NE(reported.find("123"), std::string::npos) << reported;
  EXPECT_EQ(umem_thread_status(), umemRuntimeError);
  umem_thread_clear();
  ram.deallocate(leaked); /* still the upstream's */
}

TEST(DebugTest, finds_wrong_writes_and_frees) {
  umemDebugOptions options = UMEM_DEBUG_OPTIONS_INIT;
  options.kept_blocks = 4;
  umem::Host ram;
  umem::Debug debug(ram, options);
  EXPECT_FALSE(debug.first());
  umem::address adr = debug.allocate(10), other = debug.allocate(20);
  auto *bytes = reinterpret_cast<unsigned char *>(adr);
  EXPECT_EQ(bytes[0], UMEM_DEBUG_NEW);
  bytes[10] = 1;
  EXPECT_THROW(debug.deallocate(adr), umem::index_error);
  ASSERT_TRUE(debug.first());
  EXPECT_EQ(debug.first()->kind, umemDebugOverflow);
  EXPECT_EQ(debug.first()->adr, adr);
  EXPECT_EQ(debug.first()->offset, 10);
  EXPECT_EQ(debug.figures().live_blocks, 2u); /* what has thrown has done nothing */
  debug.deallocate(adr);
  EXPECT_THROW(debug.deallocate(adr), umem::value_error);
  EXPECT_EQ(debug.figures().kept_blocks, 1u);
  debug.check();
  bytes[3] = 1;
  EXPECT_THROW(debug.check(), umem::index_error);
  debug.check(); /* it was reported */
  debug.deallocate(other);
  EXPECT_EQ(debug.figures().faults, 3u);
  umem_thread_clear();
}

TEST(FaultTest, fails_as_planned) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultAlloc;
  plan.nth = 2;
  umem::Fault fault(umem::Host(), plan);
  umem::Buffer first(fault, 8);
  EXPECT_THROW(umem::Buffer(fault, 8), umem::memory_error);
  EXPECT_EQ(fault.count(umemFaultAlloc), 2u);
  EXPECT_EQ(fault.failures(), 1u);
  plan.nth = 1;
  plan.status = umemIOError;
  fault.set_plan(plan);
  EXPECT_THROW(umem::Buffer(fault, 8), umem::io_error);
  plan.calls = 0;
  EXPECT_THROW(fault.set_plan(plan), umem::value_error);
}

TEST(LogTest, writes_a_file_for_all_that_name_it) {
  TempFile file;
  {
    umem::Log one(umem::Host(), file.path, 65536), other(umem::Host(), file.path);
    EXPECT_EQ(one.number(), 1u);
    EXPECT_EQ(other.number(), 2u);
    umem::Buffer buffer(one, 8);
  }
  std::FILE *stream = std::fopen(file.path, "rb");
  ASSERT_TRUE(stream);
  std::fseek(stream, 0, SEEK_END);
  EXPECT_GT(std::ftell(stream), 0);
  std::fclose(stream);
}

TEST(CudaPrefetchTest, goes_over_managed_memory_alone) {
  EXPECT_THROW(umem::CudaPrefetch{umem::Host()}, umem::type_error);
  try {
    umem::CudaPrefetch prefetch{umem::Pool(umem::CudaManaged())};
    umem::Buffer::zeroed(prefetch, 800);
    prefetch.synchronize();
  } catch (umem::not_supported_error const &no) {
    GTEST_SKIP() << no.what();
  }
}

} // namespace
