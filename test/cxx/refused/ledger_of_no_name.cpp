// refused: nodiscard
#include <umem/ledger.hpp>

#ifdef REFUSED
void use() { umem::Ledger(); }
#else
void use() { umem::Ledger ledger; }
#endif
