// refused: min and max are for types with std::numeric_limits
#include <umem/reduce.hpp>

struct Length {
  double metres;
  bool operator<(Length const &other) const { return metres < other.metres; }
  bool operator==(Length const &other) const { return metres == other.metres; }
};
#ifdef REFUSED
using Element = Length;
#else
using Element = double;
#endif
void use(umem::View<Element, 1> const &view) { umem::min(umem::on_host, view); }
