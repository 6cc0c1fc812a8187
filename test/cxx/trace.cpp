/* trace.cpp - loops and transfers as ranges for a profiler, in a program that defines UMEM_NVTX. */
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#include "places.h"

#include <nvtx3/nvToolsExt.h>

nvtxDomain &the_domain() {
  static nvtxDomain domain;
  return domain;
}

namespace {

using Names = std::vector<std::string>;

/* What began since the last call. */
Names begun() {
  Names names;
  std::swap(names, the_domain().begun);
  return names;
}

struct Trace : testing::Test {
  void SetUp() override { begun(); }
  void TearDown() override { EXPECT_EQ(the_domain().open, 0); }

  umem::Array<double, 2> a{{4, 5}}, b{{4, 5}};
};

TEST_F(Trace, names_loops) {
  umem::fill(a, 1);
  EXPECT_EQ(begun(), Names{"umem::fill"});
  EXPECT_EQ(the_domain().name, "umem");
  umem::for_each(a, [](double &x) { x += 1; });
  EXPECT_EQ(begun(), Names{"umem::for_each"});
  umem::for_each_indexed(
      a, [](double &x, umem::index_t i, umem::index_t) { x += static_cast<double>(i); });
  EXPECT_EQ(begun(), Names{"umem::for_each_indexed"});
  umem::for_each_index(umem::on_host, a.extents(), [](umem::index_t, umem::index_t) {});
  EXPECT_EQ(begun(), Names{"umem::for_each_index"});
  umem::transform(a, b, [](double x) { return x; });
  EXPECT_EQ(begun(), Names{"umem::transform"});
  umem::transform(a, b, b, [](double x, double y) { return x + y; });
  EXPECT_EQ(begun(), Names{"umem::transform"});
  umem::sum(a);
  EXPECT_EQ(begun(), Names{"umem::sum"});
  umem::reduce(a, 0.0, umem::plus());
  EXPECT_EQ(begun(), Names{"umem::reduce"});
  umem::convert(a, a);
  EXPECT_EQ(begun(), Names{"umem::convert"});
  umem::max(a);
  EXPECT_EQ(begun(), Names{"umem::max"});
  umem::Array<double, 1> sums({5});
  umem::sum_along(a, 0, sums);
  EXPECT_EQ(begun(), Names{"umem::sum_along"});
  umem::sweep(umem::on_host, a, umem::interior(a), 0.0, umem::plus(),
              [](double &x, umem::index_t, umem::index_t) { return x = 1; });
  EXPECT_EQ(begun(), Names{"umem::sweep"});
}

TEST_F(Trace, names_transfers) {
  umem::Array<int, 1> array({10}, open_place(*backend_by_name("fake")));
  array.host(umem::discard)(0) = 1;
  EXPECT_EQ(begun(), Names{});
  array.sync_to_device();
  EXPECT_EQ(begun(), Names{"umem::Array, to the device"});
  array.release_host();
  static_cast<void>(array.host(umem::read));
  EXPECT_EQ(begun(), Names{"umem::Array, to the host"});
  static_cast<void>(array.host(umem::read));
  EXPECT_EQ(begun(), Names{});
}

TEST_F(Trace, ends_with_an_exception) {
  EXPECT_THROW(umem::for_each(a, [](double &) { throw std::runtime_error("f"); }),
               std::runtime_error);
  EXPECT_EQ(the_domain().open, 0);
}

} // namespace
