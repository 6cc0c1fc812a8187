/* umem/fill_ghosts.hpp - gives ghost cells their values: what is beyond the boundary.
 *
 *     umem::fill_ghosts(u, umem::periodic);
 *     umem::fill_ghosts(u, {umem::reflect, umem::constant(0.0)}); // one rule for each dimension
 *     umem::fill_ghosts(u, {umem::sides(umem::constant(1.0), umem::edge), umem::periodic});
 *
 * The rules are those of numpy.pad. For ghost cells around the elements a b c d of a row:
 *
 *     keep          what they are; exchange_ghosts (exchange.hpp) may fill them
 *     periodic      b c d | a b c d | a b c     "wrap"
 *     constant(v)   v v v | a b c d | v v v     "constant"
 *     edge          a a a | a b c d | d d d     "edge"
 *     reflect       d c b | a b c d | c b a     "reflect": the outermost elements are the mirrors
 *     symmetric     c b a | a b c d | d c b     "symmetric": the mirrors are between the cells
 *
 * More ghost cells than elements repeat this. The dimensions are filled one after the other, each
 * over the ghost cells of those before: so the cells at edges and corners are right, too. Ghost
 * cells with the rule keep count as elements for the rules of all other dimensions.
 *
 * See for_each.hpp for places, operands and failures. Without a place, an array or part is filled
 * where its elements are: by loops if the CPU can use its context, by kernels on a GPU in files
 * that nvcc compiles, else by strided copies in its context, such as a file. */
#ifndef UMEM_FILL_GHOSTS_HPP
#define UMEM_FILL_GHOSTS_HPP

#include <umem/fill.hpp>
#include <umem/functional.hpp>
#include <umem/transform.hpp>

#include <algorithm>

namespace umem {

/* ---- rules ---- */

/* What ghost cells become: see above. */
enum class GhostKind { keep, periodic, constant, edge, reflect, symmetric };

/* Ghost cells keep their values. */
inline constexpr GhostKind keep = GhostKind::keep;

/* Ghost cells are the elements at the other end. */
inline constexpr GhostKind periodic = GhostKind::periodic;

/* Ghost cells repeat the outermost element. */
inline constexpr GhostKind edge = GhostKind::edge;

/* Ghost cells mirror the elements; the outermost element is the mirror and not repeated. */
inline constexpr GhostKind reflect = GhostKind::reflect;

/* Ghost cells mirror the elements, the outermost one included. */
inline constexpr GhostKind symmetric = GhostKind::symmetric;

/* What umem::constant returns. */
template <class Value> struct GhostConstant { Value value; };

/* Every ghost cell becomes value, which elements of integers must have, as for umem::fill. */
template <class Value> GhostConstant<Value> constant(Value const &value) { return {value}; }

/* The rule of one side, for elements Type. */
template <class Type> struct GhostRule {
  GhostKind kind = GhostKind::keep;
  Type value{}; /* of GhostKind::constant */

  GhostRule() = default;
  GhostRule(GhostKind kind_) : kind(kind_) {}
  template <class Value>
  GhostRule(GhostConstant<Value> const &constant)
      : kind(GhostKind::constant), value(detail::as_element<Type>("constant", constant.value)) {}
};

/* What umem::sides returns. */
template <class Arg, class Other> struct GhostSides {
  Arg below;
  Other above;
};

/* Different rules for the two sides of a dimension. */
template <class Arg, class Other>
GhostSides<Arg, Other> sides(Arg const &below, Other const &above) {
  return {below, above};
}

/* The rules of all sides of Rank dimensions. */
template <class Type, int Rank> struct GhostRules {
  GhostRule<Type> below[detail::slots<Rank>], above[detail::slots<Rank>];

  /* One rule for all dimensions: periodic, ..., constant(v) or sides(). */
  GhostRules(GhostRule<Type> const &rule) { set_all(rule); }
  GhostRules(GhostKind rule) { set_all(rule); }
  template <class Value> GhostRules(GhostConstant<Value> const &rule) { set_all(rule); }
  template <class Arg, class Other> GhostRules(GhostSides<Arg, Other> const &rules) {
    set_all(rules);
  }

  /* One for each dimension. */
  template <class... Rules, class = std::enable_if_t<(Rank > 1 && sizeof...(Rules) == Rank)>>
  GhostRules(Rules const &...rules) {
    int k = 0;
    (set(k++, rules), ...);
  }

private:
  template <class Rule> void set_all(Rule const &rule) {
    for (int k = 0; k < Rank; k++) set(k, rule);
  }
  template <class Rule> void set(int k, Rule const &both) { below[k] = above[k] = both; }
  template <class Arg, class Other> void set(int k, GhostSides<Arg, Other> const &two) {
    below[k] = two.below;
    above[k] = two.above;
  }
};

namespace detail {

/* The rules for the ghost cells of an operand. Not deduced, so that callers may write them in
 * braces. */
template <class Arg> using ghost_rules_of = GhostRules<value_of<bare_t<Arg>>, rank_of<bare_t<Arg>>>;

/* The element, of 0 to count - 1, whose value ghost cell g gets; count > 0, and kind is not
 * constant. */
inline index_t source_of(GhostKind kind, index_t g, index_t count) noexcept {
  auto modulo = [g](index_t period) {
    index_t const near =
        g < 0 ? g + period : g - period; /* of most ghost cells, without a division */
    return near >= 0 && near < period ? near : (g % period + period) % period;
  };
  switch (kind) {
  case GhostKind::periodic:
    return modulo(count);
  case GhostKind::symmetric: {
    index_t const m = modulo(2 * count);
    return m < count ? m : 2 * count - 1 - m;
  }
  case GhostKind::reflect: {
    if (count == 1) return 0;
    index_t const m = modulo(2 * count - 2);
    return m < count ? m : 2 * count - 2 - m;
  }
  default:
    return g < 0 ? 0 : count - 1;
  }
}

/* Copies the elements that belong there to ghost cells [begin, end) of dimension k, in as few
 * copies as possible: copy(from, to) with slabs of the same extents. */
template <class Cells, class Copy>
void fill_slabs(Cells const &cells, int k, GhostKind kind, index_t count, index_t begin,
                index_t end, Copy const &copy) {
  for (index_t g = begin; g < end;) {
    index_t const from = source_of(kind, g, count);
    index_t step = 0, n = 1;
    if (g + 1 < end) step = source_of(kind, g + 1, count) - from;
    if (step != 1 && step != -1) step = 0;
    while (step != 0 && g + n < end && source_of(kind, g + n, count) == from + n * step) n++;
    auto const target = cells.slice(k, g, g + n);
    if (step < 0)
      copy(cells.slice(k, from - n + 1, from + 1).reversed(k), target);
    else
      copy(cells.slice(k, from, from + n), target);
    g += n;
  }
}

/* Fills the ghost cells of a View or a Part by copy(from, to) and set(value, to). */
template <class Cells, class Type, int Rank, class Copy, class Set>
void fill_all_slabs(Cells const &cells, Extents<Rank> const &extents, Ghosts<Rank> const &ghosts,
                    GhostRules<Type, Rank> const &rules, Copy const &copy, Set const &set) {
  for (int k = 0; k < Rank; k++) {
    Cells slabs = cells; /* over the cells of other dimensions that have their values */
    for (int j = 0; j < Rank; j++) {
      if (j == k) continue;
      bool const below = j < k || rules.below[j].kind == GhostKind::keep;
      bool const above = j < k || rules.above[j].kind == GhostKind::keep;
      slabs =
          slabs.slice(j, below ? -ghosts.below[j] : 0, extents[j] + (above ? ghosts.above[j] : 0));
    }
    auto fill_side = [&](GhostRule<Type> const &rule, index_t begin, index_t end) {
      if (begin == end || rule.kind == GhostKind::keep) return;
      if (rule.kind == GhostKind::constant)
        set(rule.value, slabs.slice(k, begin, end));
      else
        fill_slabs(slabs, k, rule.kind, extents[k], begin, end, copy);
    };
    fill_side(rules.below[k], -ghosts.below[k], 0);
    fill_side(rules.above[k], extents[k], extents[k] + ghosts.above[k]);
  }
}

/* Throws umem::value_error where ghost cells would be copies of elements that are not there. */
template <class Type, int Rank>
void check_ghost_rules(Extents<Rank> const &extents, Ghosts<Rank> const &ghosts,
                       GhostRules<Type, Rank> const &rules) {
  auto copies = [](GhostRule<Type> const &rule, index_t count) {
    return count > 0 && rule.kind != GhostKind::keep && rule.kind != GhostKind::constant;
  };
  for (int k = 0; k < Rank; k++)
    if (extents[k] == 0 &&
        (copies(rules.below[k], ghosts.below[k]) || copies(rules.above[k], ghosts.above[k])))
      raise_text(umemValueError,
                 "fill_ghosts: dimension %d of extents %s has no elements that ghost cells could "
                 "repeat",
                 k, in_words(extents).text);
}

/* Fills the ghost cells of a part by strided copies. */
template <class Type, int Rank>
void fill_part(Part<Type, Rank> const &part, GhostRules<Type, Rank> const &rules) {
  fill_all_slabs(
      part, part.extents(), part.ghosts(), rules,
      [](auto const &from, auto const &to) { copy(Part<Type const, Rank>(from), to); },
      [](Type const &value, auto const &to) {
        copy(umem::part(View<Type const, Rank>(&value, to.extents(), Extents<Rank>())), to);
      });
}

/* ---- on the host: all ghost cells of a line at once ---- */

/* What a ghost cell of a line becomes: the value of another cell, or *value. Cells count from the
 * first element of the line, in elements of memory. */
template <class Type> struct GhostMove {
  index_t to, from;
  Type const *value; /* null: that of the other cell */
};

/* Does a move for n lines that begin at first, first + stride, ... These loops are functions of
 * their own, so that they have registers enough. */
template <class Type>
[[gnu::noinline]] void host_move_cells(index_t n, index_t stride, GhostMove<Type> const &move,
                                       Type *first) {
  Type *const to = first + move.to;
  if (move.value)
    for (index_t i = 0; i < n; i++) to[i * stride] = *move.value;
  else if (stride == 1)
    std::copy(first + move.from, first + move.from + n, to);
  else
    for (index_t i = 0; i < n; i++) to[i * stride] = first[move.from + i * stride];
}

/* Does two moves at once, of which neither reads what the other writes. */
template <class Type>
[[gnu::noinline]] void host_move_two(index_t n, index_t stride, GhostMove<Type> const *moves,
                                     Type *first) {
  index_t const to = moves[0].to, from = moves[0].from, to_2 = moves[1].to, from_2 = moves[1].from;
#if defined(__clang__) /* unrolled, it has more addresses than registers */
#pragma clang loop unroll(disable)
#endif
  for (index_t i = 0; i < n; i++, first += stride) {
    first[to] = first[from];
    first[to_2] = first[from_2];
  }
}

/* Does moves for lines along dimension k, which begin at indices [low, high) of the others.
 * Neighbours of other lines are done together, but only some if the cells of a line are neighbours,
 * too. */
template <class Type, int Rank>
void host_fill_lines(View<Type, Rank> const &view, int k, Extents<Rank> const &low,
                     Extents<Rank> const &high, GhostMove<Type> const *moves, int count) {
  auto length = [&](int j) { return std::abs(view.strides.at[j]); };
  int inner = k == 0 ? Rank - 1 : 0; /* of the other dimensions, that of neighbours in memory */
  for (int j = 0; j < Rank; j++)
    if (j != k && length(j) < length(inner)) inner = j;
  index_t const stride = view.strides.at[inner],
                end = inner == k ? 1 : high.at[inner] - low.at[inner];
  bool const are_two = count == 2 && stride != 1 && !moves[0].value && !moves[1].value;
  index_t const most = length(k) < length(inner) && !are_two ? 64 : end;
  Extents<Rank> at = low;
  for (;;) {
    Type *first = view.data + distance(at, view.strides);
    for (index_t i = 0, n; i < end; i += n, first += n * stride) {
      n = std::min(most, end - i);
      if (are_two)
        host_move_two(n, stride, moves, first);
      else
        for (GhostMove<Type> const *move = moves; move != moves + count; move++)
          host_move_cells(n, stride, *move, first);
    }
    int j = Rank - 1;
    while (j >= 0 && (j == inner || ++at.at[j] >= high.at[j])) {
      at.at[j] = low.at[j];
      j--;
    }
    if (j < 0) return;
  }
}

template <class Type, int Rank>
void host_fill_ghosts(HostPlace place, View<Type, Rank> const &view,
                      GhostRules<Type, Rank> const &rules) {
  constexpr int most = 16; /* moves at a time */
  for (int k = 0; k < Rank; k++) {
    /* The lines go over the cells of other dimensions that have their values. */
    Extents<Rank> low, high;
    for (int j = 0; j < Rank; j++) {
      bool const below = j < k || rules.below[j].kind == GhostKind::keep;
      bool const above = j < k || rules.above[j].kind == GhostKind::keep;
      low.at[j] = below && j != k ? view.low(j) : 0;
      high.at[j] = j == k ? 1 : above ? view.high(j) : view.extents.at[j];
    }
    index_t const stride = view.strides.at[k], extent = view.extents.at[k];
    for (index_t g = view.low(k), end = view.high(k); g < end;) {
      GhostMove<Type> moves[most];
      int count = 0;
      for (; g < end && count < most; g++) {
        if (g == 0) g = extent; /* past the interior */
        if (g == end) break;
        GhostRule<Type> const &rule = g < 0 ? rules.below[k] : rules.above[k];
        if (rule.kind == GhostKind::keep) continue;
        bool const is_constant = rule.kind == GhostKind::constant;
        index_t const from = is_constant ? 0 : source_of(rule.kind, g, extent);
        moves[count++] = {g * stride, from * stride, is_constant ? &rule.value : nullptr};
      }
      host_share(place, low, high, [&](Extents<Rank> const &begin, Extents<Rank> const &end_) {
        host_fill_lines(view, k, begin, end_, moves, count);
      });
    }
  }
}

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Whether loops on the home of a context, in this file, reach its memory. */
inline bool loops_reach(Context const &context) {
  bool const is_for_cpu = context.can(umemCpuReadable | umemCpuWritable);
  if (!context.can(umemDeviceAccessible)) return is_for_cpu;
#if defined(__CUDACC__)
  if (Place(context).is_device()) return true;
#else
  if (Place(context).is_device()) return false;
#endif
  return is_for_cpu;
}

/* Fills the ghost cells of a view by kernels. */
template <class Type, int Rank>
void fill_view(DevicePlace const &place, View<Type, Rank> const &view,
               GhostRules<Type, Rank> const &rules) {
  fill_all_slabs(
      view, view.extents, view.ghosts, rules,
      [&](auto const &from, auto const &to) { transform(place, from, to, Identity()); },
      [&](Type const &value, auto const &to) { fill(place, to, value); });
}
template <class Type, int Rank>
void fill_view_on_device(DevicePlace const &place, View<Type, Rank> const &view,
                         GhostRules<Type, Rank> const &rules) {
#if defined(__CUDACC__)
  DevicePlace queued = place; /* it waits once, for all kernels */
  queued.wait = false;
  Work work(place);
  fill_view(queued, view, rules);
  work.finish();
#else
  fill_view(place, view, rules);
#endif
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace detail

inline namespace UMEM_LAUNCH_NAMESPACE {

/* Gives ghost cells their values, by one rule for all dimensions or one for each. Throws
 * umem::value_error if there are no elements in a dimension whose ghost cells repeat elements. */
template <class PlaceType, class Arg, class = detail::if_place<PlaceType>>
void fill_ghosts(PlaceType const &place, Arg &&elements, detail::ghost_rules_of<Arg> const &rules) {
  detail::Called const function("fill_ghosts");
  auto const used = detail::use(elements, write);
  static_assert(decltype(used)::writes, "fill_ghosts: the elements are read-only");
  if constexpr (decltype(used)::writes) {
    auto where = detail::settled(place, used);
    detail::check_kernels(where);
    detail::with_views(
        where,
        [&](auto const &view) {
          detail::check_ghost_rules(view.extents, view.ghosts, rules);
          detail::on_side(
              where, [&](auto const &host) { detail::host_fill_ghosts(host, view, rules); },
              [&](auto const &device) { detail::fill_view_on_device(device, view, rules); });
        },
        used);
  }
}
template <class Arg, class = detail::if_operand<Arg>>
void fill_ghosts(Arg &&elements, detail::ghost_rules_of<Arg> const &rules) {
  constexpr detail::OperandKind kind = detail::kind_of<detail::bare_t<Arg>>;
  if constexpr (kind == detail::OperandKind::array || kind == detail::OperandKind::part) {
    if (!detail::is_array_in_ram(elements) && !detail::loops_reach(elements.context())) {
      detail::Called const function("fill_ghosts");
      auto const part = detail::as_part(elements);
      detail::check_ghost_rules(part.extents(), part.ghosts(), rules);
      return detail::fill_part(part, rules);
    }
  }

  fill_ghosts(detail::AtHome(), elements, rules);
}

} // namespace UMEM_LAUNCH_NAMESPACE
} // namespace umem

#endif
