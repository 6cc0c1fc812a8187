/* checks_kernel.cu - what a failing check prints in a kernel; needs a GPU. Each kernel runs in a
 * process of its own, because its error ends the use of the GPU there. */
#include "child.hpp"

#include <umem/view.hpp>

#if !UMEM_CHECKS
#error "this test needs UMEM_CHECKS"
#endif

template <int N, class... I> __global__ void access(umem::View<double, N> view, I... i) {
  view(i...) = 1;
}

/* Exit statuses of a child. */
enum { no_gpu = 77, asserted = 1, other = 2 };

template <int N, class... I> int use(umem::Ghosts<N> const &ghosts, I... i) {
  double *memory = nullptr;
  if (cudaMalloc(&memory, 10000) != cudaSuccess) return no_gpu;
  umem::Extents<N> extents;
  for (umem::index_t &extent : extents) extent = 3;
  access<<<1, 1>>>(umem::View<double, N>::with_ghosts_from(memory, extents, ghosts), i...);
  cudaError_t error = cudaDeviceSynchronize();
  return error == cudaErrorAssert ? asserted : error == cudaSuccess ? 0 : other;
}

static int failures = 0;

/* words: NULL if the access is right. */
template <int N, class... I>
static void expect(char const *words, umem::Ghosts<N> const &ghosts, I... i) {
  Child const child = in_child([&] { return use<N>(ghosts, i...); });
  if (child.exits_with(no_gpu)) {
    std::printf("no GPU\n");
    std::exit(no_gpu);
  }
  bool good = words
                  ? child.exits_with(asserted) && child.says(words) && child.says("contains(i...)")
                  : child.exits_with(0) && child.said.empty();
  if (good) return;
  failures++;
  std::printf("expected \"%s\", but got status %d and \"%s\"\n", words ? words : "", child.status,
              child.said.c_str());
}

int main() {
  expect<1>(nullptr, {{1}}, -1);
  expect<1>("umem: index (4,) is not in the ranges ([-1, 4),)", {{1}}, 4);
  expect<2>("umem: index (1, 3) is not in the ranges ([0, 3), [0, 3))", {}, 1, 3);
  expect<3>("umem: index (1, 2, -2) is not in the ranges ([0, 3), [0, 3), [-1, 3))",
            {{0, 0, 1}, {0, 0, 0}}, 1, 2, -2);
  expect<4>("umem: of an index that is out of range: 5, range [0, 3), in dimension 3", {}, 0, 1, 2,
            5);
  return failures != 0;
}
