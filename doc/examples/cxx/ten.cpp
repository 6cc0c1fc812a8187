/* The ten things to begin with. */
#include <cstdio>
#include <umem.hpp>
#include <umem/npy.hpp>
#include <umem/open.hpp>
#include <umem/reduce.hpp>

int main() {
  /* [ten] */
  umem::Context place = umem::open("pool+host:"); /* or cuda:0, file:x.bin, shm:/x, ... */
  umem::Array<double, 2> u({3, 4}), v({3, 4}, place);
  {
    auto x = u.host(umem::discard); /* until the end of the block the CPU may use the elements */
    for (umem::index_t i = 0; i < 3; i++)
      for (umem::index_t j = 0; j < 4; j++) x(i, j) = 1;
    umem::View<double, 2> view = x; /* what functions take */
    view(2, 3) = 7;
  }
  umem::copy(u, v); /* between any two places */
  umem::for_each(v, [](double &e) { e *= 2; });
  double const sum = umem::sum(v.part(umem::full_extent, umem::range(1, 4))); /* of a slice */
  umem::save_npy("v.npy", v);
  {
    auto y = v.device(umem::read); /* for kernels, or whatever uses the memory of the place */
    std::printf("%g %g %d\n", sum, v.get(2, 3), static_cast<int>(y.size()));
  }
  /* [/ten] */
}
