/* random.h - the numbers of umem/array_random.h. */
#ifndef UMEM_RANDOM_H
#define UMEM_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* What is drawn. */
typedef struct umemRandom {
  uint32_t key[2];
  uint32_t kind;       /* third word of the counters */
  double origin, unit; /* low and high - low, or mean and deviation */
  double bottom, top;  /* of uniform numbers: results stay within */
} umemRandom;

enum { umemRandomLanes = 8, umemUniform = 0, umemNormal = 1 };

/* Philox4x32-10 of umemRandomLanes counters: word w of counter l is words[w][l], which becomes that of the result. */
typedef void umemPhilox(uint32_t const key[2], uint32_t words[4][umemRandomLanes]);

/* Writes the numbers of the blocks first ... first + count - 1, two each; count is a multiple of umemRandomLanes. */
typedef void umemRandomLoop(umemRandom const *random, uint64_t first, size_t count, double *out);

typedef struct umemRandomLoops {
  umemPhilox *philox;
  umemRandomLoop *uniform, *normal;
} umemRandomLoops;

/* For every machine, and for those with AVX2. The numbers are the same. */
extern umemRandomLoops const umem_random_loops, umem_random_loops_avx2;

/* Those for this machine. */
umemRandomLoops const *umem_random_loops_here(void);

#endif
