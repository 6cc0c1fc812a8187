/* umem/npy.h - the headers of NumPy's .npy files.
 *
 *     umemNpyHeader header = UMEM_NPY_HEADER_INIT;
 *     if (umem_npy_read_header(&file, 0, size, &header) == umemOK)
 *       array = umemArray_borrow(&file, header.offset, header.type, header.rank, header.shape,
 *                               header.strides, &status);
 *
 * A file begins with a header, and the elements follow it:
 *
 *     "\x93NUMPY"  major  minor  length of the text (2 bytes, from 2.0 on 4)  text  elements
 *
 * The text is a dictionary of Python: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } .
 *
 * umem reads what NumPy and other programs write, of versions 1.0, 2.0 and 3.0, with the meaning
 * that NumPy gives it: keys in any order and quotes of both kinds; "f8", "=f8", "d" and "float64"
 * for "<f8"; numbers with an L behind them, as Python 2 wrote them, up to version 2.0; and bytes
 * behind the elements, which are left alone. It refuses other spellings, such as 0x10, although
 * Python knows them, and all that NumPy refuses.
 *
 * Files can come from anywhere. Every part of a header is checked before it is used. The text has
 * at most 10000 bytes, as in NumPy. Nothing is allocated. */
#ifndef UMEM_NPY_H
#define UMEM_NPY_H

#include <umem/base.h>
#include <umem/element.h>

/* The order of the bytes of numbers in a file that is written. */
typedef enum umemByteOrder {
  umemOrderOfArray = 0, /* as in memory: this machine's, which is little endian */
  umemOrderLittle,
  umemOrderBig /* as NumPy writes arrays of the type ">f8" */
} umemByteOrder;

/* What umem_npy_read_header fills in. */
typedef struct umemNpyHeader {
  size_t size; /* sizeof(umemNpyHeader) as the caller was compiled; set it before the call */
  /* 0 for long double and complex long double, which umemArray does not have */
  umemElementType type;
  bool fortran_order;             /* the first dimension is the fastest in the file */
  int rank;                       /* 0 ... UMEM_MAX_RANK */
  int64_t shape[UMEM_MAX_RANK];   /* [rank] numbers of elements */
  int64_t strides[UMEM_MAX_RANK]; /* [rank] bytes from element to element */
  uint64_t offset; /* of the first element, in bytes from the first byte of the header */
  uint64_t nbytes; /* of all elements */
  char descr
      [16]; /* the type as NumPy writes it: order of bytes, kind and size, such as "<f8", "|u1" */
  /* Set it to true before the call to read headers of big-endian elements, too: afterwards it says
   * whether they are; type is then that of the numbers. */
  bool big_endian;
} umemNpyHeader;

/* What a umemNpyHeader starts as. */
#define UMEM_NPY_HEADER_INIT                                                                       \
  { sizeof(umemNpyHeader), 0, false, 0, {0}, {0}, 0, 0, {0}, false }

/* Reads the header of a file of size bytes, the first of which is at adr of ctx: of a umemFile or
 * umemMMap, or of memory that holds such a file. Reads nothing behind the header. Errors, with
 * header unchanged: umemTypeError if the elements are records, texts, dates, objects, or big
 * endian, unless header->big_endian allows it; umemValueError if the file is no .npy file, or ends
 * before its last element; those of umem_copy_to. The message says what is wrong, and does not name
 * the file. */
UMEM_EXTERN umemStatusType umem_npy_read_header(void *ctx, uintptr_t adr, uint64_t size,
                                                umemNpyHeader *header);

#endif
