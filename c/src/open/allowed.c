/* allowed.c - see allowed.h. */
#include "open/allowed.h"
#include "core/context.h"
#include "core/status.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

/* A scheme of the program can open any file. So if folders limit the files, the caller must allow that scheme
 * by name. */
static bool allows_scheme(umemAllowed const *allowed, umemScheme const *scheme) {
  bool known = umem_is_own_scheme(scheme) || !allowed->limits_files;
  if (allowed->schemes ? umem_word_index(allowed->schemes, scheme->name, strlen(scheme->name)) >= 0
                       : known)
    return true;
  return UMEM_FAIL(NULL, umemValueError, "the scheme \"%s\" is not allowed here", scheme->name);
}

static bool allows_path(umemAllowed const *allowed, umemOptionValue const *value) {
  if (!allowed->limits_files || !value->given) return true;
  if (!umemFolders_refuse(&allowed->folders, value->text)) return true;
  return UMEM_FAIL(NULL, umemValueError, "\"%.200s\" is not in a folder that is allowed here",
                   value->text);
}

static bool allows_layer(umemAllowed const *allowed, umemNameLayer const *layer) {
  umemScheme const *scheme = layer->scheme;
  if (!allows_scheme(allowed, scheme)) return false;
  if (scheme->place && scheme->place->kind == umemPathOption &&
      !allows_path(allowed, &layer->place))
    return false;
  for (size_t i = 0; i < scheme->option_count; i++)
    if (scheme->options[i].kind == umemPathOption && !allows_path(allowed, &layer->options[i]))
      return false;
  return true;
}

/* ---- the options ---- */

static bool read_folder(umemAllowed *allowed, char const *path) {
  char words[128];
  int error = umemFolders_add(&allowed->folders, path);
  if (!error) return true;
  return UMEM_FAIL(NULL, umemIOError, "cannot open the folder \"%.200s\": %s", path ? path : "NULL",
                   umem_system_words(error, words, sizeof words));
}

bool umemAllowed_read(umemAllowed *allowed, umemOpenOptions const *options) {
  umemOpenOptions full = UMEM_OPEN_OPTIONS_INIT;
  *allowed = (umemAllowed){.outer = umemFolders_held()};
  if (!umem_read_sized(NULL, &full, sizeof full, options, "umemOpenOptions")) return false;
  allowed->schemes = full.schemes;
  allowed->limits_files = full.folders != NULL;
  if (!full.folders || !full.folder_count) return true;
  allowed->folders.list = calloc(full.folder_count, sizeof *allowed->folders.list);
  if (!allowed->folders.list)
    return UMEM_FAIL(NULL, umemMemoryError, "no memory for %zu folders", full.folder_count);
  for (size_t i = 0; i < full.folder_count; i++)
    if (!read_folder(allowed, full.folders[i])) return false;
  return true;
}

bool umemAllowed_begin(umemAllowed *allowed, umemName const *name) {
  for (size_t i = 0; i < name->count; i++)
    if (!allows_layer(allowed, &name->layers[i])) return false;
  if (allowed->limits_files) umemFolders_hold(&allowed->folders); /* else an outer limit stays */
  return true;
}

void umemAllowed_end(umemAllowed *allowed) {
  umemFolders_hold(allowed->outer);
  free(allowed->folders.list);
}
