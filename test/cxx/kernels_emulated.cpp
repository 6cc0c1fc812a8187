/* kernels_emulated.cpp - the kernels of loops and reductions, which here run on the host
 * (emulated/cuda_runtime.h), against the loops on the host. What only a GPU shows is in
 * kernels.cu. */
#include <cuda_runtime.h> /* emulated; before all others: these are compiled as nvcc would */
#define __CUDACC__ 1

#include "kernels.hpp"

#include <umem/fill_ghosts.hpp>
#include <umem/reduce.hpp>
#include <umem/sweep.hpp>

extern "C" {
#include "fake/cudart.h"
}

namespace {

using umem::discard;
using umem::index_t;
using umem::read;

constexpr umem::HostPlace host = umem::on_host;

struct Emulated : testing::Test {
  static void SetUpTestSuite() {
    umemCudaRt_replace(fake_cudart());
    /* Memory of the fake GPU is not for the CPU: kernels with results find this unused block. */
    umem::detail::ScratchStock::get().give(0, umem::Buffer(umem::Host(), 1 << 20));
  }
};

/* f(place, view) on a GPU and on the host; all memory must come out equal. */
template <class T, class F> void expect_same(F const &f) {
  with_extents<T>([&](auto extents) {
    SCOPED_TRACE(std::string("extents ") + umem::detail::in_words(extents).text);
    with_views<T>(extents, [&](auto view, std::vector<T> &memory) {
      std::vector<T> expected = memory;
      f(host, like(view, memory, expected));
      auto const before = emulated_launches;
      f(umem::on_device(), view);
      EXPECT_EQ(emulated_launches > before, view.size() > 0);
      EXPECT_EQ(memory, expected);
    });
  });
}

struct Axpy {
  template <class T, class A, class B> void operator()(T &z, A const &x, B const &y) const {
    z = static_cast<T>(2 * x + y);
  }
};
struct Exchange {
  template <class T, class U> void operator()(T &x, U &y) const {
    T const old = x;
    x = static_cast<T>(y);
    y = static_cast<U>(old);
  }
};
struct FromIndices {
  template <class T, class A, class... I> void operator()(T &z, A const &x, I... i) const {
    index_t number = 1;
    ((number = number * 7 + i), ...);
    z = static_cast<T>(static_cast<index_t>(x) + number % 50);
  }
};

/* Other operands with the extents of the view: without gaps, shifted by one element so that their
 * packs begin elsewhere, with ghost cells, and in column-major order. f(place, view, other) with
 * each of them. */
template <class T, class U, class F> void expect_same_with_others(F const &f) {
  for (int kind : {0, 1, 2, 3})
    expect_same<T>([&](auto place, auto view) {
      constexpr int N = decltype(view)::rank;
      umem::Extents<N> ghosts, all = view.extents;
      for (int k = 0; k < N; k++) all[k] += 2 * (ghosts[k] = k + 1);
      auto numbers = some_numbers<U>(all.product() + 3);
      View<U, N> other(numbers.data() + kind, view.extents,
                       kind == 3 ? umem::column_major : umem::row_major);
      if (kind == 2) other = View<U, N>::with_ghosts_from(numbers.data(), view.extents, ghosts);
      f(place, view, other);
      /* What f has made of the other operand, seen in the view. */
      umem::for_each(
          host, [](T &x, U const &y) { x = static_cast<T>(x + static_cast<T>(y)); }, view, other);
    });
}

/* One traversal for all loops: one for each takes a third more time to compile. */
template <class T, class U> void expect_all_loops() {
  for (int loop = 0; loop < 5; loop++) {
    SCOPED_TRACE("loop " + std::to_string(loop));
    expect_same_with_others<T, U>([=](auto place, auto view, auto other) {
      if (loop == 0) umem::for_each(place, Axpy(), discard(view), read(other), read(other));
      if (loop == 1) umem::for_each(place, Exchange(), view, other);
      if (loop == 2) umem::for_each_indexed(place, FromIndices(), view, read(other));
      if (loop == 3)
        umem::for_each_indexed<std::int32_t>(place, FromIndices(), discard(other), read(view));
      if (loop == 4)
        for (auto const &range : {umem::interior(view), umem::Range(view.extents)}) {
          umem::for_each_indexed(place, FromIndices(), range, view, read(other));
          umem::for_each(place, Axpy(), range, discard(view), read(other), read(other));
        }
    });
  }
}

TEST_F(Emulated, of_one_operand) {
  expect_same<std::int8_t>([](auto place, auto view) {
    umem::for_each(place, view, [](std::int8_t &x) { x = static_cast<std::int8_t>(x + 1); });
    umem::for_each_indexed(place, view, [](std::int8_t &x, auto... i) {
      x = static_cast<std::int8_t>(x + (index_t(i) + ... + index_t(0)) % 10);
    });
  });
  expect_same<double>([](auto place, auto view) {
    umem::iota(place, view, 1);
    umem::transform(place, view, view, [](double x) { return 2 * x; });
  });
}

TEST_F(Emulated, of_several_operands) { expect_all_loops<double, double>(); }
TEST_F(Emulated, of_operands_of_different_types) {
  expect_all_loops<std::int8_t, float>();
  expect_all_loops<std::int16_t, double>();
}

TEST_F(Emulated, of_ghost_cells) {
  umem::Ghosts<3> const ghosts({2, 1, 3}, {1, 0, 2});
  umem::Extents<3> const extents(4, 3, 5);
  for (umem::GhostRules<int, 3> const &rules :
       {umem::GhostRules<int, 3>(umem::periodic), umem::GhostRules<int, 3>(umem::constant(7)),
        umem::GhostRules<int, 3>(umem::reflect, umem::keep, umem::symmetric)}) {
    auto a = some_numbers<int>(umem::detail::all_cells(extents, ghosts).product()), b = a;
    auto const before = emulated_launches;
    umem::fill_ghosts(host, View<int, 3>::with_ghosts_from(a.data(), extents, ghosts), rules);
    EXPECT_EQ(emulated_launches, before);
    umem::fill_ghosts(umem::on_device(), View<int, 3>::with_ghosts_from(b.data(), extents, ghosts),
                      rules);
    EXPECT_GT(emulated_launches, before);
    EXPECT_EQ(a, b);
  }
}

/* Rows that are long enough for packs, in arrays with gaps between them. */
TEST_F(Emulated, of_long_rows) {
  std::vector<float> a(20 * 1000), b(20 * 1000);
  for (index_t lead : {0, 1, 2, 3})
    for (index_t stride : {900, 901, 904}) {
      std::fill(a.begin(), a.end(), 0.f);
      std::fill(b.begin(), b.end(), 0.f);
      auto run = [&](auto place, std::vector<float> &memory) {
        View<float, 2> to(memory.data() + lead, {9, 890}, {stride, 1}),
            from(memory.data() + 9 * stride + lead, {9, 890}, {stride, 1});
        umem::for_each_indexed(place, FromIndices(), from, read(from));
        umem::for_each(place, Axpy(), discard(to), read(from), read(from));
        umem::for_each_indexed(place, FromIndices(), umem::interior(to, 3), to, read(from));
      };
      run(host, a);
      run(umem::on_device(), b);
      EXPECT_EQ(a, b);
    }
}

/* ---- reductions, whose threads wait for each other ---- */

struct Low { /* the smallest of three; packs hold no such element */
  std::int16_t at[3];
};
struct LowOf {
  template <class T> index_t operator()(T const &x) const { return static_cast<index_t>(x); }
  index_t operator()(Low const &x) const { return std::min({x.at[0], x.at[1], x.at[2]}); }
};
template <class T> std::vector<T> numbers_for_reductions(index_t count) {
  if constexpr (std::is_arithmetic_v<T>) {
    return some_numbers<T>(count);
  } else {
    std::vector<T> all;
    for (int x : some_numbers<int>(count))
      all.push_back({{std::int16_t(x + 2), std::int16_t(x), std::int16_t(x + 1)}});
    return all;
  }
}

/* Every number of elements before the first pack and after the last one; the last pack of a tile,
 * the first one behind it, and more tiles than one. */
template <class T> void expect_same_reductions() {
  EmulatedTogether together;
  constexpr index_t width = umem::detail::pack_size<T>;
  constexpr index_t tile = width * umem::detail::packs_ahead<T, width> * 256;
  auto memory = numbers_for_reductions<T>(2 * tile + 3 * width);
  for (auto [lead, count] : std::vector<std::pair<index_t, index_t>>{{0, 1},
                                                                     {1, 1},
                                                                     {1, width + 1},
                                                                     {width - 1, 3 * width},
                                                                     {0, tile},
                                                                     {1, 2 * tile + width}}) {
    SCOPED_TRACE(testing::Message() << lead << " before " << count);
    View<T const, 1> const view(memory.data() + lead, {count});
    auto sum = [&](auto place) {
      return umem::transform_reduce(place, view, index_t(1000), umem::plus(), LowOf());
    };
    EXPECT_EQ(sum(umem::on_device()), sum(host));
  }
}

TEST_F(Emulated, of_reductions) {
  expect_same_reductions<std::int8_t>();
  expect_same_reductions<double>();
  expect_same_reductions<Low>();
}

TEST_F(Emulated, of_reductions_with_gaps_and_sweeps) {
  EmulatedTogether together;
  auto memory = some_numbers<double>(40 * 50), swept = memory;
  View<double, 2> const view(memory.data(), {30, 40}, {50, 1});
  auto all = [&](auto place) {
    double const sum = umem::sum(place, view), low = umem::min(place, view.transpose()),
                 dot = umem::transform_reduce(place, view, view, 1.0, umem::plus(),
                                              [](double x, double y) { return x * y; });
    double const change = umem::sweep(
        place, View<double, 2>(swept.data(), {30, 40}, {50, 1}), umem::interior(view), 0.0,
        umem::maximum(), [=](double &value, auto i, auto j) { return value = view(i, j) - 3; });
    return std::vector<double>{sum, low, dot, change};
  };
  auto const expected = all(host);
  auto const after = swept;
  swept = memory;
  EXPECT_EQ(all(umem::on_device()), expected);
  EXPECT_EQ(swept, after);
}

} // namespace
