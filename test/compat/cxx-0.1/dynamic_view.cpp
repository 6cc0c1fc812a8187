/* A function for arrays of any rank. */
#include <cstdio>
#include <vector>
#include <umem.hpp>
#include <umem/reduce.hpp>

/* [any] */
static double mean(umem::DynamicView<double const> const &any) {
  double sum = 0;
  switch (any.rank()) {
  case 1:
    sum = umem::sum(umem::on_host, any.to<1>());
    break;
  case 2:
    sum = umem::sum(umem::on_host, any.to<2>());
    break;
  default:
    throw umem::not_supported_error("arrays of rank 1 or 2, please");
  }
  return sum / static_cast<double>(any.size());
}
/* [/any] */

int main() {
  /* [call] */
  auto u = umem::Array<double, 2>::full({3, 4}, 1.5);
  std::printf("%g\n", mean(*u.host(umem::read)));

  std::vector<double> numbers = {0, 1, 2, 3, 4, 5};
  umem::Shape shape = {2, 3}; /* as read from a file */
  umem::DynamicView<double> view(numbers.data(), shape);
  std::printf("%g %g\n", mean(umem::View<double, 2>(view.to<2>())), view.at({1, 2}));
  /* [/call] */
}
