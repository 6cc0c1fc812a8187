/* name.c - finds kinds, schemes and layers by name, and takes a name apart: layers, places, options
 * and their values. A message about what is wrong also says what would be right.
 *
 * The schemes of programs form a list that only grows, so that readers need no lock. */
#include "open/open.h"
#include "core/context.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==== kinds and schemes by name, and layers of a stack by their kind ==== */

enum { longest_name = 31, most_words = 64 };

typedef struct Added {
  umemScheme const *scheme; /* borrowed, or full */
  struct Added *next;       /* atomic */
  umemScheme full;          /* a copy, for a program that was compiled against an older umem */
} Added;

static Added *first_added; /* atomic; written under the global lock */

static Added *following(Added *const *link) { return __atomic_load_n(link, __ATOMIC_ACQUIRE); }

/* ---- looking up ---- */

bool umem_is_own_scheme(umemScheme const *scheme) {
  for (size_t i = 0; i < umem_kind_count; i++)
    if (&umem_kinds[i]->scheme == scheme) return true;
  return false;
}

umemScheme const *umem_scheme(size_t index) {
  for (size_t i = 0; i < umem_kind_count; i++)
    if (umem_kinds[i]->scheme.construct && !index--) return &umem_kinds[i]->scheme;
  Added *added = following(&first_added);
  while (added && index--) added = following(&added->next);
  return added ? added->scheme : NULL;
}

umemKind const *umem_find_kind(char const *name) {
  for (size_t i = 0; i < umem_kind_count; i++)
    if (!strcmp(umem_kinds[i]->scheme.name, name)) return umem_kinds[i];
  return NULL;
}

/* The scheme of this name; NULL where there is none, or umem_open cannot construct its contexts. */
static umemScheme const *find_scheme(char const *name) {
  umemKind const *kind = umem_find_kind(name);
  if (kind && kind->scheme.construct) return &kind->scheme;
  for (Added *added = following(&first_added); added; added = following(&added->next))
    if (!strcmp(added->scheme->name, name)) return added->scheme;
  return NULL;
}

/* ---- names for messages ---- */

/* Appends one more, after ", ". What has no room is cut. */
UMEM_PRINTF(2, 3)
static void add_name(umemNames *names, char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (names->used) names->used += (size_t)snprintf(names->text + names->used, 3, ", ");
  size_t room = sizeof names->text - names->used;
  names->used += (size_t)vsnprintf(names->text + names->used, room, format, arguments);
  va_end(arguments);
  if (names->used > sizeof names->text - 4) names->used = sizeof names->text - 4; /* cut */
}

static void add_schemes(umemNames *names) {
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) add_name(names, "%s", scheme->name);
}

void umemNames_add_kinds(umemNames *names) {
  add_schemes(names);
  for (size_t i = 0; i < umem_kind_count; i++)
    if (!umem_kinds[i]->scheme.construct) add_name(names, "%s", umem_kinds[i]->scheme.name);
}

/* ---- what a scheme must be ---- */

static bool is_name(char const *name) {
  if (!name || *name < 'a' || *name > 'z') return false;
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
  return !name[length] && length <= longest_name;
}

/* What is wrong with the kind of an option or a place; NULL: nothing. */
static char const *wrong_kind(umemOption const *option) {
  if (option->kind > umemUrlOption) return "an option or its place is of no known kind";
  if (option->kind != umemWordOption && option->kind != umemWordsOption) return NULL;
  size_t count = option->words && *option->words;
  for (char const *c = option->words; count && *c; c++) count += *c == ' ';
  return count && count <= most_words ? NULL : "an option or its place has no words, or too many";
}

/* What is wrong with one option of scheme, the index-th; NULL: nothing. */
static char const *wrong_option(umemScheme const *scheme, size_t index) {
  umemOption const *option = &scheme->options[index];
  if (!is_name(option->name)) return "the name of an option is malformed";
  if (option->kind == umemUrlOption) return "an option is a URL, which only a place can be";
  for (size_t i = 0; i < index; i++)
    if (!strcmp(scheme->options[i].name, option->name)) return "two options have one name";
  return wrong_kind(option);
}

static char const *wrong_scheme(umemScheme const *scheme) {
  if (!is_name(scheme->name)) return "its name is not a small letter, then those, digits and \"-\"";
  if (scheme->context_size < sizeof(umemVirtual)) return "its context_size is that of no context";
  if (!scheme->construct) return "it has no construct";
  if (scheme->decorates && scheme->place) return "what goes over another context has no place";
  if (scheme->place && !scheme->place->name) return "its place has no name";
  if (scheme->place && wrong_kind(scheme->place)) return wrong_kind(scheme->place);
  if (scheme->option_count > UMEM_SCHEME_OPTIONS) return "it has too many options";
  if (scheme->option_count && !scheme->options) return "its options are NULL";
  for (size_t i = 0; i < scheme->option_count; i++) {
    char const *wrong = wrong_option(scheme, i);
    if (wrong) return wrong;
  }
  return NULL;
}

/* ---- adding ---- */

/* Appends added; false if its name is taken. */
static bool append(Added *added) {
  UMEM_LOCKED(&umem_global_lock);
  if (find_scheme(added->scheme->name)) return false;
  Added **link = &first_added;
  while (*link) link = &(*link)->next;
  __atomic_store_n(link, added, __ATOMIC_RELEASE);
  return true;
}

umemStatusType umem_register_scheme(umemScheme const *scheme) {
  UMEM_ENTER();
  umemScheme full = {.size = sizeof full};
  if (!scheme) return umemVirtual_fail(NULL, umemValueError, "the scheme is NULL");
  if (!umem_read_sized(NULL, &full, sizeof full, scheme, "umemScheme")) return UMEM_RESULT();
  char const *wrong = wrong_scheme(&full);
  if (wrong)
    return umemVirtual_fail(NULL, umemValueError, "the scheme \"%.60s\" cannot be right: %s",
                            full.name ? full.name : "NULL", wrong);
  Added *added = malloc(sizeof *added);
  if (!added) return umemVirtual_fail(NULL, umemMemoryError, "no memory for a scheme");
  *added = (Added){.scheme = scheme, .full = full};
  if (scheme->size < sizeof full) added->scheme = &added->full;
  if (append(added)) return umemOK;
  free(added);
  return umemVirtual_fail(NULL, umemValueError, "there is a scheme \"%s\" already", full.name);
}

/* ==== layers of a stack, by their kind ==== */

/* The method table of the kind of this name; NULL, with a status on ctx, where it is unknown. */
static struct umemVtbl const *table_of(umemVirtual *ctx, char const *name) {
  umemNames known = {"", 0};
  umemKind const *kind = name ? umem_find_kind(name) : NULL;
  umemScheme const *scheme = kind ? &kind->scheme : name ? find_scheme(name) : NULL;
  if (scheme && scheme->vtbl) return scheme->vtbl;
  if (scheme)
    return UMEM_FAIL_NULL(
        ctx, umemValueError,
        "the scheme \"%.60s\" names no method table by which to find its contexts", name);
  umemNames_add_kinds(&known);
  return UMEM_FAIL_NULL(ctx, umemValueError, "\"%.60s\" is no kind of context; there are %s",
                        name ? name : "NULL", known.text);
}

void *umem_find_layer(void *ctx, char const *kind) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  struct umemVtbl const *table = self ? table_of(self, kind) : NULL;
  if (!table) return NULL;
  umemKind const *own = umem_find_kind(kind); /* NULL for a scheme of the program */
  uint64_t before = umem_thread.failures;
  for (umemVirtual *layer = self; layer; layer = umem_get_upstream(layer))
    if (layer->vptr == table || (own && umemKind_has(own, layer))) return layer;
  if (umemVirtual_adopt(self, before) != umemOK) return NULL;
  umemNames stack = {"", 0}; /* "Pool, Host" */
  for (umemVirtual *layer = self; layer; layer = umem_get_upstream(layer))
    add_name(&stack, "%s", umem_get_device_name(layer));
  return UMEM_FAIL_NULL(self, umemValueError, "there is no \"%s\" in this stack: %s", kind,
                        stack.text);
}

/* ==== the values of places and options ==== */

static char const size_units[] = "KMGT"; /* each is 1024 times the one before */

/* ---- what would be right ---- */

/* Writes the words "r w+" as "r, w+". */
static void list_words(char const *words, char *text, size_t size) {
  size_t used = 0;
  for (; *words && used + 3 < size; words++) {
    if (*words == ' ') text[used++] = ',';
    text[used++] = *words;
  }
  text[used] = 0;
}

/* What would be right for option, in words. buffer: UMEM_MESSAGE_SIZE bytes, for the text. */
static char const *right_for(umemOption const *option, char *buffer) {
  char words[300];
  switch (option->kind) {
  case umemTextOption:
  case umemPathOption:
    return "a text that is not empty";
  case umemUrlOption:
    return "//HOST/PATH";
  case umemNumberOption:
    return "a whole number from 0 to 18446744073709551615";
  case umemSizeOption:
    return "bytes: digits, then K, M, G or T (of 1024) or nothing, as in 8G; or 1% to 100%";
  case umemShareOption:
    return "a number from 0 to 1, as in 0.25";
  case umemDeviceOption:
    return "the number of a device, from 0";
  case umemWordOption:
  case umemWordsOption:
    list_words(option->words, words, sizeof words);
    snprintf(
        buffer, UMEM_MESSAGE_SIZE, "%s%s",
        option->kind == umemWordOption ? "one of " : "some of these, joined by \",\": ", words);
  }
  return buffer;
}

/* Whether text is a size: digits and a unit. The number may be too large. */
static bool is_size(char const *text) {
  size_t digits = strspn(text, "0123456789");
  char const *unit = text + digits;
  return digits && (!*unit || (strchr(size_units, *unit) && !unit[1]));
}

static bool refuse(umemOption const *option, char const *label, char const *text) {
  char buffer[UMEM_MESSAGE_SIZE];
  if (option->kind == umemSizeOption && is_size(text))
    return UMEM_FAIL(NULL, umemValueError,
                     "%s is \"%.60s\": that is more bytes than this machine can address", label,
                     text);
  return UMEM_FAIL(NULL, umemValueError, "%s is \"%.60s\": right would be %s", label, text,
                   right_for(option, buffer));
}

/* ---- percent signs ---- */

static int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Replaces each %XX by its byte. A size may end with a percent sign. */
static bool decode(char const *label, char *text, bool of_size) {
  char *to = text;
  for (char const *from = text; *from; from++, to++) {
    if (*from != '%' || (of_size && !from[1])) {
      *to = *from;
      continue;
    }
    int high = digit_of(from[1]), low = high < 0 ? -1 : digit_of(from[2]);
    if (low < 0 || (!high && !low))
      return UMEM_FAIL(
          NULL, umemValueError,
          "%s has \"%.3s\": after \"%%\" stand two hexadecimal digits, not both 0; the "
          "character itself is \"%%25\"",
          label, from);
    *to = (char)(high * 16 + low);
    from += 2;
  }
  *to = 0;
  return true;
}

/* ---- numbers ---- */

/* Reads the digits at *text and moves *text behind them. False if there are none, or the number
 * exceeds 64 bits. */
static bool read_digits(char const **text, uint64_t *number) {
  char const *begin = *text;
  for (*number = 0; **text >= '0' && **text <= '9'; ++*text)
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(**text - '0'), number))
      return false;
  return *text != begin;
}

static bool read_number(char const *text, uint64_t most, uint64_t *number) {
  return read_digits(&text, number) && !*text && *number <= most;
}

/* Bytes, or in *share a part of what is free: then *bytes is 0. */
static bool read_size(char const *text, uint64_t *bytes, double *share) {
  if (!read_digits(&text, bytes)) return false;
  if (*text == '%' && !text[1]) {
    *share = (double)*bytes / 100;
    *bytes = 0;
    return *share > 0 && *share <= 1;
  }
  char const *unit = *text ? strchr(size_units, *text) : NULL;
  unsigned shift = unit ? 10 * (unsigned)(unit - size_units + 1) : 0;
  if (unit) text++;
  if (*text || *bytes > SIZE_MAX >> shift) return false;
  *bytes <<= shift;
  return true;
}

/* Reads digits, and digits after a point. strtod will not do: its point depends on the locale. */
static bool read_share(char const *text, double *share) {
  uint64_t whole;
  if (!read_digits(&text, &whole)) return false;
  *share = (double)whole;
  if (*text == '.') {
    double unit = 1;
    char const *first = ++text;
    for (; *text >= '0' && *text <= '9'; text++) *share += (unit /= 10) * (*text - '0');
    if (text == first) return false;
  }
  return !*text && *share <= 1;
}

/* ---- words ---- */

int umem_word_index(char const *words, char const *text, size_t length) {
  for (int index = 0;; index++) {
    size_t have = strcspn(words, " ");
    if (have == length && !memcmp(words, text, length)) return index;
    words += have;
    if (!*words++) return -1;
  }
}

static bool read_word(char const *words, char const *text, uint64_t *number) {
  int index = umem_word_index(words, text, strlen(text));
  *number = (uint64_t)(index < 0 ? 0 : index);
  return index >= 0;
}

static bool read_words(char const *words, char const *text, uint64_t *bits) {
  for (*bits = 0;; text++) {
    size_t length = strcspn(text, ",");
    int index = umem_word_index(words, text, length);
    if (index < 0) return false;
    *bits |= UINT64_C(1) << index;
    text += length;
    if (!*text) return true;
  }
}

/* ---- values ---- */

static bool read_as(umemOption const *option, umemOptionValue *value) {
  char const *text = value->text;
  switch (option->kind) {
  case umemTextOption:
  case umemPathOption:
  case umemUrlOption:
    return *text != 0;
  case umemNumberOption:
    return read_number(text, UINT64_MAX, &value->number);
  case umemSizeOption:
    return read_size(text, &value->number, &value->share);
  case umemShareOption:
    return read_share(text, &value->share);
  case umemWordOption:
    return read_word(option->words, text, &value->number);
  case umemWordsOption:
    return read_words(option->words, text, &value->number);
  case umemDeviceOption:
    return read_number(text, INT_MAX, &value->number);
  }
  return false;
}

/* Reads text, which it decodes in place, into *value. label: the name of the option in messages. */
static bool read_value(umemOption const *option, char const *label, char *text,
                       umemOptionValue *value) {
  bool decodes = option->kind != umemUrlOption;
  if (decodes && !decode(label, text, option->kind == umemSizeOption)) return false;
  value->given = true;
  value->text = text;
  return read_as(option, value) || refuse(option, label, text);
}

/* ==== names ==== */

/* Records what is wrong on the thread. False. */
#define FAIL(...) UMEM_FAIL(NULL, umemValueError, __VA_ARGS__)

/* Ends text at the first separator and returns what follows; NULL where there is none. */
static char *cut(char *text, char separator) {
  char *at = strchr(text, separator);
  if (!at) return NULL;
  *at = 0;
  return at + 1;
}

/* ---- layers ---- */

static bool unknown_scheme(char const *text) {
  umemNames schemes = {"", 0};
  umemKind const *kind = umem_find_kind(text);
  add_schemes(&schemes);
  if (kind)
    return FAIL("\"%.60s\" is no scheme, only umem%s_ctor makes it; there are %s", text,
                kind->label, schemes.text);
  return FAIL("\"%.60s\" is no scheme; there are %s", text, schemes.text);
}

/* Only the innermost layer is no adaptor. */
static bool layers_fit(umemName const *name) {
  for (size_t i = 0; i < name->count; i++) {
    umemScheme const *scheme = name->layers[i].scheme;
    bool innermost = i + 1 == name->count;
    if (innermost && scheme->decorates)
      return FAIL("\"%s\" goes over another context: right would be \"%s+host:\"", scheme->name,
                  scheme->name);
    if (!innermost && !scheme->decorates)
      return FAIL("\"%s\" goes over no other context: only the last scheme before \":\" can be "
                  "it",
                  scheme->name);
  }
  return true;
}

static bool parse_layers(umemName *name, char *layers) {
  for (char *next; layers; layers = next) {
    next = cut(layers, '+');
    if (!*layers)
      return FAIL("a scheme is empty: right would be one before each \"+\" and before \":\", as in "
                  "\"pool+host:\"");
    if (name->count == umemNameLayers) return FAIL("there are more than %d layers", umemNameLayers);
    umemScheme const *scheme = find_scheme(layers);
    if (!scheme) return unknown_scheme(layers);
    name->layers[name->count++].scheme = scheme;
  }
  return layers_fit(name);
}

static bool parse_place(umemNameLayer *layer, char *text) {
  umemScheme const *scheme = layer->scheme;
  umemOption const *place = scheme->place;
  char label[64], right[UMEM_MESSAGE_SIZE];
  if (!place)
    return !*text ||
           FAIL("\"%s:\" takes nothing after \":\", but there is \"%.60s\"", scheme->name, text);
  snprintf(label, sizeof label, "the %.20s of \"%s:\"", place->name, scheme->name);
  if (*text) return read_value(place, label, text, &layer->place);
  return !place->required ||
         FAIL("%s is missing: right would be %s", label, right_for(place, right));
}

/* ---- which option is meant ---- */

/* The number of layer among those of its scheme, from 1; *count becomes how many there are. */
static size_t ordinal_of(umemName const *name, umemNameLayer const *layer, size_t *count) {
  size_t ordinal = *count = 0;
  for (size_t i = 0; i < name->count; i++) {
    *count += name->layers[i].scheme == layer->scheme;
    if (&name->layers[i] == layer) ordinal = *count;
  }
  return ordinal;
}

char const *umemName_layer(umemName const *name, size_t index, char *text) {
  umemNameLayer const *layer = &name->layers[index];
  size_t count, ordinal = ordinal_of(name, layer, &count);
  snprintf(text, UMEM_LAYER_NAME, count > 1 ? "%s.%zu" : "%s", layer->scheme->name, ordinal);
  return text;
}

/* Adds an option under a key that names it in full. */
static void list_key(umemNames *list, umemName const *name, umemNameLayer const *layer,
                     umemOption const *option) {
  char text[UMEM_LAYER_NAME];
  add_name(list, "%s.%s", umemName_layer(name, (size_t)(layer - name->layers), text), option->name);
}

/* Whether prefix, "pool" or "pool.2", means layer. */
static bool means(umemName const *name, umemNameLayer const *layer, char const *prefix) {
  size_t length = strlen(layer->scheme->name), count;
  if (strncmp(prefix, layer->scheme->name, length)) return false;
  if (!prefix[length]) return true;
  char full[32];
  snprintf(full, sizeof full, ".%zu", ordinal_of(name, layer, &count));
  return !strcmp(prefix + length, full);
}

static bool unknown_option(umemName const *name, char const *key) {
  umemNames list = {"", 0};
  for (size_t i = 0; i < name->count; i++) {
    umemScheme const *scheme = name->layers[i].scheme;
    for (size_t k = 0; k < scheme->option_count; k++)
      list_key(&list, name, &name->layers[i], &scheme->options[k]);
  }
  if (!list.used) return FAIL("there is no option \"%.60s\": these layers have none", key);
  return FAIL("there is no option \"%.60s\"; these layers have %s", key, list.text);
}

typedef struct Meant {
  umemNameLayer *layer;
  size_t index;   /* of the option in its scheme */
  size_t count;   /* how many options the key could mean */
  umemNames keys; /* all of them */
} Meant;

static void find_in_layer(umemName *name, umemNameLayer *layer, char const *option, Meant *meant) {
  for (size_t i = 0; i < layer->scheme->option_count; i++) {
    if (strcmp(layer->scheme->options[i].name, option)) continue;
    meant->layer = layer;
    meant->index = i;
    meant->count++;
    list_key(&meant->keys, name, layer, &layer->scheme->options[i]);
  }
}

/* Finds the option of this key: "max", "pool.max" or "pool.2.max". */
static bool find_option(umemName *name, char const *key, Meant *meant) {
  char const *dot = strrchr(key, '.');
  size_t length = dot ? (size_t)(dot - key) : 0;
  char prefix[64];
  if (length >= sizeof prefix) return unknown_option(name, key);
  memcpy(prefix, key, length);
  prefix[length] = 0;
  for (size_t i = 0; i < name->count; i++)
    if (!dot || means(name, &name->layers[i], prefix))
      find_in_layer(name, &name->layers[i], dot ? dot + 1 : key, meant);
  if (!meant->count) return unknown_option(name, key);
  return meant->count == 1 ||
         FAIL("the option \"%.60s\" could be any of %s: name one", key, meant->keys.text);
}

/* ---- options ---- */

static bool parse_option(umemName *name, char *key) {
  Meant meant = {NULL, 0, 0, {"", 0}};
  char label[80], right[UMEM_MESSAGE_SIZE];
  if (!*key) return FAIL("an option is empty: right would be KEY=VALUE after \"?\" and each \"&\"");
  char *text = cut(key, '=');
  if (!find_option(name, key, &meant)) return false;
  umemOption const *option = &meant.layer->scheme->options[meant.index];
  umemOptionValue *value = &meant.layer->options[meant.index];
  snprintf(label, sizeof label, "the option \"%.60s\"", key);
  if (!text)
    return FAIL("%s has no value: right would be \"=\" and %s", label, right_for(option, right));
  if (value->given) return FAIL("%s is given twice", label);
  return read_value(option, label, text, value);
}

static bool none_is_missing(umemName const *name) {
  char right[UMEM_MESSAGE_SIZE];
  for (size_t i = 0; i < name->count; i++) {
    umemNameLayer const *layer = &name->layers[i];
    for (size_t k = 0; k < layer->scheme->option_count; k++) {
      umemOption const *option = &layer->scheme->options[k];
      if (!option->required || layer->options[k].given) continue;
      umemNames list = {"", 0};
      list_key(&list, name, layer, option);
      return FAIL("the option \"%s\" is missing: right would be %s", list.text,
                  right_for(option, right));
    }
  }
  return true;
}

/* ---- the whole ---- */

bool umemName_parse(umemName *name, char const *text) {
  if (!text) return FAIL("the name is NULL");
  size_t length = strnlen(text, sizeof name->text);
  if (length == sizeof name->text) return FAIL("the name is longer than %zu bytes", length - 1);
  memset(name, 0, offsetof(umemName, text));
  memcpy(name->text, text, length + 1);
  char *place = cut(name->text, ':');
  if (!place)
    return FAIL("\"%.60s\" has no \":\", which ends the schemes, as in \"host:\" and "
                "\"pool+cuda:0\"",
                text);
  if (!parse_layers(name, name->text)) return false;
  umemOption const *innermost = name->layers[name->count - 1].scheme->place;
  bool is_url = innermost && innermost->kind == umemUrlOption; /* its "?" is the server's */
  char *option = cut(place, is_url ? '#' : '?');
  if (!parse_place(&name->layers[name->count - 1], place)) return false;
  for (char *next; option; option = next) {
    next = cut(option, '&');
    if (!parse_option(name, option)) return false;
  }
  return none_is_missing(name);
}
