/* array_lock.cpp - locks of umem::Array, on every context. */
#include "arrays.hpp"

namespace {

using Lock = umem::ArrayLock<double, 2>;

static_assert(std::is_nothrow_move_constructible_v<Lock> &&
              std::is_nothrow_move_assignable_v<Lock>);
static_assert(!std::is_copy_constructible_v<Lock> && !std::is_copy_assignable_v<Lock>);

ON_EACH_PLACE(ArrayLockTest);

char const *const locked = "the array is locked";

TEST_P(ArrayLockTest, keeps_all_others_out) {
  auto array = Doubles::zeros({2, 3}, place), other = Doubles::zeros({2, 3}, place);
  EXPECT_EQ(array.get(0, 0), array.host(umem::read)(0, 0));
  auto lock = array.lock();
  EXPECT_THROWS(static_cast<void>(array.host(umem::read)), umem::locked_error, locked);
  EXPECT_THROWS(static_cast<void>(array.host(umem::write)), umem::locked_error, locked);
  EXPECT_THROWS(static_cast<void>(array.device(umem::read)), umem::locked_error, locked);
  EXPECT_THROWS(array.get(0, 0), umem::locked_error, locked);
  EXPECT_THROWS(array.set(1, 0, 0), umem::locked_error, locked);
  EXPECT_THROWS(array.sync_to_host(), umem::locked_error, locked);
  EXPECT_THROWS(array.sync_to_device(), umem::locked_error, locked);
  EXPECT_THROWS(array.start_sync_to_host(), umem::locked_error, locked);
  EXPECT_THROWS(array.release_host(), umem::locked_error, locked);
  EXPECT_THROWS(array.flush(), umem::locked_error, locked);
  EXPECT_THROWS(array.copy_to(other), umem::locked_error, locked);
  EXPECT_THROWS(other.copy_to(array), umem::locked_error, locked);
  EXPECT_THROWS(copy(array.part(), other.part()), umem::locked_error, locked);
  EXPECT_THROWS(Doubles{array}, umem::locked_error, locked);
  EXPECT_THROWS(array = other, umem::locked_error, locked);
  EXPECT_THROWS(static_cast<void>(array.lock()), umem::locked_error, locked);
  EXPECT_EQ(array.extent(1), 3);
}

TEST_P(ArrayLockTest, lets_its_owner_in) {
  auto array = Doubles::zeros({2, 3}, place), other = Doubles::zeros({2, 3}, place);
  {
    auto lock = array.lock();
    lock.host(umem::write)(0, 1) = 2;
    lock.set(3, 0, 2);
    EXPECT_EQ(lock.get(0, 1) + lock.get(0, 2), 5);
    EXPECT_EQ(lock.extents(), array.extents());
    lock.sync_to_device();
    lock.release_host();
    copy(lock.part().select(0, 0), other.part().select(0, 1));
    lock.flush();
  }
  EXPECT_EQ(other.get(1, 1) + other.get(1, 2), 5);
  EXPECT_EQ(array.get(0, 1), 2);
}

TEST_P(ArrayLockTest, waits_for_no_guard) {
  auto array = Doubles::zeros({2, 3}, place);
  {
    auto guard = array.host(umem::read);
    EXPECT_THROWS(static_cast<void>(array.lock()), umem::locked_error,
                  "a guard of the array is alive: it cannot be locked");
  }
  auto lock = array.lock();
  auto guard = lock.host(umem::write);
  EXPECT_THROW(static_cast<void>(lock.host(umem::write)),
               umem::locked_error); /* guards of one lock */
  lock.release();
  EXPECT_THROW(static_cast<void>(array.host(umem::write)),
               umem::locked_error); /* the guard outlives it */
  guard.release();
  static_cast<void>(array.host(umem::write));
}

TEST_P(ArrayLockTest, moves_and_ends_once) {
  auto array = Doubles::zeros({2, 3}, place), other = Doubles::zeros({2, 3}, place);
  auto lock = array.lock();
  auto moved = std::move(lock);
  EXPECT_THROW(lock.get(0, 0), umem::moved_from_error);
  EXPECT_THROW(array.get(0, 0), umem::locked_error);
  moved = other.lock();
  EXPECT_EQ(array.get(0, 0), 0);
  EXPECT_THROW(other.get(0, 0), umem::locked_error);
  moved.release();
  moved.release();
  EXPECT_EQ(other.get(0, 0), 0);
  EXPECT_THROW(moved.get(0, 0), umem::moved_from_error);
}

TEST_P(ArrayLockTest, goes_with_the_elements) {
  auto array = Doubles::full({2, 3}, 4, place);
  auto lock = array.lock();
  Doubles moved(std::move(array));
  EXPECT_THROW(moved.get(0, 0), umem::locked_error);
  Doubles().swap(moved);
  EXPECT_EQ(lock.get(1, 2), 4);
}

TEST_P(ArrayLockTest, leaves_no_way_in_behind) {
  auto array = Doubles::zeros({2, 3}, place);
  auto first = array.lock();
  auto part = first.part();
  first.release();
  auto second = array.lock();
  Doubles other({2, 3});
  EXPECT_THROWS(copy(part, other.part()), umem::locked_error, locked);
  second.release();
  copy(part, other.part());
}

} // namespace
