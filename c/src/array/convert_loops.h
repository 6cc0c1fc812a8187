/* convert_loops.h - the body of convert_loops.c and convert_loops_avx2.c: a loop for each pair of
 * types, and their table.
 *
 * LOOPS_TABLE is its name, LOOPS_TARGET the attribute of each function. With LOOPS_HALVES the file
 * has f16_to_f32 and f32_to_f16 already. Addresses need no alignment, so the types have none. */
#include "array/loops.h"
#include "array/convert_number.h"

#define UNALIGNED(T) T __attribute__((aligned(1), may_alias))
typedef UNALIGNED(int8_t) I8;
typedef UNALIGNED(int16_t) I16;
typedef UNALIGNED(int32_t) I32;
typedef UNALIGNED(int64_t) I64;
typedef UNALIGNED(uint8_t) U8;
typedef UNALIGNED(uint16_t) U16;
typedef UNALIGNED(uint32_t) U32;
typedef UNALIGNED(uint64_t) U64;
typedef UNALIGNED(float) F32;
typedef UNALIGNED(double) F64;

#define LOOP(name, S, D, statement)                                                                \
  LOOPS_TARGET static void name(void const *restrict src, ptrdiff_t src_step, void *restrict dst,  \
                                ptrdiff_t dst_step, size_t count) {                                \
    if (src_step == sizeof(S) && dst_step == sizeof(D)) {                                          \
      S const *restrict from = src;                                                                \
      D *restrict to = dst;                                                                        \
      for (size_t i = 0; i < count; i++) {                                                         \
        S const x = from[i];                                                                       \
        D y;                                                                                       \
        statement;                                                                                 \
        to[i] = y;                                                                                 \
      }                                                                                            \
    } else {                                                                                       \
      void const *from = src;                                                                      \
      void *to = dst;                                                                              \
      for (; count; count--) {                                                                     \
        S const x = *(S const *)from;                                                              \
        D y;                                                                                       \
        statement;                                                                                 \
        *(D *)to = y;                                                                              \
        from = (char const *)from + src_step;                                                      \
        to = (char *)to + dst_step;                                                                \
      }                                                                                            \
    }                                                                                              \
  }

#define BY_CAST(S, D) LOOP(S##_to_##D, S, D, y = (D)x)
#define BY_RANGE(S, D) LOOP(S##_to_##D, S, D, INTEGER_TO_INTEGER(S, D, x, y))
#define FROM_F32(D) LOOP(F32_to_##D, F32, D, FLOAT_TO_INTEGER(F32, 24, D, x, y))
#define FROM_F64(D) LOOP(F64_to_##D, F64, D, FLOAT_TO_INTEGER(F64, 53, D, x, y))
#define FIRST_BITS(S, D) LOOP(S##_wrapping_##D, S, D, y = (D)x)
#define WRAPPING(F, D) LOOP(F##_wrapping_##D, F, D, y = (D)wrapped_number(x))
#define TO_BOOL(S) LOOP(S##_to_bool, S, U8, y = x != 0)

#define OF_INTEGER(S)                                                                              \
  BY_CAST(S, F32)                                                                                  \
  BY_CAST(S, F64)                                                                                  \
  FROM_F32(S)                                                                                      \
  FROM_F64(S)                                                                                      \
  TO_BOOL(S)
#define BOTH_WAYS(S, D) BY_RANGE(S, D) BY_RANGE(D, S)

OF_INTEGER(I8)
OF_INTEGER(I16)
OF_INTEGER(I32)
OF_INTEGER(I64)
OF_INTEGER(U8)
OF_INTEGER(U16)
OF_INTEGER(U32)
OF_INTEGER(U64)
BOTH_WAYS(I8, I16)
BOTH_WAYS(I8, I32)
BOTH_WAYS(I8, I64)
BOTH_WAYS(I8, U8)
BOTH_WAYS(I8, U16)
BOTH_WAYS(I8, U32)
BOTH_WAYS(I8, U64)
BOTH_WAYS(I16, I32)
BOTH_WAYS(I16, I64)
BOTH_WAYS(I16, U8)
BOTH_WAYS(I16, U16)
BOTH_WAYS(I16, U32)
BOTH_WAYS(I16, U64)
BOTH_WAYS(I32, I64)
BOTH_WAYS(I32, U8)
BOTH_WAYS(I32, U16)
BOTH_WAYS(I32, U32)
BOTH_WAYS(I32, U64)
BOTH_WAYS(I64, U8)
BOTH_WAYS(I64, U16)
BOTH_WAYS(I64, U32)
BOTH_WAYS(I64, U64)
BOTH_WAYS(U8, U16)
BOTH_WAYS(U8, U32)
BOTH_WAYS(U8, U64)
BOTH_WAYS(U16, U32)
BOTH_WAYS(U16, U64)
BOTH_WAYS(U32, U64)
BY_CAST(F32, F64)
BY_CAST(F64, F32)
TO_BOOL(F32)
TO_BOOL(F64)

FIRST_BITS(U16, U8)
FIRST_BITS(U32, U8)
FIRST_BITS(U32, U16)
FIRST_BITS(U64, U8)
FIRST_BITS(U64, U16)
FIRST_BITS(U64, U32)
#define OF_FLOAT(F) WRAPPING(F, U8) WRAPPING(F, U16) WRAPPING(F, U32) WRAPPING(F, U64)
OF_FLOAT(F32)
OF_FLOAT(F64)

LOOP(bool_to_u8, U8, U8, y = x != 0)
#ifndef LOOPS_HALVES
LOOP(f16_to_f32, U16, F32, y = float_of_half(x))
LOOP(f32_to_f16, F32, U16, y = half_of_float(x))
#endif
LOOP(bf16_to_f32, U16, F32, y = float_of_bfloat(x))
LOOP(f32_to_bf16, F32, U16, y = bfloat_of_float(x))
LOOP(I32_to_odd, I32, F32, y = odd_of_double(x))
LOOP(U32_to_odd, U32, F32, y = odd_of_double(x))
LOOP(I64_to_odd, I64, F32, y = odd_of_i64(x))
LOOP(U64_to_odd, U64, F32, y = odd_of_u64(x))
LOOP(F64_to_odd, F64, F32, y = odd_of_double(x))

#define TO_FLOATS(S) [umemNumberF32] = S##_to_F32, [umemNumberF64] = S##_to_F64
#define TO_SIGNED(S)                                                                               \
  [umemNumberI8] = S##_to_I8, [umemNumberI16] = S##_to_I16, [umemNumberI32] = S##_to_I32,          \
  [umemNumberI64] = S##_to_I64
#define TO_UNSIGNED(S)                                                                             \
  [umemNumberU8] = S##_to_U8, [umemNumberU16] = S##_to_U16, [umemNumberU32] = S##_to_U32,          \
  [umemNumberU64] = S##_to_U64

/* What the diagonal would name. */
#define I8_to_I8 NULL
#define I16_to_I16 NULL
#define I32_to_I32 NULL
#define I64_to_I64 NULL
#define U8_to_U8 NULL
#define U16_to_U16 NULL
#define U32_to_U32 NULL
#define U64_to_U64 NULL
#define F32_to_F32 NULL
#define F64_to_F64 NULL
#define ROW(S) [umemNumber##S] = {TO_SIGNED(S), TO_UNSIGNED(S), TO_FLOATS(S)}

umemConvertLoops const LOOPS_TABLE = {
    .between = {ROW(I8), ROW(I16), ROW(I32), ROW(I64), ROW(U8), ROW(U16), ROW(U32), ROW(U64),
                ROW(F32), ROW(F64)},
    .wrapping =
        {
            [umemNumberI16] = {U16_wrapping_U8},
            [umemNumberI32] = {U32_wrapping_U8, U32_wrapping_U16},
            [umemNumberI64] = {U64_wrapping_U8, U64_wrapping_U16, U64_wrapping_U32},
            [umemNumberU16] = {U16_wrapping_U8},
            [umemNumberU32] = {U32_wrapping_U8, U32_wrapping_U16},
            [umemNumberU64] = {U64_wrapping_U8, U64_wrapping_U16, U64_wrapping_U32},
            [umemNumberF32] = {F32_wrapping_U8, F32_wrapping_U16, F32_wrapping_U32,
                               F32_wrapping_U64},
            [umemNumberF64] = {F64_wrapping_U8, F64_wrapping_U16, F64_wrapping_U32,
                               F64_wrapping_U64},
        },
    .to_bool =
        {
            [umemNumberI8] = I8_to_bool,
            [umemNumberI16] = I16_to_bool,
            [umemNumberI32] = I32_to_bool,
            [umemNumberI64] = I64_to_bool,
            [umemNumberU8] = U8_to_bool,
            [umemNumberU16] = U16_to_bool,
            [umemNumberU32] = U32_to_bool,
            [umemNumberU64] = U64_to_bool,
            [umemNumberF32] = F32_to_bool,
            [umemNumberF64] = F64_to_bool,
        },
    .to_odd =
        {
            [umemNumberI32] = I32_to_odd,
            [umemNumberI64] = I64_to_odd,
            [umemNumberU32] = U32_to_odd,
            [umemNumberU64] = U64_to_odd,
            [umemNumberF64] = F64_to_odd,
        },
    .bool_to_u8 = bool_to_u8,
    .f16_to_f32 = f16_to_f32,
    .f32_to_f16 = f32_to_f16,
    .bf16_to_f32 = bf16_to_f32,
    .f32_to_bf16 = f32_to_bf16,
};
