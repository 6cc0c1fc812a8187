/* umem_store_schemes.c - files by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r". */
#include "umem_schemes.h"
#include "umem_store.h"

#include <umem/file.h>
#include <umem/mmap.h>

static umemOption const path = {.name = "path",
                                .kind = umemPathOption,
                                .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

static umemOption const options[] = {
    {.name = "mode",
     .kind = umemWordOption,
     .words = "r r+ w w+ a a+",
     .help = "as of umemFile_ctor; default: r+, for a scratch file w+"},
};

static char const *mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  return given->given ? modes[given->number] : place->given ? "r+" : "w+";
}

static umemStatusType open_file(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  return umemFile_ctor(ctx, place->text, mode_of(place, given));
}

static umemStatusType open_mmap(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  return umemMMap_ctor(ctx, place->text, mode_of(place, given));
}

umemScheme const umem_file_scheme = {
    .size = sizeof(umemScheme),
    .name = "file",
    .context_size = sizeof(umemFile),
    .place = &path,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_file,
    .help = "a file, read and written by calls",
};

umemScheme const umem_mmap_scheme = {
    .size = sizeof(umemScheme),
    .name = "mmap",
    .context_size = sizeof(umemMMap),
    .place = &path,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_mmap,
    .help = "a file, mapped into memory",
};
