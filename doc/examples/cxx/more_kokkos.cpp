/* Tiles, atomics and a scan of Kokkos over arrays of umem, one of them in a file. */
#include <cstdio>
#include <umem.hpp>
#include <umem/with/kokkos.hpp>

using OnCpu = Kokkos::DefaultHostExecutionSpace;

int main() {
  Kokkos::initialize();
  /* [kokkos] */
  umem::Array<int, 2> image({60, 80}, umem::File::scratch());
  auto counts = umem::Array<int, 1>::zeros({4});
  {
    auto pixels_guard = image.host(umem::discard);
    auto counts_guard = counts.host(umem::write);
    auto pixels = umem::to_kokkos(pixels_guard);
    auto count = umem::to_kokkos(counts_guard);
    Kokkos::parallel_for(
        Kokkos::MDRangePolicy<OnCpu, Kokkos::Rank<2>>({0, 0}, {60, 80}, {8, 8}), /* in tiles */
        [=](int i, int j) {
          pixels(i, j) = (i + j) % 4;
          Kokkos::atomic_fetch_add(&count(pixels(i, j)), 1);
        });
    Kokkos::parallel_scan(Kokkos::RangePolicy<OnCpu>(0, 4), [=](int k, int &sum, bool last) {
      sum += count(k);
      if (last) count(k) = sum;
    });
    Kokkos::fence(); /* before the guards end */
  }
  /* [/kokkos] */
  std::printf("%d %d %d %d\n", counts.get(0), counts.get(1), counts.get(2), counts.get(3));
  Kokkos::finalize();
}
