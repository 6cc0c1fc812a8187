/* kernels_reductions.cu - reductions.hpp, reductions_along.hpp, fill_ghosts and exchange_ghosts on
 * a real GPU, against the same calls on the host, which the tests reductions and ghosts have
 * compared with plain loops.
 *
 * Exit code: 0; 1 when a result is wrong or a call failed; 77 without a GPU. */
#include <umem.hpp>
#include <umem/exchange.hpp>
#include <umem/fill_ghosts.hpp>
#include <umem/reductions.hpp>
#include <umem/reductions_along.hpp>

#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

namespace {

using umem::Array;
using umem::Extents;
using umem::index_t;

int checks = 0, failures = 0;

void expect(bool right, char const *what) {
  checks++;
  if (right) return;
  failures++;
  std::printf("WRONG: %s\n", what);
}

struct AboveFour {
  template <class T> UMEM_FUNCTION bool operator()(T const &x) const { return x > T(4); }
};

/* Small whole numbers: there are ties, and sums are exact. */
template <class T, int N> Array<T, N> numbers(Extents<N> const &extents, umem::Ghosts<N> ghosts) {
  umem::ArrayOptions<N> options;
  options.ghosts = ghosts;
  Array<T, N> array(extents, umem::Host(), options);
  auto all = array.host(umem::discard)->with_ghosts();
  for (index_t n = 0; n < all.size(); n++) all[n] = static_cast<T>((n * 7 + 3) % 11);
  return array;
}

bool are_equal(double a, double b) { return a == b || (a != a && b != b); }

/* d: on the GPU, h: the same on the host. */
template <class D, class H> void check_whole(D const &d, H const &h) {
  expect(umem::argmin(d) == umem::argmin(h), "argmin");
  expect(umem::argmax(d) == umem::argmax(h), "argmax");
  expect(are_equal(umem::minmax(d).min, umem::minmax(h).min), "minmax");
  expect(are_equal(umem::minmax(d).max, umem::minmax(h).max), "minmax");
  expect(umem::count_if(d, AboveFour()) == umem::count_if(h, AboveFour()), "count_if");
  expect(umem::any(d, AboveFour()) == umem::any(h, AboveFour()), "any");
  expect(umem::all(d) == umem::all(h), "all");
  expect(are_equal(umem::dot(d, d), umem::dot(h, h)), "dot");
  double const norm = umem::norm(h), ours = umem::norm(d);
  expect(are_equal(ours, norm) || std::fabs(ours - norm) <= 1e-14 * norm, "norm");
}

template <class U, int N> bool same(Array<U, N> const &a, Array<U, N> const &b) {
  auto one = a.host(umem::read), other = b.host(umem::read);
  bool equal = true;
  umem::for_each_index(umem::on_host, a.extents(), [&](auto... i) {
    double const x = double((*one)(i...)), y = double((*other)(i...));
    equal = equal && (are_equal(x, y) || std::fabs(x - y) <= 1e-14 * std::fabs(y));
  });
  return equal;
}

template <class D, class H> void check_along(D const &d, H const &h) {
  constexpr int N = D::rank;
  for (int axis = 0; axis < N; axis++) {
    Extents<N - 1> extents;
    for (int k = 0; k < N - 1; k++) extents[k] = d.extents()[k + (k >= axis)];
    Array<index_t, N - 1> at(extents, umem::Cuda()), expected(extents);
    Array<double, N - 1> out(extents, umem::Cuda()), wanted(extents);
    umem::argmin_along(d, axis, at);
    umem::argmin_along(h, axis, expected);
    expect(same(at, expected), "argmin_along");
    umem::argmax_along(d, axis, at);
    umem::argmax_along(h, axis, expected);
    expect(same(at, expected), "argmax_along");
    umem::count_if_along(d, axis, at, AboveFour());
    umem::count_if_along(h, axis, expected, AboveFour());
    expect(same(at, expected), "count_if_along");
    umem::any_along(d, axis, at, AboveFour());
    umem::any_along(h, axis, expected, AboveFour());
    expect(same(at, expected), "any_along");
    umem::all_along(d, axis, at);
    umem::all_along(h, axis, expected);
    expect(same(at, expected), "all_along");
    umem::dot_along(d, d, axis, out);
    umem::dot_along(h, h, axis, wanted);
    expect(same(out, wanted), "dot_along");
    umem::norm_along(d, axis, out);
    umem::norm_along(h, axis, wanted);
    expect(same(out, wanted), "norm_along");
  }
}

template <class T, int N> void check(Extents<N> const &extents) {
  umem::Ghosts<N> ghosts;
  for (int pass = 0; pass < 2; pass++) {
    auto h = numbers<T, N>(extents, ghosts);
    Array<T, N> d(h, umem::Cuda());
    check_whole(d, h);
    check_along(d, h);
    for (int k = 0; k < N; k++) ghosts.below[k] = 1 + k;
  }
}

void check_edges() {
  auto h = numbers<double, 1>(200003, {});
  h.set(1e200, 100);
  h.set(-1e200, 170000);
  Array<double, 1> d(h, umem::Cuda());
  check_whole(d, h); /* squares that overflow */
  h.set(std::numeric_limits<double>::quiet_NaN(), 150000);
  h.set(std::numeric_limits<double>::quiet_NaN(), 120000);
  Array<double, 1> with_nan(h, umem::Cuda());
  check_whole(with_nan, h);
  expect(umem::argmax(with_nan)[0] == 120000, "the first NaN");
}

template <class Rules> void check_rules(umem::Context const &gpu, Rules const &rules) {
  umem::Ghosts<3> const ghosts({2, 1, 3}, {1, 0, 5});
  auto h = numbers<float, 3>({5, 4, 3}, ghosts);
  Array<float, 3> d(h, gpu);
  umem::fill_ghosts(h, rules);
  umem::fill_ghosts(d, rules);
  d.set_ghosts({});
  h.set_ghosts({});
  expect(same(d, h), "fill_ghosts");
}

void check_exchange(umem::Context const &gpu) {
  umem::Decomposition<2> const grid({300, 200}, {2, 2}, {1, 0});
  auto blocks = [&](umem::Context const &other) {
    std::vector<Array<double, 2>> all;
    for (index_t n = 0; n < grid.size(); n++)
      all.emplace_back(numbers<double, 2>(grid.extents(n), {2, 3}),
                       n % 2 ? umem::Context(umem::Host()) : other);
    return all;
  };
  auto there = blocks(gpu), here = blocks(umem::Host());
  umem::exchange_ghosts(grid, there, umem::reflect);
  umem::exchange_ghosts(grid, here, umem::reflect);
  for (std::size_t n = 0; n < there.size(); n++) {
    there[n].set_ghosts({});
    here[n].set_ghosts({});
    expect(same(there[n], here[n]), "exchange_ghosts");
  }
}

} // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("there is no GPU\n");
    return 77;
  }
  try {
    check<float>(Extents<1>{100003});
    check<double>(Extents<2>{300, 7});
    check<double>(Extents<2>{5, 3001});
    check<int>(Extents<3>{33, 17, 65});
    check_edges();
    for (umem::Context gpu : {umem::Context(umem::Cuda()), umem::Context(umem::CudaAsync()),
                              umem::Context(umem::CudaManaged())}) {
      check_rules(gpu, umem::periodic);
      check_rules(gpu, umem::symmetric);
      check_rules(gpu, umem::constant(-2));
      check_rules(gpu, umem::GhostRules<float, 3>{umem::reflect, umem::keep, umem::edge});
      check_exchange(gpu);
    }
  } catch (umem::error const &error) {
    std::printf("%s\n", error.message());
    return 1;
  }
  std::printf("%d checks, %d wrong\n", checks, failures);
  return failures ? 1 : 0;
}
