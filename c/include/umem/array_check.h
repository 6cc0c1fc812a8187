/* umem/array_check.h - checks at the head of functions that take arrays.
 *
 *     void scale(umemArray *out, umemArray *in, double factor, umemStatusType *status) {
 *       umemArray_check_writeable(out, status);
 *       umemArray_check_type(in, umemDouble, status);
 *       umemArray_check_same_shape(out, in, status);
 *       if (*status) return;
 *       ...
 *     }
 *
 * Each check is a macro. It returns whether the array is as expected; if not, it records a failure
 * with the expression, function, file and line: "scale: line 12 of scale.c: out is read-only". Like
 * every function of arrays it does nothing and returns false if *status is a failure already. The
 * failure is recorded in *status and on the thread, not on the context. The functions behind the
 * macros end in _at and are for other languages, which pass the four arguments themselves: borrowed
 * for the call. If the line is 0, the message names no file and no line.
 *
 * Threads: as for reading the array. */
#ifndef UMEM_ARRAY_CHECK_H
#define UMEM_ARRAY_CHECK_H

#include <umem/array.h>
#include <umem/base.h>

/* The last three arguments of a check: where it stands. */
#define UMEM_CHECK_SITE __func__, __FILE__, __LINE__

/* Checks that the array is not read-only. umemNotSupportedError. */
#define umemArray_check_writeable(array, status)                                                   \
  umemArray_check_writeable_at(array, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_writeable calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_writeable_at(umemArray const *array, umemStatusType *status,
                                              char const *expression, char const *function,
                                              char const *file, int line);

/* Checks that the elements follow one another in C order without gaps. umemValueError. */
#define umemArray_check_c_contiguity(array, status)                                                \
  umemArray_check_c_contiguity_at(array, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_c_contiguity calls. expression, function and file are borrowed for the
 * call. */
UMEM_EXTERN bool umemArray_check_c_contiguity_at(umemArray const *array, umemStatusType *status,
                                                 char const *expression, char const *function,
                                                 char const *file, int line);

/* Checks that the context has these umemCapability, or-ed: umemCpuReadable | umemCpuWritable for
 * functions on the CPU, umemDeviceAccessible for kernels. umemNotSupportedError. */
#define umemArray_check_location(array, capabilities, status)                                      \
  umemArray_check_location_at(array, capabilities, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_location calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_location_at(umemArray const *array, unsigned capabilities,
                                             umemStatusType *status, char const *expression,
                                             char const *function, char const *file, int line);

/* Checks the number of dimensions. umemValueError. */
#define umemArray_check_rank(array, rank, status)                                                  \
  umemArray_check_rank_at(array, rank, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_rank calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_rank_at(umemArray const *array, int rank, umemStatusType *status,
                                         char const *expression, char const *function,
                                         char const *file, int line);

/* Checks the number of elements along one dimension. umemIndexError where the array has no such
 * dimension; umemValueError. */
#define umemArray_check_extent(array, dim, extent, status)                                         \
  umemArray_check_extent_at(array, dim, extent, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_extent calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_extent_at(umemArray const *array, int dim, int64_t extent,
                                           umemStatusType *status, char const *expression,
                                           char const *function, char const *file, int line);

/* Checks the number of dimensions and all extents, [rank]. umemValueError. */
#define umemArray_check_shape(array, rank, shape, status)                                          \
  umemArray_check_shape_at(array, rank, shape, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_shape calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_shape_at(umemArray const *array, int rank, int64_t const *shape,
                                          umemStatusType *status, char const *expression,
                                          char const *function, char const *file, int line);

/* Checks the type of the elements. umemTypeError. */
#define umemArray_check_type(array, type, status)                                                  \
  umemArray_check_type_at(array, type, status, #array, UMEM_CHECK_SITE)
/* What umemArray_check_type calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_type_at(umemArray const *array, umemElementType type,
                                         umemStatusType *status, char const *expression,
                                         char const *function, char const *file, int line);

/* Checks that two arrays have the same shape. umemValueError. */
#define umemArray_check_same_shape(array, other, status)                                           \
  umemArray_check_same_shape_at(array, other, status, #other, #array, UMEM_CHECK_SITE)
/* What umemArray_check_same_shape calls. expression, function and file are borrowed for the
 * call. */
UMEM_EXTERN bool umemArray_check_same_shape_at(umemArray const *array, umemArray const *other,
                                               umemStatusType *status, char const *other_expression,
                                               char const *expression, char const *function,
                                               char const *file, int line);

/* Checks that dimension dim of array has as many elements as other_dim of other. umemIndexError
 * where one of them has no such dimension; umemValueError. */
#define umemArray_check_same_extent(array, dim, other, other_dim, status)                          \
  umemArray_check_same_extent_at(array, dim, other, other_dim, status, #other, #array,             \
                                 UMEM_CHECK_SITE)
/* What umemArray_check_same_extent calls. expression, function and file are borrowed for the
 * call. */
UMEM_EXTERN bool umemArray_check_same_extent_at(umemArray const *array, int dim,
                                                umemArray const *other, int other_dim,
                                                umemStatusType *status,
                                                char const *other_expression,
                                                char const *expression, char const *function,
                                                char const *file, int line);

/* Checks that two arrays have elements of the same type. umemTypeError. */
#define umemArray_check_same_type(array, other, status)                                            \
  umemArray_check_same_type_at(array, other, status, #other, #array, UMEM_CHECK_SITE)
/* What umemArray_check_same_type calls. expression, function and file are borrowed for the call. */
UMEM_EXTERN bool umemArray_check_same_type_at(umemArray const *array, umemArray const *other,
                                              umemStatusType *status, char const *other_expression,
                                              char const *expression, char const *function,
                                              char const *file, int line);

#endif
