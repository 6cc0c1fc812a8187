/* Expressions of xtensor on an array of umem. */
#include <cstdio>
#include <umem.hpp>
#include <umem/with/xtensor.hpp>

int main() {
  umem::Array<double, 2> u({3, 4});
  /* [xtensor] */
  {
    auto guard = u.host(umem::discard);
    auto tensor = umem::to_xtensor(guard); /* the same elements */
    tensor = xt::ones<double>({3, 4});
    tensor = 2 * tensor + 1;
  }
  xt::xtensor<double, 2> own = {{1, 2}, {3, 4}};
  umem::View<double, 2> view = umem::from_xtensor(own);
  view(0, 1) = 7;
  /* [/xtensor] */
  std::printf("%g %g\n", u.get(2, 3), own(0, 1));
}
