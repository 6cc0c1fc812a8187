/* ledger.h - how copies get into the ledger of umem/ledger.h. */
#ifndef UMEM_CORE_LEDGER_H
#define UMEM_CORE_LEDGER_H

#include <stdbool.h>

struct umemTrace;

bool umemLedger_is_on(void);

/* Adds a copy that has ended. Records nothing: a copy does not fail because of the ledger. */
void umemLedger_count(struct umemTrace const *trace, bool failed);

#endif
