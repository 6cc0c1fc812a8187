/* A loop of Kokkos over an array of umem. */
#include <cstdio>
#include <umem.hpp>
#include <umem/with/kokkos.hpp>

int main() {
  Kokkos::initialize();
  umem::Array<double, 2> u({3, 4});
  /* [kokkos] */
  {
    auto guard = u.host(umem::discard);
    auto rows = umem::to_kokkos(guard); /* the same elements */
    using OnCpu = Kokkos::DefaultHostExecutionSpace;
    Kokkos::parallel_for(Kokkos::RangePolicy<OnCpu>(0, 3), [=](int i) {
      for (int j = 0; j < 4; j++) rows(i, j) = 10 * i + j;
    });
    Kokkos::fence(); /* before the guard ends */
  }
  Kokkos::View<double **, Kokkos::LayoutLeft, Kokkos::HostSpace> own("own", 2, 3);
  umem::View<double, 2> view = umem::from_kokkos(own);
  view(1, 2) = 7;
  /* [/kokkos] */
  std::printf("%g %g\n", u.get(2, 3), own(1, 2));
  own = {};
  Kokkos::finalize();
}
