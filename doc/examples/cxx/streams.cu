/* Loops on streams of a GPU. */
#include <cstdio>
#include <umem.hpp>

/* [functor] */
struct Scale {
  double factor;
  UMEM_FUNCTION void operator()(double &x) const { x *= factor; }
};
/* [/functor] */

int main() {
  /* [stream] */
  umem::CudaAsync queue; /* with a stream of its own */
  auto u = umem::Array<double, 1>::full({1000}, 1.5, queue);
  umem::for_each(u, Scale{2});     /* only queues the loop: the call does not wait */
  std::printf("%g\n", u.get(999)); /* waits for the loop */
  /* [/stream] */

  /* [beside] */
  umem::CudaAsync other;
  auto x = u.device(umem::write);
  other.wait(queue); /* other starts after the work that queue has so far */
  umem::for_each(umem::on_device(other.stream()), x, Scale{3});
  queue.wait(other); /* later work of queue starts after the kernel */
  x.release();
  std::printf("%g\n", u.get(999));
  /* [/beside] */
}
