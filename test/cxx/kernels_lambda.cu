/* kernels_lambda.cu - __device__ lambdas in the place of functors, on a real GPU: nothing of them
 * may be called on the host. Compiled with --extended-lambda.
 *
 * Exit code: 0; 1 when a number is wrong or a call failed; 77 without a GPU. */
#include <umem.hpp>
#include <umem/reduce.hpp>
#include <umem/reduce_along.hpp>
#include <umem/sweep.hpp>

#include <cstdio>

using Index = umem::index_t;
using umem::View;

static int failures = 0;

static void expect(double found, double expected, char const *what) {
  if (found == expected) return;
  failures++;
  std::printf("WRONG: %s: %g, not %g\n", what, found, expected);
}

/* Elements 0, 1, 2, ..., 41 in 6 rows of 7. */
int run() {
  umem::Array<double, 2> array({6, 7}, umem::Cuda());
  umem::Array<double, 1> out({7}, umem::Cuda());
  umem::iota(array, 0);
  auto const gpu = umem::on_device();
  auto const add = [] __device__(double a, double b) { return a + b; };
  auto const twice = [] __device__(double x) { return 2 * x; };
  auto const product = [] __device__(double a, double b) { return a * b; };
  expect(umem::reduce(gpu, array, 1.0, add), 862, "reduce");
  expect(umem::transform_reduce(gpu, array, 1.0, add, twice), 1723, "transform_reduce");
  expect(umem::transform_reduce(gpu, array, array, 1.0, add, product), 23822,
         "transform_reduce of two");
  {
    auto guard = array.device(umem::read);
    View<double const, 2> every_second = guard->slice(1, 0, 7, 2);
    expect(umem::reduce(gpu, every_second, 1.0, add), 493, "reduce with strides");
    View<double const, 2> u = *guard;
    expect(umem::for_each_index_reduce(gpu, u.extents, 1.0, add,
                                       [u] __device__(Index i, Index j) { return u(i, j); }),
           862, "for_each_index_reduce");
  }
  umem::transform_reduce_along(gpu, array, 0, out, 1.0, add, twice);
  expect(out.get(6), 1 + 2 * (6 + 13 + 20 + 27 + 34 + 41), "transform_reduce_along");
  umem::for_each(gpu, array, [] __device__(double &x) { x += 1; });
  expect(array.get(5, 6), 42, "for_each");
  umem::Array<double, 2> other({6, 7}, umem::Cuda());
  double const a = 3;
  umem::for_each(
      gpu, [=] __device__(double &z, double const &x) { z = a * x; }, umem::discard(other),
      umem::read(array));
  expect(other.get(5, 6), 126, "for_each of two");
  umem::for_each([=] UMEM_FUNCTION(double &z, double x, double y) { z = a * x + y; }, other, array,
                 other);
  expect(other.get(5, 6), 252, "for_each of two, on the place of the first");
  umem::for_each(
      [=] UMEM_FUNCTION(double &z, double x, Index i, Index j) { z = a * x + double(i + j); },
      other, array);
  expect(other.get(5, 6), 137, "for_each of two with indices");
  umem::for_each_indexed(gpu, array, umem::interior(array),
                         [] __device__(double &x, Index i, Index) { x = static_cast<double>(i); });
  expect(array.get(4, 5), 4, "for_each_indexed");
  umem::transform(gpu, array, array, twice);
  expect(array.get(4, 5), 8, "transform");
  expect(umem::sweep(gpu, array, umem::interior(array), 1.0, add,
                     [] __device__(double &value, Index i, Index j) {
                       value = static_cast<double>(i * j);
                       return value;
                     }),
         1 + (1 + 2 + 3 + 4) * (1 + 2 + 3 + 4 + 5), "sweep");
  expect(array.get(4, 5), 20, "sweep, an element");
  return failures ? 1 : 0;
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("there is no GPU\n");
    return 77;
  }
  try {
    return run();
  } catch (umem::error const &error) {
    std::printf("%s\n", error.message());
    return 1;
  }
}
