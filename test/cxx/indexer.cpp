/* indexer.cpp - numbers of elements and their indices. */
#include "typed.hpp"

using umem::Indexer;

template <class Int> class IndexerOf : public testing::Test {};
using Integers = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(IndexerOf, Integers);

TYPED_TEST(IndexerOf, numbers_the_elements_in_c_order) {
  for_each_rank([](auto rank) {
    constexpr int N = rank.value;
    auto const extents = first_of<N>(2, 3, 4, 1, 5);
    Indexer<N, TypeParam> indexer(extents);
    EXPECT_EQ(indexer.size(), extents.product());
    for (int k = 0; k < N; k++) EXPECT_EQ(indexer.extent(k), extents[k]);
    TypeParam n = 0;
    for_each_indices({}, extents, [&](Extents<N> const &at) {
      EXPECT_EQ(indexer.offset(at), n);
      EXPECT_EQ(call_with([&](auto... i) { return indexer.offset(i...); }, at), n);
      EXPECT_EQ(indexer.indices(n), at);
      n++;
    });
    EXPECT_EQ(n, indexer.size());
  });
}

TYPED_TEST(IndexerOf, reaches_its_largest_number) {
  TypeParam const most = std::numeric_limits<TypeParam>::max();
  Indexer<1, TypeParam> line(Extents<1>{most});
  EXPECT_EQ(line.size(), most);
  EXPECT_EQ(line.indices(most - 1), Extents(most - 1));

  auto const half = static_cast<TypeParam>(sizeof(TypeParam) == 4 ? 46340 : 3037000499);
  Indexer<2, TypeParam> square(Extents<2>{half, half});
  EXPECT_EQ(square.offset(half - 1, half - 1), half * half - 1);
  EXPECT_EQ(square.indices(half * half - 1), Extents(half - 1, half - 1));
  EXPECT_TRUE((Indexer<2, TypeParam>::fits(Extents<2>{half, half})));
  EXPECT_FALSE((Indexer<2, TypeParam>::fits(Extents<2>{half + 1, half + 1})));
  EXPECT_TRUE((Indexer<1, TypeParam>::fits(Extents<1>{most})));
}

TYPED_TEST(IndexerOf, of_nothing_has_size_0) {
  EXPECT_EQ((Indexer<2, TypeParam>().size()), 0);
  EXPECT_EQ((Indexer<2, TypeParam>(Extents<2>{0, 5}).size()), 0);
  EXPECT_EQ((Indexer<2, TypeParam>(Extents<2>{5, 0}).size()), 0);
  EXPECT_EQ((Indexer<0, TypeParam>().size()), 1);
  EXPECT_TRUE((Indexer<2, TypeParam>::fits(Extents<2>{0, 5})));
  for (Extents<3> extents : {Extents<3>{0, 1 << 20, 1 << 20}, Extents<3>{1 << 30, 0, 1 << 30},
                             Extents<3>{1 << 20, 1 << 20, 0}}) {
    ASSERT_TRUE((Indexer<3, TypeParam>::fits(extents)));
    EXPECT_EQ((Indexer<3, TypeParam>(extents).size()), 0);
  }
  EXPECT_FALSE((Indexer<2, TypeParam>::fits(Extents<2>{-2, -5})));
}

/* The bytes of the integer that for_indexer chooses. */
template <class Of> std::size_t width(Of const &of) {
  return umem::for_indexer(of, [](auto indexer) { return sizeof indexer.size(); });
}

TEST(ForIndexer, takes_32_bits_where_they_suffice) {
  umem::index_t const most = std::numeric_limits<std::int32_t>::max();
  char cell = 0;
  EXPECT_EQ(width(Extents{3, 4}), 4u);
  EXPECT_EQ(width(Extents{most}), 4u);
  EXPECT_EQ(width(Extents{most + 1}), 8u);
  EXPECT_EQ(width(Extents{65536, 65536}), 8u);
  EXPECT_EQ(width(Extents<0>()), 4u);
  EXPECT_EQ(width(View<char, 1>(&cell, {most})), 4u);
  EXPECT_EQ(width(View<char, 1>(&cell, {most + 1})), 8u);
  EXPECT_EQ(width(View<char, 1>(&cell, {2}, {most + 1})), 8u); /* few elements far apart */
}

TEST(ForIndexer, numbers_beyond_32_bits) {
  Extents<2> const extents{100000, 100000};
  umem::for_indexer(extents, [](auto indexer) {
    EXPECT_EQ(indexer.offset(99999, 99999), 9999999999);
    using Int = typename decltype(indexer)::integer;
    EXPECT_EQ(indexer.indices(static_cast<Int>(9999999999)), Extents(99999, 99999));
  });
}
