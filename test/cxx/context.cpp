/* context.cpp - handles of contexts, on every context. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/virtual.h>

namespace {

using umem::Context;

static_assert(std::is_nothrow_move_constructible_v<Context>);
static_assert(std::is_nothrow_move_assignable_v<umem::Host>);
static_assert(std::is_copy_constructible_v<umem::File>);
static_assert(!std::is_convertible_v<Context, bool>);

/* ---- on every context ---- */

ON_EACH_PLACE(ContextTest);

TEST_P(ContextTest, answers_questions) {
  umemVirtual *ctx = place.c_context();
  EXPECT_TRUE(place);
  EXPECT_STREQ(place.name(), umem_get_device_name(ctx));
  EXPECT_EQ(place.null(), umem_null(ctx));
  EXPECT_EQ(place.alignment(), ctx->alignment);
  EXPECT_EQ(place.info().alignment, ctx->alignment);
  EXPECT_EQ(place.can(umemOffsets), place.null() == UINTPTR_MAX);
  EXPECT_EQ(place.is_cpu_accessible(), place.can(umemCpuReadable) && place.can(umemCpuWritable));
  EXPECT_TRUE(place.is_same_device(place));
}

TEST_P(ContextTest, has_a_label) {
  EXPECT_EQ(place.label(), "");
  place.set_label("ocean");
  EXPECT_EQ(place.label(), "ocean");
  EXPECT_THROW(place.set_label(std::string(64, 'x')), umem::value_error);
  EXPECT_EQ(place.label(), "ocean");
  place.set_label("");
  EXPECT_EQ(place.label(), "");
  umem_clear_status(place.c_context());
}

TEST(Find, names_the_block_of_a_pointer) {
  umem::Track track((umem::Host()));
  umem::address adr = track.allocate(100);
  track.set_label("ocean");
  umem::set_block_label(track, adr, "salinity");
  auto found = umem::find(reinterpret_cast<char const *>(adr) + 7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->context.c_context(), track.c_context());
  EXPECT_EQ(found->adr, adr);
  EXPECT_EQ(found->size, 100u);
  EXPECT_EQ(found->offset, 7u);
  EXPECT_EQ(found->name, "Track");
  EXPECT_EQ(found->label, "ocean");
  EXPECT_EQ(found->block_label, "salinity");
  EXPECT_NE(umem::describe_contexts().find("Track \"ocean\" 100 bytes"), std::string::npos);
  EXPECT_THROW(umem::set_block_label(track, adr + 1, "x"), umem::value_error);
  EXPECT_THROW(umem::set_block_label(umem::Host(), adr, "x"), umem::not_supported_error);
  EXPECT_TRUE(umem::find_in(track, adr + 99));
  EXPECT_FALSE(umem::find_in(track, adr + 100));
  EXPECT_THROW(umem::find_in(Context(), adr), umem::value_error);
  track.deallocate(adr);
  EXPECT_FALSE(umem::find(adr));
  umem_clear_status(track.c_context());
}

TEST(Find, memory_of_umem_and_of_nobody_is_not_foreign) {
  umem::Track track((umem::Host()));
  umem::address adr = track.allocate(100);
  int local = 0;
  EXPECT_FALSE(umem::find_foreign(adr));
  EXPECT_FALSE(umem::find_foreign(&local));
  track.deallocate(adr);
}

TEST_P(ContextTest, allocates_and_gives_back) {
  umem::address adr = place.allocate(10);
  place.set(adr, 'a', 10);
  adr = place.reallocate(adr, 10, 10000);
  EXPECT_EQ(bytes_at(place, adr, 10), "aaaaaaaaaa");
  place.deallocate(adr);
  for (std::size_t alignment : {0u, 1u, 4096u}) {
    adr = place.allocate_zeroed(10, alignment);
    EXPECT_EQ(adr % (alignment + !alignment), 0u);
    EXPECT_EQ(bytes_at(place, adr, 10), std::string(10, '\0'));
    place.deallocate(adr, alignment);
  }
}

TEST_P(ContextTest, throws_what_fails) {
  EXPECT_THROW(place.allocate(SIZE_MAX / 4), std::bad_alloc);
  EXPECT_THROW(place.allocate(8, 3), std::invalid_argument);
  EXPECT_THROW(place.reallocate(place.null(), 0, SIZE_MAX / 4), umem::memory_error);
  EXPECT_THROW(place.set(place.null(), 0, 1), umem::value_error);
  EXPECT_THROW(umem::copy(place, place.null(), place, 0, 1), umem::value_error);
  forget_failure();
}

TEST_P(ContextTest, a_free_that_fails_throws) {
  if (!(GetParam()->traits & backendChecksFrees)) return;
  umem::address adr = place.allocate(8);
  place.deallocate(adr);
  EXPECT_THROW(place.deallocate(adr), umem::value_error);
  forget_failure();
}

TEST_P(ContextTest, orders_and_keeps) {
  place.synchronize();
  place.wait(umem::Host());
  umem::Host().wait(place);
  place.flush();
  place.trim();
}

TEST_P(ContextTest, copies_strided) {
  umem::address adr = place.allocate(6);
  umem::copy("abcdef", place, adr, 6);
  std::size_t const extents[] = {3, 2};
  std::ptrdiff_t const strides[] = {1, 3};
  umemLayout layout = {sizeof layout, 1, 2, extents, strides, nullptr};
  char found[] = "------";
  umem::copy(place, adr, umem::Host(), reinterpret_cast<umem::address>(found), layout);
  place.synchronize();
  EXPECT_STREQ(found, "adbecf");
  layout.rank = 99;
  EXPECT_THROW(umem::copy(place, adr, place, adr, layout), umem::value_error);
  forget_failure();
  place.deallocate(adr);
}

/* ---- progress ---- */

struct ProgressTest : EachPlace {
  void SetUp() override {
    EachPlace::SetUp();
    if (place) block = place.allocate_zeroed(100);
  }
  void TearDown() override {
    if (place) place.deallocate(block);
    EachPlace::TearDown();
  }

  Context host = umem::Host();
  std::vector<char> source = std::vector<char>(100, 'a');
  umem::address from = reinterpret_cast<umem::address>(source.data());
  umem::address block = 0;
};
FOR_EACH_PLACE(ProgressTest);

TEST_P(ProgressTest, is_reported) {
  std::vector<std::uint64_t> reported;
  auto progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 100u);
    reported.push_back(done);
    return true;
  };
  umem::copy(host, from, place, block, 100, progress, 30);
  EXPECT_EQ(reported, (std::vector<std::uint64_t>{0, 30, 60, 90, 100}));
  EXPECT_EQ(bytes_at(place, block, 100), std::string(100, 'a'));
}

TEST_P(ProgressTest, cancels) {
  auto stop_at_60 = [](std::uint64_t done, std::uint64_t) { return done < 60; };
  EXPECT_THROW(umem::copy(host, from, place, block, 100, stop_at_60, 30), umem::cancelled_error);
  forget_failure();
  EXPECT_EQ(bytes_at(place, block, 100), std::string(60, 'a') + std::string(40, '\0'));
}

TEST_P(ProgressTest, that_throws_comes_out) {
  struct Mine {
    std::uint64_t done;
  };
  auto throwing = [](std::uint64_t done, std::uint64_t) -> bool {
    if (done >= 30) throw Mine{done};
    return true;
  };
  try {
    umem::copy(host, from, place, block, 100, throwing, 30);
    ADD_FAILURE() << "nothing came out";
  } catch (Mine const &mine) {
    EXPECT_EQ(mine.done, 30u);
  }
  EXPECT_EQ(umem_thread_status(), umemOK);
  forget_failure();
  EXPECT_EQ(bytes_at(place, block, 100), std::string(30, 'a') + std::string(70, '\0'));
}

TEST_P(ProgressTest, that_throws_at_the_end_comes_out_of_a_copy_that_is_done) {
  auto throwing = [](std::uint64_t done, std::uint64_t total) -> bool {
    if (done == total) throw std::logic_error("late");
    return true;
  };
  EXPECT_THROW(umem::copy(host, from, place, block, 100, throwing), std::logic_error);
  EXPECT_EQ(bytes_at(place, block, 100), std::string(100, 'a'));
}

/* ---- handles ---- */

int ended = 0;

/* A context whose end is counted. */
Context counted() {
  Backend const *row = backend_by_name("fake");
  auto end = [row](umemVirtual *ctx) {
    backend_close(row, ctx);
    ended++;
  };
  return Context(std::shared_ptr<umemVirtual>(backend_open(row), end));
}

TEST(Handle, ends_the_context_with_the_last) {
  ended = 0;
  Context one = counted();
  Context two = one, three;
  EXPECT_TRUE(one == two);
  EXPECT_TRUE(one != three);
  three = std::move(one);
  EXPECT_FALSE(one);
  EXPECT_TRUE(one != two);
  two = Context();
  EXPECT_EQ(ended, 0);
  three = Context();
  EXPECT_EQ(ended, 1);
}

TEST(Handle, that_borrows_ends_nothing) {
  umemHost host;
  ASSERT_EQ(umemHost_ctor(&host), umemOK);
  {
    Context one = Context::borrow(&host);
    EXPECT_TRUE(one == Context::borrow(&host));
    EXPECT_TRUE(one.is_same_device(umem::Host()));
    one.deallocate(one.allocate(8));
  }
  EXPECT_NE(host.super.vptr, nullptr);
  umem_dtor(&host);
  EXPECT_FALSE(Context::borrow(nullptr));
}

TEST(Handle, of_an_upstream_keeps_what_goes_over_it) {
  Context limit = umem::Limit(umem::Host(), 100), stats = umem::Stats(limit);
  EXPECT_TRUE(stats.upstream() == limit);
  EXPECT_STREQ(stats.upstream().upstream().name(), "Host");
  EXPECT_FALSE(limit.upstream().upstream());
  EXPECT_THROW(Context().upstream(), umem::value_error);

  auto token = std::make_shared<int>();
  Context below =
      umem::Retry(umem::Host(), [token](umem::RetryRequest const &) { return false; }).upstream();
  EXPECT_EQ(token.use_count(), 2);
  below.deallocate(below.allocate(8));
  below = Context();
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Handle, that_is_empty_answers_each_call_with_value_error) {
  Context none, host = umem::Host();
  EXPECT_STREQ(none.name(), "None");
  EXPECT_EQ(none.null(), 0u);
  EXPECT_EQ(none.alignment(), 1u);
  EXPECT_FALSE(none.can(0));
  EXPECT_FALSE(none.is_cpu_accessible());
  EXPECT_TRUE(none == Context());
  EXPECT_THROW(none.info(), umem::value_error);
  EXPECT_THROW(none.is_same_device(host), umem::value_error);
  EXPECT_THROW(host.is_same_device(none), umem::value_error);
  EXPECT_THROW(none.allocate(8), umem::value_error);
  EXPECT_THROW(none.allocate(8, 8), umem::value_error);
  EXPECT_THROW(none.allocate_zeroed(8), umem::value_error);
  EXPECT_THROW(none.allocate_zeroed(8, 8), umem::value_error);
  EXPECT_THROW(none.reallocate(16, 8, 9), umem::value_error);
  EXPECT_THROW(none.deallocate(16), umem::value_error);
  EXPECT_THROW(none.deallocate(16, 16), umem::value_error);
  EXPECT_THROW(none.set(16, 0, 1), umem::value_error);
  EXPECT_THROW(none.synchronize(), umem::value_error);
  EXPECT_THROW(none.wait(host), umem::value_error);
  EXPECT_THROW(host.wait(none), umem::value_error);
  EXPECT_THROW(none.flush(), umem::value_error);
  EXPECT_THROW(none.trim(), umem::value_error);
  char byte = 0;
  umemLayout layout = {sizeof layout, 1, 0, nullptr, nullptr, nullptr};
  EXPECT_THROW(umem::copy(none, 16, host, 16, 1), umem::value_error);
  EXPECT_THROW(umem::copy(host, 16, none, 16, 1), umem::value_error);
  EXPECT_THROW(umem::copy(none, 16, &byte, 1), umem::value_error);
  EXPECT_THROW(umem::copy(&byte, none, 16, 1), umem::value_error);
  EXPECT_THROW(umem::copy(none, 16, none, 16, layout), umem::value_error);
  auto progress = [](std::uint64_t, std::uint64_t) { return true; };
  EXPECT_THROW(umem::copy(none, 16, none, 16, 1, progress), umem::value_error);
}

TEST(Handle, of_each_kind_is_empty_when_moved_from) {
  umem::Host host;
  umem::Host other = std::move(host);
  EXPECT_FALSE(host);
  EXPECT_TRUE(other);
  umem::MMap mmap = umem::MMap::scratch();
  umem::MMap moved = std::move(mmap);
  EXPECT_THROW(mmap.offset(0), umem::value_error);
  EXPECT_THROW(mmap.at_offset(0), umem::value_error);
  try {
    umem::CudaAsync async;
    umem::CudaAsync async_moved = std::move(async);
    EXPECT_NE(async_moved.stream(), 0u);
    EXPECT_THROW(async.stream(), umem::value_error);
  } catch (umem::not_supported_error const &) { /* a machine without */
  }
}

/* A context from outside of umem. */
struct Failing {
  umemVirtual super;
};

struct FailingHandle : Context {
  FailingHandle()
      : Context(make<Failing>([](Failing *ctx) {
          return umem_set_status(&ctx->super, umemIOError, "cannot open");
        })) {}
};

TEST(Handle, throws_where_construction_fails) {
  EXPECT_EQ(thrown_by<umem::io_error>([] { FailingHandle(); }), "cannot open");
}

/* A context from outside of umem that neither sets nor takes back. */
struct Broken {
  umemVirtual super;
};

alignas(64) char broken_memory[64];

struct umemVtbl const &broken_methods() {
  static struct umemVtbl const methods = [] {
    struct umemVtbl vtbl = {};
    vtbl.aligned_alloc = [](umemVirtual *, std::size_t, std::size_t) {
      return reinterpret_cast<umem::address>(broken_memory);
    };
    vtbl.aligned_origin = [](umemVirtual *, umem::address adr) { return adr; };
    vtbl.aligned_free = [](umemVirtual *ctx, umem::address) {
      umem_set_status(ctx, umemValueError, "cannot free");
    };
    vtbl.set = [](umemVirtual *ctx, umem::address, int, std::size_t) {
      umem_set_status(ctx, umemIOError, "cannot set");
    };
    return vtbl;
  }();
  return methods;
}

struct BrokenHandle : Context {
  BrokenHandle()
      : Context(make<Broken>([](Broken *ctx) {
          umemVirtual_ctor_sized(&ctx->super, nullptr, sizeof(struct umemVtbl));
          ctx->super.vptr = &broken_methods();
          return umemOK;
        })) {}
};

TEST(Handle, tells_why_it_cannot_zero_though_the_free_fails_too) {
  BrokenHandle handle;
  EXPECT_EQ(thrown_by<umem::io_error>([&] { handle.allocate_zeroed(8, 64); }),
            "umem_set: cannot set");
  EXPECT_NE(std::strstr(umem_get_message(handle.c_context()), "cannot free"), nullptr)
      << "it was tried, and the context knows";
  EXPECT_EQ(umem_thread_status(), umemOK);
  EXPECT_THROW(handle.deallocate(16, 64), umem::value_error) << "it fails indeed";
}

/* A context from outside of umem on a device, which counts how often it is asked about itself. */
int times_asked = 0;

struct CountingHandle : Context {
  CountingHandle()
      : Context(make<Broken>([](Broken *ctx) {
          static struct umemVtbl methods = {};
          methods.info = [](umemVirtual *, umemInfo *info) {
            times_asked++;
            info->ordinal = 3;
          };
          umemVirtual_ctor_sized(&ctx->super, nullptr, sizeof(struct umemVtbl));
          ctx->super.vptr = &methods;
          ctx->super.capabilities |= umemDeviceAccessible;
          return umemOK;
        })) {}
};

TEST(Handle, asks_once_which_device_it_is_on) {
  CountingHandle handle;
  times_asked = 0;
  umem::Place first(handle), again(handle);
  Context copy = handle, host = umem::Host();
  umem::Place of_copy(copy);
  EXPECT_EQ(times_asked, 1);
  EXPECT_EQ(handle.info().ordinal, 3);
  EXPECT_EQ(times_asked, 2) << "other questions are asked each time";
  EXPECT_FALSE(umem::Place(host).is_device());
  copy = host;
  host = handle;
  EXPECT_FALSE(umem::Place(copy).is_device());
  EXPECT_FALSE(umem::Place(host).is_device()) << "its number is not that of a GPU of CUDA's";
  EXPECT_EQ(times_asked, 2);
}

} // namespace
