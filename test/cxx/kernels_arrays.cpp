/* kernels_arrays.cpp - loops over arrays on every context whose memory the host works on; those of
 * GPUs need kernels and say so. */
#include "arrays.hpp"

#include <umem/convert.hpp>
#include <umem/fill.hpp>
#include <umem/for_each.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>
#include <umem/transform.hpp>

namespace {

using umem::Array;
using umem::index;

class KernelsOnArrays : public EachPlace {
protected:
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
  umem::for_each_indexed(a,
                         [](double &x, index i, index j) { x += static_cast<double>(10 * i + j); });
  umem::transform(a, b, [](double x) { return 2 * x; });
  umem::transform(a, b, b, [](double x, double y) { return x + y; });
  Array<float, 2> c({7, 5}, place);
  umem::convert(b, c);
  for (index i = 0; i < 7; i++)
    for (index j = 0; j < 5; j++) EXPECT_EQ(c.get(i, j), 3 * (3 + static_cast<float>(10 * i + j)));
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
  auto doubled = [](int &value, index i) { return value = static_cast<int>(2 * i); };
  EXPECT_EQ(umem::sweep(umem::on_host, a, umem::Range<1>({0}, {50}), 0, umem::plus(), doubled),
            2450);
  EXPECT_EQ(a.get(49), 98);
  EXPECT_EQ(a.get(50), 50);
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

TEST_P(KernelsOnArrays, tell_of_arrays_that_were_moved_from) {
  Array<int, 1> a({10}, place), b = std::move(a);
  EXPECT_THROW(umem::fill(a, 1), umem::moved_from_error);
  EXPECT_THROW(umem::sum(umem::on_host, a), umem::moved_from_error);
}

FOR_EACH_PLACE(KernelsOnArrays);

} // namespace
