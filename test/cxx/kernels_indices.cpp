/* kernels_indices.cpp - loops whose indices are of every signed type, with ranges that reach the
 * ends of the type and the lengths of what loops work in, against plain loops. */
#include "kernels.hpp"

#include <umem/functional.hpp>
#include <umem/sweep.hpp>

namespace {

using umem::index_t; /* here, since POSIX has a function of that name */
using umem::Range;

template <class Index> class Indices : public testing::Test {
protected:
  /* The ends of the type; of one of 64 bits, some numbers beyond 32 that addresses can be made
   * of. */
  static constexpr index_t lowest =
      sizeof(Index) < 8 ? index_t(std::numeric_limits<Index>::lowest()) : -(index_t(1) << 33);
  static constexpr index_t most =
      sizeof(Index) < 8 ? index_t(std::numeric_limits<Index>::max()) : index_t(1) << 33;

  /* Lengths at which loops may go wrong: those of blocks, of strips and of the type, and beside
   * them. */
  static std::vector<index_t> lengths() {
    std::vector<index_t> all;
    for (index_t length : {0, 1, 16, 32, 64, 127, 128, 255, 256, 512, 1024, 32767, 65535})
      for (index_t n : {length - 1, length, length + 1})
        if (n >= 0 && n <= most - lowest) all.push_back(n);
    return all;
  }

  /* Ranges of such a length: at both ends of the type, and short ones around 0 and from 0 on. */
  static std::vector<Range<1>> ranges(index_t length) {
    std::vector<Range<1>> all;
    std::vector<index_t> begins = {lowest, most - length};
    if (length < 2000) begins.insert(begins.end(), {-(length / 2), 0});
    for (index_t begin : begins)
      if (begin >= lowest && begin <= most - length)
        all.push_back({Extents<1>(begin), Extents<1>(begin + length)});
    return all;
  }
};

using IndexTypes = testing::Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(Indices, IndexTypes);

/* A number for each index, different in all dimensions, and the same from every type. */
struct Value {
  template <class... I> UMEM_FUNCTION std::int64_t operator()(I... i) const {
    std::uint64_t value = 0;
    ((value = value * 1009 + static_cast<std::uint64_t>(i)), ...);
    return static_cast<std::int64_t>(value * value + value);
  }
};

template <int N, int... K>
std::int64_t value_at(Extents<N> const &at, std::integer_sequence<int, K...>) {
  return Value()(at.at[K]...);
}
template <int N> std::int64_t value_at(Extents<N> const &at) {
  return value_at(at, std::make_integer_sequence<int, N>());
}

/* What a sweep and for_each_indexed do with an element. */
struct Store {
  template <class... I> UMEM_FUNCTION std::int64_t operator()(std::int64_t &value, I... i) const {
    return value = Value()(i...);
  }
};

/* Sum, smallest and largest value: a lost part or junk changes one of them. */
struct Expected {
  std::uint64_t sum = 7;
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = std::numeric_limits<std::int64_t>::min();
};

template <int N> Expected plainly_reduced(Range<N> const &range) {
  Expected expected;
  for_each_indices(range.begin, range.end, [&](Extents<N> const &at) {
    std::int64_t value = value_at(at);
    expected.sum += static_cast<std::uint64_t>(value);
    expected.low = std::min(expected.low, value);
    expected.high = std::max(expected.high, value);
  });
  return expected;
}

/* A view whose elements have the indices of range, without gaps or with a stride in the last
 * dimension. */
template <int N> struct Around {
  std::vector<std::int64_t> memory;
  umem::View<std::int64_t, N> view;

  Around(Range<N> const &range, index_t stride) {
    Extents<N> lengths, strides;
    for (int k = 0; k < N; k++) lengths[k] = range.end[k] - range.begin[k];
    strides = umem::c_strides(lengths);
    index_t first = 0, count = lengths.product();
    for (int k = 0; k < N; k++) {
      strides[k] *= stride;
      first += range.begin[k] * strides[k];
    }
    memory.assign(static_cast<std::size_t>(count * stride + 1), -1);
    /* Ghost cells are what indices below 0 and beyond the extents are. */
    view.data = memory.data() - first;
    view.strides = strides;
    for (int k = 0; k < N; k++) {
      view.ghosts.below[k] = view.ghosts.above[k] = range.begin[k] < 0 ? -range.begin[k] : 0;
      view.extents[k] = range.end[k];
      if (view.extents[k] < 0) view.extents[k] = 0;
    }
  }

  void expect_stored(Range<N> const &range, index_t stride) const {
    std::vector<std::int64_t> expected(memory.size(), -1);
    std::size_t at = 0;
    for_each_indices(range.begin, range.end, [&](Extents<N> const &i) {
      expected[at] = value_at(i);
      at += static_cast<std::size_t>(stride);
    });
    EXPECT_TRUE(memory == expected);
  }
};

template <class Index, int N, class P> void check_loops(P place, Range<N> const &range) {
  SCOPED_TRACE(std::string("from ") + umem::detail::in_words(range.begin).text + " to " +
               umem::detail::in_words(range.end).text);
  Expected expected = plainly_reduced(range);
  EXPECT_EQ(
      umem::for_each_index_reduce<Index>(place, range, std::uint64_t(7), umem::plus(), Value()),
      expected.sum);
  EXPECT_EQ(umem::for_each_index_reduce<Index>(
                place, range, std::numeric_limits<std::int64_t>::max(), umem::minimum(), Value()),
            expected.low);
  for (index_t stride : {1, 2}) {
    SCOPED_TRACE("stride " + std::to_string(stride));
    Around<N> swept(range, stride), visited(range, stride);
    EXPECT_EQ(umem::sweep<Index>(place, swept.view, range, std::numeric_limits<std::int64_t>::min(),
                                 umem::maximum(), Store()),
              expected.high);
    swept.expect_stored(range, stride);
    umem::for_each_indexed<Index>(place, visited.view, range, Store());
    visited.expect_stored(range, stride);
    Around<N> stored(range, stride);
    auto view = stored.view;
    umem::for_each_index<Index>(place, range, [view](auto... i) { view(i...) = Value()(i...); });
    stored.expect_stored(range, stride);
  }
}

TYPED_TEST(Indices, reach_the_ends_of_their_type) {
  with_places([&](auto place) {
    for (index_t length : this->lengths())
      for (Range<1> const &range : this->ranges(length)) check_loops<TypeParam>(place, range);
  });
}

TYPED_TEST(Indices, of_two_and_three_dimensions_reach_the_ends_of_their_type) {
  with_places([&](auto place) {
    for (index_t length : {1, 127, 128, 255, 257})
      for (index_t rows : {1, 2, 130}) {
        if (length > this->most - this->lowest || rows > this->most - this->lowest) continue;
        for (Range<1> const &r : this->ranges(length)) {
          index_t begin = this->most - rows;
          check_loops<TypeParam>(place, Range<2>({begin, r.begin[0]}, {begin + rows, r.end[0]}));
        }
      }
    Range<1> r = this->ranges(127).front();
    check_loops<TypeParam>(place, Range<3>({-2, 3, r.begin[0]}, {1, 5, r.end[0]}));
  });
}

TYPED_TEST(Indices, of_random_ranges_are_all_there) {
  std::mt19937_64 random(1);
  with_places([&](auto place) {
    index_t low = std::max<index_t>(this->lowest, -40000),
            high = std::min<index_t>(this->most, 40000);
    std::uniform_int_distribution<index_t> any(low, high);
    for (int n = 0; n < 10; n++) {
      index_t a = any(random), b = any(random);
      check_loops<TypeParam>(place,
                             Range<1>(Extents<1>(std::min(a, b)), Extents<1>(std::max(a, b))));
    }
  });
}

TYPED_TEST(Indices, beyond_their_type_are_refused) {
  if constexpr (sizeof(TypeParam) < sizeof(index_t)) {
    index_t calls = 0;
    auto count = [&](auto... i) { return calls += sizeof...(i); };
    for (Range<1> const &range : {Range<1>(Extents<1>(this->lowest - 1), Extents<1>(0)),
                                  Range<1>(Extents<1>(this->most), Extents<1>(this->most + 1)),
                                  Range<1>(Extents<1>(0), Extents<1>(this->most + 1))}) {
      EXPECT_THROW(umem::for_each_index<TypeParam>(umem::on_host, range, count), umem::value_error);
      EXPECT_THROW(umem::for_each_index_reduce<TypeParam>(umem::on_host, range, index_t(0),
                                                          umem::plus(), count),
                   umem::value_error);
    }
    EXPECT_EQ(calls, 0);
  }
}

} // namespace
