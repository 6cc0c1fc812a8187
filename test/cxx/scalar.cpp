/* scalar.cpp - umem::Scalar on every context. */
#include "places.h"

namespace {

using umem::Scalar;

static_assert(std::is_nothrow_move_constructible_v<Scalar<double>>);
static_assert(!std::is_copy_constructible_v<Scalar<double>>);

ON_EACH_PLACE(ScalarTest);

TEST_P(ScalarTest, holds_a_value) {
  Scalar<double> scalar(place, 0.5);
  EXPECT_EQ(scalar.value(), 0.5);
  scalar.set_value(-1);
  EXPECT_EQ(scalar.value(), -1);
  scalar.set_value_to_zero();
  EXPECT_EQ(scalar.value(), 0);
  EXPECT_EQ(scalar.context(), place);
  EXPECT_EQ(Scalar<std::complex<double>>(place, {1, 2}).value(), std::complex<double>(1, 2));
  EXPECT_EQ(Scalar<std::int8_t>(place, -3).value(), -3);
}

TEST_P(ScalarTest, lies_at_its_address) {
  Scalar<float> scalar(place, 1);
  float value = 3;
  umem::copy(&value, place, scalar.adr(), sizeof value);
  EXPECT_EQ(scalar.value(), 3);
}

TEST_P(ScalarTest, is_aligned) {
  struct alignas(1024) Wide {
    int tag;
  };
  Scalar<char> odd(place, 'a');
  Scalar<Wide> scalar(place, Wide{7});
  EXPECT_EQ(scalar.adr() % 1024, 0u);
  EXPECT_EQ(scalar.value().tag, 7);
}

TEST_P(ScalarTest, moves_leave_an_empty_one) {
  Scalar<int> one(place, 5);
  Scalar<int> two = std::move(one);
  EXPECT_EQ(two.value(), 5);
  EXPECT_THROW(one.value(), umem::index_error);
  EXPECT_THROW(one.set_value(1), umem::index_error);
  one = std::move(two);
  EXPECT_EQ(one.value(), 5);
}

TEST_P(ScalarTest, has_a_view_where_addresses_are_pointers) {
  Scalar<int> scalar(place, 5);
  Scalar<int> const &same = scalar;
  if (place.can(umemOffsets)) {
    EXPECT_THROW(scalar.view(), umem::not_supported_error);
    return;
  }
  EXPECT_EQ(reinterpret_cast<umem::address>(same.view().data), scalar.adr());
  if (!place.is_cpu_accessible()) return;
  scalar.view()() = 6;
  EXPECT_EQ(scalar.value(), 6);
}

TEST(Scalar, of_an_empty_handle_is_an_error) {
  EXPECT_THROW(Scalar<int>(umem::Context(), 1), umem::value_error);
}

} // namespace
