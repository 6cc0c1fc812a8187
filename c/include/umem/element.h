/* umem/element.h - the types of array elements.
 *
 * A type is a code, a number of bits and a number of lanes, as in DLPack: umemFloat64 is one
 * floating-point number of 64 bits, UMEM_ELEMENT(umemCodeFloat, 32, 4) a vector of four of 32 bits.
 * On little-endian machines its four bytes are those of a DLDataType.
 *
 * Source of the codes: the DLPack specification, version 1.3, DLDataTypeCode.
 *
 * Threads: every function here may be called from any thread at any time. */
#ifndef UMEM_ELEMENT_H
#define UMEM_ELEMENT_H

#include <umem/base.h>

/* What the bits of one lane mean. The numbers are DLPack's. */
typedef enum umemElementCode {
  umemCodeInt = 0,
  umemCodeUInt = 1,
  umemCodeFloat = 2,  /* IEEE 754 */
  umemCodeHandle = 3, /* opaque: moved, never interpreted */
  umemCodeBfloat = 4,
  umemCodeComplex = 5, /* real and imaginary part, each of half the bits */
  umemCodeBool = 6,
  umemCodeFloat8_e3m4 = 7,
  umemCodeFloat8_e4m3 = 8,
  umemCodeFloat8_e4m3b11fnuz = 9,
  umemCodeFloat8_e4m3fn = 10,
  umemCodeFloat8_e4m3fnuz = 11,
  umemCodeFloat8_e5m2 = 12,
  umemCodeFloat8_e5m2fnuz = 13,
  umemCodeFloat8_e8m0fnu = 14,
  umemCodeFloat6_e2m3fn = 15,
  umemCodeFloat6_e3m2fn = 16,
  umemCodeFloat4_e2m1fn = 17
} umemElementCode;

/* A type: a umemNamedElement, or made by UMEM_ELEMENT; compared with ==. 0 is no type. */
typedef uint32_t umemElementType;

/* A type of these three numbers, umemCodeFloat, 32, 4 for example. */
#define UMEM_ELEMENT(code, bits, lanes) ((code)*1u + (bits)*256u + (lanes)*65536u)

/* The types of one lane that have a name. Those of C at the end are other names: char is a signed
 * byte on every machine. */
typedef enum umemNamedElement {
  umemBool = UMEM_ELEMENT(umemCodeBool, 8, 1),
  umemInt8 = UMEM_ELEMENT(umemCodeInt, 8, 1),
  umemInt16 = UMEM_ELEMENT(umemCodeInt, 16, 1),
  umemInt32 = UMEM_ELEMENT(umemCodeInt, 32, 1),
  umemInt64 = UMEM_ELEMENT(umemCodeInt, 64, 1),
  umemUInt8 = UMEM_ELEMENT(umemCodeUInt, 8, 1),
  umemUInt16 = UMEM_ELEMENT(umemCodeUInt, 16, 1),
  umemUInt32 = UMEM_ELEMENT(umemCodeUInt, 32, 1),
  umemUInt64 = UMEM_ELEMENT(umemCodeUInt, 64, 1),
  umemFloat16 = UMEM_ELEMENT(umemCodeFloat, 16, 1),
  umemFloat32 = UMEM_ELEMENT(umemCodeFloat, 32, 1),
  umemFloat64 = UMEM_ELEMENT(umemCodeFloat, 64, 1),
  umemBfloat16 = UMEM_ELEMENT(umemCodeBfloat, 16, 1),
  umemComplex64 = UMEM_ELEMENT(umemCodeComplex, 64, 1),
  umemComplex128 = UMEM_ELEMENT(umemCodeComplex, 128, 1),
  umemChar = umemInt8,
  umemInt = umemInt32,
  umemFloat = umemFloat32,
  umemDouble = umemFloat64,
  umemComplexFloat = umemComplex64,
  umemComplexDouble = umemComplex128
} umemNamedElement;

/* The umemElementCode of a type. */
static inline unsigned umem_element_code(umemElementType type) { return type & 0xff; }

/* The bits of one lane. */
static inline unsigned umem_element_bits(umemElementType type) { return type >> 8 & 0xff; }

/* The lanes. */
static inline unsigned umem_element_lanes(umemElementType type) { return type >> 16; }

/* Bytes of one element: bits * lanes / 8. One lane of a float6 or float4 has a byte, whose upper
 * bits mean nothing; several lanes are packed, such as the two of float4_e2m1fnx2 in one byte. 0 if
 * type is not valid: an unknown code; no lanes, or several that fill no bytes; bits that the code
 * does not have (a bool has 8; a float8, float6 or float4 those of its name; a bfloat 16; integers
 * and handles 8, 16, 32 or 64; a float 16, 32, 64 or 128; a complex number twice those of a float).
 * Records nothing. */
UMEM_EXTERN size_t umem_element_size(umemElementType type);

/* Writes the name of type to text, as snprintf does: at most size bytes with the terminating zero;
 * returns the length of the whole name. Names are NumPy's ("bool", "int32", "uint8", "float64",
 * "complex128") and those of the codes ("bfloat16", "float8_e4m3fn", "handle64"); "x4" is appended
 * for four lanes; "none" if type is not valid. */
UMEM_EXTERN size_t umem_element_name(umemElementType type, char *text, size_t size);

/* The type with this name: what umem_element_name writes, and "char", "int", "float", "double",
 * "complex float" and "complex double". 0, and umemValueError, for any other text and for NULL. */
UMEM_EXTERN umemElementType umem_element_by_name(char const *name);

/* Whether each lane is real or complex and has a fraction: float, bfloat, float8,
 * float6, float4, complex. */
UMEM_EXTERN bool umem_element_is_floating_point(umemElementType type);

/* Whether each lane is a complex number. */
static inline bool umem_element_is_complex(umemElementType type) {
  return umem_element_code(type) == umemCodeComplex;
}

#endif
