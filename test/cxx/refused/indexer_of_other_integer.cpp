// refused: Int is std::int32_t or std::int64_t
#include <umem/indexer.hpp>

#ifdef REFUSED
umem::Indexer<2, short> indexer;
#else
umem::Indexer<2, std::int64_t> indexer;
#endif
