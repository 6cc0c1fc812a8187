/* report.c - the output of the program for people. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COLUMNS = 80 };     /* of a terminal */
enum { SMALL = 32 << 20 }; /* bytes that caches may hold */

static char const *plural(size_t count) { return count == 1 ? "" : "s"; }

void report_array(char const *path, Npy const *npy) {
  printf("%s: ", path);
  for (int i = 0; i < npy->rank; ++i) printf(i ? " x %zu" : "%zu", npy->shape[i]);
  if (npy->rank)
    printf(" element%s", plural(npy->data_size / npy->item_size));
  else
    printf("one element");
  printf(" of type %s, %zu byte%s\n", npy->type, npy->data_size, plural(npy->data_size));
}

static bool is_watched(void) { return isatty(STDERR_FILENO); }

static void clear_progress(void) {
  if (is_watched()) fputs("\r\033[K", stderr);
}

void report_progress(char const *from, char const *to, uint64_t done, uint64_t total) {
  if (!is_watched()) return;
  clear_progress();
  double share = total ? (double)done / (double)total : 0;
  fprintf(stderr, "%3.0f %%  %s -> %s", 100 * share, from, to);
  fflush(stderr);
}

void report_problem(char const *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  clear_progress();
  fflush(stdout);
  fputs("stage: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

static void report_route(Route const *route, bool identical) {
  printf("%-14s %-14s %14llu %11.6f ", route->from, route->to, (unsigned long long)route->bytes,
         route->seconds);
  if (route->bytes && route->seconds > 0)
    printf("%8.2f", (double)route->bytes / route->seconds / 1e9);
  else
    printf("%8s", "-");
  printf("  %s\n", identical ? "yes" : "NO");
}

/* What a reader must know about the times in the table. */
static void report_notes(Route const *routes, size_t count, uint64_t size) {
  bool is_short = false;
  for (size_t i = 0; i < count; ++i) is_short |= routes[i].is_short;
  putchar('\n');
  if (is_short)
    printf("A copy shorter than %d ms is timed %d times, and the median counts.\n", HOP_SHORT_MS,
           HOP_TIMES);
  if (size < SMALL)
    puts("A small array like this shows the speed of calls and caches, not of the places.");
  else
    puts("Files stay in the page cache, in RAM: their GB/s are not those of the disk.");
}

size_t report_table(Route const *routes, size_t count, uint64_t size) {
  size_t bad = 0;
  clear_progress();
  printf("\n%-14s %-14s %14s %11s %8s  %s\n", "from", "to", "bytes", "seconds", "GB/s", "verified");
  for (size_t i = 0; i < count; ++i) {
    bool identical = !routes[i].failed && routes[i].bytes == size;
    report_route(&routes[i], identical);
    if (!identical) ++bad;
  }
  report_notes(routes, count, size);
  return bad;
}

/* ---- places that are left out ---- */

/* Prints the words of text from this column on, after a space, and begins a new line before the
 * last column. Returns the column where they end. */
static size_t print_folded(size_t column, char const *text) {
  for (size_t length; *text; text += length + strspn(text + length, " ")) {
    length = strcspn(text, " ");
    if (column && column + 1 + length > COLUMNS) {
      printf("\n ");
      column = 1;
    }
    printf("%s%.*s", column ? " " : "", (int)length, text);
    column += length + (column ? 1 : 0);
  }
  return column;
}

/* The next place, from number i on, that is left out for this reason; count if there is none. */
static size_t next_of(LeftOut const *left_out, size_t count, size_t i, char const *why) {
  while (i < count && strcmp(left_out[i].why, why)) ++i;
  return i;
}

/* Reports one reason; left_out[first] is the first place with this reason. */
static void report_reason(LeftOut const *left_out, size_t count, size_t first) {
  char const *why = left_out[first].why;
  size_t column = print_folded(0, "left out:");
  for (size_t i = first, next; i < count; i = next) {
    char name[COLUMNS];
    next = next_of(left_out, count, i + 1, why);
    snprintf(name, sizeof name, "%s%s", left_out[i].name, next < count ? "," : ":");
    column = print_folded(column, name);
  }
  print_folded(column, why);
  putchar('\n');
}

void report_left_out(LeftOut const *left_out, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (next_of(left_out, count, 0, left_out[i].why) == i) report_reason(left_out, count, i);
}
