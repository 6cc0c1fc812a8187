/* array_guard.cpp - guards of umem::Array: when elements are transferred, and who stands against
 * whom, on every context. */
#include "arrays.hpp"

namespace {

using ReadGuard = umem::HostGuard<double const, 2>;
using WriteGuard = umem::HostGuard<double, 2>;

static_assert(!std::is_copy_constructible_v<WriteGuard> && !std::is_copy_assignable_v<WriteGuard>);
static_assert(std::is_nothrow_move_constructible_v<WriteGuard>);
static_assert(std::is_nothrow_move_assignable_v<WriteGuard>);
static_assert(std::is_convertible_v<WriteGuard const &, View<double, 2>>);
static_assert(std::is_convertible_v<WriteGuard const &, View<double const, 2>>);
static_assert(std::is_convertible_v<ReadGuard const &, View<double const, 2>>);
static_assert(!std::is_convertible_v<ReadGuard const &, View<double, 2>>);
static_assert(std::is_same_v<decltype(std::declval<Doubles &>().host(umem::read)), ReadGuard>);
static_assert(std::is_same_v<decltype(std::declval<Doubles &>().host(umem::discard)), WriteGuard>);
static_assert(std::is_same_v<decltype(std::declval<Doubles &>().device(umem::write)),
                             umem::DeviceGuard<double, 2>>);

struct ArrayGuardTest : EachPlace {
  bool is_shared() const { return shares_memory(place); }
  bool has_device_guards() const { return !place.can(umemOffsets); }
};
FOR_EACH_PLACE(ArrayGuardTest);

/* Writes through the memory of the context, as a kernel would. */
void write_on_device(umem::DeviceGuard<double, 2> const &guard, umem::Context const &context,
                     double value) {
  umem::copy(&value, context, reinterpret_cast<umem::address>(guard->data), sizeof value);
}

TEST_P(ArrayGuardTest, transfers_only_what_is_stale) {
  if (is_shared() || !counts_moves()) GTEST_SKIP();
  auto array = Doubles::full({20, 30}, 1, place);
  std::size_t start = moves();
  auto expect_moves = [&](std::size_t expected) {
    EXPECT_EQ(moves() - start, expected);
    start = moves();
  };
  EXPECT_EQ(array.current(), Side::device);
  EXPECT_EQ(array.host(umem::read)(19, 29), 1);
  expect_moves(1);
  EXPECT_EQ(array.current(), Side::both);
  EXPECT_EQ(array.host(umem::read)(0, 0), 1);
  EXPECT_EQ(array.host(umem::read)(umem::Extents{19, 29}), 1);
  array.host(umem::write)(0, 0) = 2;
  EXPECT_EQ(array.host(umem::read)(0, 0), 2);
  expect_moves(0);
  EXPECT_EQ(array.current(), Side::host);
  array.sync_to_device();
  array.sync_to_device();
  expect_moves(1);
  EXPECT_EQ(array.current(), Side::both);
  array.host(umem::discard)(0, 0) = 3;
  array.start_sync_to_device();
  array.start_sync_to_host();
  expect_moves(1);
  array.release_host();
  expect_moves(0);
  static_cast<void>(array.host(umem::discard)); /* the mirror is allocated, not filled */
  expect_moves(0);
  EXPECT_EQ(array.current(), Side::host);
  array.release_host();
  expect_moves(1);
}

TEST_P(ArrayGuardTest, device_transfers_only_what_is_stale) {
  if (is_shared() || !has_device_guards()) GTEST_SKIP();
  Doubles array({2, 3}, place);
  number(array);
  {
    auto guard = array.device(umem::read);
    EXPECT_EQ(array.current(), Side::both);
    EXPECT_EQ(reinterpret_cast<umem::address>(guard->data), array.adr());
  }
  write_on_device(array.device(umem::write), place, 7);
  EXPECT_EQ(array.current(), Side::device);
  EXPECT_EQ(array.host(umem::read)(0, 0), 7);
  EXPECT_EQ(array.host(umem::read)(0, 1), 2);
  array.host(umem::write)(0, 0) = 8;
  write_on_device(array.device(umem::discard), place, 9); /* the 8 stays where it is */
  EXPECT_EQ(array.get(0, 0), 9);
  EXPECT_EQ(array.get(1, 2), 6);
}

TEST_P(ArrayGuardTest, of_one_memory_is_one_view) {
  if (!is_shared()) GTEST_SKIP();
  Doubles array({2, 3}, place);
  array.host(umem::discard)(1, 2) = 5;
  EXPECT_EQ(array.current(), Side::both);
  EXPECT_EQ(reinterpret_cast<umem::address>(array.host(umem::read)->data), array.adr());
  EXPECT_EQ(reinterpret_cast<umem::address>(array.device(umem::read)->data), array.adr());
  EXPECT_EQ(array.host_context(), place);
}

TEST_P(ArrayGuardTest, no_device_where_addresses_are_no_pointers) {
  if (has_device_guards()) GTEST_SKIP();
  Doubles array({2, 3}, place);
  EXPECT_THROW(static_cast<void>(array.device(umem::read)), umem::not_supported_error);
  EXPECT_THROW(static_cast<void>(array.device(umem::write)), umem::not_supported_error);
  number(array);
  expect_numbered(array);
}

TEST_P(ArrayGuardTest, to_write_stands_against_the_other_side) {
  if (!has_device_guards()) GTEST_SKIP();
  auto array = Doubles::zeros({2, 3}, place);
  {
    auto guard = array.host(umem::write);
    EXPECT_THROWS(static_cast<void>(array.device(umem::read)), umem::locked_error,
                  "a guard to write the other side of the array is alive");
    EXPECT_THROW(static_cast<void>(array.device(umem::write)), umem::locked_error);
    EXPECT_THROW(static_cast<void>(array.device(umem::discard)), umem::locked_error);
    EXPECT_THROW(array.sync_to_device(), umem::locked_error);
    EXPECT_THROW(array.release_host(), umem::locked_error);
    EXPECT_THROW(array.flush(), umem::locked_error);
    static_cast<void>(array.host(umem::read));
  }
  {
    auto guard = array.device(umem::write);
    EXPECT_THROW(static_cast<void>(array.host(umem::read)), umem::locked_error);
    static_cast<void>(array.get(0, 0));
    EXPECT_THROW(static_cast<void>(array.host(umem::read)), umem::locked_error);
    EXPECT_THROW(static_cast<void>(array.host(umem::write)), umem::locked_error);
    EXPECT_THROW(array.sync_to_host(), umem::locked_error);
    static_cast<void>(array.device(umem::read));
  }
  static_cast<void>(array.host(umem::write));
  static_cast<void>(array.device(umem::write));
}

TEST_P(ArrayGuardTest, to_read_stands_against_writes_of_the_other_side) {
  if (!has_device_guards()) GTEST_SKIP();
  auto array = Doubles::zeros({2, 3}, place);
  auto host = array.host(umem::read);
  auto device = array.device(umem::read); /* readers live beside each other */
  EXPECT_THROWS(static_cast<void>(array.host(umem::write)), umem::locked_error,
                "a guard to read the other side of the array is alive");
  EXPECT_THROW(static_cast<void>(array.device(umem::discard)), umem::locked_error);
  device.release();
  array.host(umem::write)(0, 0) = 4;
  EXPECT_EQ(host(0, 0), 4);
  EXPECT_THROW(static_cast<void>(array.device(umem::write)), umem::locked_error);
}

TEST_P(ArrayGuardTest, to_write_is_the_only_one) {
  auto array = Doubles::zeros({2, 3}, place);
  auto guard = array.host(umem::write);
  EXPECT_THROWS(static_cast<void>(array.host(umem::write)), umem::locked_error,
                "a guard to write the array is alive");
  EXPECT_THROW(static_cast<void>(array.host(umem::discard)), umem::locked_error);
  EXPECT_THROWS(array.set(1, 0, 0), umem::locked_error, "a guard of the array is alive");
  guard(1, 1) = 3;
  EXPECT_EQ(array.get(1, 1), 3);
  EXPECT_EQ(Doubles(array).get(1, 1), 3);
  Doubles other({2, 3});
  EXPECT_THROW(array = other, umem::locked_error);
  EXPECT_THROW(other.copy_to(array), umem::locked_error);
  guard.release();
  EXPECT_FALSE(guard->data);
  array.set(1, 0, 0);
}

TEST_P(ArrayGuardTest, moves_and_ends_once) {
  auto array = Doubles::zeros({2, 3}, place), other = Doubles::zeros({2, 3}, place);
  auto guard = array.host(umem::write);
  auto moved = std::move(guard);
  EXPECT_FALSE(guard->data);
  EXPECT_THROW(static_cast<void>(array.host(umem::write)), umem::locked_error);
  moved = other.host(umem::write);
  static_cast<void>(array.host(umem::write));
  EXPECT_THROW(static_cast<void>(other.host(umem::write)), umem::locked_error);
  auto &same = moved;
  moved = std::move(same);
  EXPECT_THROW(static_cast<void>(other.host(umem::write)), umem::locked_error);
  moved.release();
  moved.release();
  static_cast<void>(other.host(umem::write));
}

TEST_P(ArrayGuardTest, outlives_its_array) {
  auto array = Doubles::full({2, 3}, 6, place);
  auto guard = array.host(umem::write);
  Doubles moved(std::move(array));
  EXPECT_THROW(static_cast<void>(moved.host(umem::write)), umem::locked_error);
  Doubles().swap(moved);
  guard(1, 1) = 2;
  EXPECT_EQ(guard.at(1, 1) + guard[5], 8);
  EXPECT_EQ(Doubles::full({2, 3}, 6, place).host(umem::read)(0, 2), 6);
}

TEST_P(ArrayGuardTest, is_a_view) {
  umem::ArrayOptions<2> options{{1, 0}};
  Doubles array({2, 3}, place, options);
  auto guard = array.host(umem::write);
  View<double, 2> view = guard;
  View<double const, 2> constant = guard;
  EXPECT_EQ(view.data, constant.data);
  EXPECT_EQ(guard.view().ghosts, options.ghosts);
  EXPECT_EQ(guard.extent(1), 3);
  EXPECT_EQ(guard.size(), 6);
  EXPECT_THROW(guard.at(-2, 0), umem::index_error);
  guard(-1, 2) = 5;
  EXPECT_EQ((*guard).select(0, -1)(2), 5);
}

/* ---- order ---- */

TEST_P(ArrayGuardTest, waits_for_what_is_queued) {
  Doubles array({50, 40}, place), other({50, 40}, place), host({50, 40});
  number(array);
  for (int round = 0; round < 3; round++) {
    array.start_sync_to_device();
    array.host(umem::write)(0, 0) = 1; /* not before the transfer has read it */
    array.copy_to(other);
    other.copy_to(host);
    expect_numbered(host);
    number(array);
    other.start_sync_to_host();
    expect_numbered(other);
  }
}

/* Calls f(context) with contexts of many kinds of queues and memories, and the place of the
 * test. */
template <class F> void for_each_other(umem::Context const &place, F const &f) {
  f(place);
  for (char const *name : {"host", "mmap-scratch", "file-scratch", "fake-async", "fake-managed",
                           "cuda", "cuda-async", "cuda-host", "cuda-managed"}) {
    SCOPED_TRACE(name);
    umem::Context other = open_place(*backend_by_name(name));
    if (other) f(other);
  }
}

/* Calls f(to, from) with what copies all elements of an array. */
template <class F> void for_each_way_to_copy(F const &f) {
  f([](Doubles &to, Doubles const &from) { copy(from.part(), to.part()); });
  f([](Doubles &to, Doubles const &from) {
    copy(from.part().transpose(), to.part().transpose().interior());
  });
  f([](Doubles &to, Doubles const &from) { from.copy_to(to); });
  f([](Doubles &to, Doubles const &from) { to = from; });
  f([](Doubles &to, Doubles const &from) { to = Doubles(from, to.context()); });
}

void fill_view(View<double, 2> const &view, double value) {
  for (umem::index_t i = 0; i < view.size(); i++) view[i] = value;
}

/* Copies from, which is of ones, and has it written anew: while a guard lives, or by a new one. */
void expect_ones_copied(Doubles &from, umem::Context const &to) {
  for (bool guarded : {true, false})
    for_each_way_to_copy([&](auto const &copy_all) {
      Doubles copied(from.extents(), to);
      auto writer = from.host(umem::discard);
      fill_view(*writer, 1);
      if (!guarded) writer.release();
      copy_all(copied, from);
      if (!guarded) writer = from.host(umem::write);
      fill_view(*writer, 2);
      EXPECT_EQ(copied.get(0, 0), 1);
      EXPECT_EQ(copied.get(49, 39), 1);
    });
}

TEST_P(ArrayGuardTest, is_copied_before_it_is_written_again) {
  for_each_other(place, [&](umem::Context const &other) {
    Doubles here({50, 40}, place), there({50, 40}, other);
    expect_ones_copied(here, other);
    expect_ones_copied(there, place);
    if (!other.can(umemCpuReadable | umemCpuWritable)) return;
    umem::ArrayOptions<2> options{{}, other};
    Doubles mirrored({50, 40}, place, options);
    expect_ones_copied(mirrored, place);
    expect_ones_copied(mirrored, other);
    expect_ones_copied(mirrored, umem::Host());
  });
}

TEST_P(ArrayGuardTest, transfers_on_another_queue) {
  umem::Context queue = open_place(*GetParam());
  Doubles array({50, 40}, place), host({50, 40});
  if (!queue.is_same_device(place)) {
    EXPECT_THROW(array.start_sync_to_device(queue), umem::value_error);
    EXPECT_THROW(array.start_sync_to_host(queue), umem::value_error);
    return;
  }
  for (int round = 0; round < 3; round++) {
    number(array, round);
    array.start_sync_to_device(queue);
    EXPECT_EQ(array.current(), Side::both);
    array.host(umem::write)(0, 0) = 1; /* not before the transfer has read it */
    array.start_sync_to_device(queue);
    array.copy_to(host); /* after the transfer */
    EXPECT_EQ(host.get(0, 0), 1);
    EXPECT_EQ(host.get(49, 39), array.get(49, 39));
    if (has_device_guards() && !is_shared()) {
      write_on_device(array.device(umem::write), place, 7);
      array.start_sync_to_host(queue); /* after what the context has queued */
      EXPECT_EQ(array.host(umem::read)(0, 0), 7);
      EXPECT_EQ(array.get(0, 1), round + 1);
    }
  }
}

TEST_P(ArrayGuardTest, transfers_are_queued_on_its_own_storage_only) {
  umem::Context other = open_place(*backend_by_name("fake-offset"));
  if (other.is_same_device(place)) GTEST_SKIP();
  Doubles array({2, 3}, place);
  std::string const words = "a transfer of an array on " + std::string(place.name()) +
                            " cannot be queued on another storage, FakeOffset";
  EXPECT_THROWS(array.start_sync_to_host(other), umem::value_error, words.c_str());
  EXPECT_THROW(array.start_sync_to_device(umem::Context()), umem::error);
}

/* ---- queued transfers that fail when their turn comes ---- */

struct FailingTransfer : testing::Test {
  void fail_next() {
    fake_async_fail_next(reinterpret_cast<FakeAsync *>(device.c_context()), umemRuntimeError);
  }
  void TearDown() override { umem_clear_status(device.c_context()); }

  umem::Context device = open_place(*backend_by_name("fake-async"));
};

TEST_F(FailingTransfer, to_the_host_leaves_the_device_current) {
  auto array = Doubles::full({20, 30}, 4, device);
  fail_next();
  EXPECT_THROW(static_cast<void>(array.host(umem::read)), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::device);
  EXPECT_EQ(array.host(umem::read)(19, 29), 4);

  array.release_host();
  fail_next();
  EXPECT_THROW(array.sync_to_host(), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::device);
  fail_next();
  array.start_sync_to_host();
  EXPECT_EQ(array.current(), Side::both);
  EXPECT_THROW(array.get(0, 0), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::device);
  EXPECT_EQ(array.get(0, 0), 4);
}

TEST_F(FailingTransfer, to_the_device_leaves_the_host_current) {
  Doubles array({20, 30}, device);
  number(array);
  fail_next();
  EXPECT_THROW(array.sync_to_device(), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::host);
  fail_next();
  EXPECT_THROW(array.release_host(), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::host);
  fail_next();
  array.start_sync_to_device();
  static_cast<void>(array.device(umem::read));
  EXPECT_THROW(static_cast<void>(array.host(umem::write)), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::host);
  array.release_host();
  expect_numbered(array);
}

TEST_F(FailingTransfer, does_not_undo_what_was_written_after_it) {
  Doubles array({20, 30}, device);
  auto sevens = Doubles::full({20, 30}, 7, device);
  number(array, 50);
  fail_next();
  array.start_sync_to_device();
  copy(sevens.part(), array.part());
  EXPECT_THROW(static_cast<void>(array.host(umem::read)), umem::runtime_error);
  EXPECT_EQ(array.current(), Side::device);
  EXPECT_EQ(array.host(umem::read)(19, 29), 7);
}

TEST_F(FailingTransfer, of_a_copy_of_what_a_guard_writes_is_told_at_once) {
  Doubles array({20, 30}), other({20, 30}, device);
  umem::ArrayOptions<2> options{{}, open_place(*backend_by_name("fake-managed"))};
  Doubles mirrored({20, 30}, device, options);
  auto writer = mirrored.host(umem::discard);
  fail_next();
  EXPECT_THROW(copy(mirrored.part(), other.part()), umem::runtime_error);
  copy(mirrored.part(), other.part());
}

TEST_F(FailingTransfer, keeps_an_element_from_being_half_set) {
  auto array = Doubles::full({2, 3}, 4, device);
  fail_next();
  array.start_sync_to_host();
  EXPECT_THROW(array.set(5, 0, 0), umem::runtime_error);
  EXPECT_EQ(array.get(0, 0), 4);
  EXPECT_EQ(array.host(umem::read)(0, 0), 4);
}

TEST_P(ArrayGuardTest, mirrors_in_any_memory_of_the_cpu) {
  for (char const *name : {"cuda-host", "cuda-managed", "fake-managed", "mmap-scratch"}) {
    umem::ArrayOptions<2> options{{}, open_place(*backend_by_name(name))};
    if (!options.host) continue;
    Doubles array({50, 40}, place, options);
    EXPECT_EQ(array.host_context(), is_shared() ? place : options.host);
    for (umem::index_t first : {1, 5, 9}) {
      number(array, first);
      array.start_sync_to_device();
      array.release_host();
      array.start_sync_to_host();
      expect_numbered(array, first);
    }
    number(array, 3);
    array.start_sync_to_device(); /* still queued when the array ends */
  }
}

} // namespace
