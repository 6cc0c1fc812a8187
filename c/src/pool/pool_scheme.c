/* pool_scheme.c - pools by name: "pool+cuda:0?max=8G". */
#include "open/schemes.h"

#include <umem/pool.h>

enum { initial, growth, max };

static umemOption const options[] = {
    [initial] = {.name = "initial",
                 .kind = umemSizeOption,
                 .help = "taken when it is opened; default: 0"},
    [growth] = {.name = "growth",
                .kind = umemSizeOption,
                .help = "of each further chunk, at least; default: as much as it holds"},
    [max] = {.name = "max",
             .kind = umemSizeOption,
             .help = "that it ever holds at once; default: no bound"},
};

static umemStatusType open_pool(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  if (!umem_not_zero(&options[growth], &given[growth]) ||
      !umem_not_zero(&options[max], &given[max]))
    return umemValueError;
  umemPoolOptions with = UMEM_POOL_OPTIONS_INIT;
  with.initial = given[initial].number;
  with.growth = given[growth].number;
  with.maximum = given[max].number;
  return umemPool_ctor(ctx, upstream, &with);
}

umemScheme const umem_pool_scheme = {
    .size = sizeof(umemScheme),
    .name = "pool",
    .context_size = sizeof(umemPool),
    .decorates = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_pool,
    .help = "many blocks out of few",
};
