/* umem/array.h - arrays that know their type, shape, place and owner.
 *
 *     umemStatusType status = umemOK;
 *     int64_t shape[] = {rows, columns};
 *     umemArray *a = umemArray_create(&gpu, umemDouble, 2, shape, NULL, &status);
 *     umemArray_fill(a, &one, &status);
 *     compute(a, &status);
 *     umemArray_release(a);
 *
 * An array is an address on a context with a type, a shape and strides. It goes through a C
 * interface as one pointer, also between languages. The struct is opaque and counts its references.
 *
 *   rank       0 ... UMEM_MAX_RANK dimensions. Rank 0 is one element. The last dimension is the
 *              fastest in C order.
 *   strides    bytes from element to element along each dimension, of any sign; NULL is C order
 *              without gaps. Other orders, also that of Fortran, are other strides. Elements may
 *              share bytes, for example with a stride of 0: after a write, such bytes have the
 *              value of one of these elements.
 *   ownership  umemArray_create owns its memory. umemArray_borrow leaves it with the caller.
 *              umemArray_take takes it over. Views (umemArray_alias, _slice, _select, _permute,
 *              _reshape) share the memory of the array that they were made from and keep it alive;
 *              they may outlive that handle.
 *   contexts   An array borrows its context, which must live until the memory is freed: until the
 *              last array that shares it is released.
 *   status     Functions that can fail take a pointer to the status of a sequence of calls, which
 *              begins as umemOK. The first failure is stored there. Every later call with that
 *              status does nothing and returns NULL or false, so a program may check once at the
 *              end. The failure is also that of the thread (umem_thread_message). A NULL pointer is
 *              allowed: the call is then on its own.
 *   order      As for copies: on a umemOrdered context contents change in the order of its queue,
 *              and the host must not look before umem_synchronize.
 *   threads    Many threads may use, retain and release one array; umemArray_set_read_only and
 *              writes to the elements take turns.
 *
 * Errors of all functions with a status: umemValueError for an array that is NULL. */
#ifndef UMEM_ARRAY_H
#define UMEM_ARRAY_H

#include <umem/base.h>
#include <umem/element.h>

/* An array. Opaque. */
typedef struct umemArray umemArray;

/* ---- make and end ---- */

/* A new array with memory of its own on ctx, not initialised. shape: [rank] numbers of elements,
 * which may be 0; an array without elements has no memory. strides: [rank] bytes, or NULL; the
 * array gets the memory that they span. The first byte of the memory is at a multiple of 64, and of
 * 256 on contexts that a GPU can use, as exchange with other libraries needs it. Where addresses
 * are offsets (umemOffsets: a umemFile, a umemMpi), nobody uses the memory in place, and arrays are
 * placed as blocks of umem_alloc: at multiples of the natural alignment, in a file of 16. Release
 * the array with umemArray_release. NULL on errors: umemTypeError for a type that is not valid;
 * umemValueError for a rank out of range, a negative extent, a missing shape, strides or extents
 * that leave the address space; those of umem_aligned_alloc. */
UMEM_EXTERN umemArray *umemArray_create(void *ctx, umemElementType type, int rank,
                                        int64_t const *shape, int64_t const *strides,
                                        umemStatusType *status);

/* Makes an array as umemArray_create does, with every byte zero. */
UMEM_EXTERN umemArray *umemArray_zeros(void *ctx, umemElementType type, int rank,
                                       int64_t const *shape, int64_t const *strides,
                                       umemStatusType *status);

/* Makes an array as umemArray_create does, with every element equal to *value, one element of the
 * type in host memory. */
UMEM_EXTERN umemArray *umemArray_full(void *ctx, umemElementType type, int rank,
                                      int64_t const *shape, int64_t const *strides,
                                      void const *value, umemStatusType *status);

/* An array over memory of ctx that the caller keeps until nothing uses the array any more. adr: of
 * the element with index (0, ..., 0). The array is read-only if ctx is not umemWritable. NULL on
 * errors: as umemArray_create, and umemValueError for the null of ctx, unless there are no
 * elements. */
UMEM_EXTERN umemArray *umemArray_borrow(void *ctx, uintptr_t adr, umemElementType type, int rank,
                                        int64_t const *shape, int64_t const *strides,
                                        umemStatusType *status);

/* Makes an array as umemArray_borrow does, of memory that the array takes over. When no array uses
 * it any more, umem calls release(user) once, in the thread that has released the last of them;
 * release NULL: umem_free(ctx, adr), so adr must be what umem_alloc has returned. Before, umem
 * waits for the work that is queued on ctx, if ctx is umemOrdered or umemDeviceShared, because it
 * may use the memory. On an error nothing is taken over, and release is not called. No exception
 * may leave release. */
UMEM_EXTERN umemArray *umemArray_take(void *ctx, uintptr_t adr, umemElementType type, int rank,
                                      int64_t const *shape, int64_t const *strides,
                                      void (*release)(void *user), void *user,
                                      umemStatusType *status);

/* One user more: returns array. Each retain needs a release. NULL for NULL. */
UMEM_EXTERN umemArray *umemArray_retain(umemArray *array);

/* One user less. The last one ends the handle, and with the last handle that shares the memory umem
 * frees it or calls release. In a child of fork, memory that the child shares with its parent
 * (umemShared), and that the array had before the fork, stays allocated: see umem_end_block.
 * Ignores NULL. */
UMEM_EXTERN void umemArray_release(umemArray *array);

/* Whether the memory of array, and of all handles that share it, stays allocated after the last of
 * them, if the context is a named file that keeps what was written (umemKeeps). At first true if
 * the option reuse of the file is umemReuseNo, else false. Ignores NULL, and memory that umem does
 * not free. */
UMEM_EXTERN void umemArray_set_keeps(umemArray *array, bool keeps);

/* In which order the elements of a copy follow one another in memory. */
typedef enum umemArrayOrder {
  umemOrderC = 0, /* the last dimension fastest */
  /* as in the original: its dimensions by the size of their strides. Gaps and signs are not kept */
  umemOrderKeep = 1
} umemArrayOrder;

/* A new array on ctx with the elements of array: a deep copy, writable. Release it with
 * umemArray_release. NULL on errors: as umemArray_create and umem_copy_strided. */
UMEM_EXTERN umemArray *umemArray_copy(umemArray *array, void *ctx, umemArrayOrder order,
                                      umemStatusType *status);

/* ---- views: new handles over the same memory, each to be released ---- */

/* A handle of the same elements. The alias is read-only if array is. */
UMEM_EXTERN umemArray *umemArray_alias(umemArray *array, umemStatusType *status);

/* Of dimension dim only the count elements first, first + step, ..., step not 0; the rank stays.
 * NULL on errors: umemIndexError for a dimension or an element that array does not have;
 * umemValueError for a negative count or step 0. */
UMEM_EXTERN umemArray *umemArray_slice(umemArray *array, int dim, int64_t first, int64_t count,
                                       int64_t step, umemStatusType *status);

/* The elements with index i in dimension dim; that dimension goes away.
 * NULL on errors: umemIndexError for a dimension or an index that array does not have. */
UMEM_EXTERN umemArray *umemArray_select(umemArray *array, int dim, int64_t i,
                                        umemStatusType *status);

/* The dimensions in another order: dimension k of the view is dimension axes[k] of array. axes NULL
 * reverses them (a transpose). NULL on errors: umemValueError if axes is no permutation of 0 ...
 * rank - 1. */
UMEM_EXTERN umemArray *umemArray_permute(umemArray *array, int const *axes, umemStatusType *status);

/* Returns the elements in C order with another shape. NULL on errors: umemValueError if the number
 * of elements differs, and where the strides allow no view of that shape; the message says which.
 * Then a umemArray_copy has one. */
UMEM_EXTERN umemArray *umemArray_reshape(umemArray *array, int rank, int64_t const *shape,
                                         umemStatusType *status);

/* ---- what it is: these functions record nothing, and return 0, false or NULL for NULL ---- */

/* The context of the memory, borrowed. */
UMEM_EXTERN void *umemArray_context(umemArray const *array);

/* The address of index (0, ..., 0) on the context. */
UMEM_EXTERN uintptr_t umemArray_address(umemArray const *array);

/* The type of the elements. */
UMEM_EXTERN umemElementType umemArray_type(umemArray const *array);

/* The number of dimensions. */
UMEM_EXTERN int umemArray_rank(umemArray const *array);

/* [rank] numbers of elements; borrowed until the array is released. */
UMEM_EXTERN int64_t const *umemArray_shape(umemArray const *array);

/* [rank] bytes from element to element; borrowed until the array is released. */
UMEM_EXTERN int64_t const *umemArray_strides(umemArray const *array);

/* The number of elements along dimension dim; 0 where there is no such dimension. */
UMEM_EXTERN int64_t umemArray_extent(umemArray const *array, int dim);

/* The bytes from element to element along dimension dim; 0 where there is no such dimension. */
UMEM_EXTERN int64_t umemArray_stride(umemArray const *array, int dim);

/* The number of all elements. */
UMEM_EXTERN int64_t umemArray_elements(umemArray const *array);

/* The bytes of all elements, without gaps. */
UMEM_EXTERN size_t umemArray_nbytes(umemArray const *array);

/* Whether functions must not write through this handle. */
UMEM_EXTERN bool umemArray_is_read_only(umemArray const *array);

/* Whether the elements follow one another in C order without gaps. Dimensions of one element do not
 * count; an array without elements is contiguous. */
UMEM_EXTERN bool umemArray_is_c_contiguous(umemArray const *array);

/* Whether the elements are real or complex floating-point numbers:
 * umem_element_is_floating_point. */
UMEM_EXTERN bool umemArray_is_floating_point(umemArray const *array);

/* Whether the elements are complex numbers. */
UMEM_EXTERN bool umemArray_is_complex(umemArray const *array);

/* Whether the elements are real numbers of 64 bits: umemDouble. */
UMEM_EXTERN bool umemArray_is_double(umemArray const *array);

/* Whether the elements are complex and come in fours: the last extent is 4, or the last two are 2
 * and 2. */
UMEM_EXTERN bool umemArray_is_complex4(umemArray const *array);

/* Whether both have elements of one type. */
UMEM_EXTERN bool umemArray_is_same_type(umemArray const *one, umemArray const *other);

/* Whether both have the same rank and the same extents. */
UMEM_EXTERN bool umemArray_is_same_shape(umemArray const *one, umemArray const *other);

/* Whether addresses of one mean the same bytes in the other: umem_is_same_device of their
 * contexts. */
UMEM_EXTERN bool umemArray_is_same_place(umemArray const *one, umemArray const *other);

/* Whether type, shape and strides are equal, and with place the place, too. Strides count only
 * along dimensions of more than one element, and not at all in arrays without elements. */
UMEM_EXTERN bool umemArray_is_matching(umemArray const *one, umemArray const *other, bool place);

/* Says whether functions may write through this handle; views that exist keep what they have.
 * umemNotSupportedError, and nothing changes, for false where the context is not writable, and for
 * false on a view of a read-only array. So a program that gives memory away that nobody may write
 * makes its array read-only, and gives away a umemArray_alias. */
UMEM_EXTERN void umemArray_set_read_only(umemArray *array, bool read_only, umemStatusType *status);

/* ---- pointers ---- */

/* The pointer that the CPU uses, after all work queued on the context is complete; writes: to write
 * through it. NULL on errors: umemNotSupportedError where the CPU cannot read (or write) the
 * memory, or the array is read-only and writes is true; umemOffsets. An array without elements may
 * have NULL without an error. */
UMEM_EXTERN void *umemArray_host_pointer(umemArray *array, bool writes, umemStatusType *status);

/* The address for kernels; nothing is waited for. NULL on errors: umemNotSupportedError where no
 * GPU can use the memory, or the array is read-only and writes is true. */
UMEM_EXTERN void *umemArray_device_pointer(umemArray *array, bool writes, umemStatusType *status);

/* ---- contents ---- */

/* Sets all elements to zero. Errors: umemNotSupportedError for a read-only array; those of umem_set
 * and umem_copy_strided. */
UMEM_EXTERN void umemArray_clear(umemArray *array, umemStatusType *status);

/* Sets all elements to *value, one element of the type in host memory. Errors: as umemArray_clear;
 * umemValueError if value is NULL; umemMemoryError without room for a buffer. */
UMEM_EXTERN void umemArray_fill(umemArray *array, void const *value, umemStatusType *status);

/* Copies all elements of src to dst, of the same type and shape, on any two contexts. Their memory
 * may overlap, as for umem_copy_strided. Errors: umemTypeError, umemValueError for another type or
 * shape; umemNotSupportedError for a read-only dst; those of umem_copy_strided. */
UMEM_EXTERN void umemArray_assign(umemArray *dst, umemArray *src, umemStatusType *status);

/* Copies count elements: element src_offset + i of src to element dst_offset + i of dst, counted in
 * C order whatever the strides. Shapes may differ, types not. The elements may overlap: the result
 * is as if src were read before dst is written. Errors: as umemArray_assign; umemIndexError, and
 * nothing is copied, where elements are outside of an array; umemMemoryError without room for a
 * buffer. It is needed if elements overlap, then for all of them; and of at most 4 MiB if both
 * sides have gaps, and inner extents of which none is a multiple of the other: 6 and 4, but not 6
 * and 3. */
UMEM_EXTERN void umemArray_copy_contents(umemArray *dst, umemArray *src, int64_t dst_offset,
                                         int64_t src_offset, int64_t count, umemStatusType *status);

/* Copies as umemArray_copy_contents does, queued on queue, a umemOrdered context in the memory of
 * dst or src: the copy comes after the work that is queued on queue and on the contexts of both
 * arrays, and is complete after umem_synchronize(queue). Both arrays must live until then. Errors:
 * besides, umemValueError where queue is in the memory of neither. */
UMEM_EXTERN void umemArray_copy_contents_on(void *queue, umemArray *dst, umemArray *src,
                                            int64_t dst_offset, int64_t src_offset, int64_t count,
                                            umemStatusType *status);

#endif
