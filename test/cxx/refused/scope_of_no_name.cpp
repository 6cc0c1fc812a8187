// refused: nodiscard
#include <umem/adaptors.hpp>

#ifdef REFUSED
void use(umem::Stats const &stats) { umem::StatsScope{stats}; }
#else
void use(umem::Stats const &stats) { umem::StatsScope scope{stats}; }
#endif
