/* traces.c - prints which functions of the library a few calls enter, for test/style/house.py.
 *
 * The library's sources are compiled into this program with -finstrument-functions and without
 * optimisation, so that each call of each function is seen. A line "TRACE NAME" begins a trace.
 * Each further line is the address of a function that the thread enters, in hexadecimal, or "-"
 * when it leaves one. Each call is made once before: what it allocates for later ones is not
 * traced. */
#include "fake/doubles.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <umem.h>

enum { mostCalls = 100000, copied = 4096 };

static void *calls[mostCalls]; /* NULL: the end of one */
static size_t count;
static _Thread_local bool traces;

void __cyg_profile_func_enter(void *called, void *site);
void __cyg_profile_func_exit(void *called, void *site);

void __cyg_profile_func_enter(void *called, void *site) {
  (void)site;
  if (traces && count < mostCalls) calls[count++] = called;
}

void __cyg_profile_func_exit(void *called, void *site) {
  (void)called, (void)site;
  if (traces && count < mostCalls) calls[count++] = NULL;
}

static void begin(void) {
  count = 0;
  traces = true;
}

static void end(char const *name) {
  traces = false;
  printf("TRACE %s\n", name);
  for (size_t i = 0; i < count; i++) {
    if (calls[i])
      printf("%jx\n", (uintmax_t)(uintptr_t)calls[i]);
    else
      puts("-");
  }
}

static void *opened(char const *name) {
  void *ctx = umem_open(name);
  if (ctx) return ctx;
  fprintf(stderr, "%s: %s\n", name, umem_thread_message());
  exit(1);
}

/* A block of a scratch file to a block of a GPU. */
static void trace_copy(void) {
  void *file = opened("file:"), *gpu = opened("cuda:0");
  uintptr_t from = umem_calloc(file, 1, copied), to = umem_alloc(gpu, copied);
  umem_copy_to(file, from, gpu, to, copied);
  begin();
  umem_copy_to(file, from, gpu, to, copied);
  end("copy file to cuda");
  umem_free(file, from), umem_free(gpu, to);
  umem_close(gpu), umem_close(file);
}

static void trace_alloc(char const *name, char const *trace) {
  void *ctx = opened(name);
  uintptr_t warm = umem_alloc(ctx, 256);
  umem_free(ctx, warm);
  begin();
  uintptr_t adr = umem_alloc(ctx, 256);
  end(trace);
  umem_free(ctx, adr);
  umem_close(ctx);
}

int main(void) {
  doubles_use();
  trace_copy();
  trace_alloc("pool+host:", "alloc pool+host");
  trace_alloc("limit+host:?limit=1G", "alloc limit+host");
  if (!umem_thread_status()) return 0;
  fprintf(stderr, "%s\n", umem_thread_message());
  return 1;
}
