/* An array in a file, block by block. */
#include <umem.hpp>
#include <umem/blocks.hpp>

#include <cstdio>

/* [stencil] */
struct Diffuse {
  umem::View<double const, 2> u;
  UMEM_FUNCTION double operator()(double &value, umem::index i, umem::index j) const {
    value = 0.25 * (u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1));
    double change = value - u(i, j);
    return change < 0 ? -change : change;
  }
};
/* [/stencil] */

int main() {
  umem::File file = umem::File::scratch();
  umem::Array<double, 2> u({4000, 250}, file), next({4000, 250}, file);

  /* [options] */
  umem::BlocksOptions options;
  options.budget = 2000000; /* bytes: a quarter of the array */
  /* [/options] */

  /* [write] */
  for (auto const &block : umem::blocks(u, umem::write, umem::on_host, options)) {
    umem::View<double, 2> view = *block;
    for (umem::index i = 0; i < block.rows(); i++)
      for (umem::index j = 0; j < 250; j++) view(i, j) = block.first() + i == 2000 ? 1 : 0;
  }
  /* [/write] */

  /* [read] */
  double total = 0;
  for (auto const &block : umem::blocks(u, umem::on_host, options))
    total += umem::sum(block.place(), block.in());
  std::printf("sum %g, ", total);
  std::printf("again %g, ", umem::sum(umem::blocks(u, umem::on_host, options)));
  std::printf("largest %g\n", umem::max(umem::blocks(u, umem::on_host, options)));
  /* [/read] */

  /* [sweep] */
  options.ghosts = 1;
  for (int step = 0; step < 3; step++) {
    double change =
        umem::sweep(umem::blocks(u, next, umem::on_host, options), 1, 0.0, umem::maximum(),
                    [](umem::View<double const, 2> const &in) { return Diffuse{in}; });
    std::printf("step %d changes at most %g\n", step, change);
    swap(u, next);
  }
  /* [/sweep] */
}
