/* A pointer that is kept too long is found at its line, on a machine without a GPU. */
#include <cstdio>
#include <umem.hpp>
#include <umem/adaptors.hpp>

/* [bug] */
struct Cool {
  UMEM_FUNCTION void operator()(double &t) const { t -= 1; }
};

static void simulate(umem::Array<double, 1> &t) {
  double const *first = nullptr;
  {
    auto x = t.host(umem::discard);
    for (umem::index_t i = 0; i < x.size(); i++) x(i) = 300;
    first = x->data;
  }
  umem::for_each(t, Cool()); /* on a GPU: a kernel */
  double now = *first;       /* the bug: on a GPU this is 300 still */
  std::printf("%g degrees\n", now);
  std::fflush(stdout);
}
/* [/bug] */

int main() {
  /* [guarded] */
  umem::Array<double, 1> in_ram({1000});
  simulate(in_ram); /* works, and the bug waits for the first GPU */

  umem::Guarded gpu{umem::Host()}; /* stands for one */
  umem_set_label(gpu.c_context(), "gpu");
  umem::Guarded::report();
  umem::Array<double, 1> on_gpu({1000}, gpu);
  simulate(on_gpu); /* ends the program in the line with the bug */
  /* [/guarded] */
}
