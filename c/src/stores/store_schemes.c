/* store_schemes.c - files by name: "file:scratch.bin?mode=w+", "mmap:array.bin?mode=r". */
#include "open/schemes.h"
#include "stores/store.h"

#include <umem/file.h>
#include <umem/mmap.h>

static umemOption const path = {.name = "path",
                                .kind = umemPathOption,
                                .help = "of the file; without one it is a scratch file"};

static char const *const modes[] = {"r", "r+", "w", "w+", "a", "a+"};

enum { mode, reserve };

static umemOption const options[] = {
    [mode] = {.name = "mode",
              .kind = umemWordOption,
              .words = "r r+ w w+ a a+",
              .help = "as of umemFile_ctor; default: r+, for a scratch file w+"},
    [reserve] = {.name = "reserve",
                 .kind = umemWordOption,
                 .words = "auto none",
                 .help =
                     "disk space when a block is allocated, or when it is written; default: auto"},
};

static char const *mode_of(umemOptionValue const *place, umemOptionValue const *given) {
  if (given[mode].given) return modes[given[mode].number];
  return place->given ? "r+" : "w+";
}

static umemFileOptions options_of(umemOptionValue const *given) {
  umemFileOptions with = UMEM_FILE_OPTIONS_INIT;
  if (given[reserve].number) with.reserve = umemReserveNone;
  return with;
}

static umemStatusType open_file(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  umemFileOptions with = options_of(given);
  return umemFile_begin(ctx, place->text, mode_of(place, given), &with);
}

static umemStatusType commit_file(void *ctx, void *user) {
  (void)user;
  return umemFile_complete(ctx);
}

static umemStatusType open_mmap(void *ctx, void *upstream, umemOptionValue const *place,
                                umemOptionValue const *given, void *user) {
  (void)upstream, (void)user;
  umemFileOptions with = options_of(given);
  return umemMMap_begin(ctx, place->text, mode_of(place, given), &with);
}

static umemStatusType commit_mmap(void *ctx, void *user) {
  (void)user;
  return umemMMap_complete(ctx);
}

umemScheme const umem_file_scheme = {
    .size = sizeof(umemScheme),
    .name = "file",
    .context_size = sizeof(umemFile),
    .place = &path,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .construct = open_file,
    .commit = commit_file,
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
    .commit = commit_mmap,
    .help = "a file, mapped into memory",
};
