/* kernels_arrays.cpp - loops over arrays on every context whose memory the host works on; those of
 * GPUs need kernels and say so. */
#include "arrays.hpp"

#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

namespace {

using umem::index_t;

struct KernelsOnArrays : EachPlace {
  bool is_gpu() const { return umem::Place(place).is_device(); }
};

TEST_P(KernelsOnArrays, work_where_the_array_lives) {
  Array<double, 2> a({7, 5}, place), b({7, 5}, place, {{1, 2}, {}, 0});
  if (is_gpu()) {
    EXPECT_THROW(umem::fill(a, 1), umem::not_supported_error);
    return;
  }
  umem::fill(a, 2);
  umem::for_each(a, [](double &x) { x += 1; });
  umem::for_each_indexed(
      a, [](double &x, index_t i, index_t j) { x += static_cast<double>(10 * i + j); });
  umem::transform(a, b, [](double x) { return 2 * x; });
  umem::transform(a, b, b, [](double x, double y) { return x + y; });
  Array<float, 2> c({7, 5}, place);
  umem::convert(b, c);
  for (index_t i = 0; i < 7; i++)
    for (index_t j = 0; j < 5; j++)
      EXPECT_EQ(c.get(i, j), 3 * (3 + static_cast<float>(10 * i + j)));
  EXPECT_EQ(umem::sum(c), 3 * (35 * 3 + 5 * 210 + 7 * 10));
  EXPECT_EQ(umem::min(c), 9);
  EXPECT_EQ(umem::max(c), 3 * (3 + 64));
  Array<double, 1> sums({5}, place);
  umem::sum_along(c, 0, sums);
  EXPECT_EQ(sums.get(1), 3 * (7 * 3 + 210 + 7));
  umem::iota(sums, 3);
  EXPECT_EQ(sums.get(4), 7);
}

TEST_P(KernelsOnArrays, work_on_the_host_when_told) {
  Array<int, 1> a({100}, place);
  umem::iota(umem::on_host_threads(2), a, 0);
  EXPECT_EQ(umem::sum(umem::on_host, a), 4950);
  auto doubled = [](int &value, index_t i) { return value = static_cast<int>(2 * i); };
  EXPECT_EQ(umem::sweep(umem::on_host, a, umem::Range<1>({0}, {50}), 0, umem::plus(), doubled),
            2450);
  EXPECT_EQ(a.get(49), 98);
  EXPECT_EQ(a.get(50), 50);
}

TEST_P(KernelsOnArrays, work_on_ranges) {
  Array<int, 2> a({4, 6}, place, {{1, 2}, {}, 0});
  number(a, 0);
  auto expect = [&](umem::Range<2> const &range, auto const &value) {
    for_each_indices(range.begin, range.end, [&](auto const &at) {
      EXPECT_EQ(a.get(at), value(at[0], at[1])) << at[0] << ' ' << at[1];
    });
  };
  umem::Range<2> const inside = umem::interior(a), below({-1, -2}, {0, 8}); /* ghost cells alone */
  auto negate = [](int &x) { x = -x; };
  auto set = [](int &x, index_t i, index_t j) { x = static_cast<int>(100 * i + j); };
  umem::HostPlace const here = umem::on_host_threads(2);
  umem::for_each(here, a, below, negate);
  expect(below, [](index_t, index_t j) { return -(j + 2); });
  expect(a.extents(), [](index_t i, index_t j) { return 10 * (i + 1) + j + 2; });
  umem::for_each_indexed(here, a, inside, set);
  umem::for_each(here, a, {{0, 0}, {1, 6}}, negate);
  if (is_gpu()) {
    EXPECT_THROW(umem::for_each(a, inside, negate), umem::not_supported_error);
    EXPECT_THROW(umem::for_each_indexed(a, inside, set), umem::not_supported_error);
  } else {
    umem::for_each(a, inside, negate);
    umem::for_each_indexed(a, {{1, 1}, {3, 5}}, set);
    umem::for_each(a, a.extents(), negate);
    umem::for_each(a, {{0, 0}, {4, 6}}, negate);
  }
  expect(inside, [](index_t i, index_t j) { return 100 * i + j; });
  expect({{0, 0}, {1, 6}}, [](index_t, index_t j) { return -(j + 12); });
  EXPECT_EQ(a.get(1, 0), 22);
  EXPECT_EQ(a.get(1, 6), 28);
}

TEST_P(KernelsOnArrays, check_ranges) {
  Array<int, 2> a({4, 6}, place, {{1, 2}, {}, 0});
  number(a);
  umem::HostPlace const here = umem::on_host;
  auto set = [](int &x, index_t, index_t) { x = -1; };
  EXPECT_THROW(umem::for_each(here, a, {{0, 0}, {6, 6}}, [](int &x) { x = -1; }),
               umem::index_error);
  EXPECT_THROW(umem::for_each_indexed(here, a, {{0, -3}, {4, 6}}, set), umem::index_error);
  umem::for_each_indexed(here, a, {{0, 9}, {4, 9}}, set);
  expect_numbered(a);
  {
    auto guard = a.host(umem::read);
    int visits = 0;
    umem::for_each(here, guard, umem::interior(guard), [&](int const &) { visits++; });
    EXPECT_EQ(visits, 2 * 4);
  }
  Array<int, 2> b = std::move(a);
  EXPECT_THROW(umem::interior(a), umem::moved_from_error);
}

TEST_P(KernelsOnArrays, leave_ghost_cells_alone) {
  Array<int, 1> a({10}, place, {{2}, {}, 0});
  number(a);
  umem::fill(umem::on_host, a, 0);
  EXPECT_EQ(a.get(-1), 2);
  EXPECT_EQ(a.get(0), 0);
  EXPECT_EQ(a.get(9), 0);
  EXPECT_EQ(a.get(10), 13);
}

TEST_P(KernelsOnArrays, take_guards_and_read_only_arrays) {
  Array<int, 1> a({10}, place);
  umem::iota(umem::on_host, a, 1);
  {
    auto guard = a.host(umem::write);
    umem::for_each(umem::on_host, guard, [](int &x) { x *= 2; });
    EXPECT_THROW(umem::fill(umem::on_device(), a, 1), umem::error); /* locked, or no pointers */
  }
  Array<int const, 1> b(std::move(a));
  int sum = 0;
  umem::for_each(umem::on_host, b, [&](int const &x) { sum += x; });
  EXPECT_EQ(sum, 110);
  EXPECT_EQ(umem::sum(umem::on_host, b), 110);
}

TEST_P(KernelsOnArrays, bring_over_what_they_change_in_place) {
  Array<int, 1> a({10}, place), b({10}, place);
  umem::iota(umem::on_host, a, 0);
  umem::iota(umem::on_host, b, 0);
  a.release_host(); /* from now on the device alone is current */
  umem::transform(umem::on_host, a, a, [](int x) { return x + 100; });
  a.release_host();
  umem::transform(umem::on_host, b, a, a, [](int x, int y) { return x + y; });
  a.release_host();
  umem::convert(umem::on_host, a, a);
  for (index_t i = 0; i < 10; i++) EXPECT_EQ(a.get(i), 100 + 2 * i);
}

TEST_P(KernelsOnArrays, convert_from_what_the_host_looks_at) {
  Array<int, 1> in({10}, place);
  Array<float, 1> out({10}, place);
  umem::iota(umem::on_host, in, 0);
  {
    auto guard = in.host(umem::read);
    umem::convert(guard, out); /* on the host, whatever the place: there the guard's memory is */
  }
  EXPECT_EQ(out.get(9), 9);
}

TEST_P(KernelsOnArrays, convert_single_elements_and_none) {
  Array<double, 0> in(umem::Extents<0>(), place);
  Array<int, 0> out(umem::Extents<0>(), place);
  in.set(2.75);
  out.set(0);
  umem::convert(umem::on_host, in, out);
  EXPECT_EQ(out.get(), 2);
  Array<double, 2> none({0, 3}, place);
  Array<float, 2> none_either({0, 3}, place);
  umem::convert(umem::on_host, none, none_either);
  if (!is_gpu()) {
    in.set(-3.5);
    umem::convert(in, out);
    umem::convert(none, none_either);
    EXPECT_EQ(out.get(), -3);
  }
}

TEST_P(KernelsOnArrays, convert_to_the_same_type) {
  Array<Item, 1> in({10}, place), out({10}, place);
  number(in);
  Array<Item const, 1> const finished(std::move(in));
  umem::convert(umem::on_host, finished, out);
  expect_numbered(out);
}

TEST_P(KernelsOnArrays, keep_the_output_of_refused_calls) {
  Array<int, 1> in({9}, place), other({10}, place);
  Array<int, 2> table({3, 9}, place);
  Array<int, 1> out({10}, place);
  number(out);
  number(other);
  out.release_host();
  auto same = [](int x) { return x; };
  auto add = [](int x, int y) { return x + y; };
  umem::HostPlace const here = umem::on_host;
  EXPECT_THROW(umem::transform(here, in, out, same), umem::value_error);
  EXPECT_THROW(umem::transform(here, other, in, out, add), umem::value_error);
  EXPECT_THROW(umem::convert(here, in, out), umem::value_error);
  EXPECT_THROW(umem::sum_along(here, table, 0, out), umem::value_error);
  EXPECT_THROW(umem::sum_along(here, table, 2, out), umem::index_error);
  {
    auto lock = other.lock();
    EXPECT_THROW(umem::transform(here, other, out, same), umem::locked_error);
  }
  expect_numbered(out);
}

TEST_P(KernelsOnArrays, keep_the_output_where_there_are_no_kernels) {
  Array<int, 1> a({10}, place), b({10}, place);
  Array<int, 2> table({3, 10}, place);
  umem::fill(umem::on_host, a, 0);
  umem::fill(umem::on_host, table, 0);
  number(b);
  auto same = [](int x) { return x; };
  auto add = [](int x, int y) { return x + y; };
  umem::DevicePlace const gpu = umem::on_device();
  for (umem::Place const &where : {umem::Place(gpu), umem::Place(umem::on_device(0, 0))}) {
    EXPECT_THROW(umem::fill(where, b, 7), umem::error);
    EXPECT_THROW(umem::iota(where, b, 7), umem::error);
    EXPECT_THROW(umem::transform(where, a, b, same), umem::error);
    EXPECT_THROW(umem::transform(where, a, a, b, add), umem::error);
    EXPECT_THROW(umem::sum_along(where, table, 0, b), umem::error);
  }
  EXPECT_THROW(umem::fill(gpu, b, 7), umem::error);
  expect_numbered(b);
}

TEST_P(KernelsOnArrays, refuse_a_gpu_that_cannot_use_the_memory) {
  Array<int, 1> a({10}, place);
  number(a);
  if (place.can(umemDeviceAccessible)) {
    EXPECT_THROW(umem::fill(umem::on_device(), a, 1), umem::not_supported_error);
  } else {
    EXPECT_THROW(umem::fill(umem::on_device(), a, 1), umem::value_error);
    EXPECT_THROW(umem::for_each(umem::Place(umem::on_device()), a, [](int &x) { x = 1; }),
                 umem::value_error);
    EXPECT_THROW(umem::sum(umem::on_device(), a), umem::value_error);
  }
  expect_numbered(a);
}

TEST_P(KernelsOnArrays, tell_of_arrays_that_were_moved_from) {
  Array<int, 1> a({10}, place), b = std::move(a);
  EXPECT_THROW(umem::fill(a, 1), umem::moved_from_error);
  EXPECT_THROW(umem::sum(umem::on_host, a), umem::moved_from_error);
  EXPECT_THROW(umem::convert(umem::on_host, b, a), umem::moved_from_error);
  EXPECT_THROW(umem::convert(umem::on_host, a, b), umem::moved_from_error);
}

FOR_EACH_PLACE(KernelsOnArrays);

/* ---- between two storages ---- */

/* Whether the calls here that name no place ask for a kernel: the output is on a GPU, and the input
 * is memory that the GPU reads too. */
bool needs_kernels(umem::Context const &from, umem::Context const &to) {
  umem::Place input(from), output(to);
  if (!output.is_device() || !from.can(umemDeviceAccessible)) return false;
  return from.can(umemCpuReadable) || input.device().device == output.device().device;
}

/* -3, -1.5, 0, ... as A has them; on the device side alone. */
template <class A> Array<A, 2> some_array(umem::Context const &context) {
  Array<A, 2> array({3, 4}, context, {{0, 1}, {}, 0});
  umem::for_each_indexed(umem::on_host, array, [](A &x, index_t i, index_t j) {
    x = static_cast<A>(1.5 * static_cast<double>(4 * i + j) - 3);
  });
  array.release_host();
  return array;
}

template <class A, class B>
void expect_converts(umem::Context const &from, umem::Context const &to) {
  Array<A const, 2> const in = some_array<A>(from);
  Array<B, 2> out({3, 4}, to);
  if (needs_kernels(from, to)) {
    EXPECT_THROW(umem::convert(in, out), umem::not_supported_error);
    umem::convert(umem::on_host, in, out);
  } else {
    umem::convert(in, out);
  }
  umem::Side side = umem::detail::stands_for_device(to) ? umem::Side::device : umem::Side::host;
  EXPECT_EQ(out.current(), shares_memory(to) ? umem::Side::both : side);
  out.release_host();
  std::vector<B> found = memory_of(out), expected;
  for (index_t i = 0; i < 3; i++)
    for (index_t j = 0; j < 4; j++) expected.push_back(static_cast<B>(in.get(i, j)));
  EXPECT_EQ(found, expected);
  EXPECT_EQ(expected[7], static_cast<B>(static_cast<A>(7.5)));
}

struct BetweenPlaces : EachPlace {
  /* Calls f(context) for every row of the table. */
  template <class F> void for_each_other(F const &f) {
    for (std::size_t n = 0; n < backend_count; n++) {
      if (setting_leaves_out(backends[n].name)) continue;
      SCOPED_TRACE(std::string("and ") + backends[n].name);
      umem::Context other = open_place(backends[n]);
      if (other) f(other);
    }
  }
};

TEST_P(BetweenPlaces, elements_become_those_of_another_type) {
  for_each_other([&](umem::Context const &other) {
    expect_converts<double, float>(place, other);
    expect_converts<float, double>(place, other);
    expect_converts<int, double>(place, other);
    expect_converts<double, int>(place, other);
    expect_converts<double, double>(place, other);
  });
}

TEST_P(BetweenPlaces, results_are_computed_where_all_inputs_can_be_used) {
  Array<int, 1> out({4}, place);
  for_each_other([&](umem::Context const &other) {
    Array<int, 1> one({4}, place), two({4}, other);
    umem::iota(umem::on_host, one, 1);
    umem::iota(umem::on_host, two, 10);
    umem::fill(umem::on_host, out, 0);
    auto times = [](int x, int y) { return x * y; };
    auto plus_1 = [](int x) { return x + 1; };
    if (needs_kernels(other, place)) {
      EXPECT_THROW(umem::transform(two, out, plus_1), umem::not_supported_error);
      EXPECT_THROW(umem::transform(one, two, out, times), umem::not_supported_error);
      EXPECT_EQ(umem::sum(umem::on_host, out), 0);
    } else {
      umem::transform(two, out, plus_1);
      EXPECT_EQ(out.get(3), 14);
      umem::transform(one, two, out, times);
      EXPECT_EQ(out.get(3), 4 * 13);
      umem::transform(two, one, out, times);
      EXPECT_EQ(out.get(0), 10);
    }
  });
}

FOR_EACH_PLACE(BetweenPlaces);

/* A context that some device can use, which is none of CUDA's. */
TEST(PlaceOfAContext, OfAnotherKindOfDeviceIsTheHost) {
  umemVtbl methods = {};
  methods.info = [](umemVirtual *, umemInfo *info) { info->ordinal = 3; };
  umemVirtual ctx;
  umemVirtual_ctor(&ctx, nullptr);
  ctx.vptr = &methods;
  ctx.capabilities |= umemDeviceAccessible;
  {
    umem::Context context(std::shared_ptr<umemVirtual>(&ctx, [](umemVirtual *) {}));
    EXPECT_EQ(context.info().ordinal, 3);
    EXPECT_FALSE(umem::Place(context).is_device());
    EXPECT_EQ(umem_thread_status(), umemOK);
    EXPECT_STREQ(umem_get_message(&ctx), "");
    int sum = 0;
    umem::for_each_index(context, umem::Extents<1>(4),
                         [&](index_t i) { sum += static_cast<int>(i); });
    EXPECT_EQ(sum, 6);
  }
  umem_dtor(&ctx);
}

} // namespace
