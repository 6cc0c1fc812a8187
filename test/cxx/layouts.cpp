/* layouts.cpp - views whose type knows strides and extents. */
#include "typed.hpp"

using umem::ColumnMajor, umem::dynamic, umem::FixedExtents, umem::FixedStrides, umem::RowMajor,
    umem::Strided, umem::UnitStride;
using umem::full_extent, umem::index_t, umem::range;

template <class Type> struct LayoutOf { using type = Strided; };
template <class Type, int Rank, class Layout> struct LayoutOf<View<Type, Rank, Layout>> {
  using type = Layout;
};
template <class Layout, class ViewType> constexpr bool has_layout(ViewType const &) {
  return std::is_same_v<typename LayoutOf<ViewType>::type, Layout>;
}

/* Finds all elements of a part by its type and by a View<Type, Rank>, which uses its members. */
template <class Layout, class ViewType> void expect_layout(ViewType const &part) {
  EXPECT_TRUE(has_layout<Layout>(part));
  constexpr int Rank = ViewType::rank;
  View<typename ViewType::element_type, Rank> const any = part;
  EXPECT_TRUE(umem::detail::keeps<Layout>(any));
  Extents<Rank> at;
  for (index_t n = 0; n < any.size(); n++) {
    at = umem::detail::indices_at(n, any.extents);
    EXPECT_EQ(&part(at), &any(at));
    EXPECT_EQ(&call_with(
                  [&](auto... i) -> auto & { return part(i...); }, at),
              &any(at));
  }
  for (int k = 0; k < Rank; k++) {
    EXPECT_EQ(part.extent(k), any.extents[k]);
    EXPECT_EQ(part.stride(k), any.strides[k]);
  }
  EXPECT_EQ(part.is_contiguous(), any.is_contiguous());
}

struct Layouts : testing::Test {
  double memory[60] = {};
  View<double, 3> any{memory, {4, 5, 3}};
  View<double, 3, RowMajor> rows = any;
  View<double, 3, ColumnMajor> columns{memory, {4, 5, 3}};
  View<double, 3, FixedExtents<dynamic, dynamic, 3>> fixed = any;
};

TEST_F(Layouts, are_views_of_the_same_elements) {
  static_assert(sizeof(rows) == sizeof(any) && std::is_trivially_copyable_v<decltype(rows)>);
  static_assert(std::is_convertible_v<View<double, 3, RowMajor>, View<double, 3>>);
  static_assert(!std::is_convertible_v<View<double const, 3, RowMajor>, View<double, 3, RowMajor>>);
  expect_layout<RowMajor>(rows);
  expect_layout<ColumnMajor>(columns);
  expect_layout<FixedExtents<dynamic, dynamic, 3>>(fixed);
  View<double const, 3, UnitStride> const read = rows;
  expect_layout<UnitStride>(read);
  View<double, 3, FixedStrides<15, 3, 1>> const strides = fixed;
  expect_layout<FixedStrides<15, 3, 1>>(strides);
  expect_layout<UnitStride>(any.unit_stride());
}

/* A function of users for views of any layout. */
template <class Type, int Rank> index_t size_of(View<Type, Rank> const &view) {
  return view.size();
}

TEST_F(Layouts, are_taken_by_functions_of_any_view) {
  EXPECT_EQ(size_of(rows), 60);
  EXPECT_EQ(size_of(fixed.part(1, full_extent, full_extent)), 15);
}

/* What the type says needs no view. */
TEST(LayoutTypes, are_constants) {
  constexpr View<double, 3, FixedExtents<dynamic, dynamic, 3>> fixed;
  static_assert(fixed.extent(2) == 3 && fixed.stride(1) == 3 && fixed.stride(2) == 1);
  constexpr View<double, 2, FixedStrides<15, 1>> strides;
  static_assert(strides.stride(0) == 15 && strides.extent(0) == 0);
}

TEST_F(Layouts, of_parts_keep_what_is_still_true) {
  expect_layout<FixedExtents<dynamic, 3>>(fixed.part(1, full_extent, full_extent));
  expect_layout<FixedExtents<3>>(fixed.part(1, 2, full_extent));
  expect_layout<FixedStrides<3>>(fixed.part(1, full_extent, 2));
  expect_layout<FixedStrides<dynamic, 3, 1>>(fixed.part(full_extent, full_extent, range(0, 2)));
  expect_layout<UnitStride>(
      fixed.part(range(0, 4, 2), range(1, 3), range(0, 2)).part(full_extent, 0, full_extent));
  expect_layout<RowMajor>(rows.part(2, full_extent, full_extent));
  expect_layout<RowMajor>(rows.part(2, range(1, 3), full_extent));
  expect_layout<RowMajor>(rows.part(range(1, 3), full_extent, full_extent));
  expect_layout<UnitStride>(rows.part(full_extent, range(1, 3), full_extent));
  expect_layout<UnitStride>(rows.part(range(0, 4, 2), 1, full_extent));
  expect_layout<UnitStride>(rows.part(full_extent, 1, std::pair(0, 2)));
  expect_layout<Strided>(rows.part(full_extent, 1, range(0, 3, 2)));
  expect_layout<Strided>(rows.part(full_extent, full_extent, 1));
  expect_layout<RowMajor>(rows.part(1, 2, 0));
  expect_layout<ColumnMajor>(columns.part(full_extent, full_extent, 1));
  expect_layout<ColumnMajor>(columns.part(full_extent, range(1, 3), 1));
  expect_layout<FixedStrides<1, dynamic>>(columns.part(full_extent, 2, full_extent));
  expect_layout<FixedStrides<1, dynamic>>(columns.part(range(1, 3), full_extent, 1));
  expect_layout<Strided>(columns.part(1, full_extent, full_extent));
}

TEST_F(Layouts, of_other_orders_and_ghost_cells) {
  expect_layout<ColumnMajor>(rows.transpose());
  expect_layout<RowMajor>(columns.transpose());
  expect_layout<Strided>(fixed.part(range(0, 4, 2), 1, full_extent).transpose());
  expect_layout<UnitStride>(rows.with_ghosts({{1, 1, 1}, {1, 1, 1}}));
  expect_layout<Strided>(columns.with_ghosts({{1, 1, 1}, {1, 1, 1}}));
  auto const halo = any.with_ghosts({{1, 1, 1}, {1, 1, 1}}).unit_stride();
  expect_layout<UnitStride>(halo);
  expect_layout<UnitStride>(halo.interior());
  expect_layout<UnitStride>(halo.with_ghosts());
  EXPECT_EQ(&halo(-1, -1, -1), memory);
  EXPECT_EQ(&halo.with_ghosts()(0, 0, 0), memory);
}

TEST_F(Layouts, refuse_other_elements) {
  EXPECT_THROWS((View<double, 3, RowMajor>(any.transpose())), umem::value_error,
                "elements with extents (3, 5, 4) and strides (1, 3, 15) are not in the layout of "
                "the type of their view: see umem/layout.hpp");
  EXPECT_THROW((View<double, 3, ColumnMajor>(any)), umem::value_error);
  EXPECT_THROW((View<double, 3, FixedExtents<dynamic, dynamic, 4>>(any)), umem::value_error);
  EXPECT_THROW((View<double, 3, FixedExtents<4, 4, 3>>(memory, {4, 5, 3})), umem::value_error);
  EXPECT_THROW((View<double, 3, FixedStrides<dynamic, 4, 1>>(any)), umem::value_error);
  EXPECT_THROW((View<double, 3, UnitStride>(any.reversed(2))), umem::value_error);
  auto const halo = any.with_ghosts({{1, 1, 1}, {1, 1, 1}});
  EXPECT_THROW((View<double, 3, RowMajor>(halo)), umem::value_error);
}

/* Strides that no two elements show are those of the type. */
TEST_F(Layouts, take_what_has_one_element) {
  View<double, 2, RowMajor> const column = View<double, 2>(memory, {1, 1}, {7, 7});
  expect_layout<RowMajor>(column);
  EXPECT_EQ(column.strides[1], 1);
  View<double, 2, FixedExtents<dynamic, 3>> const none;
  EXPECT_TRUE(none.is_empty());
  EXPECT_EQ(none.extents, (Extents<2>{0, 3}));
  expect_layout<RowMajor>(View<double, 2, RowMajor>(View<double, 2>(memory, {0, 3})));
}

TEST_F(Layouts, of_rank_one_are_iterated_by_pointers) {
  auto const row = rows.part(1, 2, full_extent);
  static_assert(std::is_same_v<decltype(row.begin()), double *>);
  for (double &x : row) x = 3;
  EXPECT_EQ(row(2), 3);
  EXPECT_EQ(row.end() - row.begin(), 3);
  auto const across = fixed.part(1, full_extent, 2);
  static_assert(!std::is_same_v<decltype(across.begin()), double *>);
  EXPECT_EQ(across.end() - across.begin(), 5);
  View<double, 1, RowMajor> const none;
  EXPECT_EQ(none.begin(), none.end());
}

TEST(LayoutTypes, of_guards_are_those_that_the_program_names) {
  Array<double, 2> rows({3, 4}), columns({3, 4}, umem::column_major);
  Array<double, 1> line({4});
  {
    auto const guard = rows.host<RowMajor>(umem::discard);
    for (index_t i = 0; i < 12; i++) guard[i] = static_cast<double>(i);
    EXPECT_EQ(guard(2, 3), 11);
    EXPECT_TRUE(has_layout<RowMajor>(*guard));
    EXPECT_TRUE(has_layout<RowMajor>(guard.part(1, full_extent)));
    View<double const, 2, UnitStride> const read = guard;
    EXPECT_EQ(read(1, 0), 4);
  }
  auto const any = rows.host(umem::read);
  EXPECT_TRUE(has_layout<Strided>(*any));
  View<double const, 2, FixedExtents<dynamic, 4>> const fixed = any;
  EXPECT_EQ(fixed(1, 1), 5);
  EXPECT_TRUE(has_layout<RowMajor>(*line.host(umem::discard)));
  columns.host<ColumnMajor>(umem::discard)(1, 2) = 7;
  EXPECT_EQ(columns.get(1, 2), 7);
  EXPECT_THROW(static_cast<void>(columns.host<RowMajor>(umem::write)), umem::value_error);
  EXPECT_THROW(static_cast<void>(columns.device<UnitStride>(umem::write)), umem::value_error);
  EXPECT_THROW(static_cast<void>(View<double const, 2, RowMajor>(columns.host(umem::read))),
               umem::value_error);
  columns.set(1, 0, 0); /* no guard is left */
  Array<double, 2> const halo({3, 4}, umem::Host(), {umem::Ghosts<2>({1, 1}, {1, 1})});
  EXPECT_THROW(static_cast<void>(halo.host<RowMajor>(umem::read)), umem::value_error);
  EXPECT_TRUE(has_layout<UnitStride>(*halo.host<UnitStride>(umem::read)));
}

TEST_F(Layouts, are_operands_of_loops) {
  Array<double, 2> u({3, 4}), v({3, 4});
  auto const to = u.host<RowMajor>(umem::discard);
  umem::for_each([](double &x) { x = 2; }, to);
  double other[3];
  View<double, 1, RowMajor> const line(other, {3});
  umem::for_each(
      umem::on_host, [](double x, double &y) { y = x + 1; }, rows.part(0, range(0, 3), 0), line);
  EXPECT_EQ(other[2], 1);
  umem::copy(umem::part(*to), v.part());
  EXPECT_EQ(v.get(2, 3), 2);
  double sum = 0;
  for (double x : umem::elements(to)) sum += x;
  EXPECT_EQ(sum, 24);
}
