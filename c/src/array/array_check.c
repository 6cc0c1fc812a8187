/* array_check.c - checks what an array has, for functions that take arrays from programs. */
#include <umem/array_check.h>

#include "array/array_handle.h"
#include "core/context.h"

#include <stdarg.h>
#include <stdio.h>

/* Where a check stands in the program. */
typedef struct Site {
  char const *expression, *file;
  int line;
} Site;

#define SITE                                                                                       \
  &(Site) { expression, file, line }

enum { name_size = 32 };

/* Whether the condition holds; else records what the expression is instead. */
UMEM_PRINTF(4, 5)
static bool expect(bool holds, umemStatusType type, Site const *site, char const *format, ...) {
  if (holds) return true;
  char text[UMEM_MESSAGE_SIZE];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (!site->line) return UMEM_FAIL(NULL, type, "%s %s", site->expression, text);
  return UMEM_FAIL(NULL, type, "line %d of %s: %s %s", site->line, site->file, site->expression,
                   text);
}

static bool has_array(umemArray const *array, Site const *site) {
  return expect(array != NULL, umemValueError, site, "is NULL");
}

bool umemArray_check_writeable_at(umemArray const *array, umemStatusType *status,
                                  char const *expression, char const *function, char const *file,
                                  int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_array(array, SITE) &&
         expect(!umem_array_read_only(array), umemNotSupportedError, SITE, "is read-only");
}

bool umemArray_check_c_contiguity_at(umemArray const *array, umemStatusType *status,
                                     char const *expression, char const *function, char const *file,
                                     int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_array(array, SITE) && expect(umemArray_is_c_contiguous(array), umemValueError, SITE,
                                          "is not contiguous in C order");
}

bool umemArray_check_location_at(umemArray const *array, unsigned capabilities,
                                 umemStatusType *status, char const *expression,
                                 char const *function, char const *file, int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  if (!has_array(array, SITE)) return false;
  unsigned missing = capabilities & ~array->ctx->capabilities;
  char const *what = missing & umemDeviceAccessible               ? "a GPU can use"
                     : missing & (umemCpuReadable | umemReadable) ? "can be read here"
                     : missing & (umemCpuWritable | umemWritable) ? "can be written here"
                                                                  : "this function needs";
  return expect(!missing, umemNotSupportedError, SITE, "is in the memory of %s, not in one that %s",
                umem_get_device_name(array->ctx), what);
}

bool umemArray_check_rank_at(umemArray const *array, int rank, umemStatusType *status,
                             char const *expression, char const *function, char const *file,
                             int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_array(array, SITE) && expect(array->rank == rank, umemValueError, SITE,
                                          "has %d dimensions, expected %d", array->rank, rank);
}

static bool has_dim(umemArray const *array, int dim, Site const *site) {
  return has_array(array, site) && expect(dim >= 0 && dim < array->rank, umemIndexError, site,
                                          "of rank %d has no dimension %d", array->rank, dim);
}

bool umemArray_check_extent_at(umemArray const *array, int dim, int64_t extent,
                               umemStatusType *status, char const *expression, char const *function,
                               char const *file, int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  if (!has_dim(array, dim, SITE)) return false;
  int64_t found = umem_array_shape(array)[dim];
  return expect(found == extent, umemValueError, SITE,
                "has %jd elements in dimension %d, expected %jd", (intmax_t)found, dim,
                (intmax_t)extent);
}

/* as: what has this shape, for the message; "" for none. So is that of has_type. */
static bool has_shape(umemArray const *array, int rank, int64_t const *shape, char const *as,
                      Site const *site) {
  char found[umemArrayShapeText], expected[umemArrayShapeText];
  bool same = array->rank == rank;
  for (int k = 0; same && k < rank; k++) same = umem_array_shape(array)[k] == shape[k];
  return same || expect(false, umemValueError, site, "has shape %s, expected %s%s%s",
                        umem_array_write_shape(found, array->rank, umem_array_shape(array)),
                        umem_array_write_shape(expected, rank, shape), *as ? " as of " : "", as);
}

bool umemArray_check_shape_at(umemArray const *array, int rank, int64_t const *shape,
                              umemStatusType *status, char const *expression, char const *function,
                              char const *file, int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  if (!has_array(array, SITE)) return false;
  bool sane = rank >= 0 && rank <= UMEM_MAX_RANK && (shape || !rank);
  return expect(sane, umemValueError, SITE, "is checked against no shape: rank %d", rank) &&
         has_shape(array, rank, shape, "", SITE);
}

static bool has_type(umemArray const *array, umemElementType type, char const *as,
                     Site const *site) {
  char found[name_size], expected[name_size];
  if (array->type == type) return true;
  umem_element_name(array->type, found, sizeof found);
  umem_element_name(type, expected, sizeof expected);
  return expect(false, umemTypeError, site, "has elements of %s, expected %s%s%s", found, expected,
                *as ? " as of " : "", as);
}

bool umemArray_check_type_at(umemArray const *array, umemElementType type, umemStatusType *status,
                             char const *expression, char const *function, char const *file,
                             int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_array(array, SITE) && has_type(array, type, "", SITE);
}

/* ---- two arrays ---- */

static bool has_both(umemArray const *array, umemArray const *other, char const *other_expression,
                     Site const *site) {
  Site second = *site;
  second.expression = other_expression;
  return has_array(array, site) && has_array(other, &second);
}

bool umemArray_check_same_shape_at(umemArray const *array, umemArray const *other,
                                   umemStatusType *status, char const *other_expression,
                                   char const *expression, char const *function, char const *file,
                                   int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_both(array, other, other_expression, SITE) &&
         has_shape(array, other->rank, umem_array_shape(other), other_expression, SITE);
}

bool umemArray_check_same_extent_at(umemArray const *array, int dim, umemArray const *other,
                                    int other_dim, umemStatusType *status,
                                    char const *other_expression, char const *expression,
                                    char const *function, char const *file, int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  Site second = {other_expression, file, line};
  if (!has_dim(array, dim, SITE) || !has_dim(other, other_dim, &second)) return false;
  int64_t found = umem_array_shape(array)[dim], expected = umem_array_shape(other)[other_dim];
  return expect(found == expected, umemValueError, SITE,
                "has %jd elements in dimension %d, expected %jd as dimension %d of %s",
                (intmax_t)found, dim, (intmax_t)expected, other_dim, other_expression);
}

bool umemArray_check_same_type_at(umemArray const *array, umemArray const *other,
                                  umemStatusType *status, char const *other_expression,
                                  char const *expression, char const *function, char const *file,
                                  int line) {
  UMEM_ARRAY_ENTER_AS(function, status, false);
  return has_both(array, other, other_expression, SITE) &&
         has_type(array, other->type, other_expression, SITE);
}
