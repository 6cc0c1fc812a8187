/* schemes.h - the schemes that umem_open knows.
 *
 * Each kind of context defines its own, beside its code; the table in schemes.c names them all.
 * It is a table, and not a constructor for each file, because a static library leaves out files that
 * nothing refers to, and says nothing of the order of the rest. */
#ifndef UMEM_SCHEMES_H
#define UMEM_SCHEMES_H

#include "core/core.h"

#include <umem/scheme.h>

/* Those of the library, in the order in which they are told. */
extern umemScheme const umem_host_scheme;
extern umemScheme const umem_file_scheme, umem_mmap_scheme;
extern umemScheme const umem_cuda_scheme, umem_cuda_host_scheme, umem_cuda_managed_scheme,
    umem_cuda_async_scheme, umem_cuda_prefetch_scheme;
extern umemScheme const umem_pool_scheme, umem_fixed_scheme;
extern umemScheme const umem_limit_scheme, umem_stats_scheme, umem_track_scheme, umem_debug_scheme,
    umem_fault_scheme, umem_log_scheme;

extern umemScheme const *const umem_own_schemes[];
extern size_t const umem_own_scheme_count;

/* What the default contexts begin as without UMEM_DEFAULT: that of the process, and that of a GPU but
 * for its number. */
extern char const umem_first_default[], umem_first_default_of_device[];

/* The constructor of a kind of context of this name that is no scheme, as it takes what no text can
 * hold: a function, or several contexts. NULL where there is none. */
char const *umem_find_constructor(char const *name);

/* The scheme of this name, or NULL. */
umemScheme const *umem_find_scheme(char const *name);

/* Whether an option, whose default a constructor knows as 0, is left out or above 0. False with a
 * status otherwise: who writes "max=0" does not mean the default. */
bool umem_not_zero(umemOption const *option, umemOptionValue const *given);

#endif
