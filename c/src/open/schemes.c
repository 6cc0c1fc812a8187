/* schemes.c - the table of the library's own schemes: a line for each kind of context. */
#include "open/schemes.h"

#include <string.h>

umemScheme const *const umem_own_schemes[] = {
    &umem_host_scheme,         &umem_file_scheme,          &umem_mmap_scheme,
    &umem_cuda_scheme,         &umem_cuda_async_scheme,    &umem_cuda_host_scheme,
    &umem_cuda_managed_scheme, &umem_cuda_prefetch_scheme, &umem_pool_scheme,
    &umem_fixed_scheme,        &umem_limit_scheme,         &umem_stats_scheme,
    &umem_track_scheme,        &umem_debug_scheme,         &umem_fault_scheme,
    &umem_log_scheme,
};

size_t const umem_own_scheme_count = sizeof umem_own_schemes / sizeof *umem_own_schemes;

char const *umem_find_constructor(char const *name) {
  static struct {
    char const *name, *constructor;
  } const kinds[] = {{"retry", "umemRetry_ctor"}, {"binning", "umemBinning_ctor"}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i].name, name)) return kinds[i].constructor;
  return NULL;
}

bool umem_not_zero(umemOption const *option, umemOptionValue const *given) {
  if (!given->given || given->number) return true;
  umemVirtual_fail(NULL, umemValueError, "%s=0 is of no use: without %s it is the default",
                   option->name, option->name);
  return false;
}

char const umem_first_default[] = "host:";
char const umem_first_default_of_device[] = "cuda:";
