/* Move particles: one loop that reads and writes three arrays */
#include <iostream>
#include <umem.hpp>
#include <umem/print.hpp>

/* A functor whose call operator is a template says nothing of what it writes; the call does. */
struct Step {
  double dt;
  template <class T> UMEM_FUNCTION void operator()(T &x, T &v, T const &force) const {
    v += dt * force;
    x += dt * v;
  }
};

int main() {
  umem::Array<double, 1> x({4}), v({4}), force({4});
  umem::iota(x, 0);
  umem::fill(v, 1);
  umem::for_each([](double &f, double at) { f = -at; }, umem::discard(force), x);
  umem::for_each(Step{0.5}, x, v, umem::read(force));
  std::cout << x << '\n' << v << '\n';
}
