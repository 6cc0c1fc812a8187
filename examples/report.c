/* report.c - what the program tells a person. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void report_array(char const *path, Npy const *npy) {
  printf("%s: ", path);
  for (int i = 0; i < npy->rank; ++i) printf(i ? " x %zu" : "%zu", npy->shape[i]);
  printf("%s of type %s, %zu bytes\n", npy->rank ? " elements" : "one element", npy->type,
         npy->data_size);
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

size_t report_table(Route const *routes, size_t count, uint64_t size) {
  size_t bad = 0;
  clear_progress();
  printf("\n%-14s %-14s %14s %11s %8s  %s\n", "from", "to", "bytes", "seconds", "GB/s", "verified");
  for (size_t i = 0; i < count; ++i) {
    bool identical = !routes[i].failed && routes[i].bytes == size;
    report_route(&routes[i], identical);
    if (!identical) ++bad;
  }
  putchar('\n');
  return bad;
}
