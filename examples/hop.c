/* hop.c - one checked copy from one place to another.
 *
 * This file does not know which places these are. */
#include "hop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 1 << 16 }; /* bytes that are prepared or compared at a time */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Copies the message of the last failure to why. */
static bool umem_failed(char *why) {
  snprintf(why, HOP_WHY_SIZE, "%s", umem_thread_message());
  return false;
}

/* The bytes that a block holds, or should hold. */
typedef enum Content { RIGHT = 0, WRONG = 0xff } Content;

/* The next n bytes of original, each of them changed if they are to be wrong. */
static void prepare(unsigned char *chunk, unsigned char const *original, size_t n,
                    Content content) {
  for (size_t i = 0; i < n; ++i) chunk[i] = (unsigned char)(original[i] ^ content);
}

/* Makes every byte of the block different from original. */
static bool spoil(Block block, umemHost *ram, unsigned char const *original, size_t size,
                  char *why) {
  unsigned char chunk[CHUNK];
  for (size_t done = 0, n; done < size; done += n) {
    n = smaller(size - done, CHUNK);
    prepare(chunk, original + done, n, WRONG);
    if (umem_copy_from(block.ctx, block.adr + done, ram, (uintptr_t)chunk, n) != umemOK ||
        umem_synchronize(block.ctx) != umemOK)
      return umem_failed(why);
  }
  return true;
}

/* Compares every byte of the block with what it should be. */
static bool check(Block block, umemHost *ram, unsigned char const *original, size_t size,
                  Content content, char *why) {
  unsigned char expected[CHUNK], found[CHUNK];
  for (size_t done = 0, n; done < size; done += n) {
    n = smaller(size - done, CHUNK);
    prepare(expected, original + done, n, content);
    if (umem_copy_to(block.ctx, block.adr + done, ram, (uintptr_t)found, n) != umemOK ||
        umem_synchronize(block.ctx) != umemOK)
      return umem_failed(why);
    if (!memcmp(found, expected, n)) continue;
    size_t i = 0;
    while (found[i] == expected[i]) ++i;
    snprintf(why, HOP_WHY_SIZE, "%s the copy, byte %zu of %zu is 0x%02x and should be 0x%02x",
             content == RIGHT ? "after" : "before", done + i, size, found[i], expected[i]);
    return false;
  }
  return true;
}

/* The copy itself, complete when this returns. */
static bool timed_copy(Block from, Block to, size_t size, umemCopyOptions const *options,
                       double *seconds, char *why) {
  double start = now();
  bool ok = umem_copy_to_with(from.ctx, from.adr, to.ctx, to.adr, size, options) == umemOK &&
            umem_synchronize(from.ctx) == umemOK && umem_synchronize(to.ctx) == umemOK;
  *seconds = now() - start;
  return ok || umem_failed(why);
}

static int compare(void const *one, void const *other) {
  double a = *(double const *)one, b = *(double const *)other;
  return (a > b) - (a < b);
}

static double median(double *values, size_t count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

bool hop(Route *route, Block from, Block to, unsigned char const *original, size_t size,
         umemCopyOptions const *options, char why[HOP_WHY_SIZE]) {
  double seconds[HOP_TIMES];
  size_t times = 1;
  bool ok = true;
  umemHost ram;
  umemHost_ctor(&ram);
  for (size_t i = 0; ok && i < times; ++i) {
    ok = spoil(to, &ram, original, size, why) && check(to, &ram, original, size, WRONG, why) &&
         timed_copy(from, to, size, options, &seconds[i], why) &&
         check(to, &ram, original, size, RIGHT, why);
    if (ok && seconds[0] < 1e-3 * (double)HOP_SHORT_MS) times = HOP_TIMES;
  }
  route->is_short |= times > 1;
  umem_dtor(&ram);
  route->failed = !ok;
  if (!ok) return false;
  route->bytes += size;
  route->seconds += median(seconds, times);
  return true;
}
