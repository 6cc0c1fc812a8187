/* The search takes whatever pair brings two classes together for the first time, and then a pair
 * for each row that is still missing on a side. */
#include "pairs.h"

#include <stdlib.h>
#include <string.h>

typedef struct Choice {
  PairsAllowed *allowed;
  void const *data;
  size_t turn;
  bool *chosen;    /* [src * backend_count + dst] */
  size_t *classes; /* of each row: the first row that is like it */
  bool *met;       /* [2 * (src * backend_count + dst) + one memory], for classes */
  bool *has_been;  /* [2 * row]: a source; [2 * row + 1]: a destination */
} Choice;

static bool are_alike(unsigned const *capabilities, size_t one, size_t other) {
  return (capabilities[one] & routing_capabilities) ==
             (capabilities[other] & routing_capabilities) &&
         (backends[one].traits & backendWrapped) == (backends[other].traits & backendWrapped);
}

static size_t class_of(unsigned const *capabilities, size_t row) {
  size_t first = 0;
  while (!are_alike(capabilities, first, row)) first++;
  return first;
}

static bool is_one_memory(size_t src, size_t dst) {
  char const *one = backends[src].memory, *other = backends[dst].memory;
  return src == dst || (one && other && !strcmp(one, other));
}

static void choose(Choice *choice, size_t src, size_t dst) {
  choice->chosen[src * backend_count + dst] = true;
  choice->has_been[2 * src] = choice->has_been[2 * dst + 1] = true;
}

static void choose_if_new(Choice *choice, size_t src, size_t dst) {
  if (!choice->allowed(src, dst, choice->data)) return;
  size_t pair = choice->classes[src] * backend_count + choice->classes[dst];
  bool *met = &choice->met[2 * pair + is_one_memory(src, dst)];
  if (!*met) choose(choice, src, dst);
  *met = true;
}

/* The rows in the order of this turn. */
static size_t row_at(Choice const *choice, size_t i) { return (i + choice->turn) % backend_count; }

static void bring_classes_together(Choice *choice) {
  for (size_t i = 0; i < backend_count; i++)
    for (size_t j = 0; j < backend_count; j++)
      choose_if_new(choice, row_at(choice, i), row_at(choice, j));
}

/* The partner changes from row to row and from turn to turn; every second row is its own. */
static void add_missing(Choice *choice, size_t row) {
  bool *is_source = &choice->has_been[2 * row], *is_destination = is_source + 1;
  bool own = (row + choice->turn) % 2 && choice->allowed(row, row, choice->data);
  if (own && !*is_source && !*is_destination) choose(choice, row, row);
  for (size_t i = 0; i < backend_count; i++) {
    size_t other = (i + row * 7 + choice->turn) % backend_count;
    if (!*is_source && choice->allowed(row, other, choice->data)) choose(choice, row, other);
    if (!*is_destination && choice->allowed(other, row, choice->data)) choose(choice, other, row);
  }
}

bool pairs_choose(unsigned const *capabilities, PairsAllowed *allowed, void const *data,
                  size_t turn, bool *chosen) {
  size_t n = backend_count;
  Choice choice = {
      allowed,         data, turn, chosen, calloc(n, sizeof(size_t)), calloc(2 * n * n, 1),
      calloc(2 * n, 1)};
  bool done = choice.classes && choice.met && choice.has_been;
  memset(chosen, 0, n * n);
  for (size_t i = 0; done && i < n; i++) choice.classes[i] = class_of(capabilities, i);
  if (done) bring_classes_together(&choice);
  for (size_t i = 0; done && i < n; i++) add_missing(&choice, i);
  free(choice.classes);
  free(choice.met);
  free(choice.has_been);
  return done;
}
