/* guarded.cpp - umem::Guarded: arrays whose sides trap accesses at a wrong time. */
#include "places.h"

#include <umem/adaptors.hpp>
#include <umem/pool.hpp>
#include <umem/reductions.hpp>

#include <csignal>

namespace {

using umem::Guarded;
using umem::Host;

/* Also where a sanitizer has a handler of its own. */
void handle_by_default() { std::signal(SIGSEGV, SIG_DFL); }

#define EXPECT_TRAP(...)                                                                           \
  EXPECT_EXIT((handle_by_default(), __VA_ARGS__), testing::KilledBySignal(SIGSEGV), "")

/* A device that is no RAM. */
umem::Context fake_device() { return open_place(*backend_by_name("fake")); }

/* What stands for a kernel. */
void step(umem::View<int, 1> const &u) {
  for (umem::index_t i = 0; i < u.size(); i++) u(i) += 1;
}

int volatile sink;

} // namespace

TEST(GuardedDeathTest, a_kept_pointer_traps_after_the_device_has_written) {
  Array<int, 1> u({100}, Guarded(Host()));
  int *kept = nullptr;
  {
    auto host = u.host(umem::discard);
    for (umem::index_t i = 0; i < 100; i++) host(i) = static_cast<int>(i);
    kept = &host(0);
  }
  step(*u.device(umem::write));
  EXPECT_EQ(u.current(), Side::device);
  EXPECT_TRAP(sink = kept[3]);
  EXPECT_TRAP(kept[3] = 1);
  auto host = u.host(umem::read);
  EXPECT_EQ(host(3), 4);
  EXPECT_EQ(kept[3], 4);    /* the same memory, which is open now */
  EXPECT_TRAP(kept[3] = 1); /* for reading */
}

/* As a kernel's: on the device side. */
TEST(GuardedDeathTest, a_loop_on_the_array_is_one_on_the_device) {
  Array<int, 1> u = Array<int, 1>::zeros({100}, Guarded(Host()));
  int *kept = &u.host(umem::write)(0);
  umem::for_each(u, [](int &x) { x += 3; });
  EXPECT_EQ(u.current(), Side::device);
  EXPECT_TRAP(sink = kept[3]);
  umem::for_each(umem::on_host, u, [](int &x) { x += 1; });
  EXPECT_EQ(u.current(), Side::host);
  umem::transform(u.context(), u.part().slice(0, 0, 50), u.part().slice(0, 50, 100),
                  [](int x) { return x + 1; });
  EXPECT_EQ(u.current(), Side::device);
  EXPECT_EQ(umem::sum(u), 50 * 4 + 50 * 5);
  auto guard = umem::guard_at_home(u, umem::write);
  EXPECT_FALSE(guard.is_host());
  umem::for_each(guard, [](int &x) { x = 7; });
  guard.release();
  EXPECT_FALSE(umem::guard_at(u.context(), u, umem::read).is_host());
  EXPECT_TRUE(umem::guard_at(umem::on_host, u, umem::read).is_host());
  EXPECT_EQ(u.get(99), 7);
}

/* A loop that fails leaves the elements that were there before it, as one on a GPU does. */
TEST(Guarded, a_loop_that_throws_keeps_the_host_side) {
  Array<int, 1> u = Array<int, 1>::zeros({10}, Guarded(Host()));
  u.host(umem::write)(0) = 5;
  EXPECT_THROW(umem::for_each(u, [](int &x) { x == 5 ? void(x = 6) : throw 1; }), int);
  EXPECT_EQ(u.get(0), 5);
}

TEST(GuardedDeathTest, the_device_is_closed_while_no_guard_of_it_lives) {
  Array<int, 1> u = Array<int, 1>::zeros({100}, Guarded(Host()));
  int *kept = nullptr;
  {
    auto device = u.device(umem::write);
    kept = &device(0);
    kept[5] = 1;
  }
  EXPECT_TRAP(sink = kept[5]);
  {
    auto host = u.host(umem::write);
    EXPECT_NE(&host(0), kept);
    EXPECT_EQ(host(5), 1);
    EXPECT_TRAP(sink = kept[5]);
  }
  auto device = u.device(umem::read);
  EXPECT_EQ(kept[5], 1);
}

TEST(GuardedDeathTest, pages_are_open_as_long_as_the_last_guard) {
  Array<int, 1> u = Array<int, 1>::full({10}, 7, Guarded(Host()));
  auto one = u.host(umem::read);
  auto other = u.host(umem::read);
  int *kept = const_cast<int *>(&one(0));
  one.release();
  EXPECT_EQ(kept[1], 7);
  auto writer = u.host(umem::write);
  kept[1] = 8;
  other.release();
  kept[2] = 9;
  auto reader = u.host(umem::read);
  writer.release();
  EXPECT_EQ(kept[1] + kept[2], 17);
  EXPECT_TRAP(kept[2] = 1);
  auto moved = std::move(reader);
  EXPECT_EQ(kept[2], 9);
  moved.release();
  EXPECT_TRAP(sink = kept[2]);
}

TEST(GuardedDeathTest, the_host_side_of_a_device_is_guarded) {
  Array<int, 1> u = Array<int, 1>::full({10}, 7, Guarded(fake_device()));
  int *kept = nullptr;
  {
    auto host = u.host(umem::write);
    kept = &host(0);
    kept[1] = 8;
  }
  u.sync_to_device();
  EXPECT_TRAP(sink = kept[1]);
  EXPECT_EQ(u.get(1), 8);
  u.set(9, 1);
  EXPECT_EQ(u.host(umem::read)(1), 9);
}

TEST(GuardedDeathTest, the_host_side_can_be_guarded_alone) {
  Array<int, 1> u({10}, fake_device(), {{}, Guarded(Host())});
  int *kept = &u.host(umem::discard)(0);
  EXPECT_TRAP(sink = kept[0]);
}

TEST(GuardedDeathTest, an_access_beyond_the_end_traps) {
  Array<double, 1> u({512}, Guarded(Host())); /* a whole page */
  auto host = u.host(umem::write);
  double *first = host->data;
  first[511] = 1;
  EXPECT_TRAP(first[512] = 1);
  EXPECT_TRAP(first[-1] = 1);
}

TEST(Guarded, copies_parts_and_single_elements_work_on_closed_pages) {
  Guarded context{Host()};
  Array<int, 2> u = Array<int, 2>::full({4, 5}, 1, context), v({4, 5}, context);
  umem::copy(u.part(), v.part());
  EXPECT_EQ(v.get(3, 4), 1);
  v.set(2, 3, 4);
  umem::copy(v.part().slice(1, 2, 5, 2), u.part().slice(1, 0, 2));
  EXPECT_EQ(u.get(3, 1), 2);
  Array<int, 2> plain(v, Host());
  EXPECT_EQ(plain.get(3, 4), 2);
  umem::transform(plain, u, [](int a) { return a + 10; });
  EXPECT_EQ(u.host(umem::read)(3, 4), 12);
  u.release_host();
  EXPECT_EQ(u.device(umem::read)(3, 4), 12);
  EXPECT_EQ(u.host(umem::read)(0, 0), 11);
}

TEST(Guarded, a_pool_over_it_is_a_device_without_pages) {
  umem::Pool pool{Guarded(Host())};
  Array<int, 1> u = Array<int, 1>::full({10}, 3, pool);
  int const *device = &u.device(umem::read)(0);
  auto host = u.host(umem::write);
  EXPECT_NE(&host(0), device);
  EXPECT_EQ(host(9), 3);
  EXPECT_EQ(device[9], 3); /* its pages belong to others, too */
}

TEST(Guarded, blocks_have_the_access_that_they_are_given) {
  Guarded context{Host()};
  umem::Buffer buffer(context, 100);
  EXPECT_EQ(context.access(buffer.adr()), umemGuardedWrite);
  context.protect(buffer.adr(), 100, umemGuardedRead);
  EXPECT_EQ(Guarded::of(umem::Stats(context)).access(buffer.adr()), umemGuardedRead);
  EXPECT_THROW(context.protect(buffer.adr(), 99, umemGuardedRead), umem::value_error);
  EXPECT_THROW(context.access(0), umem::value_error);
  EXPECT_THROW(Guarded::of(Host()), umem::type_error);
}

TEST(GuardedDeathTest, a_report_names_the_array) {
  Guarded context{Host()};
  umem_set_label(context.c_context(), "gpu");
  Array<int, 1> u = Array<int, 1>::zeros({100}, context);
  int *kept = &u.host(umem::write)(0);
  EXPECT_EXIT((handle_by_default(), Guarded::report(), sink = kept[4]),
              testing::KilledBySignal(SIGSEGV),
              "SIGSEGV at byte 16 of the block of 400 bytes .* of a Guarded \"host side of gpu\": "
              "it is closed");
}
