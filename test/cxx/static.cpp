/* static.cpp - what the compiler can tell: views and their kin are trivially copyable, access
 * throws nothing, what converts and what does not. */
#include "typed.hpp"

#include <strings.h>

using umem::DynamicView;
using umem::Indexer;
using umem::Shape;

template <class T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> &&std::is_standard_layout_v<T>
    &&std::is_trivially_destructible_v<T> &&std::is_nothrow_default_constructible_v<T>;

/* ---- what goes to kernels by value ---- */

template <class T, int... N> constexpr bool views_are_plain(std::integer_sequence<int, N...>) {
  return ((is_plain<View<T, N>> && is_plain<View<T const, N>> && is_plain<Extents<N>> &&
           is_plain<Indexer<N, std::int32_t>> && is_plain<Indexer<N>>)&&...);
}
using Ranks = std::make_integer_sequence<int, 6>;
static_assert(views_are_plain<std::int32_t>(Ranks()));
static_assert(views_are_plain<double>(Ranks()));
static_assert(views_are_plain<std::complex<float>>(Ranks()));
static_assert(views_are_plain<Item>(Ranks()));
static_assert(std::is_trivially_copyable_v<DynamicView<double>>);
static_assert(sizeof(View<double, 3>) == sizeof(void *) + 12 * sizeof(umem::index_t));

/* ---- access throws nothing, checked access may ---- */

using V2 = View<double, 2>;
static_assert(noexcept(std::declval<V2>()(1, 2)));
static_assert(noexcept(std::declval<V2>()(Extents<2>())));
static_assert(noexcept(std::declval<V2>()[0]));
static_assert(noexcept(std::declval<V2>().transpose()));
static_assert(noexcept(std::declval<V2>().interior()));
static_assert(noexcept(std::declval<V2>().with_ghosts()));
static_assert(!noexcept(std::declval<V2>().at(1, 2)));
static_assert(!noexcept(std::declval<V2>().slice(0, 0, 1)));
static_assert(std::is_same_v<decltype(std::declval<V2 const>()(0, 0)), double &>);
static_assert(
    std::is_same_v<decltype(std::declval<View<double const, 2>>()(0, 0)), double const &>);
static_assert(std::is_same_v<decltype(std::declval<V2>().select(0, 0)), View<double, 1>>);
static_assert(std::is_nothrow_move_constructible_v<Shape> && std::is_nothrow_swappable_v<Shape>);

/* ---- conversions ---- */

static_assert(std::is_convertible_v<V2, View<double const, 2>>);
static_assert(std::is_nothrow_constructible_v<View<double const, 2>, V2>);
static_assert(!std::is_constructible_v<V2, View<double const, 2>>);
static_assert(!std::is_constructible_v<View<float, 2>, V2>);
static_assert(!std::is_constructible_v<View<double, 3>, V2>);
static_assert(std::is_convertible_v<V2, DynamicView<double>>);
static_assert(std::is_convertible_v<V2, DynamicView<double const>>);
static_assert(!std::is_constructible_v<DynamicView<double>, View<double const, 2>>);
static_assert(std::is_convertible_v<Extents<3>, Shape>);
static_assert(!std::is_constructible_v<Extents<2>, int>);
static_assert(!std::is_constructible_v<Extents<2>, int, int, int>);
static_assert(!std::is_constructible_v<Extents<2>, int, double>);
static_assert(!std::is_constructible_v<Extents<1>, bool>);
static_assert(std::is_same_v<decltype(Extents{1, 2, 3}), Extents<3>>);

/* ---- in constant expressions ---- */

constexpr int squares() {
  int memory[12] = {};
  View<int, 2> view(memory, {3, 4});
  for (umem::index_t i = 0; i < 3; i++)
    for (umem::index_t j = 0; j < 4; j++) view(i, j) = static_cast<int>(10 * i + j);
  return view.transpose().slice(0, 1, 4, 2).reversed(1)(1, 0);
}
static_assert(squares() == 23);
static_assert(Indexer<3>(Extents{2, 3, 4}).offset(1, 2, 3) == 23);
static_assert(Indexer<3>(Extents{2, 3, 4}).indices(23) == Extents{1, 2, 3});
static_assert(umem::c_strides(Extents{2, 3, 4}) == Extents{12, 4, 1});

/* ---- names that libc has, too ---- */

namespace all_names {
using namespace umem;

/* Of <strings.h>. Without the colons it meets umem::index of 0.1. */
inline index_t count_to(char const *text, char last) { return ::index(text, last) - text; }
} // namespace all_names

TEST(Static, names_do_not_meet_those_of_libc) { EXPECT_EQ(all_names::count_to("aab", 'b'), 2); }

TEST(Static, holds_where_this_compiles) { SUCCEED(); }
