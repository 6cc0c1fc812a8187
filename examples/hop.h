/* hop.h - one checked copy from one place to another. */
#ifndef HOP_H
#define HOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem.h>

/* Bytes in some place, and an address there. */
typedef struct Block {
  void *ctx;
  uintptr_t adr;
} Block;

/* The result of the hops from one place to another. */
typedef struct Route {
  char const *from; /* names, for people */
  char const *to;
  uint64_t bytes; /* copied and found identical */
  double seconds; /* of the copies alone, each piece once */
  bool failed;    /* nothing more is tried on this route */
  bool is_short;  /* a copy took less than HOP_SHORT_MS */
} Route;

enum {
  HOP_WHY_SIZE = UMEM_MESSAGE_SIZE,
  HOP_SHORT_MS = 1, /* milliseconds: a shorter copy is repeated ... */
  HOP_TIMES = 5     /* ... this many times in all */
};

/* Copies size bytes from one block to another and adds the time to route. original, in RAM, holds
 * what the bytes must be. Every byte of the target is made wrong before the copy, and every byte is
 * compared before and after it, so that a copy which does nothing, too little or something else
 * cannot pass. A copy too short to be timed well is repeated, just as carefully, and the median of
 * its times added. options are those of umem_copy_to_with, or NULL.
 *
 * Returns whether everything succeeded. Otherwise the route has failed, and why contains the
 * reason. */
bool hop(Route *route, Block from, Block to, unsigned char const *original, size_t size,
         umemCopyOptions const *options, char why[HOP_WHY_SIZE]);

#endif
