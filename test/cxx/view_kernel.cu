/* view_kernel.cu - views and indexers by value in kernels. Compiled, not run. */
#include <umem/dynamic_view.hpp>
#include <umem/indexer.hpp>
#include <umem/mdspan.hpp>
#include <umem/shape.hpp>
#include <umem/view.hpp>

static_assert(UMEM_HAS_MDSPAN, "the CUDA toolkit has one");

template <int N, class Int>
__global__ void add_indices(umem::View<float, N> u, umem::Indexer<N, Int> indexer) {
  Int n =
      static_cast<Int>(blockIdx.x) * static_cast<Int>(blockDim.x) + static_cast<Int>(threadIdx.x);
  if (n >= indexer.size()) return;
  auto at = indexer.indices(n);
  for (umem::index_t i : at) u(at) += static_cast<float>(i);
}

__global__ void stencil(umem::View<double, 2> to, umem::View<double const, 2> from) {
  umem::index_t i = blockIdx.x + 1, j = threadIdx.x + 1;
  if (i < from.extent(0) - 1 && j < from.extent(1) - 1)
    to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1));
}

__global__ void parts(umem::View<double, 2> u, umem::mdspan<double const, 2> span, double *sum) {
  auto column = u.select(1, 0).reversed(0).interior();
  auto rows = u.slice(0, 1, 3).with_ghosts().unit_stride();
  umem::View<double, 0> result(sum, {});
  result() = column(0) + rows(1, 2) + u.transpose()(0, 1) + u.permute({1, 0})(0, 1) + span(0, 1) +
             umem::to_mdspan(u)(0, 0) + u.reshape(umem::Extents<1>{u.size()})[0];
}

void launch(umem::View<float, 3> u, umem::View<double, 2> to, double *sum) {
  umem::for_indexer(u, [&](auto indexer) { add_indices<<<1, 64>>>(u, indexer); });
  stencil<<<16, 16>>>(to, to);
  parts<<<1, 1>>>(to, umem::to_mdspan(umem::View<double const, 2>(to)), sum);
}
