/* A view as an mdspan, if the compiler has mdspan. */
#include <cstdio>
#include <umem.hpp>
#include <umem/mdspan.hpp>

int main() {
  double memory[6] = {0, 1, 2, 3, 4, 5};
  umem::View<double, 2> view(memory, {2, 3});
#if UMEM_HAS_MDSPAN
  /* [mdspan] */
  auto span = umem::to_mdspan(view.transpose());
  std::printf("%d x %d\n", static_cast<int>(span.extent(0)), static_cast<int>(span.extent(1)));
  /* [/mdspan] */
#else
  std::printf("%d x %d\n", static_cast<int>(view.extent(1)), static_cast<int>(view.extent(0)));
#endif
}
