/* part.cpp - umem::Part: parts of arrays, and strided copies between any two contexts. */
#include "arrays.hpp"

namespace {

using umem::Part;

static_assert(std::is_convertible_v<Part<int, 2>, Part<int const, 2>>);
static_assert(!std::is_convertible_v<Part<int const, 2>, Part<int, 2>>);

ON_EACH_PLACE(PartTest);

/* The ways to take a part of an array of extents (4, 5, 6) with ghost cells (1, 2, 0), for View and
 * Part alike. */
struct Identity {
  template <class V> auto operator()(V const &v) const { return v.interior(); }
};
struct WithGhosts {
  template <class V> auto operator()(V const &v) const { return v.with_ghosts(); }
};
struct Steps {
  template <class V> auto operator()(V const &v) const {
    return v.slice(0, -1, 5, 2).slice(1, 0, 5, 3).slice(2, 1, 6, 4);
  }
};
struct Face {
  template <class V> auto operator()(V const &v) const { return v.select(1, -2).select(1, 5); }
};
struct Turned {
  template <class V> auto operator()(V const &v) const {
    return v.interior().transpose().reversed(1).slice(0, 2, 5);
  }
};
struct Permuted {
  template <class V> auto operator()(V const &v) const {
    return v.permute({1, 2, 0}).reversed(0).with_ghosts();
  }
};
struct Nothing {
  template <class V> auto operator()(V const &v) const { return v.slice(1, 2, 2).reversed(1); }
};
struct One {
  template <class V> auto operator()(V const &v) const {
    return v.select(0, 3).select(1, 5).select(0, -2);
  }
};

template <class F> void for_each_way(F const &f) {
  f(Identity());
  f(WithGhosts());
  f(Steps());
  f(Face());
  f(Turned());
  f(Permuted());
  f(Nothing());
  f(One());
}

umem::ArrayOptions<3> with_ghosts() {
  umem::ArrayOptions<3> options{{1, 2, 0}};
  return options;
}

/* Calls f(indices) for all elements of these extents in C order. */
template <int N, class F> void for_each_index(Extents<N> const &extents, F const &f) {
  for (umem::index_t n = 0; n < extents.product(); n++) {
    Extents<N> at;
    umem::index_t rest = n;
    for (int k = N - 1; k >= 0; k--) {
      at[k] = rest % extents[k];
      rest /= extents[k];
    }
    f(at);
  }
}

/* Expects that part, as of the numbered array, holds what the view of such an array holds. */
template <class T, int N> void expect_same(View<T const, N> const &view, View<T, N> const &copied) {
  ASSERT_EQ(view.extents, copied.extents);
  for_each_index(view.extents, [&](Extents<N> const &at) { EXPECT_EQ(copied(at), view(at)); });
}

TEST_P(PartTest, is_copied_as_the_view_would_be) {
  for_each_type([&](auto type) {
    using T = typename decltype(type)::type;
    Array<T, 3> array({4, 5, 6}, place, with_ghosts()),
        model({4, 5, 6}, umem::Host(), with_ghosts());
    number(array);
    number(model);
    array.release_host();
    for_each_way([&](auto way) {
      View<T const, 3> view = *model.host(umem::read);
      auto wanted = way(view);
      auto part = way(array.part());
      EXPECT_EQ(part.extents(), wanted.extents);
      EXPECT_EQ(part.strides(), wanted.strides);
      EXPECT_EQ(part.ghosts(), wanted.ghosts);
      EXPECT_EQ(part.size(), wanted.size());

      constexpr int N = decltype(part)::rank;
      Array<T, N> out(part.extents(), place);
      copy(part, out.part());
      expect_same<T, N>(wanted, *out.host(umem::write));

      std::vector<T> memory(static_cast<std::size_t>(part.size()) + 1);
      View<T, N> raw(memory.data(), part.extents());
      copy(part, umem::part(raw));
      expect_same<T, N>(wanted, raw);
    });
  });
}

TEST_P(PartTest, is_written_as_the_view_would_be) {
  for (char const *name : {"host", "fake-offset", "fake-async", "cuda-async", "file-scratch"}) {
    umem::Context from = open_place(*backend_by_name(name));
    if (!from) continue;
    for_each_way([&](auto way) {
      Array<int, 3> array({4, 5, 6}, place, with_ghosts()),
          model({4, 5, 6}, umem::Host(), with_ghosts());
      number(array);
      number(model);
      View<int, 3> view = *model.host(umem::write);
      auto target = way(view);
      auto part = way(array.part());
      constexpr int N = decltype(part)::rank;
      Array<int, N> values(part.extents(), from);
      number(values, 1000);
      values.sync_to_device();
      copy(values.part(), part);
      umem::index_t n = 1000;
      for_each_index(target.extents,
                     [&](Extents<N> const &at) { target(at) = static_cast<int>(n++); });
      for_each_cell(model,
                    [&](auto const &at, umem::index_t) { EXPECT_EQ(array.get(at), view(at)); });
      auto guard = array.host(umem::read);
      for_each_cell(model,
                    [&](auto const &at, umem::index_t) { EXPECT_EQ((*guard)(at), view(at)); });
    });
  }
}

TEST_P(PartTest, goes_where_the_elements_are) {
  auto array = Array<int, 2>::zeros({4, 6}, place);
  auto values = Array<int, 1>::full(6, 7, place);
  for (bool host_is_newer : {false, true, false}) {
    if (host_is_newer) array.host(umem::write)(0, 0) = 5;
    auto before = array.current();
    copy(values.part(), array.part().select(0, 1));
    EXPECT_EQ(array.current(), before);
    EXPECT_EQ(array.get(1, 5), 7);
    EXPECT_EQ(array.get(0, 0), host_is_newer ? 5 : 0);
    if (!host_is_newer) array.set(0, 0, 0);
    array.sync_to_device();
    array.release_host();
    array.set(0, 0, 0);
  }
  number(array);
  copy(Array<int, 2>::full({4, 6}, 9, place).part(), array.part()); /* everything */
  EXPECT_NE(array.current(), umem::Side::host);
  EXPECT_EQ(array.get(3, 5), 9);
}

TEST_P(PartTest, many_are_copied_in_one_call) {
  for (char const *name : {"host", "fake-offset", "fake-async", "cuda-async", "file-scratch"}) {
    SCOPED_TRACE(name);
    umem::Context other = open_place(*backend_by_name(name));
    if (!other) continue;
    umem::index_t const rows = 12, columns = 7;
    Array<int, 2> u({rows, columns}, place), v({rows, columns}, other);
    auto w = Array<int, 2>::zeros({rows, columns}, place);
    number(u);
    number(v, 5000);
    v.sync_to_device();
    v.release_host();
    std::vector<std::pair<Part<int const, 1>, Part<int, 1>>> pairs;
    for (umem::index_t i = 0; i < rows;
         i++) { /* the rows in another order, but for the last cell */
      auto to = v.part().select(0, i * 5 % rows);
      pairs.emplace_back(u.part().select(0, i).slice(0, 0, 6), to.slice(0, 0, 6));
    }
    for (umem::index_t j = 0; j < columns; j++) /* columns, which have gaps */
      pairs.emplace_back(u.part().select(1, j), w.part().select(1, columns - 1 - j));
    umem::copy_many(pairs);
    for (umem::index_t i = 0; i < rows; i++)
      for (umem::index_t j = 0; j < columns; j++) {
        EXPECT_EQ(v.get(i * 5 % rows, j),
                  j < 6 ? u.get(i, j) : v.get(0, 6) + i * 5 % rows * columns);
        EXPECT_EQ(w.get(i, columns - 1 - j), u.get(i, j));
      }
  }
}

TEST_P(PartTest, many_that_make_no_sense_change_nothing) {
  Array<int, 1> u(10, place), v(10, place);
  number(u);
  number(v, 100);
  auto part = [](Array<int, 1> &array, umem::index_t begin, umem::index_t end) {
    return array.part().slice(0, begin, end);
  };
  EXPECT_THROW(umem::copy_many(std::vector{std::pair(part(u, 0, 4), part(v, 0, 4)),
                                           std::pair(part(u, 4, 8), part(v, 4, 7))}),
               umem::value_error);
  EXPECT_THROW(umem::copy_many(std::vector{std::pair(part(u, 0, 4), part(v, 0, 4)),
                                           std::pair(part(u, 4, 8), part(v, 3, 7))}),
               umem::value_error);
  EXPECT_THROW(umem::copy_many(std::vector{std::pair(part(u, 0, 4), part(v, 0, 4)),
                                           std::pair(part(v, 3, 5), part(u, 7, 9))}),
               umem::value_error);
  for (umem::index_t i = 0; i < 10; i++) EXPECT_EQ(v.get(i), 100 + i);
  umem::copy_many(std::vector<std::pair<Part<int, 1>, Part<int, 1>>>());
  std::vector<int> memory(4);
  umem::copy_many(
      std::vector{std::pair(part(u, 2, 6), View<int, 1>(memory.data(), Extents<1>(4)))});
  EXPECT_EQ(memory[3], u.get(5));
  umem_clear_status(place.c_context());
}

TEST_P(PartTest, many_say_how_far_they_are) {
  Array<int, 2> u({20, 100}, place), v({20, 100}, place);
  number(u);
  std::vector<std::pair<Part<int const, 1>, Part<int, 1>>> pairs;
  for (umem::index_t i = 0; i < 20; i++)
    pairs.emplace_back(std::as_const(u).part().select(0, i), v.part().select(0, 19 - i));
  std::uint64_t last = 0;
  auto progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, 8000u);
    EXPECT_TRUE(!done || done > last);
    last = done;
    return true;
  };
  umem::copy_many(pairs, progress, 1000);
  EXPECT_EQ(last, 8000u);
  EXPECT_EQ(v.get(0, 5), u.get(19, 5));
  EXPECT_THROW(umem::copy_many(
                   pairs, [](std::uint64_t done, std::uint64_t) { return !done; }, 400),
               umem::cancelled_error);
  EXPECT_THROW(
      umem::copy_many(pairs, [](std::uint64_t, std::uint64_t) -> bool { throw std::string("x"); }),
      std::string);
  EXPECT_THROW(umem::copy_many(pairs,
                               [](std::uint64_t done, std::uint64_t total) -> bool {
                                 if (done == total) throw std::string("the end");
                                 return true;
                               }),
               std::string);
  EXPECT_EQ(umem_thread_status(), umemOK);
  umem_clear_status(place.c_context());
}

/* Calls f with a context of each kind that queues work. */
template <class F> void for_each_ordered(F const &f) {
  for (char const *name : {"fake-async", "fake-managed", "cuda-async", "cuda-async-1"}) {
    SCOPED_TRACE(name);
    umem::Context context = open_place(*backend_by_name(name));
    if (context) f(context);
  }
}

TEST_P(PartTest, comes_after_what_was_queued_elsewhere) {
  for_each_ordered([&](umem::Context const &queue) {
    Array<int, 2> queued({40, 60}, queue), array({40, 60}, place), host({40, 60});
    number(queued);
    number(array, 5000);
    copy(queued.part(), array.part());
    array.set(-1, 0, 0);  /* after the copy */
    number(queued, 9000); /* and this too */
    EXPECT_EQ(array.get(0, 0), -1);
    EXPECT_EQ(array.get(39, 59), 2400);

    number(array, 5000);
    number(queued);
    copy(queued.part().select(0, 7), array.part().select(0, 3)); /* to the host side, if any */
    array.sync_to_device();
    array.release_host();
    EXPECT_EQ(array.get(3, 0), 7 * 60 + 1);
    EXPECT_EQ(array.get(2, 0), 5000 + 2 * 60);

    number(host);
    copy(host.part(), queued.part());
    number(host, 9000);
    copy(queued.part(), array.part());
    copy(array.part(), host.part());
    queued = Array<int, 2>();
    expect_numbered(array);
    expect_numbered(host);
  });
}

TEST_P(PartTest, goes_to_and_from_a_mirror_that_queues_work) {
  for_each_ordered([&](umem::Context const &queue) {
    if (!queue.can(umemCpuReadable | umemCpuWritable)) return;
    umem::ArrayOptions<2> options{{}, queue};
    Array<int, 2> array({40, 60}, place, options), row({1, 60});
    number(row);
    number(array, 5000);
    copy(row.part().select(0, 0), array.part().select(0, 3));
    EXPECT_EQ(array.host(umem::read)(3, 59), 60);
    EXPECT_EQ(array.host(umem::read)(4, 0), 5240);

    number(array, 7000);
    copy(array.part().select(0, 3), row.part().select(0, 0));
    number(array, 9000);
    EXPECT_EQ(row.get(0, 59), 7239);
  });
}

TEST_P(PartTest, is_written_when_foreign_memory_ends) {
  if (!place.can(umemCpuReadable | umemCpuWritable)) GTEST_SKIP();
  for_each_ordered([&](umem::Context const &queue) {
    Array<int, 1> queued(1000, queue);
    number(queued);
    umem::Buffer block(place, queued.nbytes());
    int const *values = static_cast<int *>(block.data());
    bool written = false;
    auto array = Array<int, 1>::wrap(block.adr(), 1000, place,
                                     [&] { written = values[0] == 1 && values[999] == 1000; });
    copy(queued.part(), array.part());
    array = Array<int, 1>();
    EXPECT_TRUE(written);
  });
}

TEST_P(PartTest, is_written_before_a_newer_host_side_is_written_back) {
  for_each_ordered([&](umem::Context const &queue) {
    Array<int, 1> queued(1000, queue);
    number(queued, 5000);
    queued.sync_to_device();
    umem::Buffer block(place, queued.nbytes());
    auto array = Array<int, 1>::wrap_unowned(block.adr(), 1000, place);
    number(array);
    copy(queued.part().slice(0, 0, 500), array.part().slice(0, 0, 500));
    array = Array<int, 1>();
    auto written = Array<int, 1>::wrap_unowned(block.adr(), 1000, place);
    EXPECT_EQ(written.get(0), 5000);
    EXPECT_EQ(written.get(499), 5499);
    EXPECT_EQ(written.get(500), 501);
    EXPECT_EQ(written.get(999), 1000);
  });
}

TEST_P(PartTest, turns_ghost_cells_around_an_empty_interior) {
  umem::ArrayOptions<2> options{{1, 0}};
  Array<int, 2> array({0, 4}, place, options), model({0, 4}, umem::Host(), options);
  number(array);
  number(model);
  auto view = model.host(umem::read)->reversed(1).with_ghosts();
  auto part = array.part().reversed(1).with_ghosts();
  ASSERT_EQ(part.extents(), view.extents);
  Array<int, 2> out(part.extents(), place);
  copy(part, out.part());
  expect_same<int, 2>(view, *out.host(umem::write));

  auto rows = model.host(umem::read)->reversed(0).with_ghosts();
  copy(array.part().reversed(0).with_ghosts(), out.part());
  expect_same<int, 2>(rows, *out.host(umem::write));
}

TEST_P(PartTest, may_be_sliced_by_any_step) {
  umem::index_t const most = std::numeric_limits<umem::index_t>::max();
  Array<int, 2> array({4, 6}, place);
  number(array);
  auto part = array.part().slice(0, 1, 4, most).slice(1, 2, 2, most);
  EXPECT_EQ(part.extents(), (Extents<2>{1, 0}));
  EXPECT_EQ(part.strides(), (Extents<2>{6, 1}));
  Array<int, 2> out({1, 6}, place);
  copy(array.part().slice(0, 1, 4, most), out.part());
  expect_numbered(out, 7);
}

/* As through a copy of the source, which is another array. */
template <class Src, class Dst>
void check_overlap(Array<int, 2> &array, Src const &src, Dst const &dst) {
  number(array);
  Array<int, 2> wanted(array, umem::Host()), apart(src(array).extents());
  copy(src(wanted), apart.part());
  copy(apart.part(), dst(wanted));
  copy(src(array), dst(array));
  auto found = array.host(umem::read), expected = wanted.host(umem::read);
  for (umem::index_t i = 0; i < array.size(); i++) ASSERT_EQ(found[i], expected[i]);
}

TEST_P(PartTest, may_be_copied_over_itself) {
  using umem::full_extent;
  using umem::range;
  Array<int, 2> array({9, 9}, place);
  auto all = [](auto &a) { return a.part(); };
  auto low = [](auto &a) { return a.part(range(0, 7), full_extent); };
  auto high = [](auto &a) { return a.part(range(2, 9), full_extent); };
  auto left = [](auto &a) { return a.part(full_extent, range(0, 8)); };
  auto right = [](auto &a) { return a.part(full_extent, range(1, 9)); };
  check_overlap(
      array, [](auto &a) { return a.part().transpose(); }, all);
  check_overlap(
      array, [](auto &a) { return a.part().reversed(0); }, all);
  check_overlap(
      array, [](auto &a) { return a.part().reversed(0).reversed(1); }, all);
  check_overlap(array, low, high);
  check_overlap(array, high, low);
  check_overlap(array, left, right);
  check_overlap(array, right, left);
  check_overlap(array, all, all);
  check_overlap(
      array, [](auto &a) { return a.part().slice(0, 0, 9, 2); },
      [](auto &a) { return a.part(range(4, 9), full_extent); });
}

TEST_P(PartTest, keeps_the_memory_alive) {
  auto array = Array<int, 1>::full(3, 4, place);
  auto part = array.part();
  array = Array<int, 1>();
  Array<int, 1> out(3);
  copy(part, out.part());
  EXPECT_EQ(out.get(2), 4);
}

TEST_P(PartTest, of_memory_that_is_no_array) {
  umem::Buffer block(place, 24 * sizeof(int));
  Array<int, 2> numbers({4, 6});
  number(numbers);
  Part<int, 2> part(place, block.adr(), {4, 6}), turned(place, block.adr(), {6, 4}, {1, 6});
  copy(numbers.part(), part);
  Array<int, 2> out({6, 4});
  copy(turned, out.part());
  EXPECT_EQ(out.get(2, 3), numbers.get(3, 2));
  EXPECT_THROW((Part<int, 2>(place, block.adr(), {-1, 2})), umem::value_error);
}

TEST_P(PartTest, refuses_what_does_not_fit) {
  Array<int, 2> array({4, 6}, place), other({6, 4}, place);
  auto part = array.part();
  EXPECT_THROWS(copy(part, other.part()), umem::value_error,
                "a copy of extents (4, 6) to extents (6, 4)");
  EXPECT_THROWS(part.select(0, 4), umem::index_error,
                "index 4 is outside the range [0, 4) of dimension 0");
  EXPECT_THROWS(part.select(2, 0), umem::index_error,
                "there is no dimension 2 in a view of rank 2");
  EXPECT_THROWS(part.slice(1, 2, 7), umem::index_error,
                "the slice [2, 7) is outside the range [0, 6) of dimension 1");
  EXPECT_THROWS(part.slice(1, 2, 5, 0), umem::value_error, "the step 0 of a slice is not positive");
  EXPECT_THROW(part.slice(-1, 0, 1), umem::index_error);
  EXPECT_THROW(part.slice(0, 3, 2), umem::index_error);
  EXPECT_THROW(part.reversed(2), umem::index_error);
  EXPECT_THROW(part.permute({0, 0}), umem::value_error);
  EXPECT_THROW(part.permute({0, 2}), umem::value_error);
  auto guard = other.host(umem::read);
  EXPECT_THROW(copy(part, other.part().transpose()), umem::locked_error);
  copy(other.part().transpose(), part); /* only read */
}

} // namespace
