/* npy.h - the header of NumPy's .npy files.
 *
 * A .npy file is a header, which names the type and the shape of one array, and then the bytes
 * of the array. The format is documented by NumPy (numpy.lib.format); versions 1.0, 2.0 and 3.0
 * are read. */
#ifndef NPY_H
#define NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  NPY_MAX_RANK = 64,    /* as in NumPy */
  NPY_MAX_TEXT = 10000, /* bytes of the header's text, the limit of NumPy, too */
  NPY_WHY_SIZE = 600    /* bytes, enough for every message of npy_read */
};

typedef struct Npy {
  char type[8];               /* as in the file: "<f8" is a little-endian double */
  size_t item_size;           /* bytes of one element */
  int rank;                   /* 0: a single element */
  size_t shape[NPY_MAX_RANK]; /* elements */
  size_t data_offset;         /* where the bytes of the array begin in the file */
  size_t data_size;           /* number of bytes: the product of the shape and item_size */
} Npy;

/* Reads the header of a .npy file of file_size bytes, which begins at address 0 of ctx: any context
 * whose addresses are offsets, such as a umemFile. Accepts arrays in C order of bool, integer,
 * float and complex elements in either byte order, in files that are exactly as long as they say.
 *
 * Otherwise returns false, with the reason in why; *npy is then unspecified. */
bool npy_read(Npy *npy, void *ctx, uint64_t file_size, char why[NPY_WHY_SIZE]);

#endif
