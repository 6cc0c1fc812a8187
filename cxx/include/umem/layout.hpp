/* umem/layout.hpp - views whose type knows some of their strides and extents.
 *
 *     void smooth(umem::View<double, 2, umem::UnitStride> u);      // u(i, j + 1) follows u(i, j)
 *     using Picture = umem::View<float, 3, umem::FixedExtents<umem::dynamic, umem::dynamic, 3>>;
 *
 *     smooth(*a.host(umem::write));                                // checked here, once
 *     auto row = a.host<umem::RowMajor>(umem::write)->part(2, umem::full_extent); // RowMajor, too
 *
 * A compiler that knows a stride uses vector instructions in a function that it does not inline.
 * Such a view is a View<Type, Rank> with a promise: functions that take any view take it. The way
 * back is a conversion that checks the promise. Parts, rows and transposes keep what is still true
 * in their type. Programs must not write the members of a view whose type has a layout. */
#ifndef UMEM_LAYOUT_HPP
#define UMEM_LAYOUT_HPP

#include <umem/view.hpp>

namespace umem {

/* A stride or an extent that the type of a view does not know. */
inline constexpr index_t dynamic = std::numeric_limits<index_t>::min();

/* Any strides. View<Type, Rank> has this layout. */
struct Strided {};

/* Elements with neighbouring last indices follow each other: rows of an array in row-major order,
 * also with ghost cells, and parts of it. */
struct UnitStride {};

/* All elements in C order without gaps. No ghost cells, but for views of rank 1. */
struct RowMajor {};

/* All elements in the order of Fortran without gaps. */
struct ColumnMajor {};

/* RowMajor with extents that are known, or umem::dynamic. */
template <index_t... extents> struct FixedExtents {};

/* Strides that are known, or umem::dynamic. */
template <index_t... strides> struct FixedStrides {};

namespace detail {

/* ---- what a layout knows: numbers of elements ---- */

struct KnownNothing {
  static constexpr Order order = row_major;    /* of views made of a pointer and extents */
  static constexpr bool is_contiguous = false; /* no gaps between the elements of the interior */
  static constexpr bool has_rank(int /*rank*/) { return true; }
  UMEM_FUNCTION static constexpr index_t stride(int /*k*/, int /*rank*/) { return dynamic; }
  UMEM_FUNCTION static constexpr index_t extent(int /*k*/) { return dynamic; }
};

template <class Layout> struct Known;
template <> struct Known<Strided> : KnownNothing {};
template <> struct Known<UnitStride> : KnownNothing {
  UMEM_FUNCTION static constexpr index_t stride(int k, int rank) {
    return k == rank - 1 ? 1 : dynamic;
  }
};
template <> struct Known<RowMajor> : Known<UnitStride> {
  static constexpr bool is_contiguous = true;
};
template <> struct Known<ColumnMajor> : KnownNothing {
  static constexpr Order order = column_major;
  static constexpr bool is_contiguous = true;
  UMEM_FUNCTION static constexpr index_t stride(int k, int /*rank*/) {
    return k == 0 ? 1 : dynamic;
  }
};
template <index_t... extents> struct Known<FixedExtents<extents...>> : KnownNothing {
  static constexpr bool is_contiguous = true;
  static constexpr bool has_rank(int rank) { return rank == sizeof...(extents); }
  UMEM_FUNCTION static constexpr index_t extent(int k) {
    index_t const all[] = {extents..., 0};
    return all[k];
  }
  UMEM_FUNCTION static constexpr index_t stride(int k, int rank) {
    index_t result = 1;
    for (int j = k + 1; j < rank; j++) {
      if (extent(j) == dynamic) return dynamic;
      result *= extent(j);
    }
    return result;
  }
};
template <index_t... strides> struct Known<FixedStrides<strides...>> : KnownNothing {
  static constexpr bool has_rank(int rank) { return rank == sizeof...(strides); }
  UMEM_FUNCTION static constexpr index_t stride(int k, int /*rank*/) {
    index_t const all[] = {strides..., 0};
    return all[k];
  }
};

/* ---- what a slice leaves of a layout ---- */

/* Whether the distance of neighbours is the same in the part. */
template <class SliceType>
inline constexpr bool keeps_stride =
    is_full_extent<SliceType> || is_pair<SliceType> || std::is_same_v<SliceType, UnitRange>;

/* The numbers of the dimensions that slices keep, and how they do. */
template <class... Slices> struct Kept {
  static constexpr int count = rank_of_slices<Slices...>;
  int from[slots<count>] = {};       /* the dimension before */
  bool stride[slots<count>] = {};    /* with its stride */
  bool extent[slots<count>] = {};    /* with its extent */
  int first_cut = -1, last_cut = -1; /* of the dimensions of the view that lost elements */

  constexpr Kept() {
    bool const gone[] = {is_position<Slices>..., false}, near[] = {keeps_stride<Slices>..., false},
               whole[] = {is_full_extent<Slices>..., false};
    for (int k = 0, to = 0; k < static_cast<int>(sizeof...(Slices)); k++) {
      if (!whole[k]) {
        if (first_cut < 0) first_cut = k;
        last_cut = k;
      }
      if (gone[k]) continue;
      from[to] = k;
      stride[to] = near[k];
      extent[to++] = whole[k];
    }
  }

  /* Whether the distances of neighbours are those before. */
  constexpr bool keeps_strides() const {
    for (int to = 0; to < count; to++)
      if (!stride[to]) return false;
    return true;
  }

  /* Whether the elements have no gaps if those of the view in C order have none: single indices,
   * then one range without steps, then whole dimensions. */
  constexpr bool is_contiguous() const {
    return keeps_strides() && (count == 0 || last_cut <= from[0]);
  }
  /* Whether they have none if those of the view in Fortran's order have none. */
  constexpr bool is_contiguous_left() const {
    return keeps_strides() && (count == 0 || first_cut < 0 || first_cut >= from[count - 1]);
  }
};

template <class Layout, class... Slices> struct LayoutOfPart {
  static constexpr int rank = sizeof...(Slices);
  static constexpr Kept<Slices...> kept{};
  static constexpr index_t stride(int to) {
    return kept.stride[to] ? Known<Layout>::stride(kept.from[to], rank) : dynamic;
  }
  static constexpr index_t extent(int to) {
    return kept.extent[to] ? Known<Layout>::extent(kept.from[to]) : dynamic;
  }
  /* How many strides, or extents, are known. */
  static constexpr int known(index_t (*number)(int)) {
    int result = 0;
    for (int to = 0; to < kept.count; to++) result += number(to) != dynamic;
    return result;
  }

  template <int... To> static constexpr auto choose(std::integer_sequence<int, To...>) {
    constexpr bool right = Known<Layout>::order == row_major && Known<Layout>::is_contiguous,
                   left = Known<Layout>::order == column_major;
    if constexpr (kept.count == 0 || (right && kept.is_contiguous() && known(extent) == 0))
      return RowMajor();
    else if constexpr (right && kept.is_contiguous())
      return FixedExtents<extent(To)...>();
    else if constexpr (left && kept.is_contiguous_left())
      return ColumnMajor();
    else if constexpr (known(stride) == 0)
      return Strided();
    else if constexpr (known(stride) == 1 && stride(kept.count - 1) == 1)
      return UnitStride();
    else
      return FixedStrides<stride(To)...>();
  }
  using type = decltype(choose(std::make_integer_sequence<int, kept.count>()));
};

template <class Layout, class... Slices>
using layout_of_part = typename LayoutOfPart<Layout, Slices...>::type;

/* ---- a view that keeps the promise of a layout ---- */

/* Whether the known numbers are those of the view. The stride of a dimension with one index does
 * not matter. */
template <class Layout, class Type, int Rank>
UMEM_FUNCTION constexpr bool keeps(View<Type, Rank> const &view) noexcept {
  for (int k = 0; k < Rank; k++) {
    index_t const stride = Known<Layout>::stride(k, Rank), extent = Known<Layout>::extent(k);
    if (extent != dynamic && view.extents.at[k] != extent) return false;
    if (stride != dynamic && view.strides.at[k] != stride && view.high(k) - view.low(k) > 1)
      return false;
  }
  if (!Known<Layout>::is_contiguous) return true;
  return Known<Layout>::order == row_major ? view.is_contiguous()
                                           : view.transpose().is_contiguous();
}

/* Throws unless a view keeps the promise of a layout. */
template <class Layout, class Type, int Rank>
UMEM_FUNCTION constexpr void check_layout(View<Type, Rank> const &view) {
  UMEM_CHECK(keeps<Layout>(view), raise_layout(view.extents.begin(), view.strides.begin(), Rank));
}

/* What is known of the elements of every array: of rank 1 they have no gaps. The order of others
 * is a number of the array. */
template <int Rank> using LayoutOfArrays = std::conditional_t<(Rank <= 1), RowMajor, Strided>;

} // namespace detail

/* A view whose type knows what Layout says. Its size is that of a View<Type, Rank>. */
template <class Type, int Rank, class Layout> class View : public View<Type, Rank> {
  using Base = View<Type, Rank>;
  using Rules = detail::Known<Layout>;
  static_assert(Rules::has_rank(Rank), "View: the layout has a number for each dimension");

public:
  using layout_type = Layout;

  /* An empty view. */
  UMEM_FUNCTION constexpr View() noexcept { take_known(); }

  /* Elements without gaps in the order of the layout. Throws umem::value_error if the extents are
   * not those of the type, or if such elements do not have its strides. */
  UMEM_FUNCTION constexpr View(Type *data_, Extents<Rank> const &extents_)
      : View(Base(data_, extents_, Rules::order)) {}

  /* Any view of such elements. Throws umem::value_error if its elements are in another layout; for
   * device code, asserts. */
  template <class OtherType, class = std::enable_if_t<std::is_same_v<std::remove_const_t<OtherType>,
                                                                     std::remove_const_t<Type>> &&
                                                      std::is_convertible_v<OtherType *, Type *>>>
  UMEM_FUNCTION constexpr View(View<OtherType, Rank> const &any) : Base(any) {
    detail::check_layout<Layout>(any);
    take_known();
  }

  /* ---- elements: as those of View<Type, Rank> ---- */

  template <class... Indices>
  UMEM_FUNCTION UMEM_CHECKED constexpr Type &operator()(Indices... i) const noexcept {
    return Base::template access<false>(*this, i...);
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr Type &operator()(Extents<Rank> const &i) const noexcept {
    UMEM_ASSERT_INDICES(Base::contains(i), i, *this);
    UMEM_ASSERT_GUARDED(this->data);
    index_t offset = 0;
    for (int k = 0; k < Rank; k++) offset += i.at[k] * stride_of(k);
    return this->data[offset];
  }

  /* The elements of a view of rank 1: by pointers if its stride is known to be 1. */
  template <int OtherRank = Rank, class = typename std::enable_if<OtherRank == 1>::type>
  UMEM_FUNCTION constexpr auto begin() const noexcept {
    if constexpr (Rules::stride(0, Rank) == 1)
      return this->data;
    else
      return Base::begin();
  }
  template <int OtherRank = Rank, class = typename std::enable_if<OtherRank == 1>::type>
  UMEM_FUNCTION constexpr auto end() const noexcept {
    if constexpr (Rules::stride(0, Rank) == 1)
      return this->data ? this->data + this->extents.at[0] : this->data;
    else
      return Base::end();
  }

  /* ---- questions ---- */

  UMEM_FUNCTION UMEM_CHECKED constexpr index_t extent(int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, Rank));
    return Rules::extent(k) != dynamic ? Rules::extent(k) : this->extents.at[k];
  }
  UMEM_FUNCTION UMEM_CHECKED constexpr index_t stride(int k) const noexcept {
    UMEM_ASSERT(detail::is_dimension(k, Rank));
    return stride_of(k);
  }
  UMEM_FUNCTION constexpr bool is_contiguous() const noexcept {
    if constexpr (Rules::is_contiguous && Rules::order == row_major) return true;
    return Base::is_contiguous();
  }

  /* ---- parts and other orders: those of View<Type, Rank>, with what their type can know ---- */

  template <class... Slices> UMEM_FUNCTION constexpr auto part(Slices const &...slices) const {
    detail::check_slices<Rank, Slices...>();
    if constexpr (detail::are_slices<Rank, Slices...>)
      return known<detail::layout_of_part<Layout, Slices...>>(Base::part(slices...));
    else
      return *this;
  }
  UMEM_FUNCTION constexpr auto transpose() const noexcept {
    if constexpr (Rules::is_contiguous && Rules::order == row_major)
      return known<ColumnMajor>(Base::transpose());
    else if constexpr (std::is_same_v<Layout, ColumnMajor>)
      return known<RowMajor>(Base::transpose());
    else
      return Base::transpose();
  }
  UMEM_FUNCTION constexpr View interior() const noexcept { return known<Layout>(Base::interior()); }
  UMEM_FUNCTION constexpr auto with_ghosts() const noexcept {
    return known<with_other_ghosts>(Base::with_ghosts());
  }
  UMEM_FUNCTION constexpr auto with_ghosts(Ghosts<Rank> const &wanted) const {
    return known<with_other_ghosts>(Base::with_ghosts(wanted));
  }

private:
  template <class, int, class> friend class View;
  struct Trusted {};

  /* The strides stay what they are, but between ghost cells the elements have gaps. */
  using with_other_ghosts =
      std::conditional_t<!Rules::is_contiguous, Layout,
                         std::conditional_t<Rules::order == row_major, UnitStride, Strided>>;

  /* A view that keeps the promise. */
  UMEM_FUNCTION constexpr View(Base const &view, Trusted) noexcept : Base(view) { take_known(); }
  template <class Other, int OtherRank>
  UMEM_FUNCTION static constexpr auto known(View<Type, OtherRank> const &view) noexcept {
    if constexpr (std::is_same_v<Other, Strided>)
      return view;
    else
      return View<Type, OtherRank, Other>(view, typename View<Type, OtherRank, Other>::Trusted());
  }

  /* The members hold the numbers of the type also where no two elements show them. */
  UMEM_FUNCTION constexpr void take_known() noexcept {
    for (int k = 0; k < Rank; k++) {
      if (Rules::stride(k, Rank) != dynamic) this->strides.at[k] = Rules::stride(k, Rank);
      if (Rules::extent(k) != dynamic) this->extents.at[k] = Rules::extent(k);
    }
  }

  UMEM_FUNCTION constexpr index_t stride_of(int k) const noexcept {
    return Rules::stride(k, Rank) != dynamic ? Rules::stride(k, Rank) : this->strides.at[k];
  }
  UMEM_FUNCTION static constexpr index_t known_stride(int k) noexcept {
    return Rules::stride(k, Rank);
  }
  template <int k> UMEM_FUNCTION UMEM_CHECKED constexpr index_t nth_stride() const noexcept {
    constexpr index_t stride = Rules::stride(k, Rank);
    if constexpr (stride != dynamic)
      return stride;
    else
      return this->strides.at[k];
  }
};

} // namespace umem

#endif
