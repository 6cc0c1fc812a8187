/* Where loops run. */
#include <cstdio>
#include <umem.hpp>

/* [function] */
struct Double {
  UMEM_FUNCTION void operator()(double &x) const { x *= 2; }
};

/* Doubles the elements at the place that the caller names. */
static void twice(umem::Place const &place, umem::Array<double, 1> &x) {
  umem::for_each(place, x, Double());
}
/* [/function] */

int main() {
  umem::Context context = umem::File::scratch();
  auto x = umem::Array<double, 1>::full({1000}, 1, context);

  /* [places] */
  umem::for_each(x, Double());          /* where the array is: on the GPU for an array on a GPU */
  umem::for_each(context, x, Double()); /* the same: where the context is */
  twice(umem::on_host, x);              /* on this thread */
  twice(umem::on_host_threads(4), x);   /* on four threads */
  twice(umem::Place(context), x);       /* chosen when the program runs */
  /* [/places] */
  std::printf("%g %d\n", x.get(999), umem::Place(context).is_device());
}
