/* name_help.h - what the tests of names share: what must hold whatever the name, and names at
 * random. For fuzzing too, hence no CMocka in here: what must not be aborts. */
#pragma once

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "open/open.h"
#include "random.h"

static umemName name;

/* ---- parts ---- */

/* Writes what name consists of, as "pool(max=8) cuda:0". */
static inline void describe(char *text, size_t size) {
  size_t used = 0;
#define ADD(...) used += (size_t)snprintf(text + used, size - used, __VA_ARGS__)
  for (size_t i = 0; i < name.count; i++) {
    umemNameLayer const *layer = &name.layers[i];
    ADD("%s%s", i ? " " : "", layer->scheme->name);
    if (layer->place.given) ADD(":%s", layer->place.text);
    char const *before = "(";
    for (size_t k = 0; k < layer->scheme->option_count; k++) {
      umemOption const *option = &layer->scheme->options[k];
      umemOptionValue const *value = &layer->options[k];
      if (!value->given) continue;
      ADD("%s%s=", before, option->name);
      if (option->kind == umemTextOption)
        ADD("%s", value->text);
      else if (option->kind == umemShareOption)
        ADD("%f", value->share);
      else
        ADD("%llu", (unsigned long long)value->number);
      before = " ";
    }
    if (*before == ' ') ADD(")");
  }
#undef ADD
}

/* ---- what must hold ---- */

static inline void must(bool holds) {
  if (!holds) abort();
}

static inline void check_value(umemOption const *option, umemOptionValue const *value) {
  must(value->given == (value->text != NULL));
  if (!value->given) return;
  must(value->text >= name.text && value->text < name.text + sizeof name.text);
  must(value->share >= 0 && value->share <= 1);
  if (option->kind == umemTextOption) must(*value->text != 0);
  if (option->kind == umemDeviceOption) must(value->number <= INT_MAX);
}

/* Whether text is a name. */
static inline bool check(char const *text) {
  uint64_t before = umem_thread_failures();
  bool good = umemName_parse(&name, text);
  must(umem_thread_failures() == before + !good);
  if (!good) {
    must(umem_thread_status() == umemValueError && *umem_thread_message());
    return false;
  }
  must(name.count >= 1 && name.count <= umemNameLayers);
  for (size_t i = 0; i < name.count; i++) {
    umemNameLayer const *layer = &name.layers[i];
    must(layer->scheme->decorates == (i + 1 < name.count));
    if (layer->scheme->place) check_value(layer->scheme->place, &layer->place);
    for (size_t k = 0; k < layer->scheme->option_count; k++) {
      check_value(&layer->scheme->options[k], &layer->options[k]);
      must(layer->options[k].given || !layer->scheme->options[k].required);
    }
  }
  return true;
}

/* ---- at random ---- */

/* Changes, removes, adds or repeats a piece of text. */
static inline void mutate(uint64_t *random, char *text, size_t size) {
  static char const *const pieces[] = {"+",     ":",       "?",      "&",    "=",      "%",    "%2",
                                       ".",     ",",       "pool",   "max",  "limit",  "host", "K",
                                       "T",     "file",    "fault",  "nth=", "share=", "0",    "9",
                                       "cuda-", "limit=1", "stats+", "\xFF", "mode=w+"};
  size_t length = strlen(text), at = below(random, length + 1);
  char tail[1024];
  snprintf(tail, sizeof tail, "%s", text + at);
  size_t skipped = below(random, 2) ? 0 : below(random, 4);
  if (skipped > strlen(tail)) skipped = strlen(tail);
  char const *piece = below(random, 4) ? pieces[below(random, sizeof pieces / sizeof *pieces)] : "";
  snprintf(text + at, size - at, "%s%s", piece, tail + skipped);
}
