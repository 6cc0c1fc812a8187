/* place_guard.cpp - access to arrays on the side where loops run, on every context. */
#include "arrays.hpp"

#include <umem/reduce.hpp>

namespace {

using umem::PlaceGuard;

static_assert(!std::is_copy_constructible_v<PlaceGuard<double, 2>>);
static_assert(std::is_nothrow_move_constructible_v<PlaceGuard<double, 2>>);
static_assert(std::is_convertible_v<PlaceGuard<double, 2> const &, umem::View<double, 2>>);

struct PlaceGuardTest : EachPlace {
  bool is_gpu() const { return umem::Place(place).is_device(); }
};
FOR_EACH_PLACE(PlaceGuardTest);

TEST_P(PlaceGuardTest, is_that_of_the_side_where_loops_run) {
  Doubles array({3, 4}, place);
  number(array);
  {
    auto guard = umem::guard_at_home(array, umem::read);
    EXPECT_EQ(guard.view().extents, array.extents());
    if (is_gpu())
      EXPECT_EQ(reinterpret_cast<umem::address>(guard->data), array.adr());
    else
      EXPECT_EQ((*guard)(2, 3), array.get(2, 3));
    EXPECT_NE(array.current(), Side::device);
  }
  {
    auto guard = umem::guard_at(umem::on_host, array, umem::write);
    umem::for_each(umem::on_host, guard, [](double &x) { x = 2; });
    EXPECT_EQ(umem::sum(umem::on_host, guard), 24);
    EXPECT_THROW(array.set(1, 0, 0), umem::locked_error);
    auto moved = std::move(guard);
    EXPECT_THROW(array.set(1, 0, 0), umem::locked_error);
    moved.release();
    EXPECT_FALSE(moved->data);
    array.set(3, 0, 0);
  }
  umem::guard_at(umem::Place(), array, umem::discard)->data[1] = 5;
  EXPECT_EQ(array.get(0, 1), 5);
}

TEST_P(PlaceGuardTest, refuses_kernels_what_they_cannot_use) {
  auto array = Doubles::zeros({3, 4}, place);
  if (place.can(umemDeviceAccessible)) {
    auto guard = umem::guard_at(umem::on_device(0), array, umem::write);
    EXPECT_EQ(reinterpret_cast<umem::address>(guard->data), array.adr());
  } else {
    EXPECT_THROW(static_cast<void>(umem::guard_at(umem::on_device(0), array, umem::read)),
                 umem::value_error);
  }
  array.set(1, 0, 0); /* nothing is held */
}

TEST(PlaceGuard, of_a_read_only_array_reads) {
  double values[] = {1, 2, 3};
  auto array = Array<double const, 1>::wrap_unowned(values, 3);
  auto guard = umem::guard_at_home(array, umem::read);
  static_assert(std::is_same_v<decltype(guard), PlaceGuard<double const, 1>>);
  EXPECT_EQ((*guard)(2), 3);
}

} // namespace
