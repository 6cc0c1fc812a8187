/* operands.cpp - loops, copies and reductions over arrays, locks, parts, views and guards alike:
 * where they run, what they transfer, and what they leave current. */
#include "arrays.hpp"

#include <umem/blocks.hpp>
#include <umem/ledger.hpp>
#include <umem/print.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

namespace {

using umem::discard;
using umem::index_t; /* here, since POSIX has a function of that name */
using umem::Part;
using umem::read;
using umem::write;

constexpr umem::HostPlace here = umem::on_host;

/* ---- what a functor does with its arguments ---- */

struct Generic {
  template <class T> void operator()(T &) const {}
};
struct Mixed {
  void operator()(double &, double const &, double, index_t) const noexcept {}
};
template <class F, std::size_t K> inline constexpr bool only_reads = umem::detail::only_reads<F, K>;
static_assert(!only_reads<Mixed, 0> && only_reads<Mixed, 1> && only_reads<Mixed, 2>);
static_assert(!only_reads<Mixed, 4> && !only_reads<Generic, 0>);
static_assert(only_reads<void (*)(double), 0> && !only_reads<void (*)(double &), 0>);

/* ---- which arguments are indices ---- */

template <class F, class... T>
inline constexpr bool is_indexed = umem::detail::indexed_call<index_t, F, 2, T...>::with_indices;
struct Either {
  void operator()(double &, double, index_t, index_t) const {}
  void operator()(double &, index_t, index_t) const {}
  void operator()(double &, double, double) const {}
};
struct AllDeduced {
  template <class T, class... Indices> void operator()(T &, Indices...) const {}
};
struct OneDeduced {
  template <class Index> void operator()(double &, Index, double) const {}
};
template <class Index> struct Widths {
  void operator()(double &, Index, Index const &) const {}
};
struct Defaulted {
  void operator()(double &, index_t, index_t, double = 0) const {}
};
static_assert(is_indexed<Either, double> && is_indexed<Either, double, double>);
static_assert(is_indexed<AllDeduced, double> && is_indexed<AllDeduced, double, double const>);
static_assert(!is_indexed<OneDeduced, double> && is_indexed<Defaulted, double>);
static_assert(is_indexed<Widths<int>, double> && is_indexed<Widths<std::size_t>, double>);
static_assert(is_indexed<Widths<short>, double> && is_indexed<Widths<unsigned char>, double>);
static_assert(!is_indexed<Widths<bool>, double> && !is_indexed<Widths<float>, double>);
static_assert(!is_indexed<Widths<std::complex<double>>, double>);
static_assert(!is_indexed<Widths<umem::Extents<1>>, double>);
static_assert(is_indexed<void (*)(double &, int, long), double>);
static_assert(!is_indexed<void (*)(double &, int, float), double>);
static_assert(is_indexed<std::function<void(double &, int, int)>, double>);
static_assert(!is_indexed<std::function<void(double &, int, double)>, double>);

constexpr auto generic = [](auto &x, auto i, auto j) { x = static_cast<double>(i * j); };
constexpr auto mixed = [](auto &x, auto i, index_t j) { x = static_cast<double>(i * j); };
constexpr auto fraction = [](auto &x, auto i, double j) { x = static_cast<double>(i) * j; };
constexpr auto complex = [](auto &x, auto i, std::complex<double> j) { x = double(i) * j.real(); };
static_assert(is_indexed<decltype(generic), double> && is_indexed<decltype(mixed), double>);
static_assert(!is_indexed<decltype(fraction), double> && !is_indexed<decltype(complex), double>);

static_assert(umem::detail::is_operand<Doubles const &> && umem::detail::is_operand<View<int, 0>>);
static_assert(umem::detail::is_operand<umem::ArrayLock<int, 1>> &&
              umem::detail::is_operand<umem::HostGuard<int const, 1> &>);
static_assert(!umem::detail::is_operand<umem::Context> && !umem::detail::is_operand<double *> &&
              !umem::detail::is_operand<umem::Accessed<Doubles &, umem::read_t>>);

/* ---- on every context ---- */

struct Operands : EachPlace {
  bool is_gpu() const { return umem::Place(place).is_device(); }
  bool has_mirror() const { return !shares_memory(place); }

  /* 100 * i + j, on the device side alone. */
  Doubles numbered(umem::Extents<2> const &extents, umem::Extents<2> const &ghosts = {}) const {
    Doubles array(extents, place, {ghosts, {}, 0});
    umem::for_each_indexed(
        here, array, {{-ghosts[0], -ghosts[1]}, all_of(extents, ghosts)},
        [](double &x, index_t i, index_t j) { x = static_cast<double>(100 * i + j); });
    array.release_host();
    return array;
  }
  static umem::Extents<2> all_of(umem::Extents<2> extents, umem::Extents<2> const &ghosts) {
    for (int k = 0; k < 2; k++) extents[k] += ghosts[k];
    return extents;
  }

  /* The bytes of all copies during f(). */
  template <class F> std::uint64_t bytes_of(F const &f) const {
    umem::Ledger ledger;
    umem::Ledger::clear();
    f();
    std::uint64_t bytes = 0;
    for (umemLedgerRecord const &record : umem::Ledger::read()) bytes += record.bytes;
    return bytes;
  }
  /* Where there is a mirror, so many; else nothing moves. */
  template <class F> void expect_bytes(std::size_t bytes, F const &f) const {
    std::uint64_t const moved = bytes_of(f);
    if (has_mirror())
      EXPECT_EQ(moved, bytes);
    else
      EXPECT_EQ(moved, 0u);
  }
  Side side_before() const { return has_mirror() ? Side::device : Side::both; }
};
FOR_EACH_PLACE(Operands);

/* Every kind of operand over row 1 of an array, or a column of another rank, through the same
 * calls. */
template <class A> void expect_all_loops(A &&row, index_t count) {
  auto twice = [](double &x) { x *= 2; };
  umem::fill(here, row, 3);
  umem::for_each(here, row, twice);
  umem::for_each(here, row, {{0}, {1}}, twice);
  umem::for_each_indexed(here, row, [](double &x, index_t i) { x += static_cast<double>(i); });
  double sum = 6;
  for (index_t i = 0; i < count; i++) sum += static_cast<double>(6 + i);
  EXPECT_EQ(umem::sum(here, row), sum);
  EXPECT_EQ(umem::min(here, row), count > 1 ? 7 : 12);
  EXPECT_EQ(umem::max(here, row), std::max(12.0, static_cast<double>(5 + count)));
  EXPECT_EQ(umem::transform_reduce(here, row, row, 0.0, umem::plus(),
                                   [](double x, double y) { return x - y; }),
            0);
  Array<float, 1> out({count});
  umem::convert(here, row, out);
  EXPECT_EQ(umem::sum(out), sum);
  umem::transform(here, out, out, row, [](float x, float y) { return x + y; });
  EXPECT_EQ(umem::reduce(here, row, 0.0, umem::plus()), 2 * sum);
  EXPECT_EQ(umem::sweep(here, row, {{0}, {count}}, 0.0, umem::plus(),
                        [](double &x, index_t i) { return x = static_cast<double>(i); }),
            static_cast<double>(count * (count - 1) / 2));
  umem::iota(here, row, 1);
  EXPECT_EQ(umem::interior(row, 0).end[0], count);
  Array<double, 1> copy({count});
  umem::copy(row, copy);
  EXPECT_EQ(umem::sum(copy), static_cast<double>(count * (count + 1) / 2));
  umem::copy(copy, row);
  std::ostringstream one, other;
  one << row;
  other << copy;
  EXPECT_EQ(one.str(), other.str());
}

TEST_P(Operands, of_each_kind_do_for_every_loop) {
  Array<double, 1> array({7}, place);
  expect_all_loops(array, 7);
  expect_all_loops(array.lock(), 7);
  expect_all_loops(array.part(), 7);
  expect_all_loops(array.lock().part().slice(0, 1, 7, 2), 3);
  expect_all_loops(array.host(write), 7);
  expect_all_loops(*array.host(write), 7);
  expect_all_loops(umem::guard_at(here, array, write), 7);
  Doubles table = numbered({5, 9}, {1, 2});
  expect_all_loops(table.part().select(0, 1), 9);
  expect_all_loops(table.part().select(1, -2).reversed(0), 5);
  expect_all_loops(table.part().with_ghosts().select(0, 0), 13);
  for (index_t i = -1; i < 6; i++)
    for (index_t j = -2; j < 11; j++) {
      double expected = static_cast<double>(100 * i + j);
      if (j == -2 && i >= 0 && i < 5) expected = static_cast<double>(5 - i);
      if (i == 1 && j >= 0 && j < 9) expected = static_cast<double>(j + 1);
      if (i == -1) expected = static_cast<double>(j + 3);
      EXPECT_EQ(table.get(i, j), expected) << i << ' ' << j;
    }
}

TEST_P(Operands, without_a_place_run_at_home) {
  Doubles u = numbered({6, 8}), v({6, 8}, place);
  auto edge = u.part().select(0, 5);
  auto set = [](double &x, index_t i, index_t j) { return x = static_cast<double>(i + j); };
  if (is_gpu()) {
    EXPECT_THROW(umem::fill(edge, 1), umem::not_supported_error);
    EXPECT_THROW(static_cast<void>(umem::sum(u.device(read))), umem::not_supported_error);
    EXPECT_THROW(umem::sweep(v, umem::interior(v), 0.0, umem::plus(), set),
                 umem::not_supported_error);
    EXPECT_THROW(umem::for_each([](double &x, double y) { x = y; }, v, u),
                 umem::not_supported_error);
    EXPECT_EQ(umem::sum(u.host(read)), 48 * 253.5);
    return;
  }
  umem::fill(edge, 1);
  EXPECT_EQ(umem::sum(edge), 8);
  EXPECT_EQ(umem::sum(u.part().select(1, 0)), 1001);
  EXPECT_EQ(umem::sum(u.host(read)), 40 * 203.5 + 8);
  umem::fill(v, 0);
  EXPECT_EQ(umem::sweep(v, umem::interior(v), 0.0, umem::plus(), set), 4 * 6 * 6);
  EXPECT_EQ(umem::transform_reduce(u, v, 0.0, umem::plus(), [](double, double y) { return y; }),
            144);
  umem::for_each([](double &x, double y) { x = y; }, v, u);
  EXPECT_EQ(umem::sum(v), 40 * 203.5 + 8);
  Array<double, 1> sums({6}, place);
  umem::sum_along(v.part().slice(1, 0, 8, 7), 1, sums.part());
  EXPECT_EQ(sums.get(0), 7);
}

/* ---- what moves ---- */

TEST_P(Operands, that_are_small_parts_move_alone) {
  Doubles u = numbered({32, 64});
  auto const row = u.part().select(0, 7);
  std::size_t const bytes = 64 * sizeof(double);
  expect_bytes(bytes, [&] { umem::fill(here, row, 1); });
  expect_bytes(2 * bytes, [&] { umem::for_each(here, row, [](double &x) { x += 1; }); });
  expect_bytes(bytes, [&] { EXPECT_EQ(umem::sum(here, row), 128); });
  expect_bytes(bytes, [&] { umem::for_each(here, row, [](double const &x) { EXPECT_EQ(x, 2); }); });
  expect_bytes(0, [&] { umem::fill(here, row.slice(0, 4, 4), 1); });
  EXPECT_EQ(u.current(), side_before());
  EXPECT_EQ(u.get(7, 63), 2);
  EXPECT_EQ(u.get(8, 0), 800);
  expect_bytes(u.nbytes(), [&] { EXPECT_EQ(umem::min(here, u.part()), 0); });
  expect_bytes(0, [&] { umem::fill(here, row, 4); }); /* the host side is current */
  EXPECT_EQ(u.get(7, 0), 4);
  EXPECT_EQ(u.current(), has_mirror() ? Side::host : Side::both);
}

TEST_P(Operands, of_a_fused_loop_need_no_temporaries) {
  Doubles x = numbered({32, 64}), y = numbered({32, 64}), z = numbered({32, 64});
  double const a = 2;
  expect_bytes(x.nbytes() + y.nbytes(), [&] {
    umem::for_each(
        here, [=](double &to, double one, double other) { to = a * one + other; }, discard(z), x,
        y);
  });
  EXPECT_EQ(x.current(), Side::both);
  EXPECT_EQ(y.current(), Side::both);
  EXPECT_EQ(z.current(), has_mirror() ? Side::host : Side::both);
  EXPECT_EQ(z.get(3, 5), 3 * 305);
  expect_bytes(0, [&] {
    umem::for_each(
        here, [](auto &to, auto const &from) { to += from; }, z, read(x));
  });
  EXPECT_EQ(x.current(), Side::both);
  EXPECT_EQ(z.get(3, 5), 4 * 305);
  umem::for_each(
      here, [](auto &, auto &) {}, read(z), x); /* nothing says that x is only read */
  EXPECT_EQ(x.current(), has_mirror() ? Side::host : Side::both);
}

TEST_P(Operands, that_are_parts_of_one_array_share_it) {
  Doubles u = numbered({32, 64});
  std::size_t const row = 64 * sizeof(double), column = 32 * sizeof(double);
  auto rows = [&](index_t i) { return u.part().select(0, i); };
  auto add = [](double &x, double y) { x += y; };
  expect_bytes(3 * row, [&] { umem::for_each(here, add, rows(1), rows(2)); });
  EXPECT_EQ(u.get(1, 5), 310);
  expect_bytes(3 * column,
               [&] { umem::for_each(here, add, u.part().select(1, 3), u.part().select(1, 60)); });
  EXPECT_EQ(u.get(5, 3), 1063);
  EXPECT_EQ(u.current(), side_before());
  Part<double, 1> same = rows(4);
  expect_bytes(u.nbytes(),
               [&] { umem::transform(here, same, rows(4), [](double x) { return -x; }); });
  EXPECT_EQ(u.get(4, 9), -409);
  EXPECT_EQ(u.get(5, 9), 509);
  u.release_host();
  auto odd = u.part().slice(0, 1, 32, 2), even = u.part().slice(0, 0, 32, 2);
  umem::transform(here, even, odd, [](double x) { return x; });
  EXPECT_EQ(u.get(31, 2), 3002);
  umem::for_each(
      here, [](double &x, double y, double z) { x = y + z; }, u, read(u), u);
  EXPECT_EQ(u.get(31, 2), 6004);
  umem::for_each(here, add, u.part().select(0, 0), Array<double, 1>::full({64}, 1, place));
  EXPECT_EQ(u.get(0, 9), 19);
}

TEST_P(Operands, that_are_one_array_twice_keep_what_is_read) {
  Array<double, 1> x({100}, place);
  umem::iota(here, x, 0);
  x.release_host();
  umem::for_each(
      here, [](double &to, double from) { to = from + 1; }, discard(x), read(x));
  EXPECT_EQ(x.get(99), 100);
  x.release_host();
  umem::for_each(
      here, [](double &to, double from) { to = from + 1; }, discard(x.part()), x);
  EXPECT_EQ(x.get(99), 101);
}

TEST_P(Operands, may_come_with_indices_and_ranges) {
  Doubles u = numbered({6, 8}, {1, 1}), v({6, 8}, place);
  umem::fill(here, v, 0);
  auto set = [](double &to, double from, index_t i, index_t j) {
    to = from - static_cast<double>(100 * i + j) + 1;
  };
  umem::for_each(here, set, umem::interior(v), v, u);
  EXPECT_EQ(umem::sum(here, v), 4 * 6);
  umem::for_each_indexed<std::int32_t>(
      here, [](auto &to, auto const &, auto i, auto) { to = i; }, v, read(u));
  EXPECT_EQ(v.get(5, 7), 5);
  umem::for_each(
      here, [](double &to, double const &from) { to = from; }, umem::Range<2>({6, 8}), discard(v),
      u);
  EXPECT_EQ(v.get(5, 7), 507);
  umem::for_each(
      here, [](double &to) { to = -1; }, umem::Range<2>({-1, -1}, {0, 9}), u.part());
  EXPECT_EQ(u.get(-1, 8), -1);
  EXPECT_EQ(u.get(0, 8), 8);
  umem::for_each(
      here, [](double &to) { to = -2; }, umem::Range<2>({0, 0}, {1, 8}), discard(v));
  EXPECT_EQ(v.get(0, 7), -2);
  EXPECT_EQ(v.get(1, 7), 107) << "what is outside of the range is not discarded";
  EXPECT_THROW(umem::for_each(here, set, umem::interior(u, -1), v, u), umem::index_error);
}

/* ---- failures ---- */

TEST_P(Operands, are_as_they_were_when_the_call_refuses_them) {
  Doubles u = numbered({4, 6}), v = numbered({4, 6}), other = numbered({4, 5});
  auto add = [](double &x, double y) { x += y; };
  EXPECT_THROWS(umem::for_each(here, add, u, other), umem::value_error,
                "for_each: the extents (4, 6) and (4, 5) differ");
  {
    auto lock = v.lock();
    EXPECT_THROW(umem::for_each(here, add, discard(u), v), umem::locked_error);
    EXPECT_THROW(umem::for_each(here, add, u.part().select(0, 1), v.part().select(0, 1)),
                 umem::locked_error);
    EXPECT_THROW(umem::fill(here, v.part().select(0, 1), 1), umem::locked_error);
    umem::for_each(here, add, lock, u);
  }
  EXPECT_EQ(v.get(1, 2), 204);
  {
    auto guard = u.host(read);
    umem::for_each(
        here, [](double &x, double y) { x = y; }, v, u);
  }
  EXPECT_EQ(u.get(3, 5), 305);
  if (!place.can(umemOffsets)) {
    auto guard = u.device(write);
    EXPECT_THROW(umem::sum(here, u.part().select(0, 1)), umem::locked_error);
  }
  EXPECT_EQ(umem::sum(here, u.part().slice(0, 2, 2)), 0);
  Doubles gone = std::move(u);
  EXPECT_THROW(umem::for_each(here, add, v, u), umem::moved_from_error);
  EXPECT_THROW(umem::for_each(add, u, v), umem::moved_from_error);
}

TEST_P(Operands, in_a_buffer_are_written_only_after_the_loop) {
  Doubles u = numbered({4, 6});
  auto row = u.part().select(0, 2);
  auto fail = [](double &x) {
    if (x == 203) throw std::runtime_error("203");
    x = -1;
  };
  EXPECT_THROW(umem::for_each(here, row, fail), std::runtime_error);
  EXPECT_EQ(u.get(2, 0), has_mirror() ? 200 : -1);
  EXPECT_EQ(u.get(2, 5), 205);
  EXPECT_EQ(u.current(), side_before());
  if (!has_mirror()) return;
  u.sync_to_host();
  auto guard = u.host(read); /* on the host as well: no copy is needed, nor can there be one back */
  umem::for_each(here, row, [](double &x) { x = 1; });
  EXPECT_EQ((*guard)(2, 5), 1);
}

TEST_P(Operands, of_borrowed_memory_have_a_home_too) {
  umem::Buffer buffer(place, 24 * sizeof(double));
  if (!place.can(umemWritable)) return;
  Part<double, 2> const part(place, buffer.adr(), {4, 6});
  umem::iota(here, part, 1);
  EXPECT_EQ(umem::sum(here, part.select(0, 1)), 7 + 8 + 9 + 10 + 11 + 12);
  umem::for_each(
      here, [](double &x, double y) { x = y; }, part.select(0, 0), part.select(0, 3));
  EXPECT_EQ(umem::max(here, part.select(0, 0)), 24);
  if (!is_gpu()) {
    EXPECT_EQ(umem::min(part), 7);
  }
  EXPECT_EQ(part.context(), place);
}

/* ---- copies ---- */

TEST_P(Operands, are_copied_wherever_they_are) {
  Doubles u = numbered({4, 6}, {1, 0}), v({4, 6}), w({4, 6}, place);
  umem::copy(u, v);
  EXPECT_EQ(v.get(3, 5), 305);
  umem::copy(v, w);
  umem::copy(std::as_const(w).part(), v.host(discard));
  EXPECT_EQ(v.get(2, 5), 205);
  umem::copy(u.part().select(0, -1), w.part().select(0, 3));
  EXPECT_EQ(w.get(3, 5), -95);
  double memory[24];
  View<double, 2> const view(memory, {4, 6});
  umem::copy(w, view);
  EXPECT_EQ(memory[23], -95);
  memory[0] = 1;
  umem::copy(view, w);
  EXPECT_EQ(w.get(0, 0), 1);
  Array<double, 2> small({4, 5}, place);
  EXPECT_THROW(umem::copy(u, small), umem::value_error);
  auto guard = w.host(read);
  EXPECT_THROW(umem::copy(u, w), umem::locked_error);
  EXPECT_EQ(umem::sum(umem::blocks(guard, umem::on_host)), umem::sum(guard));
}

/* ---- places ---- */

TEST(Home, IsThatOfTheFirstOperandThatIsWritten) {
  using umem::detail::place_for;
  using umem::detail::use;
  umem::Context gpu = open_place(*backend_by_name("cuda"));
  if (!gpu) gpu = open_place(*backend_by_name("cuda-async"));
  if (!gpu || !umem::Place(gpu).is_device()) GTEST_SKIP() << "there is no GPU, nor a double of one";
  Array<double, 1> there({10}, gpu), also({10}, gpu), near({10});
  View<double, 1> const view(nullptr, {10});
  EXPECT_TRUE(place_for(use(there, write), use(also, read)).is_device());
  EXPECT_TRUE(place_for(use(view, write), use(also, read)).is_device());
  EXPECT_TRUE(place_for(use(also, read)).is_device());
  EXPECT_FALSE(place_for(use(near, write), use(also, read)).is_device());
  EXPECT_FALSE(place_for(use(there, write), use(near, read)).is_device());
  EXPECT_FALSE(place_for(use(near, read), use(there, read)).is_device());
  EXPECT_TRUE(place_for(use(near, read), use(there, write)).is_device() == false);
  auto part = there.part().slice(0, 0, 5);
  EXPECT_TRUE(place_for(use(part, discard)).is_device());
  {
    auto host = there.host(read);
    EXPECT_FALSE(place_for(use(host, read)).is_device());
    EXPECT_FALSE(place_for(use(also, write), use(host, read)).is_device());
  }
  auto device = there.device(read);
  EXPECT_TRUE(place_for(use(device, read)).is_device());
  EXPECT_THROW(umem::for_each([](double &, double) {}, near, device), umem::value_error)
      << "no place can use both";
}

/* ---- what generic functors get ---- */

TEST(Functors, WithAPackAfterTheElementsGetTheIndices) {
  Doubles u({3, 4}), v({3, 4});
  umem::fill(v, 2.);
  umem::for_each(u, [](double &x, auto... i) { x = static_cast<double>((i + ...)); });
  EXPECT_EQ(u.get(2, 3), 5);
  umem::for_each([](auto &x, double y, auto &&...i) { x = y * static_cast<double>((i + ...)); }, u,
                 v);
  EXPECT_EQ(u.get(2, 3), 10);
  umem::for_each(umem::on_host, u, {{0, 0}, {1, 2}},
                 [](auto &x, auto... i) { x = static_cast<double>((i + ...)); });
  EXPECT_EQ(u.get(0, 1), 1);
  EXPECT_EQ(u.get(2, 3), 10);
}

TEST(Functors, WithAPackOfElementsGetNoIndices) {
  Doubles u({3, 4}), v({3, 4});
  umem::fill(v, 2.);
  umem::for_each([](double &x, auto... y) { x = (y + ...); }, u, v, v);
  EXPECT_EQ(u.get(2, 3), 4);
  umem::for_each([](auto &&...x) { ((x *= 2), ...); }, u, v);
  EXPECT_EQ(u.get(2, 3), 8);
  EXPECT_EQ(v.get(2, 3), 4);
  struct Both {
    void operator()(double &x) const { x = 1; }
    void operator()(double &x, umem::index_t, umem::index_t) const { x = 2; }
  };
  umem::for_each(u, Both());
  EXPECT_EQ(u.get(2, 3), 1) << "the elements alone are tried first";
}

/* ---- rows of few elements, which have loops of their own ---- */

TEST(Rows, OfAnyLengthAreGoneOverOnceAndTheirGapsAreNot) {
  for (index_t length = 1; length <= 6; length++) {
    auto u = umem::Array<double, 3>::full({5, 7, 8}, 1), v = u;
    auto const to = u.part(umem::range(1, 5), umem::full_extent, umem::range(1, 1 + length));
    auto const from = v.part(umem::range(0, 4), umem::full_extent, umem::range(0, length));
    for (unsigned threads : {1u, 3u})
      umem::for_each(
          umem::HostPlace{threads}, [](double y, double &x) { x += y; }, from, to);
    for_each(to, [](double &x) { EXPECT_EQ(x, 3); });
    EXPECT_EQ(umem::sum(u), 280 + 2 * 28 * length);
  }
}

/* A file that is only read refuses a write before the loop. */
TEST(Files, ThatAreOnlyReadRefuseWritesOfTheirParts) {
  std::string const name = testing::TempDir() + "umem_operands.bin";
  {
    Doubles u({4, 6}, umem::File(name.c_str(), "w+"));
    umem::fill(u, 2);
  }
  {
    Doubles u({4, 6}, umem::File(name.c_str(), "r"));
    int calls = 0;
    EXPECT_THROW(umem::for_each(u.part().select(0, 1), [&](double &) { calls++; }),
                 umem::not_supported_error);
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(umem::sum(u.part().select(0, 1)), 12);
    umem_clear_status(u.context().c_context());
  }
  std::remove(name.c_str());
}

} // namespace
