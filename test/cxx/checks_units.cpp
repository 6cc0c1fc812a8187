/* checks_units.cpp - compiled with and without checks, and with optimisation: the linker sees
 * functions of the same names from all of them. UNIT names the function. */
#include "checks_units.hpp"

#include <umem/for_each.hpp>

#include <iterator>

/* One more than there are, where that is found out; else it would be read. */
static constexpr int beyond = UMEM_CHECKS;

static Access const accesses[] = {
    [](Subject &s) { return s.view(7); },
    [](Subject &s) { return s.view(umem::Extents<1>{6}); },
    [](Subject &s) { return s.view[8]; },
    [](Subject &s) { return s.square(1, 2); },
    [](Subject &s) { return s.array.host(umem::read)(7); },
    [](Subject &s) { return s.array.host(umem::read)[7]; },
    [](Subject &s) { return s.indexer.offset(7); },
    [](Subject &s) { return s.indexer.offset(umem::Extents<1>{7}); },
    [](Subject &s) { return static_cast<int>(s.indexer.indices(7).at[0]); },
    [](Subject &s) { return static_cast<int>(s.extents[1 + beyond]); },
    [](Subject &s) { return static_cast<int>(s.shape[2 + beyond]); },
    [](Subject &s) { return static_cast<int>(s.view.extent(0 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.dynamic.extent(1 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.dynamic.stride(1 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.dynamic.low(1 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.array.extent(0 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.array.host(umem::read).extent(0 + beyond)); },
    [](Subject &s) { return static_cast<int>(s.array.part().extent(0 + beyond)); },
    [](Subject &s) { /* through a view after its guard */
                     umem::View<int, 1> view = *s.own.host(umem::write);
                     return view(0);
    },
    [](Subject &) { /* through a guard after its array */
                    auto guard = umem::Array<int, 1>::zeros({5}).host(umem::read);
                    return guard(0);
    },
    [](Subject &s) { /* in the function of a loop */
                     int sum = 0;
                     umem::for_each_index(umem::on_host, umem::Extents<1>(6),
                                          [&](umem::index_t i) { sum += s.view(i); });
                     return sum;
    },
};

std::vector<Access> UNIT() { return {std::begin(accesses), std::end(accesses)}; }
