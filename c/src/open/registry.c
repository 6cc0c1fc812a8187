/* registry.c - kinds and schemes by name, and layers of a stack by their kind. The schemes of
 * programs form a list that only grows, so that readers need no lock. */
#include "open/registry.h"
#include "base/lock.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

umemScheme const *umem_find_scheme(char const *name) {
  umemKind const *kind = umem_find_kind(name);
  if (kind && kind->scheme.construct) return &kind->scheme;
  for (Added *added = following(&first_added); added; added = following(&added->next))
    if (!strcmp(added->scheme->name, name)) return added->scheme;
  return NULL;
}

/* The scheme of this name, also where umem_open cannot construct its contexts. */
static umemScheme const *find_named(char const *name) {
  umemKind const *kind = umem_find_kind(name);
  return kind ? &kind->scheme : umem_find_scheme(name);
}

/* ---- names for messages ---- */

void umemNames_add(umemNames *names, char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (names->used) names->used += (size_t)snprintf(names->text + names->used, 3, ", ");
  size_t room = sizeof names->text - names->used;
  names->used += (size_t)vsnprintf(names->text + names->used, room, format, arguments);
  va_end(arguments);
  if (names->used > sizeof names->text - 4) names->used = sizeof names->text - 4; /* cut */
}

void umemNames_add_schemes(umemNames *names) {
  umemScheme const *scheme;
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) umemNames_add(names, "%s", scheme->name);
}

void umemNames_add_kinds(umemNames *names) {
  umemNames_add_schemes(names);
  for (size_t i = 0; i < umem_kind_count; i++)
    if (!umem_kinds[i]->scheme.construct) umemNames_add(names, "%s", umem_kinds[i]->scheme.name);
}

/* ---- what a scheme must be ---- */

static bool is_name(char const *name) {
  if (!name || *name < 'a' || *name > 'z') return false;
  size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
  return !name[length] && length <= longest_name;
}

/* What is wrong with the kind of an option or a place; NULL: nothing. */
static char const *wrong_kind(umemOption const *option) {
  if (option->kind > umemPathOption) return "an option or its place is of no known kind";
  if (option->kind != umemWordOption && option->kind != umemWordsOption) return NULL;
  size_t count = option->words && *option->words;
  for (char const *c = option->words; count && *c; c++) count += *c == ' ';
  return count && count <= most_words ? NULL : "an option or its place has no words, or too many";
}

/* What is wrong with one option of scheme, the index-th; NULL: nothing. */
static char const *wrong_option(umemScheme const *scheme, size_t index) {
  umemOption const *option = &scheme->options[index];
  if (!is_name(option->name)) return "the name of an option is malformed";
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
  umemLock_acquire_global();
  bool is_new = !umem_find_scheme(added->scheme->name);
  if (is_new) {
    Added **link = &first_added;
    while (*link) link = &(*link)->next;
    __atomic_store_n(link, added, __ATOMIC_RELEASE);
  }
  umemLock_release_global();
  return is_new;
}

umemStatusType umem_register_scheme(umemScheme const *scheme) {
  UMEM_ENTER();
  uint64_t before = umem_thread.failures;
  umemScheme full = {.size = sizeof full};
  if (!scheme) return umemVirtual_fail(NULL, umemValueError, "the scheme is NULL");
  if (!umem_read_sized(NULL, &full, sizeof full, scheme, "umemScheme")) return umem_result(before);
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
  umemScheme const *scheme = name ? find_named(name) : NULL;
  if (scheme && scheme->vtbl) return scheme->vtbl;
  if (scheme)
    return UMEM_FAIL_NULL(
        ctx, umemValueError,
        "the scheme \"%.60s\" names no method table by which to find its contexts", name);
  umemNames_add_kinds(&known);
  return UMEM_FAIL_NULL(ctx, umemValueError, "\"%.60s\" is no kind of context; there are %s",
                        name ? name : "NULL", known.text);
}

/* "Pool over Host" */
static void describe(umemVirtual *ctx, umemNames *stack) {
  for (; ctx; ctx = umem_get_upstream(ctx)) umemNames_add(stack, "%s", umem_get_device_name(ctx));
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
  umemNames stack = {"", 0};
  describe(self, &stack);
  return UMEM_FAIL_NULL(self, umemValueError, "there is no \"%s\" in this stack: %s", kind,
                        stack.text);
}
