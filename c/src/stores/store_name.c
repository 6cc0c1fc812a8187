/* store_name.c - files by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r". */
#include "stores/store.h"

umemOption const umem_store_path = {.name = "path",
                                    .kind = umemPathOption,
                                    .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

_Static_assert(umemReserveAuto == 0 && umemReserveNone == 1, "the indices of the words of reserve");

umemOption const umem_store_options[umemStoreOptionCount] = {
    {.name = "mode",
     .kind = umemWordOption,
     .words = "r r+ w w+ a a+",
     .help = "as of umemFile_ctor; default: r+, for a scratch file w+"},
    {.name = "reserve",
     .kind = umemWordOption,
     .words = "auto none",
     .help = "disk space when a block is allocated, or when it is written; default: auto",
     .reserved = {offsetof(umemFileOptions, reserve), sizeof(umemReserve)}},
};

umemFileOptions const umem_store_defaults = UMEM_FILE_OPTIONS_INIT;

char const *umemStore_mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  if (given[0].given) return modes[given[0].number];
  return place->given ? "r+" : "w+";
}
