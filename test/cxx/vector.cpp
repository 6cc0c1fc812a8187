/* vector.cpp - umem::Vector on every context. */
#include "places.h"

#include <numeric>

namespace {

using umem::Vector;

static_assert(std::is_nothrow_move_constructible_v<Vector<double>>);
static_assert(std::is_nothrow_move_assignable_v<Vector<double>>);
static_assert(!std::is_copy_constructible_v<Vector<double>>);

/* A user's element, larger than what contexts align to by themselves. */
struct alignas(512) Wide {
  int tag;
  char rest[508];
};

std::vector<double> counting(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

ON_EACH_PLACE(VectorTest);

TEST_P(VectorTest, has_what_was_asked_for) {
  Vector<double> vector(place, 10);
  EXPECT_TRUE(vector);
  EXPECT_EQ(vector.size(), 10u);
  EXPECT_EQ(vector.buffer().size(), 80u);
  EXPECT_EQ(vector.adr() % alignof(double), 0u);
  EXPECT_EQ(vector.context(), place);
  EXPECT_EQ(Vector<double>(place, 0).size(), 0u);
}

TEST_P(VectorTest, sets_and_gets_elements) {
  Vector<std::complex<float>> vector(place, 3);
  for (std::size_t i = 0; i < 3; i++) vector.set(i, {static_cast<float>(i), 1});
  for (std::size_t i = 0; i < 3; i++)
    EXPECT_EQ(vector.get(i), std::complex<float>(static_cast<float>(i), 1));
}

TEST_P(VectorTest, refuses_elements_beyond_its_end) {
  auto vector = Vector<int>::zeroed(place, 3);
  EXPECT_THROW(vector.get(3), umem::index_error);
  EXPECT_THROW(vector.set(3, 1), std::out_of_range);
  EXPECT_EQ(thrown_by<umem::index_error>([&] { vector.get(static_cast<std::size_t>(-1)); }),
            "index " + std::to_string(SIZE_MAX) + " of a vector of 3 elements");
  EXPECT_EQ(vector.to_vector(), std::vector<int>(3));
}

TEST_P(VectorTest, copies_ranges) {
  std::vector<double> const values = counting(10);
  auto vector = Vector<double>::from(place, values);
  EXPECT_EQ(vector.to_vector(), values);
  double const few[] = {-1, -2};
  vector.copy_from(few);
  std::array<double, 3> found{};
  vector.copy_to(found);
  EXPECT_EQ(found, (std::array<double, 3>{-1, -2, 3}));
  double rest[2];
  vector.copy_to(rest);
  EXPECT_EQ(rest[1], -2);
  vector.copy_from(std::vector<double>());
}

TEST_P(VectorTest, copies_parts) {
  std::vector<double> values = counting(10);
  auto vector = Vector<double>::from(place, values);
  vector.copy_from(values.data(), 2, 8);
  EXPECT_EQ(vector.get(9), 2);
  vector.copy_to(&values[0], 3, 7);
  EXPECT_EQ(values[0], 8);
  EXPECT_EQ(values[1], 1);
}

TEST_P(VectorTest, refuses_ranges_beyond_its_end) {
  Vector<double> vector(place, 10);
  std::vector<double> values(11);
  EXPECT_THROW(vector.copy_from(values), umem::index_error);
  EXPECT_THROW(vector.copy_to(values), umem::index_error);
  EXPECT_THROW(vector.copy_to(values.data(), 2, SIZE_MAX), umem::index_error);
  EXPECT_THROW(vector.copy_from(values.data(), SIZE_MAX / 8 + 1), umem::index_error);
}

TEST_P(VectorTest, copies_other_vectors) {
  auto host = Vector<double>::from(umem::Host(), counting(10));
  Vector<double> vector(place, 10), shorter(place, 9);
  vector.copy_from(host);
  EXPECT_EQ(vector.to_vector(), counting(10));
  host = Vector<double>::zeroed(umem::Host(), 10);
  vector.copy_to(host);
  place.synchronize();
  EXPECT_EQ(host.to_vector(), counting(10));
  EXPECT_THROW(vector.copy_to(shorter), umem::value_error);
}

TEST_P(VectorTest, keeps_its_elements_when_resized) {
  auto vector = Vector<double>::from(place, counting(10));
  vector.resize(3);
  EXPECT_EQ(vector.to_vector(), counting(3));
  vector.resize(1000);
  EXPECT_EQ(vector.size(), 1000u);
  EXPECT_EQ(vector.get(2), 3);
  EXPECT_THROW(vector.resize(SIZE_MAX / 2), umem::memory_error);
}

TEST_P(VectorTest, throws_where_there_is_no_room) {
  EXPECT_THROW(Vector<double>(place, SIZE_MAX / 64), umem::memory_error);
  forget_failure();
  EXPECT_THROW(Vector<double>(place, SIZE_MAX / 4), umem::memory_error);
  EXPECT_THROW(Vector<double>::zeroed(place, SIZE_MAX / 8 + 2), std::bad_alloc);
}

TEST_P(VectorTest, aligns_elements_that_need_it) {
  Vector<char> odd(place, 1);
  Vector<Wide> vector(place, 3);
  EXPECT_EQ(vector.adr() % alignof(Wide), 0u);
  EXPECT_EQ(Vector<Wide>::zeroed(place, 2).adr() % alignof(Wide), 0u);
  vector.set(2, Wide{7, ""});
  vector.resize(5);
  EXPECT_EQ(vector.adr() % alignof(Wide), 0u);
  EXPECT_EQ(vector.get(2).tag, 7);
}

TEST_P(VectorTest, moves_leave_an_empty_one) {
  auto one = Vector<double>::from(place, counting(10));
  Vector<double> two = std::move(one), three;
  EXPECT_FALSE(one);
  EXPECT_EQ(one.size(), 0u);
  EXPECT_THROW(one.get(0), umem::index_error);
  EXPECT_EQ(one.data(), nullptr);
  EXPECT_EQ(one.begin(), one.end());
  EXPECT_TRUE(one.view().is_empty());
  EXPECT_TRUE(one.to_vector().empty());
  swap(two, three);
  EXPECT_EQ(three.to_vector(), counting(10));
}

TEST_P(VectorTest, iterates_on_the_cpu_alone) {
  auto vector = Vector<double>::from(place, counting(10));
  Vector<double> const &same = vector;
  if (place.is_cpu_accessible()) {
    for (double &value : vector) value *= 2;
    EXPECT_EQ(std::accumulate(same.begin(), same.end(), 0.0), 110);
    EXPECT_EQ(same.data()[9], 20);
  } else {
    EXPECT_THROW(vector.begin(), umem::not_supported_error);
    EXPECT_THROW(same.end(), umem::not_supported_error);
  }
}

TEST_P(VectorTest, has_a_view_where_addresses_are_pointers) {
  auto vector = Vector<double>::from(place, counting(10));
  Vector<double> const &same = vector;
  if (place.can(umemOffsets)) {
    EXPECT_THROW(vector.view(), umem::not_supported_error);
    return;
  }
  umem::View<double, 1> view = vector.view();
  umem::View<double const, 1> read = same.view();
  EXPECT_EQ(view.size(), 10);
  EXPECT_EQ(reinterpret_cast<umem::address>(view.data), vector.adr());
  EXPECT_EQ(read.data, view.data);
  if (!place.is_cpu_accessible()) return;
  place.synchronize();
  EXPECT_EQ(view(9), 10);
}

/* What copy_from takes: contiguous ranges of the same type. */
template <class Range, class = void> constexpr bool takes = false;
template <class Range>
constexpr bool takes<Range, std::void_t<decltype(std::declval<Vector<double> &>().copy_from(
                                std::declval<Range>()))>> = true;
static_assert(takes<std::vector<double> const &> && takes<std::array<double const, 2>>);
static_assert(takes<double (&)[3]> && takes<Vector<double> const &>);
static_assert(!takes<std::vector<float>> && !takes<double> && !takes<std::vector<bool>>);

} // namespace
