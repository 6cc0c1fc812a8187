// two_units_main.cpp - with two_units_fill.cpp: two units that include umem.h make one program.
#include "two_units.h"

int main() {
  umemHost host;
  umemHost_ctor(&host);
  uintptr_t adr = umem_alloc(&host, 100);
  bool good = fill(&host.super, adr, 100) && reinterpret_cast<char const *>(adr)[99] == 7;
  umem_free(&host, adr);
  good = good && umem_is_ok(&host);
  umem_dtor(&host);
  return good ? 0 : 1;
}
