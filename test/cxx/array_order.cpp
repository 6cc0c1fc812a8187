/* array_order.cpp - arrays in row-major and column-major order, and arrays that get other extents,
 * on every context. */
#include "arrays.hpp"
#include "npy_folder.hpp"

#include <umem/adaptors.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/reductions.hpp>
#include <umem/sweep.hpp>

namespace {

using umem::full_extent;
using umem::Order;
using umem::range;

constexpr Order each_order[] = {umem::row_major, umem::column_major};

/* An element that depends on its indices alone. */
template <int N> double value_at(Extents<N> const &at) {
  double value = 1;
  for (umem::index_t i : at) value = 10 * value + static_cast<double>(i);
  return value;
}

struct ArrayOrder : EachPlace {
  bool has_mirror() const { return !shares_memory(place); }

  /* Makes each element, and each ghost cell, its value_at on one side alone, where there are
   * two. */
  template <int N> void number(Array<double, N> &array, Side side = Side::host) const {
    {
      auto guard = array.host(umem::discard);
      for_each_cell(array, [&](auto const &at, umem::index_t) { (*guard)(at) = value_at(at); });
    }
    if (side == Side::device) array.release_host();
  }

  template <class A> void expect_values(A const &array) const {
    for_each_indices({}, array.extents(),
                     [&](auto const &at) { EXPECT_EQ(array.get(at), value_at(at)); });
  }

  void expect_side(Doubles const &array, Side side) const {
    EXPECT_EQ(array.current(), has_mirror() ? side : Side::both);
  }

  umem::ArrayOptions<2> ghosts(Order order) const {
    umem::ArrayOptions<2> options{{{1, 0}, {0, 2}}};
    options.order = order;
    return options;
  }
};
FOR_EACH_PLACE(ArrayOrder);

/* ---- column-major order ---- */

TEST_P(ArrayOrder, of_columns_is_that_of_the_memory_on_both_sides) {
  Array<double, 3> array({2, 3, 4}, umem::column_major, place);
  EXPECT_EQ(array.order(), umem::column_major);
  EXPECT_EQ(array.strides(), Extents(1, 2, 6));
  number(array);
  array.sync_to_device();
  auto const memory = memory_of(array);
  for_each_indices({}, array.extents(), [&](Extents<3> const &at) {
    auto const n = static_cast<std::size_t>(at[0] + 2 * at[1] + 6 * at[2]);
    EXPECT_EQ(memory[n], value_at(at));
  });
  array.release_host();
  auto const guard = array.host(umem::read);
  EXPECT_EQ(guard->strides, Extents(1, 2, 6));
  EXPECT_EQ(guard->data[1], value_at(Extents(1, 0, 0)));
  expect_values(array);
  EXPECT_EQ((Array<double, 3>({2, 3, 4}, place).order()), umem::row_major);
}

TEST_P(ArrayOrder, of_columns_has_ghost_cells_and_single_elements) {
  Doubles array({2, 3}, place, ghosts(umem::column_major));
  EXPECT_EQ(array.strides(), Extents(1, 3));
  number(array, Side::device);
  for_each_cell(array,
                [&](auto const &at, umem::index_t) { EXPECT_EQ(array.get(at), value_at(at)); });
  array.set(-7, -1, 4);
  EXPECT_EQ(array.get(-1, 4), -7);
  EXPECT_EQ(memory_of(array)[3 * 4], -7) << "the first cell of column 4";
  array.set_ghosts({});
  EXPECT_EQ(array.extents(), Extents(3, 5));
  EXPECT_EQ(array.strides(), Extents(1, 3));
  EXPECT_EQ(array.get(0, 4), -7);
}

TEST_P(ArrayOrder, is_chosen_when_memory_is_filled_or_wrapped) {
  auto const zeros = Doubles::zeros({2, 3}, umem::column_major, place);
  EXPECT_EQ(zeros.order(), umem::column_major);
  EXPECT_EQ(zeros.get(1, 2), 0);
  auto const full = Doubles::full({2, 3}, 7, umem::column_major, place);
  EXPECT_EQ(full.order(), umem::column_major);
  EXPECT_EQ(full.get(1, 2), 7);
  double memory[6] = {0, 1, 2, 3, 4, 5};
  umem::ArrayOptions<2> options;
  options.order = umem::column_major;
  auto const wrapped = Doubles::wrap_unowned(memory, {2, 3}, umem::Host(), options);
  EXPECT_EQ(wrapped.get(1, 2), 5);
  EXPECT_EQ(wrapped.get(0, 1), 2);
}

TEST_P(ArrayOrder, stays_in_copies_moves_and_locks_and_of_the_target_in_assignments) {
  for (Order order : each_order)
    for (Side side : {Side::host, Side::device}) {
      Doubles array({2, 3}, place, ghosts(order));
      number(array, side);
      Doubles copy(array), there(array, umem::Host());
      EXPECT_EQ(copy.order(), order);
      EXPECT_EQ(there.order(), order);
      expect_values(copy);
      expect_values(there);
      for (Order other : each_order) {
        for (Extents<2> const &extents : {Extents(2, 3), Extents(5, 1)}) {
          Doubles target(extents, place, ghosts(other)), taken(extents, place, ghosts(other));
          target = array;
          EXPECT_EQ(target.order(), other);
          for_each_cell(array, [&](auto const &at, umem::index_t) {
            EXPECT_EQ(target.get(at), value_at(at));
          });
          taken = Doubles(array);
          EXPECT_EQ(taken.order(), other);
          expect_values(taken);
        }
        Array<double const, 2> read_only(Doubles({2, 3}, place, ghosts(other)));
        read_only = Array<double const, 2>(array, place);
        EXPECT_EQ(read_only.order(), other);
        expect_values(read_only);
        Doubles target({2, 3}, umem::Host(), ghosts(other));
        array.copy_to(target);
        expect_values(target);
        EXPECT_EQ(target.get(-1, 4), value_at(Extents(-1, 4)));
      }
      Doubles moved(std::move(copy));
      EXPECT_EQ(moved.order(), order);
      EXPECT_EQ(moved.lock().order(), order);
      Array<double const, 2> finished(std::move(moved));
      EXPECT_EQ(finished.order(), order);
      expect_values(finished);
      Doubles empty;
      empty = array;
      EXPECT_EQ(empty.order(), order);
    }
}

/* ---- loops ---- */

/* Calls of a loop with one thread, in their order. */
struct Visited {
  std::vector<Extents<2>> *visits;
  void operator()(double &x, umem::index_t i, umem::index_t j) const {
    x = value_at(Extents(i, j));
    visits->push_back(Extents(i, j));
  }
};

TEST_P(ArrayOrder, of_loops_is_that_of_the_memory) {
  for (Order order : each_order) {
    Doubles array({3, 4}, place, ghosts(order));
    std::vector<Extents<2>> visits;
    umem::for_each_indexed(umem::on_host, array, Visited{&visits});
    expect_values(array);
    ASSERT_EQ(visits.size(), 12u);
    EXPECT_EQ(visits[1], order == umem::row_major ? Extents(0, 1) : Extents(1, 0));
    visits.clear();
    umem::for_each_indexed(umem::on_host, array, {{-1, 1}, {2, 3}}, Visited{&visits});
    ASSERT_EQ(visits.size(), 6u);
    EXPECT_EQ(visits[0], Extents(-1, 1));
    EXPECT_EQ(visits[2], order == umem::row_major ? Extents(0, 1) : Extents(1, 1));
    EXPECT_EQ(array.get(-1, 2), value_at(Extents(-1, 2)));
  }
}

TEST_P(ArrayOrder, may_differ_between_the_operands_of_a_loop) {
  for (Order one : each_order)
    for (Order other : each_order) {
      Array<double, 3> in({3, 4, 5}, one, place), out({3, 4, 5}, other, place);
      number(in, Side::device);
      umem::transform(umem::on_host, in, out, [](double x) { return -x; });
      for_each_indices({}, in.extents(),
                       [&](auto const &at) { ASSERT_EQ(out.get(at), -value_at(at)); });
      umem::for_each_indexed(
          umem::on_host,
          [](double &z, double x, umem::index_t i, umem::index_t j, umem::index_t k) {
            z = x - value_at(Extents(i, j, k));
          },
          umem::discard(out), in);
      EXPECT_EQ(umem::min(umem::on_host, out), 0);
      EXPECT_EQ(umem::max(umem::on_host, out), 0);
      copy(in, out);
      expect_values(out);
      copy(in.part(full_extent, range(1, umem::end), 2), out.part(full_extent, range(0, 3), 4));
      EXPECT_EQ(out.get(2, 1, 4), value_at(Extents(2, 2, 2)));
      EXPECT_EQ(out.get(2, 3, 4), value_at(Extents(2, 3, 4)));
    }
}

struct PlusOwnIndices {
  umem::View<double const, 2> view;
  double operator()(double &x, umem::index_t i, umem::index_t j) const {
    EXPECT_EQ(&x, &view(i, j));
    return view(i, j) + static_cast<double>(100 * i + j);
  }
};

TEST_P(ArrayOrder, does_not_change_what_reductions_return) {
  Doubles row({3, 4}, place, ghosts(umem::row_major)),
      column({3, 4}, place, ghosts(umem::column_major));
  number(row);
  number(column);
  EXPECT_EQ(umem::sum(umem::on_host, row), umem::sum(umem::on_host, column));
  EXPECT_EQ(umem::argmax(umem::on_host, column), Extents(2, 3));
  EXPECT_EQ(umem::argmin(umem::on_host, column), Extents(0, 0));
  for (auto *array : {&row, &column}) {
    auto const guard = array->host(umem::write);
    umem::Range<2> const cells({-1, 0}, {3, 5});
    EXPECT_EQ(umem::sweep(umem::on_host, *guard, cells, 0.0, umem::plus(), PlusOwnIndices{*guard}),
              umem::sweep(umem::on_host, guard->transpose().transpose(), cells, 0.0, umem::plus(),
                          PlusOwnIndices{*guard}));
    double expected = 0;
    for_each_indices(cells.begin, cells.end, [&](Extents<2> const &at) {
      expected += value_at(at) + static_cast<double>(100 * at[0] + at[1]);
    });
    EXPECT_EQ(umem::sweep(umem::on_host, *guard, cells, 0.0, umem::plus(), PlusOwnIndices{*guard}),
              expected);
  }
  umem::iota(umem::on_host, column, 0.0);
  EXPECT_EQ(column.get(1, 1), 5) << "numbers count in C order";
}

TEST_P(ArrayOrder, does_not_change_ghost_cells_rows_files_and_text) {
  Folder folder;
  std::vector<std::string> texts;
  for (Order order : each_order) {
    Doubles array({3, 4}, place, ghosts(order));
    number(array);
    umem::fill_ghosts(umem::on_host, array, umem::periodic);
    std::string text;
    for_each_cell(
        array, [&](auto const &at, umem::index_t) { text += std::to_string(array.get(at)) + " "; });
    Array<double, 1> sums({3});
    umem::sum_along(umem::on_host, array, 1, sums);
    std::ostringstream out;
    umem::save_npy(folder / "u.npy", array);
    out << array << sums << umem::load_npy<double, 2>(folder / "u.npy", place, ghosts(order));
    texts.push_back(text + out.str());
  }
  EXPECT_EQ(texts[0], texts[1]);
}

/* A part of an array whose device side alone is current goes through a buffer, in the order of the
 * array. */
TEST_P(ArrayOrder, of_a_part_in_a_buffer_is_that_of_the_array) {
  for (Order order : each_order) {
    Doubles array({4, 5}, place, ghosts(order));
    number(array, Side::device);
    umem::for_each(umem::on_host, array.part(range(1, 3), range(0, umem::end)),
                   [](double &x) { x = -x; });
    expect_side(array, Side::device);
    for_each_cell(array, [&](Extents<2> const &at, umem::index_t) {
      bool const inside = at[0] >= 1 && at[0] < 3 && at[1] >= 0 && at[1] < 5;
      EXPECT_EQ(array.get(at), inside ? -value_at(at) : value_at(at));
    });
  }
}

/* ---- slices of arrays, guards and locks ---- */

TEST_P(ArrayOrder, is_no_matter_to_slices) {
  for (Order order : each_order) {
    Doubles array({4, 5}, place, ghosts(order));
    number(array, Side::device);
    auto const part = array.part(range(umem::end - 1, -2, -2), 3);
    static_assert(std::is_same_v<std::remove_const_t<decltype(part)>, umem::Part<double, 1>>);
    Array<double, 1> to({3}, umem::Host());
    copy(part, to.part());
    expect_side(array, Side::device);
    for (umem::index_t i = 0; i < 3; i++) EXPECT_EQ(to.get(i), value_at(Extents(3 - 2 * i, 3)));
    Doubles const &same = array;
    static_assert(std::is_same_v<decltype(same.part(0, full_extent)), umem::Part<double const, 1>>);
    auto const guard = array.host(umem::write);
    EXPECT_EQ(&guard.part(1, range(1, 4))(2), &guard(1, 3));
    EXPECT_THROWS(
        array.part(4, 0), umem::index_error,
        "part: index 4 is outside the range [-1, 4) of dimension 0 of the extents (4, 5)");
  }
  EXPECT_THROW(Doubles().part(0, 0), umem::moved_from_error);
}

/* ---- reshape ---- */

TEST_P(ArrayOrder, decides_which_elements_a_reshaped_array_has) {
  for (Order order : each_order) {
    Doubles array({4, 6}, order, place);
    number(array, Side::device);
    auto const before = memory_of(array);
    umem::address const adr = array.adr();
    array.reshape({8, 3});
    EXPECT_EQ(array.extents(), Extents(8, 3));
    EXPECT_EQ(array.get(1, 0), value_at(order == umem::row_major ? Extents(0, 3) : Extents(1, 0)));
    Array<double, 3> other = std::move(array).reshape(Extents{2, 3, 4});
    EXPECT_FALSE(array);
    EXPECT_EQ(other.adr(), adr);
    EXPECT_EQ(other.order(), order);
    EXPECT_EQ(memory_of(other), before);
    Array<double, 3> again = std::move(other).reshape({4, 3, 2});
    EXPECT_EQ(again.extents(), Extents(4, 3, 2));
    EXPECT_FALSE(other);
  }
}

TEST_P(ArrayOrder, stays_when_an_array_cannot_be_reshaped) {
  Doubles array({4, 6}, place), framed({4, 6}, place, ghosts(umem::row_major));
  number(array);
  EXPECT_THROWS(array.reshape({5, 5}), umem::value_error,
                "reshape: the extents (4, 6) and (5, 5) have different numbers of elements");
  EXPECT_THROWS(std::move(array).reshape(Extents{-24, 1, -1}), umem::value_error,
                "reshape: the extents (4, 6) and (-24, 1, -1) have different numbers of elements");
  EXPECT_THROWS(framed.reshape({6, 4}), umem::value_error,
                "reshape: an array of extents (4, 6) with (1, 0) before and (0, 2) after ghost "
                "cells cannot get the extents (6, 4): it must have no ghost cells");
  {
    auto guard = array.host(umem::read);
    EXPECT_THROWS(array.reshape({6, 4}), umem::locked_error, "a guard of the array is alive");
  }
  {
    auto lock = array.lock();
    EXPECT_THROWS(std::move(array).reshape(Extents{24}), umem::locked_error, "the array is locked");
  }
  EXPECT_THROW(Doubles().reshape({0, 0}), umem::moved_from_error);
  EXPECT_EQ(array.extents(), Extents(4, 6));
  expect_values(array);
}

TEST_P(ArrayOrder, of_parts_decides_about_their_other_extents) {
  Doubles array({4, 6}, place);
  number(array, Side::device);
  Array<double, 3> to({4, 2, 2}, umem::Host());
  copy(array.part(full_extent, range(0, 4)).reshape(Extents{4, 2, 2}), to.part());
  EXPECT_EQ(to.get(3, 1, 0), value_at(Extents(3, 2)));
  EXPECT_THROW(array.part(full_extent, range(0, 4)).reshape(Extents{16}), umem::value_error);
}

/* ---- resize ---- */

TEST_P(ArrayOrder, stays_when_an_array_is_resized) {
  for (Order order : each_order)
    for (Side side : {Side::host, Side::device})
      for (Extents<2> const &extents : {Extents(6, 8), Extents(2, 3), Extents(6, 3), Extents(2, 8),
                                        Extents(0, 9), Extents(4, 5)}) {
        Doubles array({4, 5}, place, ghosts(order));
        number(array, side);
        umem::Context const context = array.context();
        array.resize(extents, 7);
        EXPECT_EQ(array.extents(), extents);
        EXPECT_EQ(array.order(), order);
        EXPECT_EQ(array.ghosts(), ghosts(order).ghosts);
        EXPECT_EQ(array.context(), context);
        if (extents.product() > 0) expect_side(array, side);
        bool const is_same = extents == Extents(4, 5);
        for_each_cell(array, [&](Extents<2> const &at, umem::index_t) {
          bool const is_old = is_same || (at[0] >= 0 && at[0] < 4 && at[0] < extents[0] &&
                                          at[1] >= 0 && at[1] < 5 && at[1] < extents[1]);
          EXPECT_EQ(array.get(at), is_old ? value_at(at) : 7);
        });
      }
  Array<double, 1> line({3}, place);
  number(line);
  line.resize({5});
  for (umem::index_t i = 0; i < 3; i++) EXPECT_EQ(line.get(i), value_at(Extents(i)));
  line.resize({2});
  expect_values(line);
}

TEST_P(ArrayOrder, of_a_resize_moves_the_current_side_alone) {
  if (!has_mirror() || !counts_moves() || (GetParam()->traits & backendWrapped))
    GTEST_SKIP() << "there is nothing to count, or another layer sets bytes, too";
  Doubles array({40, 50}, place);
  number(array);
  std::size_t const before = moves();
  array.resize({60, 60});
  EXPECT_EQ(moves(), before) << "the host side alone was current";
  expect_side(array, Side::host);
  array.sync_to_device();
  array.release_host();
  array.resize({20, 20});
  expect_side(array, Side::device);
  expect_values(array);
}

TEST_P(ArrayOrder, stays_when_an_array_cannot_be_resized) {
  Doubles array({4, 5}, place);
  number(array);
  {
    auto guard = array.host(umem::read);
    EXPECT_THROWS(array.resize({5, 5}), umem::locked_error, "a guard of the array is alive");
  }
  {
    auto lock = array.lock();
    EXPECT_THROWS(array.resize({5, 5}), umem::locked_error, "the array is locked");
  }
  EXPECT_THROW(array.resize({-1, 5}), umem::value_error);
  double memory[6] = {};
  auto wrapped = Doubles::wrap_unowned(memory, {2, 3});
  EXPECT_THROWS(wrapped.resize({3, 3}), umem::value_error,
                "resize: an array of extents (2, 3) around foreign memory cannot get the extents "
                "(3, 3)");
  EXPECT_NO_THROW(wrapped.resize({2, 3}));
  EXPECT_THROW(Doubles().resize({1, 1}), umem::moved_from_error);
  umem::Part<double, 2> const part = array.part();
  array.resize({5, 5});
  EXPECT_EQ(part.extents(), Extents(4, 5));
  Doubles kept({4, 5});
  copy(part, kept.part());
  expect_values(kept);
}

/* Each call of each context that a resize makes fails once. */
TEST_P(ArrayOrder, of_failures_leaves_an_array_as_it_was) {
  for (Side side : {Side::host, Side::device})
    for (bool of_host : {false, true}) {
      umem::Fault fault(place), host((umem::Host()));
      umem::Fault const &failing = of_host ? host : fault;
      umem::ArrayOptions<2> options{{}, host};
      bool failed = true;
      for (std::uint64_t nth = 1; failed; nth++) {
        ASSERT_LT(nth, 50u);
        Doubles array({4, 5}, fault, options);
        number(array, side);
        umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
        plan.nth = nth;
        failing.set_plan(plan);
        failed = false;
        try {
          array.resize({6, 3}, 1);
        } catch (umem::error const &) {
          failed = true;
        }
        plan.nth = 0;
        failing.set_plan(plan);
        EXPECT_TRUE(failed || nth > 1 || of_host) << "a resize without a call";
        if (!failed) break;
        EXPECT_EQ(array.extents(), Extents(4, 5));
        expect_side(array, side);
        expect_values(array);
      }
      umem_clear_status(fault.c_context());
      umem_clear_status(host.c_context());
    }
  forget_failure();
}

} // namespace
