/* ghosts.cpp - ghost cells: filled by each rule on every place, against a plain walk from cell to
 * cell; and exchanged between the blocks of decompositions, against the box in one piece. */
#include "arrays.hpp"
#include "kernels.hpp"

#include <umem/exchange.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/reduce.hpp>

namespace {

using umem::Decomposition;
using umem::GhostKind;
using umem::index_t;
using umem::Range;

template <int N> using Rules = umem::GhostRules<int, N>;

/* The cell that lends its value to cell g of a row of n, bounce by bounce. */
index_t lender(GhostKind kind, index_t g, index_t n) {
  for (;;) {
    if (g >= 0 && g < n) return g;
    switch (kind) {
    case GhostKind::periodic:
      g += g < 0 ? n : -n;
      break;
    case GhostKind::reflect:
      g = n == 1 ? 0 : g < 0 ? -g : 2 * (n - 1) - g;
      break;
    case GhostKind::symmetric:
      g = g < 0 ? -1 - g : 2 * n - 1 - g;
      break;
    default:
      g = g < 0 ? 0 : n - 1;
    }
  }
}

/* What a cell is to hold: the rule of the last dimension was applied last. */
template <int N> int wanted(View<int const, N> const &old, Rules<N> const &rules, Extents<N> at) {
  for (int k = N - 1; k >= 0; k--) {
    if (at[k] >= 0 && at[k] < old.extents[k]) continue;
    auto const &rule = at[k] < 0 ? rules.below[k] : rules.above[k];
    if (rule.kind == GhostKind::keep) continue;
    if (rule.kind == GhostKind::constant) return rule.value;
    at[k] = lender(rule.kind, at[k], old.extents[k]);
  }
  return old(at);
}

template <int N> Extents<N> lowest(View<int const, N> const &view) {
  Extents<N> low;
  for (int k = 0; k < N; k++) low[k] = view.low(k);
  return low;
}
template <int N> Extents<N> highest(View<int const, N> const &view) {
  Extents<N> high;
  for (int k = 0; k < N; k++) high[k] = view.high(k);
  return high;
}

template <int N>
void expect_filled(View<int const, N> const &filled, View<int const, N> const &old,
                   Rules<N> const &rules) {
  index_t wrong = 0;
  for_each_indices(lowest(old), highest(old), [&](Extents<N> const &at) {
    if (filled(at) != wanted(old, rules, at) && wrong++ == 0) {
      ADD_FAILURE() << "cell " << umem::detail::in_words(at).text << " is " << filled(at)
                    << ", not " << wanted(old, rules, at);
    }
  });
  EXPECT_EQ(wrong, 0);
}

std::vector<Rules<2>> all_rules() {
  using namespace umem;
  return {umem::keep,
          umem::periodic,
          umem::constant(-7),
          umem::edge,
          umem::reflect,
          umem::symmetric,
          {umem::periodic, umem::reflect},
          {umem::constant(-1), umem::periodic},
          {umem::symmetric, umem::constant(-2)},
          {umem::keep, umem::edge},
          {umem::reflect, umem::keep},
          {umem::sides(umem::keep, umem::constant(3)), umem::sides(umem::edge, umem::keep)}};
}

TEST(FillGhosts, FollowsEveryRule) {
  for (Extents<2> extents : {Extents<2>(5, 6), {1, 3}, {2, 1}, {70, 3}})
    for (umem::Ghosts<2> ghosts : {umem::Ghosts<2>(1, 2), umem::Ghosts<2>({3, 0}, {0, 1}),
                                   umem::Ghosts<2>(7, 5), umem::Ghosts<2>(9, 10)})
      for (Rules<2> const &rules : all_rules()) {
        auto numbers = some_numbers<int>(umem::detail::all_cells(extents, ghosts).product());
        auto memory = numbers;
        auto old = View<int const, 2>::with_ghosts_from(numbers.data(), extents, ghosts);
        auto view = View<int, 2>::with_ghosts_from(memory.data(), extents, ghosts);
        umem::fill_ghosts(umem::on_host, view, rules);
        expect_filled<2>(view, old, rules);
        memory = numbers;
        umem::fill_ghosts(umem::on_host_threads(3), view, rules);
        expect_filled<2>(view, old, rules);
        memory = numbers;
        umem::fill_ghosts(umem::on_host, view.transpose(),
                          [&] { /* another order in memory */
                                Rules<2> turned = rules;
                                std::swap(turned.below[0], turned.below[1]);
                                std::swap(turned.above[0], turned.above[1]);
                                return turned;
                          }());
        for_each_indices({}, extents, [&](Extents<2> const &at) { EXPECT_EQ(view(at), old(at)); });
      }
}

TEST(FillGhosts, WorksInAnyRank) {
  auto numbers = some_numbers<int>(7 * 6 * 8);
  auto memory = numbers;
  umem::Ghosts<3> ghosts({2, 1, 0}, {1, 1, 3});
  auto old = View<int const, 3>::with_ghosts_from(numbers.data(), {4, 4, 5}, ghosts);
  auto view = View<int, 3>::with_ghosts_from(memory.data(), {4, 4, 5}, ghosts);
  Rules<3> rules{umem::periodic, umem::reflect, umem::constant(9)};
  umem::fill_ghosts(umem::on_host, view, rules);
  expect_filled<3>(view, old, rules);
  int row[5] = {0, 1, 2, 3, 4};
  umem::fill_ghosts(umem::on_host, View<int, 1>(row, {5}).with_ghosts({{2}, {1}}), umem::periodic);
  EXPECT_EQ(row[0], 2);
  EXPECT_EQ(row[1], 3);
  EXPECT_EQ(row[4], 2);
  umem::fill_ghosts(umem::on_host, View<int, 0>(row, {}), umem::periodic);
}

TEST(FillGhosts, RefusesToRepeatNothing) {
  int memory[6] = {};
  auto view = View<int, 2>::with_ghosts_from(memory, {0, 2}, {1, 0});
  EXPECT_THROWS(umem::fill_ghosts(umem::on_host, view, umem::periodic), umem::value_error,
                "fill_ghosts: dimension 0 of extents (0, 2) has no elements that ghost cells could "
                "repeat");
  umem::fill_ghosts(umem::on_host, view, umem::constant(5));
  EXPECT_EQ(memory[0], 5);
  EXPECT_EQ(memory[3], 5);
  umem::fill_ghosts(umem::on_host, view, umem::keep);
}

ON_EACH_PLACE(GhostsOnPlaces);

TEST_P(GhostsOnPlaces, AreFilledWhereTheArrayIs) {
  umem::ArrayOptions<2> options{{{2, 1}, {1, 2}}};
  for (Rules<2> const &rules : all_rules()) {
    Array<int, 2> u({4, 5}, place, options);
    number(u);
    Array<int, 2> old(u, umem::Host());
    u.sync_to_device();
    umem::fill_ghosts(u, rules);
    Array<int, 2> again(old, place);
    umem::fill_ghosts(again.part(), rules);
    Array<int, 2> filled(u, umem::Host()), same(again, umem::Host());
    auto before = old.host(umem::read), after = filled.host(umem::read),
         of_part = same.host(umem::read);
    expect_filled<2>(after, before, rules);
    expect_filled<2>(of_part, before, rules);
  }
}

/* ---- decompositions ---- */

TEST(DecompositionOf, CutsABoxIntoBlocks) {
  Decomposition<2> grid({10, 4}, {3, 2}, {0, 1});
  EXPECT_EQ(grid.size(), 6);
  EXPECT_EQ(grid.extents(), Extents(10, 4));
  index_t cells = 0;
  for (index_t n = 0; n < grid.size(); n++) {
    EXPECT_EQ(grid.number(grid.position(n)), n);
    cells += grid.extents(n).product();
  }
  EXPECT_EQ(cells, 40);
  EXPECT_EQ(grid.extents(0), Extents(4, 2));
  EXPECT_EQ(grid.box(3).begin, Extents(4, 2));
  EXPECT_EQ(grid.box(3).end, Extents(7, 4));
  EXPECT_EQ(grid.outside(1, {2, 2}), umem::Ghosts<2>({2, 0}, {0, 0}));
  EXPECT_EQ(grid.outside(3, {5, 2}), umem::Ghosts<2>({1, 0}, {2, 0})); /* beyond the next blocks */
  auto at = Decomposition<2>::at({{0, 3, 10}, {0, 4}});
  EXPECT_EQ(at.extents(1), Extents(7, 4));
  EXPECT_THROWS(Decomposition<2>({2, 2}, {0, 1}), umem::value_error,
                "a decomposition into (0, 1) blocks");
  EXPECT_THROWS(Decomposition<2>::at({{0, 3}, {1, 4}}), umem::value_error,
                "the cuts (1, 4) of dimension 1 do not ascend from 0");
  EXPECT_THROW(Decomposition<2>::at({{0, 5, 3}, {0, 4}}), umem::value_error);
  EXPECT_THROW(Decomposition<2>::at({{0, 3}}), umem::value_error);
  EXPECT_THROWS(grid.box(6), umem::index_error, "there is no block 6 of 6");
  EXPECT_THROWS(grid.number({0, 2}), umem::index_error, "there is no block at (0, 2) of (3, 2)");
}

/* The cell of the box at global indices, or none outside. */
index_t in_box(Decomposition<2> const &grid, Extents<2> at) {
  Extents<2> const extents = grid.extents();
  for (int k = 0; k < 2; k++) {
    if (grid.is_periodic(k)) at[k] = lender(GhostKind::periodic, at[k], extents[k]);
    if (at[k] < 0 || at[k] >= extents[k]) return -1;
  }
  return at[0] * extents[1] + at[1] + 1;
}

void number_blocks(Decomposition<2> const &grid, std::vector<Array<int, 2>> &blocks) {
  for (index_t n = 0; n < grid.size(); n++) {
    auto block = blocks[static_cast<std::size_t>(n)].host(umem::discard);
    umem::fill(umem::on_host, block->with_ghosts(), -1);
    for_each_indices({}, block->extents, [&](Extents<2> at) {
      for (int k = 0; k < 2; k++) at[k] += grid.box(n).begin[k];
      Extents<2> own = at;
      for (int k = 0; k < 2; k++) own[k] -= grid.box(n).begin[k];
      (*block)(own) = static_cast<int>(in_box(grid, at));
    });
  }
}

void expect_exchanged(Decomposition<2> const &grid, std::vector<Array<int, 2>> const &blocks) {
  for (index_t n = 0; n < grid.size(); n++) {
    auto guard = blocks[static_cast<std::size_t>(n)].host(umem::read);
    View<int const, 2> block = *guard;
    for_each_indices(lowest(block), highest(block), [&](Extents<2> const &own) {
      Extents<2> at = own;
      for (int k = 0; k < 2; k++) at[k] += grid.box(n).begin[k];
      EXPECT_EQ(block(own), in_box(grid, at))
          << "block " << n << " at " << own[0] << ", " << own[1];
    });
  }
}

TEST(Exchange, FillsEdgesAndCornersFromAllNeighbours) {
  for (Decomposition<2> const &grid :
       {Decomposition<2>({7, 9}, {2, 3}), Decomposition<2>({7, 9}, {2, 3}, {1, 0}),
        Decomposition<2>({5, 4}, {5, 1}, {1, 1}), Decomposition<2>({2, 3}, {1, 1}, {1, 1}),
        Decomposition<2>::at({{0, 1, 1, 6}, {0, 4, 5}}, {0, 1})})
    for (umem::Ghosts<2> ghosts :
         {umem::Ghosts<2>(1, 1), umem::Ghosts<2>({2, 0}, {0, 3}), umem::Ghosts<2>(4, 7)}) {
      umem::ArrayOptions<2> options{ghosts};
      std::vector<Array<int, 2>> blocks;
      for (index_t n = 0; n < grid.size(); n++)
        blocks.emplace_back(grid.extents(n), umem::Host(), options);
      number_blocks(grid, blocks);
      umem::exchange_ghosts(grid, blocks);
      expect_exchanged(grid, blocks);
    }
}

TEST_P(GhostsOnPlaces, AreExchangedBetweenPlaces) {
  Decomposition<2> const grid({6, 7}, {2, 2}, {0, 1});
  umem::ArrayOptions<2> options{{{1, 2}, {2, 1}}};
  std::vector<Array<int, 2>> blocks;
  for (index_t n = 0; n < grid.size(); n++)
    blocks.emplace_back(grid.extents(n), n % 2 ? umem::Context(umem::Host()) : place, options);
  number_blocks(grid, blocks);
  for (auto &block : blocks) block.sync_to_device();
  umem::exchange_ghosts(grid, blocks);
  expect_exchanged(grid, blocks);
}

/* After an exchange with rules, blocks are as if the box in one piece had been filled. Blocks of
 * one row have their mirror images in the next block. */
TEST(Exchange, FillsWhatIsOutsideOfTheBox) {
  Extents<2> const extents(5, 6);
  umem::Ghosts<2> const ghosts(2, 2);
  for (Rules<2> const &rules : all_rules()) {
    if (rules.below[1].kind == GhostKind::periodic || rules.below[0].kind == GhostKind::periodic)
      continue;
    umem::ArrayOptions<2> options{ghosts};
    auto box = Array<int, 2>::full(extents, -1, umem::Host(), options);
    auto grid = Decomposition<2>::at({{0, 1, 4, 5}, {0, 3, 6}});
    std::vector<Array<int, 2>> blocks;
    for (index_t n = 0; n < grid.size(); n++)
      blocks.emplace_back(grid.extents(n), umem::Host(), options);
    number_blocks(grid, blocks);
    {
      auto all = box.host(umem::write);
      for_each_indices({}, extents, [&](Extents<2> const &at) {
        (*all)(at) = static_cast<int>(in_box(grid, at));
      });
    }
    umem::fill_ghosts(box, rules);
    umem::exchange_ghosts(grid, blocks, rules);
    auto whole = box.host(umem::read);
    for (index_t n = 0; n < grid.size(); n++) {
      auto guard = blocks[static_cast<std::size_t>(n)].host(umem::read);
      View<int const, 2> block = *guard;
      for_each_indices(lowest(block), highest(block), [&](Extents<2> const &own) {
        Extents<2> at = own;
        for (int k = 0; k < 2; k++) at[k] += grid.box(n).begin[k];
        EXPECT_EQ(block(own), (*whole)(at)) << "block " << n << " at " << at[0] << ", " << at[1];
      });
    }
  }
}

TEST(Exchange, RefusesWhatDoesNotFitBeforeItCopies) {
  auto grid = Decomposition<2>({4, 2}, {2, 1});
  umem::ArrayOptions<2> options{{1, 0}};
  std::vector<Array<int, 2>> blocks;
  for (int n = 0; n < 2; n++) blocks.emplace_back(Extents<2>{2, 2}, umem::Host(), options);
  number_blocks(grid, blocks);
  EXPECT_THROWS(umem::exchange_ghosts(grid, {blocks[0].part()}), umem::value_error,
                "exchange_ghosts: 1 arrays for 2 blocks");
  EXPECT_THROWS(umem::exchange_ghosts(Decomposition<2>({4, 4}, {2, 1}), blocks), umem::value_error,
                "exchange_ghosts: the array of block 0 has extents (2, 2), the block (2, 4)");
  {
    auto guard = blocks[1].host(umem::read);
    EXPECT_THROW(umem::exchange_ghosts(grid, blocks), umem::locked_error);
  }
  EXPECT_THROWS(umem::exchange_ghosts(grid, blocks, {umem::periodic, umem::edge}),
                umem::value_error,
                "exchange_ghosts: the rule of dimension 0 is periodic, the decomposition is not");
  EXPECT_EQ(blocks[0].get(2, 0), -1); /* still */
  umem::exchange_ghosts(grid, {blocks[0].part(), blocks[1].part()});
  expect_exchanged(grid, blocks);
}

} // namespace
