/* kernels_units.cu - see kernels_units.cpp. */
#include "kernels_units.hpp"

Outcome call_from_cu(umem::Place const &place, Numbers &numbers) {
  return call_all(place, numbers);
}

std::vector<int> call_at_home_from_cu() { return call_at_home(); }
