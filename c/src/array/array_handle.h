/* array_handle.h - what an umemArray points to, its shape and strides, and the checks of
 * arguments. */
#ifndef UMEM_ARRAY_HANDLE_H
#define UMEM_ARRAY_HANDLE_H

#include <stddef.h>
#include <umem/array.h>

#include "core/status.h"

/* A shape with its strides, checked. */
typedef struct umemArrayForm {
  umemElementType type;
  size_t item_size;
  int rank;
  int64_t elements;
  int64_t low,
      high; /* bytes that the elements span, relative to index (0, ..., 0); 0 without elements */
  int64_t shape[UMEM_MAX_RANK];
  int64_t strides[UMEM_MAX_RANK];
} umemArrayForm;

/* Fills in the form; false, and a status, for what umemArray_create refuses. strides NULL is C
 * order. */
bool umem_array_form(umemArrayForm *form, umemElementType type, int rank, int64_t const *shape,
                     int64_t const *strides);

/* Writes "(3, 4)", cut at the end if it is long; returns text. */
enum { umemArrayShapeText = 200 };
char const *umem_array_write_shape(char text[umemArrayShapeText], int rank, int64_t const *shape);

/* ---- handles ---- */

/* How the memory of an owner goes. */
typedef enum umemArrayEnd {
  umemArrayKeeps, /* it is the caller's */
  umemArrayFrees,
  umemArrayFreesAligned,
  umemArrayReleases /* by a function of the program */
} umemArrayEnd;

struct umemArray {
  size_t users; /* atomic: references to this handle, those of its views included */
  /* The handle that frees the memory: retained, or this one, which is then not counted. */
  umemArray *owner;
  umemVirtual *ctx; /* borrowed */
  uintptr_t adr;    /* of index (0, ..., 0) */
  umemElementType type;
  int rank;
  size_t item_size;         /* bytes of an element */
  int64_t elements;         /* in all */
  bool read_only;           /* atomic */
  bool for_good;            /* read_only cannot be taken back */
  int64_t *element_strides; /* atomic: [rank], for tensors; NULL until one needs them; owned */

  /* Of an owner. */
  umemArrayEnd end;
  bool keeps; /* atomic: it leaves the block allocated where the context keeps such blocks */
  unsigned generation; /* of the process that has allocated or received the block */
  uintptr_t block;
  void (*release)(void *user);
  void *user;

  int64_t numbers[]; /* [rank] extents, then [rank] strides */
};

static inline int64_t *umem_array_shape(umemArray const *array) {
  return (int64_t *)(uintptr_t)array->numbers;
}
static inline int64_t *umem_array_strides(umemArray const *array) {
  return umem_array_shape(array) + array->rank;
}
static inline bool umem_array_read_only(umemArray const *array) {
  return __atomic_load_n(&array->read_only, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

typedef struct umemArrayCall {
  umemStatusType *status;
  umemEntry const *entry;
} umemArrayCall;

static inline void umem_array_finish(umemArrayCall const *call) {
  if (call->status) *call->status = umem_result_of(call->entry);
}

/* First lines of every function with a status: returns the value given, or nothing, where the
 * sequence of calls has failed already. */
#define UMEM_ARRAY_ENTER(status, ...) UMEM_ARRAY_ENTER_AS(__func__, status, __VA_ARGS__)
/* UMEM_ARRAY_ENTER with the name of a function of the program, which stands before messages. */
#define UMEM_ARRAY_ENTER_AS(function, status, ...)                                                 \
  if ((status) && *(status) != umemOK) return __VA_ARGS__;                                         \
  UMEM_ENTER_AS(function, __builtin_return_address(0));                                            \
  __attribute__((cleanup(umem_array_finish), unused))                                              \
  umemArrayCall const umem_call_ = {status, &umem_entry_}

/* Whether array is one; else records umemValueError. */
bool umem_array_given(umemArray const *array);

/* Whether array is one, and functions may write to it; else records umemNotSupportedError. */
bool umem_array_writable(umemArray const *array);

/* Whether the two arrays of a copy are given: messages say which of them is wrong. */
bool umem_array_given_pair(umemArray const *dst, umemArray const *src);

/* ---- handles ---- */

/* The form of array, but for low and high. */
void umem_array_form_of(umemArrayForm *form, umemArray const *array);

/* A handle that does not yet own the memory at adr. NULL, and a status, without RAM. */
umemArray *umem_array_new(umemVirtual *ctx, uintptr_t adr, umemArrayForm const *form);

/* A complete copy on ctx, in C order. NULL, and a status. */
umemArray *umem_array_copy_now(umemArray *array, void *ctx);

/* Ends a handle that no program has, without its memory. */
void umem_array_drop(umemArray *array);

/* The handle of elements of array in this form, the first of them offset bytes from its own
 * first. */
umemArray *umem_array_view(umemArray *array, umemArrayForm const *form, int64_t offset);

/* Frees the memory of an owner, or calls release. In a public function. */
void umem_array_end_memory(umemArray const *owner);

/* ---- where other libraries find memory, by the codes of DLPack, which Arrow has, too ---- */

/* The device code of memory of ctx, and in *id the number of the GPU, also for managed memory.
 * umemDLDefault if there is none. Queries no driver. */
int umem_dlpack_device(umemVirtual *ctx, int *id);

/* Whether addresses on the device with this code and number mean the same bytes in memory of ctx;
 * else records umemNotSupportedError. */
bool umem_dlpack_check_device(umemVirtual *ctx, int code, int id);

#endif
