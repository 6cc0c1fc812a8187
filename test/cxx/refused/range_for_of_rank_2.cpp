// refused: begin
#include <umem/elements.hpp>

int sum(umem::View<int, 2> view) {
  int sum = 0;
#ifdef REFUSED
  for (int x : view) sum += x;
#else
  for (int x : umem::elements(view)) sum += x;
#endif
  return sum;
}
