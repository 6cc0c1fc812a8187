/* debug_scheme.c - umemDebug by name: "debug+cuda:0?kept=64M&frames=8". */
#include "open/schemes.h"

#include <limits.h>
#include <umem/debug.h>

enum { guard, kept, blocks, frames };

static umemOption const options[] = {
    [guard] = {.name = "guard",
               .kind = umemSizeOption,
               .help = "on either side of a block, at least; default: 32"},
    [kept] = {.name = "kept",
              .kind = umemSizeOption,
              .help = "of freed blocks, that wait before they are given back; default: 16M"},
    [blocks] = {.name = "blocks",
                .kind = umemNumberOption,
                .help = "of them that wait; default: 1024"},
    [frames] = {.name = "frames",
                .kind = umemNumberOption,
                .help = "of the stack, kept of each allocation and free; default: 0"},
};

static umemStatusType open_debug(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)place, (void)user;
  umemDebugOptions with = UMEM_DEBUG_OPTIONS_INIT;
  if (given[guard].given) with.guard = given[guard].number;
  if (given[kept].given) with.kept_bytes = given[kept].number;
  if (given[blocks].given) with.kept_blocks = given[blocks].number;
  /* more than fits is more than UMEM_DEBUG_FRAMES, which the constructor refuses */
  with.frames = given[frames].number < UINT_MAX ? (unsigned)given[frames].number : UINT_MAX;
  return umemDebug_ctor(ctx, upstream, &with);
}

umemScheme const umem_debug_scheme = {
    .size = sizeof(umemScheme),
    .name = "debug",
    .context_size = sizeof(umemDebug),
    .decorates = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_debug,
    .help = "finds wrong writes and wrong frees",
};
