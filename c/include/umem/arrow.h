/* umem/arrow.h - arrays of one dimension exchanged with Arrow, by its C data and device interfaces.
 *
 *     umemArrowSchema schema;
 *     umemArrowDeviceArray column;
 *     umemArray_to_arrow(array, NULL, &schema, &column, &status);
 *     consume(&schema, &column);  // calls schema.release and column.array.release when it is done
 *
 *     umemArray *array = umemArray_from_arrow(&host, &schema, &column, NULL, &status);
 *     ...
 *     umemArray_release(array);  // the last release calls the producer's release
 *
 * The structs are those of Arrow's specification, with names of umem: cast a pointer from one to
 * the other. The interface without devices is the member array alone.
 *
 *   export    Shares the memory, which has its own reference to the array: the context must live
 *             until the consumer has called release. Readers of Arrow take it for constant.
 *   import    Shares the memory, too. The array is read-only. The struct is moved: it is released
 *             for the caller, and ends with the last array that shares the memory. If the import
 *             fails, it still belongs to the caller.
 *   types     Integers, float16, float32, float64; dates, times and durations are the integers that
 *             Arrow stores; binary data of fixed width are handles of 8 bits, a lane for each byte.
 *             Arrow has booleans as bits: they are packed and unpacked, which is a copy.
 *   validity  Which elements are there: a second array, of booleans.
 *   order     An export returns when the work that is queued on the context is done. An import lets
 *             later work of the context start after the event of the producer.
 *
 * Threads: as for the array. */
#ifndef UMEM_ARROW_H
#define UMEM_ARROW_H

#include <umem/array.h>
#include <umem/base.h>

/* ---- the structs of the specification ---- */

/* ArrowSchema. */
typedef struct umemArrowSchema {
  char const *format;   /* of the type, such as "g" */
  char const *name;     /* or NULL */
  char const *metadata; /* or NULL */
  int64_t flags;
  int64_t n_children;
  struct umemArrowSchema **children;
  struct umemArrowSchema *dictionary;
  void (*release)(struct umemArrowSchema *self); /* NULL: it was released */
  void *private_data;                            /* the producer's */
} umemArrowSchema;

/* ArrowArray. */
typedef struct umemArrowArray {
  int64_t length;
  int64_t null_count; /* -1: unknown */
  int64_t offset;     /* elements before the first one */
  int64_t n_buffers;
  int64_t n_children;
  void const **buffers; /* of these types: the bits of the validity, or NULL; the elements */
  struct umemArrowArray **children;
  struct umemArrowArray *dictionary;
  void (*release)(struct umemArrowArray *self); /* NULL: it was released */
  void *private_data;                           /* the producer's */
} umemArrowArray;

/* ArrowDeviceArray. */
typedef struct umemArrowDeviceArray {
  umemArrowArray array;
  int64_t device_id;   /* the number of the GPU; -1 for RAM */
  int32_t device_type; /* umemDLDeviceCode (virtual.h) */
  void *sync_event;    /* a pointer to a cudaEvent_t after which the memory is ready; or NULL */
  int64_t reserved[3]; /* 0 */
} umemArrowDeviceArray;

/* ---- export ---- */

/* Options of an export. */
typedef struct umemArrowOptions {
  size_t size; /* sizeof(umemArrowOptions) as the caller was compiled */
  /* The name of the column, copied; NULL: none. */
  char const *name;
  /* Another format of elements of the same size, such as "tsu:UTC" for int64, copied; NULL: that of
   * the type. */
  char const *format;
  /* Which elements are there: booleans, as many as elements; retained. NULL: all. */
  umemArray *validity;
  /* Called with user, unless NULL, when release has ended the memory, in its thread. */
  void (*ended)(void *user);
  void *user;
} umemArrowOptions;

/* The defaults: no name, the format of the type, all elements are there. */
#define UMEM_ARROW_OPTIONS_INIT                                                                    \
  { sizeof(umemArrowOptions), NULL, NULL, NULL, NULL, NULL }

/* Describes the array in *schema and *out, which the consumer ends by their functions release.
 * options: borrowed for the call; NULL: the defaults. Returns false on errors, and then neither
 * needs an end: umemValueError for another rank than 1, and for a validity of another type or
 * length; umemTypeError for a type that Arrow does not have; umemNotSupportedError if the elements
 * have gaps, or if the context has no pointers (such as umemFile): copy the array; umemMemoryError;
 * those of the copy of booleans. */
UMEM_EXTERN bool umemArray_to_arrow(umemArray *array, umemArrowOptions const *options,
                                    umemArrowSchema *schema, umemArrowDeviceArray *out,
                                    umemStatusType *status);

/* ---- import ---- */

/* A read-only array over the memory of column, which it moves: column->array.release is then NULL.
 * ctx: a context of this memory, borrowed, as for umemArray_from_dlpack. schema stays the caller's.
 * validity: *validity becomes an array of booleans on ctx, to be released, if elements are missing,
 * and else NULL. Booleans are copied. NULL on errors, and column is still the caller's:
 * umemValueError for structs that are NULL, released or not valid; umemTypeError for a format
 * without a fixed width; umemNotSupportedError for a dictionary, for missing elements if validity
 * is NULL, for another device than that of ctx, and for an event that ctx cannot wait for;
 * umemMemoryError; those of the copy. */
UMEM_EXTERN umemArray *umemArray_from_arrow(void *ctx, umemArrowSchema const *schema,
                                            umemArrowDeviceArray *column, umemArray **validity,
                                            umemStatusType *status);

#endif
