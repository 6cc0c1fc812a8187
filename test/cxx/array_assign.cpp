/* array_assign.cpp - assignment of arrays, on every context. A copy assigns elements: the target
 * keeps its place, its ghost cells and its memory's properties. A move takes over the memory of the
 * source, unless the target lost ghost cells or alignment by that. */
#include "arrays.hpp"

namespace {

static_assert(std::is_copy_assignable_v<Doubles> && std::is_move_assignable_v<Doubles>);
static_assert(!std::is_nothrow_move_assignable_v<Doubles>,
              "guards may live, and the elements may have to be copied");
static_assert(std::is_nothrow_swappable_v<Doubles>);

/* The ways to write an assignment; after the second the source is empty. */
void copy_assign(Doubles &target, Doubles &source) {
  Doubles const &same = source;
  target = same;
}
void move_assign(Doubles &target, Doubles &source) { target = std::move(source); }
constexpr void (*each_way[])(Doubles &, Doubles &) = {copy_assign, move_assign};

struct ArrayAssign : EachPlace {
  /* Contexts of sources: another one, one of another kind, and the target's own. */
  std::vector<umem::Context> others() const {
    return {umem::Host(), umem::File::scratch(), place, open_place(*GetParam())};
  }
};
FOR_EACH_PLACE(ArrayAssign);

/* Expects the elements of the interior to be those of expected, and ghost cells as number made
 * them. */
void expect_interior(Doubles const &array, Doubles const &expected, umem::index_t first) {
  for_each_cell(array, [&](Extents<2> const &at, umem::index_t n) {
    bool inside = at[0] >= 0 && at[0] < array.extent(0) && at[1] >= 0 && at[1] < array.extent(1);
    EXPECT_EQ(array.get(at), inside ? expected.get(at) : element<double>(first + n));
  });
}

TEST_P(ArrayAssign, keeps_ghost_cells_place_and_memory) {
  for (auto assign : each_way)
    for (umem::Context const &there : others())
      for (bool host_is_newer : {false, true})
        for (auto const &[target_ghosts, source_ghosts] :
             {std::pair(with_ghosts(1, 2), with_ghosts(0, 0)),
              std::pair(with_ghosts(1, 1), with_ghosts(2, 1)),
              std::pair(with_ghosts(0, 0), with_ghosts(1, 1))}) {
          Doubles target({2, 3}, place, target_ghosts), source({2, 3}, there, source_ghosts);
          number(target, 100);
          number(source);
          if (!host_is_newer) target.release_host();
          umem::address adr = target.adr();
          Doubles const expected(source);
          assign(target, source);
          EXPECT_EQ(target.ghosts(), target_ghosts.ghosts);
          EXPECT_EQ(target.context(), place);
          EXPECT_EQ(target.adr(), adr);
          expect_interior(target, expected, 100);
          EXPECT_EQ(static_cast<bool>(source), assign == copy_assign);
        }
}

TEST_P(ArrayAssign, assigns_ghost_cells_where_both_have_the_same) {
  for (auto assign : each_way)
    for (umem::Context const &there : others()) {
      Doubles target({2, 3}, place, with_ghosts(1, 2)), source({2, 3}, there, with_ghosts(1, 2));
      number(target, 100);
      number(source);
      assign(target, source);
      EXPECT_EQ(target.context(), assign == copy_assign ? place : there);
      expect_numbered(target);
    }
}

TEST_P(ArrayAssign, copies_into_the_memory_of_the_target) {
  Doubles source({2, 3}), target({2, 3}, place);
  number(source);
  umem::address adr = target.adr();
  std::size_t before = blocks();
  target = static_cast<Doubles const &>(source);
  EXPECT_EQ(target.adr(), adr);
  EXPECT_EQ(blocks(), before);
  expect_numbered(target);
  expect_numbered(source);
}

TEST_P(ArrayAssign, takes_other_extents_with_the_same_ghost_cells) {
  umem::ArrayOptions<2> options = with_ghosts(1, 0);
  options.alignment = 4096;
  options.host = umem::Host();
  for (auto assign : each_way)
    for (umem::Context const &there : others()) {
      Doubles target({2, 3}, place, options), source({1, 5}, there, with_ghosts(1, 0));
      umem::Context const host = target.host_context();
      number(target, 100);
      number(source, 7);
      assign(target, source);
      EXPECT_EQ(target.context(), place);
      EXPECT_EQ(target.host_context(), host);
      EXPECT_EQ(target.extents(), (Extents<2>{1, 5}));
      EXPECT_EQ(target.adr() % 4096, 0u);
      expect_numbered(target, 7);
    }
}

TEST_P(ArrayAssign, refuses_other_extents_with_other_ghost_cells) {
  for (auto assign : each_way)
    for (umem::Context const &there : others()) {
      Doubles target({2, 3}, place, with_ghosts(1, 1)), source({4, 1}, there);
      number(target, 100);
      number(source);
      umem::address adr = target.adr();
      EXPECT_THROWS(
          assign(target, source), umem::value_error,
          "an array of extents (4, 1) with (0, 0) ghost cells cannot be assigned to one of "
          "extents (2, 3) with (1, 1): extents or ghost cells must be the same");
      EXPECT_EQ(target.adr(), adr);
      expect_numbered(target, 100);
      expect_numbered(source);
    }
}

TEST_P(ArrayAssign, writes_to_foreign_memory_and_never_replaces_it) {
  umem::Buffer block(place, 6 * sizeof(double));
  bool deleted = false;
  {
    auto target = Doubles::wrap(block.adr(), {2, 3}, place, [&] { deleted = true; });
    Doubles source({2, 3}), other({4, 1}), with_more({2, 3}, place, with_ghosts(1, 1));
    number(source);
    number(with_more, -6);
    target = static_cast<Doubles const &>(source);
    EXPECT_EQ(target.adr(), block.adr());
    EXPECT_THROWS(target = static_cast<Doubles const &>(other), umem::value_error,
                  "an array of extents (4, 1) cannot be assigned to one of extents (2, 3) around "
                  "foreign memory");
    expect_numbered(target);
    target = std::move(with_more); /* whose ghost cells have no room there */
    EXPECT_EQ(target.adr(), block.adr());
    EXPECT_FALSE(deleted);
    EXPECT_EQ(target.get(0, 0), 0);
    target = Doubles();
    EXPECT_TRUE(deleted);
  }
  double values[6];
  block.copy_to(values, sizeof values);
  for (int i = 0; i < 6; i++) EXPECT_EQ(values[i], i % 3 + i / 3 * 5);
}

/* In both directions, with and without ghost cells, which take another way. */
TEST_P(ArrayAssign, of_an_array_that_overlaps_in_foreign_memory_reads_it_first) {
  constexpr int count = 24;
  for (umem::index_t shift : {3, -3}) {
    for (bool same_ghosts : {true, false}) {
      umem::Buffer block(place, count * sizeof(double));
      double values[count], before[count];
      for (int i = 0; i < count; i++) before[i] = values[i] = i;
      block.copy_from(values, sizeof values);
      auto const at = [&](umem::index_t first) {
        return block.adr() + static_cast<umem::address>(first) * sizeof(double);
      };
      auto source = Doubles::wrap_unowned(at(4), {3, 4}, place);
      auto target = Doubles::wrap_unowned(at(4 + shift), {3, 4}, place);
      if (!same_ghosts) {
        target = Doubles::wrap_unowned(at(4 + shift), {3, 4 + 1}, place);
        target.set_ghosts({{0, 0}, {0, 1}});
      }
      target = static_cast<Doubles const &>(source);
      target.sync_to_device();
      block.copy_to(values, sizeof values);
      umem::index_t const row = same_ghosts ? 4 : 5;
      for (umem::index_t i = 0; i < 12; i++) {
        before[4 + shift + i / 4 * row + i % 4] = static_cast<double>(4 + i);
      }
      for (int i = 0; i < count; i++) EXPECT_EQ(values[i], before[i]) << i << " by " << shift;
    }
  }
}

/* One variable for one block after the other. */
TEST_P(ArrayAssign, of_another_wrapped_block_leaves_the_first_alone) {
  umem::Context const other = open_place(*GetParam());
  umem::Buffer blocks[] = {umem::Buffer(place, 6 * sizeof(double)),
                           umem::Buffer(other, 6 * sizeof(double))};
  Doubles array;
  for (umem::Buffer &block : blocks) {
    array = Doubles::wrap_unowned(block.adr(), {2, 3}, block.context());
    EXPECT_EQ(array.adr(), block.adr());
    EXPECT_EQ(array.context(), block.context());
    number(array, &block == blocks ? 1 : 100);
  }
  array = Doubles();
  for (umem::Buffer &block : blocks)
    expect_numbered(Doubles::wrap_unowned(block.adr(), {2, 3}, block.context()),
                    &block == blocks ? 1 : 100);
}

TEST_P(ArrayAssign, from_nothing_and_to_nothing) {
  for (auto assign : each_way) {
    Doubles target({2, 3}, place, with_ghosts(1, 0)), nothing, taken;
    number(target);
    assign(taken, target);
    bool const is_copy =
        assign == copy_assign; /* which lands in no file or segment that nobody has named */
    EXPECT_EQ(taken.context(), is_copy && place.can(umemShared) ? umem::detail::pointers() : place);
    EXPECT_EQ(taken.ghosts(), (Extents<2>{1, 0}));
    expect_numbered(taken);
    assign(taken, nothing);
    EXPECT_FALSE(taken);
    assign(taken, nothing);
    EXPECT_FALSE(taken);
  }
  for (Extents<2> extents : {Extents<2>{0, 3}, Extents<2>{0, 0}}) {
    Doubles target(extents, place, with_ghosts(1, 1)), source(extents);
    number(target);
    target = source;
    expect_numbered(target);
    EXPECT_EQ(target.ghosts(), (Extents<2>{1, 1}));
  }
}

TEST_P(ArrayAssign, to_itself_changes_nothing) {
  Doubles array({2, 3}, place, with_ghosts(0, 1));
  number(array);
  for (auto assign : each_way) {
    assign(array, array);
    expect_numbered(array);
  }
}

TEST_P(ArrayAssign, is_refused_while_somebody_has_the_target) {
  Doubles target({2, 3}, place, with_ghosts(1, 0)), same({2, 3}),
      longer({4, 1}, umem::Host(), with_ghosts(1, 0));
  Doubles const empty;
  number(target, 100);
  number(same);
  number(longer);
  auto refuse_all = [&] {
    for (auto assign : each_way) EXPECT_THROW(assign(target, same), umem::locked_error);
    EXPECT_THROW(copy_assign(target, longer), umem::locked_error);
    EXPECT_THROW(target = empty, umem::locked_error);
    EXPECT_THROW(target = Doubles(), umem::locked_error);
    Doubles taken({2, 3}, place, with_ghosts(1, 0)); /* a move would copy nothing of it */
    number(taken, 7);
    EXPECT_THROW(target = std::move(taken), umem::locked_error);
    expect_numbered(taken, 7);
  };
  {
    auto lock = target.lock();
    refuse_all();
  }
  {
    auto guard = target.host(umem::read);
    refuse_all();
  }
  if (!place.can(umemOffsets)) {
    auto guard = target.device(umem::write);
    refuse_all();
  }
  expect_numbered(target, 100);
  expect_numbered(same);
  expect_numbered(longer);
}

TEST_P(ArrayAssign, from_a_locked_array_is_refused) {
  Doubles target({2, 3}, place, with_ghosts(1, 0)), source({2, 3});
  number(target, 100);
  number(source);
  {
    auto lock = source.lock();
    for (auto assign : each_way) EXPECT_THROW(assign(target, source), umem::locked_error);
  }
  expect_numbered(target, 100);
  expect_numbered(source);
}

TEST_P(ArrayAssign, of_a_moved_array_takes_its_memory_where_nothing_is_lost) {
  Doubles target({2, 3}, place, with_ghosts(1, 1)), source({4, 1}, place, with_ghosts(1, 1));
  number(target, 100);
  number(source);
  umem::address adr = source.adr();
  std::size_t blocks_before = blocks();
  target = std::move(source);
  EXPECT_FALSE(source);
  EXPECT_EQ(target.adr(), adr);
  EXPECT_EQ(blocks(), blocks_before == 0 ? 0 : blocks_before - 1);
  expect_numbered(target);

  umem::ArrayOptions<2> options = with_ghosts(1, 1);
  options.alignment = 8192;
  Doubles aligned({4, 1}, place, options);
  adr = aligned.adr();
  aligned = std::move(target); /* whose memory may be less aligned */
  EXPECT_EQ(aligned.adr(), adr);
  expect_numbered(aligned);
}

TEST_P(ArrayAssign, of_an_array_with_guards_moves_them_with_the_memory) {
  Doubles target({2, 3}, place), source({2, 3}, place), other({2, 3}, place);
  number(source);
  {
    auto guard = source.host(umem::write);
    target = std::move(source); /* as move construction and swap */
    guard(0, 0) = 10;
    EXPECT_THROW(target = std::move(other), umem::locked_error);
    EXPECT_THROW(target.resize({3, 3}), umem::locked_error);
    EXPECT_THROW(target.reshape({3, 2}), umem::locked_error);
    EXPECT_THROW(std::move(target).reshape(umem::Extents{6}), umem::locked_error);
    target.swap(other);
    guard(0, 1) = 11;
    Doubles constructed(std::move(other));
    guard(0, 2) = 12;
    guard.release();
    for (int j = 0; j < 3; j++) EXPECT_EQ(constructed.get(0, j), 10 + j);
  }
  auto guard = target.host(umem::read);
  Doubles().swap(target); /* ends the array, and not the memory */
  EXPECT_EQ(guard.size(), 6);
  guard.release();
  target = Doubles({1, 1}); /* an empty array has no guards */
  EXPECT_EQ(target.size(), 1);
}

TEST_P(ArrayAssign, of_a_moved_array_takes_its_place) {
  for (umem::Context const &there : others()) {
    Doubles target({2, 3}, place), source({2, 3}, there);
    number(source);
    umem::address adr = source.adr();
    std::size_t blocks_before = blocks();
    target = std::move(source);
    EXPECT_FALSE(source);
    EXPECT_EQ(target.context(), there);
    EXPECT_EQ(target.adr(), adr);
    EXPECT_LE(blocks(), blocks_before);
    expect_numbered(target);
    target = Doubles(target, place); /* and so an array goes to another place */
    EXPECT_EQ(target.context(), place);
    expect_numbered(target);
  }
}

/* What algorithms and containers of the standard library do. */
TEST_P(ArrayAssign, serves_the_standard_library) {
  std::vector<Doubles> levels;
  for (umem::index_t n = 5; n > 0; n--) {
    levels.emplace_back(Extents<2>{n, 2}, place, with_ghosts(1, 0));
    number(levels.back(), n);
  }
  std::swap(levels[0], levels[4]);
  std::sort(levels.begin(), levels.end(),
            [](Doubles const &one, Doubles const &two) { return one.size() < two.size(); });
  levels.erase(levels.begin());
  ASSERT_EQ(levels.size(), 4u);
  for (umem::index_t n = 2; n <= 5; n++) {
    Doubles const &level = levels[static_cast<std::size_t>(n - 2)];
    EXPECT_EQ(level.extents(), (Extents<2>{n, 2}));
    expect_numbered(level, n);
  }
  std::vector<Doubles> places; /* the first to go is one that is assigned to */
  places.emplace_back(Extents<2>{2, 3});
  places.emplace_back(Extents<2>{2, 3}, place);
  places.emplace_back(Extents<2>{4, 1}, umem::File::scratch());
  number(places[1]);
  number(places[2], 10);
  umem::Context const last = places[2].context();
  places.erase(places.begin());
  EXPECT_EQ(places[0].context(), place);
  EXPECT_EQ(places[1].context(), last);
  expect_numbered(places[0]);
  expect_numbered(places[1], 10);

  Doubles here({1, 1}, place), there({2, 2}, umem::Host(), with_ghosts(1, 1));
  number(here);
  number(there, 10);
  std::swap(here, there); /* everything, also what assignment keeps */
  EXPECT_EQ(here.extents(), (Extents<2>{2, 2}));
  EXPECT_EQ(there.context(), place);
  expect_numbered(here, 10);
  expect_numbered(there);
}

TEST_P(ArrayAssign, replaces_a_read_only_array_in_its_place) {
  using Finished = Array<double const, 2>;
  Doubles first({2, 3}, place, with_ghosts(0, 1)), next({2, 3}, umem::Host(), with_ghosts(0, 1));
  Doubles without({2, 3}), longer({4, 1}, umem::Host(), with_ghosts(0, 1));
  number(first);
  number(next, 20);
  number(without);
  number(longer, 30);
  Finished finished(std::move(first)), other(std::move(next)), bare(std::move(without));
  Finished const &same = other;
  finished = same;
  EXPECT_EQ(finished.context(), place);
  expect_numbered(finished, 20);
  EXPECT_THROWS(
      finished = static_cast<Finished const &>(bare), umem::value_error,
      "an array of extents (2, 3) with (0, 0) ghost cells cannot be assigned to a read-only "
      "one with (0, 1): its ghost cells are not written");
  EXPECT_THROW(finished = std::move(bare), umem::value_error);
  expect_numbered(finished, 20);
  umem::Context const there = longer.context();
  finished = Finished(std::move(longer));
  EXPECT_EQ(finished.context(), there);
  expect_numbered(finished, 30);
  {
    auto lock = finished.lock();
    EXPECT_THROW(finished = same, umem::locked_error);
  }
  finished = same;
  expect_numbered(finished, 20);
}

/* A part of an array is a handle: assigning copies nothing, and to a temporary one it does not
 * compile. */
static_assert(std::is_copy_assignable_v<umem::Part<int, 2>>);
static_assert(!std::is_assignable_v<umem::Part<int, 2>, umem::Part<int, 2>>);

TEST(ArrayAssignFile, reaches_the_file_that_the_target_is_on) {
  TempFile file;
  {
    Doubles on_file({2, 3}, umem::File(file.path, "w+"));
    Doubles source({2, 3}, umem::Host(), with_ghosts(1, 1));
    number(source);
    on_file = source;
  }
  Array<double const, 2> found({2, 3}, umem::File(file.path, "r"));
  EXPECT_EQ(found.get(0, 0), 7);
  EXPECT_EQ(found.get(1, 2), 14);
}

/* One variable for one file after the other. */
TEST(ArrayAssignFile, of_an_array_on_another_file_leaves_the_first_alone) {
  TempFile files[2];
  Doubles array;
  for (int n = 0; n < 2; n++) {
    array = Doubles({2, 3}, umem::File(files[n].path, "w+"));
    number(array, n == 0 ? 1 : 100);
  }
  Array<double const, 2> found;
  for (int n = 0; n < 2; n++) {
    array = Doubles({2, 3}, umem::File(files[n].path, "r+"));
    expect_numbered(array, n == 0 ? 1 : 100);
    found = Array<double const, 2>({2, 3}, umem::File(files[n].path, "r"));
    expect_numbered(found, n == 0 ? 1 : 100);
  }
}

} // namespace
