/* fixed_scheme.c - blocks of one size by name: "fixed+cuda:0?block=800". */
#include "open/schemes.h"

#include <umem/fixed.h>

enum { block, alignment, initial, growth, max };

static umemOption const options[] = {
    [block] = {.name = "block", .kind = umemSizeOption, .required = true, .help = "of every block"},
    [alignment] = {.name = "alignment",
                   .kind = umemSizeOption,
                   .help = "of every block; default: that of what is below"},
    [initial] = {.name = "initial",
                 .kind = umemSizeOption,
                 .help = "taken when it is opened; default: 0"},
    [growth] = {.name = "growth", .kind = umemSizeOption, .help = "of each chunk; default: 1M"},
    [max] = {.name = "max",
             .kind = umemSizeOption,
             .help = "that it ever holds at once; default: no bound"},
};

static umemStatusType open_fixed(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  if (!umem_not_zero(&options[alignment], &given[alignment]) ||
      !umem_not_zero(&options[growth], &given[growth]) ||
      !umem_not_zero(&options[max], &given[max]))
    return umemValueError;
  umemFixedOptions with = UMEM_FIXED_OPTIONS_INIT;
  with.alignment = given[alignment].number;
  with.initial = given[initial].number;
  with.growth = given[growth].number;
  with.maximum = given[max].number;
  return umemFixed_ctor(ctx, upstream, given[block].number, &with);
}

umemScheme const umem_fixed_scheme = {
    .size = sizeof(umemScheme),
    .name = "fixed",
    .context_size = sizeof(umemFixed),
    .decorates = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_fixed,
    .help = "blocks of one size, out of few",
};
