/* convert.h - numbers of one type from numbers of another one, in RAM. */
#ifndef UMEM_CONVERT_H
#define UMEM_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/element.h>

/* Converts count numbers. The addresses need no alignment; the two ranges do not overlap. */
typedef void umemConvertLoop(void const *src, void *dst, size_t count);

/* Where elements of one type become elements of another one: by up to three loops, one after the other. */
typedef struct umemConversion {
  umemConvertLoop *loops[3];
  size_t sizes[3];           /* bytes of a number after each loop */
  int count;                 /* of loops; 0 where the bytes stay as they are */
  size_t parts;              /* numbers of an element: 2 for complex, times the lanes */
  size_t src_size, dst_size; /* bytes of an element */
} umemConversion;

/* False, with nothing recorded, where umem/array_convert.h defines no conversion. */
bool umem_conversion(umemConversion *conversion, umemElementType from, umemElementType to);

/* Converts count elements, in the calling thread. */
void umem_convert(umemConversion const *conversion, void const *src, void *dst, size_t count);

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
  umemConvertLoop *between[umemNumbers][umemNumbers]; /* [from][to]; NULL on the diagonal */
  umemConvertLoop *to_bool[umemNumbers];
  umemConvertLoop *to_odd[umemNumbers]; /* to F32, rounded to odd, where between is not exact */
  umemConvertLoop *bool_to_u8, *f16_to_f32, *f32_to_f16, *bf16_to_f32, *f32_to_bf16;
} umemConvertLoops;

/* For every machine, and for those with AVX2. The numbers that they compute are the same. */
extern umemConvertLoops const umem_convert_loops, umem_convert_loops_avx2;

#endif
