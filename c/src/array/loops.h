/* loops.h - loops over numbers, which exist for every machine and for those with AVX2. */
#ifndef UMEM_LOOPS_H
#define UMEM_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* ---- conversions ---- */

/* Converts count numbers that are so many bytes apart. The addresses need no alignment; no number
 * of src is in the bytes of one of dst. Fast where the numbers have no gaps. */
typedef void umemConvertLoop(void const *src, ptrdiff_t src_step, void *dst, ptrdiff_t dst_step,
                             size_t count);

/* The numbers that loops are for. */
typedef enum umemNumber {
  umemNumberI8,
  umemNumberI16,
  umemNumberI32,
  umemNumberI64,
  umemNumberU8,
  umemNumberU16,
  umemNumberU32,
  umemNumberU64,
  umemNumberF32,
  umemNumberF64,
  umemNumbers, /* how many have a loop to each other one */
  umemNumberF16 = umemNumbers,
  umemNumberBf16,
  umemNumberBool,
  umemNoNumber
} umemNumber;

typedef struct umemConvertLoops {
  umemConvertLoop *between[umemNumbers][umemNumbers]; /* [from][to] */
  umemConvertLoop
      *wrapping[umemNumbers]
               [4]; /* [from][logarithm of the bytes of the integer], where not all bits fit */
  umemConvertLoop *to_bool[umemNumbers];
  umemConvertLoop *to_odd[umemNumbers]; /* to F32, rounded to odd, where between is not exact */
  umemConvertLoop *bool_to_u8, *f16_to_f32, *f32_to_f16, *bf16_to_f32, *f32_to_bf16;
} umemConvertLoops;

/* For every machine, and for those with AVX2. The numbers that they compute are the same. */
extern umemConvertLoops const umem_convert_loops, umem_convert_loops_avx2;

/* Those for this machine. */
umemConvertLoops const *umem_convert_loops_here(void);

/* ---- random numbers ---- */

/* What is drawn. */
typedef struct umemRandom {
  uint32_t key[2];
  uint32_t kind;       /* third word of the counters */
  double origin, unit; /* low and high - low, or mean and deviation */
  double bottom, top;  /* of uniform numbers: results stay within */
} umemRandom;

enum { umemRandomLanes = 8, umemUniform = 0, umemNormal = 1 };

/* Philox4x32-10 of umemRandomLanes counters: word w of counter l is words[w][l], which becomes that
 * of the result. */
typedef void umemPhilox(uint32_t const key[2], uint32_t words[4][umemRandomLanes]);

/* Writes the numbers of the blocks first ... first + count - 1, two each; count is a multiple of
 * umemRandomLanes. */
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
