/* array.cpp - umem::Array on every context: construction, elements, copies, moves, foreign
 * memory. */
#include "arrays.hpp"

#include <umem/fill_ghosts.hpp>

namespace {

static_assert(std::is_nothrow_move_constructible_v<Doubles>);
static_assert(std::is_nothrow_swappable_v<Doubles>);
static_assert(std::is_nothrow_default_constructible_v<Doubles>);
static_assert(std::is_copy_constructible_v<Doubles> && std::is_copy_assignable_v<Doubles>);
static_assert(!std::is_convertible_v<Extents<2>, Doubles>, "no array by accident");
static_assert(std::is_nothrow_constructible_v<Array<double const, 2>, Doubles &&>);
static_assert(!std::is_constructible_v<Doubles, Array<double const, 2> &&>, "no way to write");

ON_EACH_PLACE(ArrayTest);

TEST_P(ArrayTest, holds_elements_of_every_type_and_rank) {
  for_each_type([&](auto type) {
    using T = typename decltype(type)::type;
    for_each_rank([&](auto rank) {
      constexpr int N = rank.value;
      for (umem::index_t ghosts : {0, 1}) {
        umem::ArrayOptions<N> options;
        options.ghosts = {first_of<N>(ghosts, 2 * ghosts, 0, ghosts, 0),
                          first_of<N>(2 * ghosts, 0, ghosts, ghosts, 0)};
        Array<T, N> array(first_of<N>(2, 3, 4, 1, 2), place, options);
        EXPECT_TRUE(array);
        EXPECT_EQ(array.extents(), (first_of<N>(2, 3, 4, 1, 2)));
        EXPECT_EQ(array.size(), array.extents().product());
        EXPECT_EQ(array.context(), place);
        number(array);
        expect_numbered(array);
        array.release_host();
        expect_numbered(array);
        umem::index_t n = 1;
        for (T const &value : memory_of(array)) EXPECT_EQ(value, element<T>(n++));
      }
    });
  });
}

TEST_P(ArrayTest, makes_outer_cells_ghost_cells_later) {
  Doubles array({4, 5}, place);
  number(array);
  array.set_ghosts({{1, 0}, {0, 2}});
  EXPECT_EQ(array.extents(), Extents(3, 3));
  EXPECT_EQ(array.ghosts(), umem::Ghosts<2>({1, 0}, {0, 2}));
  expect_numbered(array); /* the same memory */
  EXPECT_EQ(array.get(-1, 4), 5);
  Doubles copy = array;
  expect_numbered(copy);
  EXPECT_THROWS(array.set_ghosts({{2, 0}, {3, 0}}), umem::value_error,
                "2 and 3 ghost cells are more than the 4 cells of dimension 0");
  {
    auto guard = array.host(umem::read);
    EXPECT_THROW(array.set_ghosts({}), umem::locked_error);
  }
  EXPECT_EQ(array.extents(), Extents(3, 3));
  array.set_ghosts({});
  EXPECT_EQ(array.extents(), Extents(4, 5));
  expect_numbered(array);
}

TEST_P(ArrayTest, begins_with_zeros_or_a_value_if_told_so) {
  for_each_rank([&](auto rank) {
    constexpr int N = rank.value;
    auto extents = first_of<N>(3, 2, 2, 3, 1);
    umem::ArrayOptions<N> options{first_of<N>(1, 0, 2, 0, 1)};
    { Array<int, N>::full(extents, -1, place, options); } /* junk in the memory */
    auto zeros = Array<int, N>::zeros(extents, place, options);
    auto full = Array<std::complex<float>, N>::full(extents, {1, 2}, place, options);
    for (int value : memory_of(zeros)) EXPECT_EQ(value, 0);
    for (auto value : memory_of(full)) EXPECT_EQ(value, std::complex<float>(1, 2));
  });
}

TEST_P(ArrayTest, full_works_in_chunks) {
  auto array = Array<Item, 1>::full(100003, Item{3, 0.25}, place);
  for (auto const &value : memory_of(array)) ASSERT_EQ(value, (Item{3, 0.25}));
}

TEST_P(ArrayTest, of_no_elements_is_no_special_case) {
  umem::index_t const most =
      std::numeric_limits<umem::index_t>::max(); /* too many for the memory */
  for (Extents<2> extents : {Extents<2>{0, 3}, Extents<2>{3, 0}, Extents<2>{0, 0},
                             Extents<2>{0, most}, Extents<2>{most / 4, 0}}) {
    Doubles array(extents, place);
    EXPECT_TRUE(array);
    EXPECT_EQ(array.size(), 0);
    EXPECT_EQ(array.nbytes(), 0u);
    EXPECT_TRUE(array.host(umem::write)->is_empty());
    if (!place.can(umemOffsets)) {
      EXPECT_TRUE(array.device(umem::discard)->is_empty());
    }
    EXPECT_THROW(array.get(0, 0), umem::index_error);
    array.sync_to_host();
    array.flush();
    Doubles copy(array), other(array, umem::Host());
    copy = array;
    copy.copy_to(other);
    EXPECT_EQ(Doubles::full(extents, 1, place).size(), 0);
    EXPECT_EQ(Doubles::zeros(extents, place).size(), 0);
    EXPECT_EQ(Doubles::wrap_unowned(place.null(), extents, place).size(), 0);
  }
  Doubles only_ghosts({0, 2}, place, with_ghosts(1, 0));
  number(only_ghosts);
  expect_numbered(only_ghosts);
  EXPECT_EQ(only_ghosts.size(), 0);
  EXPECT_EQ(only_ghosts.nbytes(), 4 * sizeof(double));
}

TEST_P(ArrayTest, aligns_both_sides) {
  struct alignas(64) Line {
    char bytes[64];
  };
  Array<Line, 1> lines(3, place);
  EXPECT_EQ(lines.adr() % 64, 0u);
  EXPECT_EQ(reinterpret_cast<umem::address>(lines.host(umem::discard)->data) % 64, 0u);
  umem::ArrayOptions<1> options;
  options.alignment = 4096;
  Array<char, 1> page(5, place, options);
  EXPECT_EQ(page.adr() % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<umem::address>(page.host(umem::discard)->data) % 4096, 0u);
}

TEST_P(ArrayTest, has_an_alignment_that_is_a_power_of_two) {
  umem::Buffer block(place, 64);
  std::size_t before = blocks();
  bool deleted = false;
  umem::ArrayOptions<1> options;
  for (std::size_t alignment : {3u, 5u, 6u, 7u, 12u, 24u, 4097u}) {
    options.alignment = alignment;
    std::string words = "the alignment of " + std::to_string(alignment) + " is no power of two";
    auto refuse = [&](umem::index_t n) {
      EXPECT_THROWS((Array<double, 1>(n, place, options)), umem::value_error, words.c_str());
      EXPECT_THROWS((Array<double, 1>::zeros(n, place, options)), umem::value_error, words.c_str());
      EXPECT_THROWS((Array<double, 1>::wrap(
                        block.adr(), n, place, [&] { deleted = true; }, options)),
                    umem::value_error, words.c_str());
    };
    refuse(5);
    refuse(0);
    EXPECT_EQ(blocks(), before);
  }
  EXPECT_FALSE(deleted);
  for (std::size_t alignment : {0u, 1u, 2u, 4u}) { /* less than double needs: it has that */
    options.alignment = alignment;
    Array<double, 1> array(5, place, options);
    EXPECT_EQ(array.adr() % alignof(double), 0u);
  }
}

TEST_P(ArrayTest, cannot_be_of_extents_that_make_no_sense) {
  umem::index_t const most = std::numeric_limits<umem::index_t>::max();
  EXPECT_THROWS(Doubles({3, -1}, place), umem::value_error, "an extent of (3, -1) is negative");
  EXPECT_THROWS(Doubles({0, -1}, place), umem::value_error, "an extent of (0, -1) is negative");
  EXPECT_THROWS(Doubles({most, 3}, place), umem::value_error,
                ("the product of the extents (" + std::to_string(most) + ", 3) overflows").c_str());
  EXPECT_THROWS(
      Doubles({most / 4, 1}, place), umem::value_error,
      ("an array of extents (" + std::to_string(most / 4) + ", 1) exceeds the address space")
          .c_str());
  EXPECT_THROW(Doubles({most / 8, 1}, place, with_ghosts(1, 0)), umem::value_error);
  EXPECT_THROW(Doubles({1, 1}, place, with_ghosts(most / 2, 0)), umem::value_error);
  EXPECT_THROW(Doubles({0, most / 4}, place, with_ghosts(1, 0)), umem::value_error);
  EXPECT_THROW(Doubles({0, most}, place, with_ghosts(0, 1)), umem::value_error);
  umem::ArrayOptions<2> too_many{{{0, most / 2}, {0, most / 2 + 1}}};
  EXPECT_THROW(Doubles({1, 1}, place, too_many), umem::value_error);
  EXPECT_THROWS(Doubles({1, 1}, place, with_ghosts(0, -1)), umem::value_error,
                "a number of ghost cells of (0, -1) is negative");
  EXPECT_THROWS(Doubles({1, 1}, umem::Context()), umem::value_error,
                "an array on an empty context handle");
  EXPECT_THROWS(umem::Shape({1, 2, 3}).to<2>(), umem::type_error,
                "the shape (1, 2, 3) has 3 dimensions, not 2");
}

TEST_P(ArrayTest, without_room_is_a_memory_error) {
  umem::index_t const huge = std::numeric_limits<umem::index_t>::max() / 16;
  EXPECT_THROW((Array<char, 1>(huge, place)), umem::memory_error);
  forget_failure();
}

TEST_P(ArrayTest, checks_indices_of_single_elements) {
  Doubles array({2, 3}, place, with_ghosts(1, 0));
  number(array);
  EXPECT_EQ(array.get(-1, 0), 1);
  EXPECT_EQ(array.get(2, 2), 12);
  EXPECT_EQ(array.get(Extents<2>{0, 0}), 4);
  EXPECT_THROWS(array.get(-2, 0), umem::index_error,
                "index -2 is outside the range [-1, 3) of dimension 0");
  EXPECT_THROWS(array.get(0, 3), umem::index_error,
                "index 3 is outside the range [0, 3) of dimension 1");
  EXPECT_THROW(array.set(1, 3, 0), umem::index_error);
  EXPECT_THROW(array.set(1, 0, -1), umem::index_error);
  expect_numbered(array);
}

TEST_P(ArrayTest, reads_and_writes_single_elements_where_they_are) {
  auto array = Doubles::zeros({200, 100}, place);
  Side home = array.current();
  EXPECT_EQ(home, shares_memory(place) ? Side::both : Side::device);
  std::size_t before = moves();
  array.set(2.5, 100, 50);
  EXPECT_EQ(array.get(100, 50), 2.5);
  EXPECT_EQ(array.current(), home);
  if (home == Side::device && counts_moves()) {
    EXPECT_EQ(moves() - before, 2u);
  }

  array.host(umem::write)(0, 0) = 3;
  EXPECT_EQ(array.current(), home == Side::both ? Side::both : Side::host);
  before = moves();
  array.set(4, 0, 1);
  EXPECT_EQ(array.get(0, 0) + array.get(0, 1), 7);
  if (home == Side::device) {
    EXPECT_EQ(moves(), before);
  }

  array.sync_to_device();
  EXPECT_EQ(array.current(), Side::both);
  array.set(5, 0, 2);
  EXPECT_EQ(array.current(), Side::both);
  EXPECT_EQ(memory_of(array)[2], 5);
  EXPECT_EQ(array.host(umem::read)(0, 2), 5);
}

TEST_P(ArrayTest, copies_deeply) {
  for (bool host_is_newer : {false, true}) {
    Doubles array({2, 3}, place, with_ghosts(1, 2));
    number(array);
    if (!host_is_newer) array.release_host();
    Doubles copy(array);
    /* Nobody has named a file for the copy. */
    EXPECT_EQ(copy.context(), place.can(umemShared) ? umem::detail::pointers() : place);
    EXPECT_EQ(copy.ghosts(), array.ghosts());
    expect_numbered(copy);
    number(copy, 50);
    expect_numbered(copy, 50);
    expect_numbered(array);

    for (umem::Context const &there :
         {umem::Context(umem::Host()), umem::Context(umem::File::scratch()),
          open_place(*backend_by_name("fake-async"))}) {
      Doubles away(array, there);
      EXPECT_EQ(away.context(), there);
      expect_numbered(away);
      Doubles back(away, place);
      away = Doubles();
      expect_numbered(back);
    }
  }
  EXPECT_FALSE(Doubles(Doubles()));
}

TEST_P(ArrayTest, copies_its_elements_to_another) {
  Doubles source({2, 3}, place, with_ghosts(1, 1)), same({2, 3}, place, with_ghosts(1, 1));
  Doubles bare({2, 3}, place), other({3, 2}, place);
  number(source);
  source.copy_to(same);
  expect_numbered(same);
  source.copy_to(bare);
  EXPECT_EQ(bare.get(0, 0), source.get(0, 0));
  EXPECT_EQ(bare.get(1, 2), source.get(1, 2));
  EXPECT_THROWS(source.copy_to(other), umem::value_error,
                "a copy of extents (2, 3) to extents (3, 2)");
}

TEST_P(ArrayTest, moves_without_a_copy) {
  Doubles array({2, 3}, place), target;
  number(array);
  umem::address adr = array.adr();
  std::size_t blocks_before = blocks(), moves_before = moves();
  Doubles moved(std::move(array));
  EXPECT_EQ(moved.adr(), adr);
  target = std::move(moved);
  EXPECT_EQ(target.adr(), adr);
  swap(target, array);
  EXPECT_EQ(array.adr(), adr);
  EXPECT_EQ(blocks(), blocks_before);
  EXPECT_EQ(moves(), moves_before);
  expect_numbered(array);
}

TEST_P(ArrayTest, moved_from_says_so) {
  Doubles array({2, 3}, place);
  Doubles moved(std::move(array)), other({0, 0});
  EXPECT_FALSE(array);
  EXPECT_EQ(array.size(), 0);
  char const *words = "the array is empty: it was moved from, or never constructed";
  EXPECT_THROWS(array.get(0, 0), umem::moved_from_error, words);
  EXPECT_THROWS(array.set(1, 0, 0), umem::moved_from_error, words);
  EXPECT_THROWS(static_cast<void>(array.host(umem::read)), umem::moved_from_error, words);
  EXPECT_THROWS(static_cast<void>(array.device(umem::write)), umem::moved_from_error, words);
  EXPECT_THROWS(array.sync_to_host(), umem::moved_from_error, words);
  EXPECT_THROWS(array.flush(), umem::moved_from_error, words);
  EXPECT_THROWS(array.release_host(), umem::moved_from_error, words);
  EXPECT_THROWS(static_cast<void>(array.lock()), umem::moved_from_error, words);
  EXPECT_THROWS(array.context(), umem::moved_from_error, words);
  EXPECT_THROWS(array.part(), umem::moved_from_error, words);
  EXPECT_THROWS(array.copy_to(other), umem::moved_from_error, words);
  EXPECT_THROW(array.get(0, 0), umem::value_error);
  EXPECT_THROW((Array<double, 0>().get()), umem::moved_from_error);
  EXPECT_EQ((Array<double, 0>().size()), 0);
}

/* ---- read-only arrays ---- */

TEST_P(ArrayTest, may_be_read_only) {
  Doubles array({2, 3}, place, with_ghosts(0, 1));
  number(array);
  umem::address adr = array.adr();
  Array<double const, 2> finished(std::move(array));
  EXPECT_FALSE(array);
  EXPECT_EQ(finished.adr(), adr);
  expect_numbered(finished);
  Array<double const, 2> copy(finished);
  expect_numbered(copy);
  copy = finished;
  expect_numbered(copy);
  Doubles again(finished, umem::Host());
  number(again, 9);
  expect_numbered(again, 9);
  expect_numbered(finished);
}

/* ---- foreign memory ---- */

TEST_P(ArrayTest, wraps_foreign_memory) {
  umem::Buffer block(place, 6 * sizeof(double));
  int deleted = 0;
  {
    auto array = Doubles::wrap(block.adr(), {2, 3}, place, [&] { deleted++; });
    EXPECT_EQ(array.adr(), block.adr());
    number(array);
    auto guard = array.host(umem::read);
    Doubles().swap(array);
    EXPECT_EQ(deleted, 0);
    EXPECT_EQ(guard(1, 2), 6);
  }
  EXPECT_EQ(deleted, 1);
  double values[6];
  block.copy_to(values, sizeof values);
  for (int i = 0; i < 6; i++) EXPECT_EQ(values[i], i + 1);

  auto unowned = Doubles::wrap_unowned(block.adr(), {3, 2}, place);
  expect_numbered(unowned);
}

TEST_P(ArrayTest, does_not_wrap_what_is_nowhere) {
  bool deleted = false;
  EXPECT_THROW(Doubles::wrap(place.null(), {2, 3}, place, [&] { deleted = true; }),
               umem::value_error);
  if (!place.can(umemOffsets)) {
    umem::Buffer block(place, 100);
    EXPECT_THROWS(Doubles::wrap(block.adr() + 4, {2, 3}, place, [&] { deleted = true; }),
                  umem::value_error,
                  "the address of the elements is no multiple of their alignment of 8");
  }
  EXPECT_FALSE(deleted);
}

TEST(Array, wraps_pointers) {
  double values[] = {1, 2, 3, 4, 5, 6};
  double const *constant = values;
  auto array = Doubles::wrap_unowned(values, {2, 3});
  auto looked_at = Array<double const, 1>::wrap_unowned(constant, 6);
  array.set(20, 0, 1);
  EXPECT_EQ(values[1], 20);
  EXPECT_EQ(looked_at.get(1), 20);
  EXPECT_EQ(looked_at.host(umem::read)->data, values);
  double *heap = new double[2]{1, 2};
  Array<double, 1>::wrap(heap, 2, [heap] { delete[] heap; }).set(3, 0);
  auto owner = std::make_unique<double[]>(2);
  double *owned = owner.get();
  Array<double, 1>::wrap(owned, 2, [owner = std::move(owner)] {}).set(3, 1);
}

TEST(Array, needs_no_deleter) {
  double values[] = {1, 2};
  static int deleted;
  deleted = 0;
  void (*pointer)() = nullptr;
  std::function<void()> function;
  for (int expected : {1, 4}) {
    EXPECT_EQ((Array<double, 1>::wrap(values, 2, pointer).get(1)), 2);
    EXPECT_EQ((Array<double, 1>::wrap(values, 2, function).get(1)), 2);
    EXPECT_EQ((Array<double, 1>::wrap(values, 2, [] { deleted++; }).get(1)), 2);
    EXPECT_EQ(deleted, expected);
    function = pointer = [] { deleted++; };
  }
}

TEST(Array, is_made_from_braces) {
  std::size_t n = 5;
  EXPECT_EQ((Array<int, 1>({5}).size()), 5);
  EXPECT_EQ((Array<int, 1>({n}).size()), 5);
  EXPECT_EQ((Array<int, 1>(n).size()), 5);
  EXPECT_EQ((Array<int, 2>({n, 2}).size()), 10);
  EXPECT_EQ((Array<int, 0>(Extents<0>()).size()), 1);
}

TEST(Array, needs_a_mirror_that_the_cpu_can_use) {
  umem::ArrayOptions<1> options{{}, umem::File::scratch()};
  EXPECT_THROW((Array<int, 1>(3, umem::Host(), options)), umem::not_supported_error);
}

TEST(Array, exceptions_of_its_own_are_of_their_kind) {
  umem::locked_error locked(std::string("a"));
  umem::moved_from_error moved_from("b");
  EXPECT_EQ(static_cast<umem::runtime_error const &>(locked).status(), umemRuntimeError);
  EXPECT_EQ(static_cast<umem::value_error const &>(moved_from).status(), umemValueError);
  EXPECT_STREQ(locked.what(), "a");
  EXPECT_STREQ(moved_from.what(), "b");
}

/* ---- files ---- */

class ArrayFile : public testing::Test, protected TempFile {};

TEST_F(ArrayFile, holds_what_the_host_wrote) {
  { number(*std::make_unique<Doubles>(Extents<2>{2, 3}, umem::File(path, "w+"))); }
  Array<double const, 2> array({2, 3}, umem::File(path, "r"));
  expect_numbered(array);
  EXPECT_THROW((Array<double const, 2>({2, 3}, array.context())), umem::memory_error);
}

TEST_F(ArrayFile, is_written_by_flush) {
  Doubles array({2, 3}, umem::File(path, "w+"));
  number(array);
  array.flush();
  EXPECT_EQ(array.current(), Side::both);
  expect_numbered(Array<double const, 2>({2, 3}, umem::File(path, "r")));
}

TEST_F(ArrayFile, opened_for_reading_is_not_written) {
  { Doubles::full({2, 3}, 1, umem::File(path, "w")); }
  for (umem::Context const &context :
       {umem::Context(umem::File(path, "r")), umem::Context(umem::MMap(path, "r"))}) {
    Doubles array({2, 3}, context);
    EXPECT_THROW(static_cast<void>(array.host(umem::write)), umem::not_supported_error);
    EXPECT_THROW(static_cast<void>(array.host(umem::discard)), umem::not_supported_error);
    EXPECT_THROW(array.set(2, 0, 0), umem::not_supported_error);
    EXPECT_EQ(array.host(umem::read)(1, 2), 1);
    EXPECT_EQ(array.get(1, 2), 1);
  }
}

TEST_F(ArrayFile, that_cannot_be_written_at_the_end_tells_its_context) {
  umem::File file(path, "w+");
  {
    auto array = Doubles::wrap_unowned(4096, {2, 3}, file); /* where no block is */
    number(array);
    EXPECT_THROW(array.flush(), umem::index_error);
    umem_clear_status(file.c_context());
  }
  EXPECT_EQ(umem_get_status(file.c_context()), umemIndexError);
  umem_thread_clear();
}

/* ---- numbers that the elements do not have ---- */

template <class T> struct Refused {
  Array<T, 1> array = Array<T, 1>::zeros({3}, umem::Host());

  /* Everything that gives elements a number of the program throws, and nothing changes. */
  template <class Number> void expect(Number number, char const *text) {
    array.set(T(1), 2);
    std::string const said = std::string(text) + " does not fit into elements of ";
    auto const refuses = [&](auto call, std::string const &function) {
      try {
        call();
        ADD_FAILURE() << function << " takes " << text;
      } catch (umem::value_error const &e) {
        EXPECT_EQ(std::string(e.what()).rfind(function + ": " + said, 0), 0u) << e.what();
      }
    };
    refuses([&] { umem::fill(array, number); }, "fill");
    refuses([&] { umem::fill(umem::on_host, array.part(), number); }, "fill");
    refuses([&] { umem::iota(array, number); }, "iota");
    refuses([&] { Array<T, 1>::full({3}, number); }, "Array::full");
    refuses([&] { Array<T, 1>::full({3}, number, umem::column_major); }, "Array::full");
    refuses([&] { array.resize({5}, number); }, "Array::resize");
    refuses([&] { array.set(number, 2); }, "Array::set");
    refuses([&] { array.set(number, Extents<1>(2)); }, "Array::set");
    refuses([&] { umem::fill_ghosts(array, umem::constant(number)); }, "constant");
    EXPECT_EQ(array.extents(), Extents(3));
    EXPECT_EQ(array.get(2), T(1));
  }
};

TEST(Numbers, that_elements_do_not_have_are_refused) {
  Refused<unsigned char> bytes;
  bytes.expect(300, "300");
  bytes.expect(-1, "-1");
  bytes.expect(256L, "256");
  bytes.expect(2.5, "2.5");
  bytes.expect(-0.5f, "-0.5");
  bytes.expect(1e30, "1e+30");
  Refused<int> ints;
  ints.expect(std::numeric_limits<unsigned>::max(), "4294967295");
  ints.expect(2147483648.0, "2147483648");
  ints.expect(std::numeric_limits<double>::infinity(), "inf");
  Refused<long> longs;
  longs.expect(9223372036854775808.0, "9.2233720368547758e+18");
  longs.expect(~0ull, "1.8446744073709552e+19");
  Refused<unsigned long> unsigned_longs;
  unsigned_longs.expect(-1, "-1");
  unsigned_longs.expect(18446744073709551616.0, "1.8446744073709552e+19");
  for (double nan : {std::nan("")}) EXPECT_THROW(umem::fill(ints.array, nan), umem::value_error);
}

TEST(Numbers, that_elements_have_may_be_of_any_type) {
  Array<unsigned char, 1> bytes({3});
  umem::fill(bytes, 255.0);
  EXPECT_EQ(bytes.get(1), 255);
  umem::fill(bytes, true);
  EXPECT_EQ(bytes.get(1), 1);
  bytes.set(7L, 1);
  EXPECT_EQ(bytes.get(1), 7);
  auto longs = Array<long, 1>::full({2}, std::numeric_limits<long>::min());
  umem::fill(longs, -9223372036854775808.0);
  EXPECT_EQ(longs.get(1), std::numeric_limits<long>::min());
  auto bools = Array<bool, 1>::full({2}, 2);
  EXPECT_TRUE(bools.get(1));
  auto floats = Array<float, 1>::full({2}, 0.1, umem::Host());
  EXPECT_EQ(floats.get(1), 0.1f);
  auto numbers = Array<std::complex<float>, 1>::full({2}, 0.5);
  EXPECT_EQ(numbers.get(1), 0.5f);
}

TEST(Numbers, of_iota_end_in_the_range_of_the_elements) {
  Array<unsigned char, 1> bytes({256});
  umem::iota(bytes, 255, -1);
  EXPECT_EQ(bytes.get(0), 255);
  EXPECT_EQ(bytes.get(255), 0);
  EXPECT_THROW(umem::iota(bytes, 1), umem::value_error);
  EXPECT_THROW(umem::iota(bytes, 254, -1), umem::value_error);
  EXPECT_THROW(umem::iota(bytes, 0, 0.5), umem::value_error);
  EXPECT_THROW(umem::iota(bytes, 0, std::nan("")), umem::value_error);
  EXPECT_EQ(bytes.get(255), 0);
  umem::iota(bytes, 255.0, -1.0);
  EXPECT_EQ(bytes.get(254), 1);
  Array<short, 1> one({1}), none({0});
  umem::iota(one, 5, 100000);
  EXPECT_EQ(one.get(0), 5);
  umem::iota(none, 0, 100000);
  Array<std::int64_t, 1> longs({2});
  umem::iota(longs, std::numeric_limits<std::int64_t>::min(), ~0ull);
  EXPECT_EQ(longs.get(1), std::numeric_limits<std::int64_t>::max());
  Array<double, 1> doubles({2});
  umem::iota(doubles, 0, 0.5);
  EXPECT_EQ(doubles.get(1), 0.5);
}

TEST(Numbers, of_indices_fit_what_f_takes) {
  Array<int, 2> table({3, 4});
  umem::for_each_indexed(table, [](int &x, int i, int j) { x = 10 * i + j; });
  EXPECT_EQ(table.get(2, 3), 23);
  Array<char, 1> bytes({40000});
  auto const set = [](char &x, short i) { x = static_cast<char>(i); };
  EXPECT_THROW(umem::for_each_indexed(bytes, set), umem::value_error);
  EXPECT_THROW(umem::for_each_index(umem::on_host, bytes.extents(), [](short) {}),
               umem::value_error);
}

} // namespace
