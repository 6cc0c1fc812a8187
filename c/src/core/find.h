/* find.h - who is asked about addresses that are in no block of the library. */
#ifndef UMEM_CORE_FIND_H
#define UMEM_CORE_FIND_H

#include <umem/find.h>

/* Sets foreign, name, device, and adr and nbytes if they are known, of *found, and returns true, if
 * it knows the memory. Records nothing. */
typedef bool umemFindForeign(uintptr_t adr, umemFound *found);

/* umem_find calls this one, too. */
void umemFind_ask(umemFindForeign *ask);

#endif
