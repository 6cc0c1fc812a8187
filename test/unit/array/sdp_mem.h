/* sdp_mem.h - the memory interface of the SKA SDP processing functions over umemArray, as thin as
 * it can be. For tests only: the names are those of its documentation, each function is a call or
 * two of umem.
 *
 * A handle is a umemArray, an error is a umemStatusType, and a location is one of two contexts that
 * the test sets. */
#pragma once

#include <umem.h>

typedef umemArray sdp_Mem;
typedef umemStatusType sdp_Error;
typedef uint32_t sdp_MemType;
#define SDP_MEM_CHAR umemChar
#define SDP_MEM_INT umemInt
#define SDP_MEM_FLOAT umemFloat
#define SDP_MEM_DOUBLE umemDouble
#define SDP_MEM_COMPLEX_FLOAT umemComplexFloat
#define SDP_MEM_COMPLEX_DOUBLE umemComplexDouble
typedef enum sdp_MemLocation { SDP_MEM_CPU, SDP_MEM_GPU } sdp_MemLocation;

/* The contexts of the two locations; borrowed. */
extern void *sdp_contexts[2];

/* ---- make and end ---- */

static inline sdp_Mem *sdp_mem_create(sdp_MemType type, sdp_MemLocation location, int32_t num_dims,
                                      int64_t const *shape, sdp_Error *status) {
  return umemArray_create(sdp_contexts[location], type, num_dims, shape, NULL, status);
}
static inline sdp_Mem *sdp_mem_create_wrapper(void *data, sdp_MemType type,
                                              sdp_MemLocation location, int32_t num_dims,
                                              int64_t const *shape, int64_t const *stride,
                                              sdp_Error *status) {
  return umemArray_borrow(sdp_contexts[location], (uintptr_t)data, type, num_dims, shape, stride,
                          status);
}
static inline sdp_Mem *sdp_mem_create_alias(sdp_Mem const *src) {
  return umemArray_alias((umemArray *)(uintptr_t)src, NULL);
}
static inline sdp_Mem *sdp_mem_create_copy(sdp_Mem const *src, sdp_MemLocation location,
                                           sdp_Error *status) {
  return umemArray_copy((umemArray *)(uintptr_t)src, sdp_contexts[location], umemOrderC, status);
}
#define sdp_mem_ref_inc umemArray_retain
#define sdp_mem_ref_dec umemArray_release
#define sdp_mem_free umemArray_release

/* ---- contents ---- */

#define sdp_mem_clear_contents umemArray_clear
static inline void sdp_mem_copy_contents(sdp_Mem *dst, sdp_Mem const *src, int64_t offset_dst,
                                         int64_t offset_src, int64_t num_elements,
                                         sdp_Error *status) {
  umemArray_copy_contents(dst, (umemArray *)(uintptr_t)src, offset_dst, offset_src, num_elements,
                          status);
}
static inline void sdp_mem_random_fill(sdp_Mem *mem, sdp_Error *status) {
  umemArray_random_uniform(mem, 0, 1, 1, status);
}
static inline void *sdp_mem_data(sdp_Mem *mem) { return umemArray_host_pointer(mem, true, NULL); }
static inline void const *sdp_mem_data_const(sdp_Mem const *mem) {
  return umemArray_host_pointer((umemArray *)(uintptr_t)mem, false, NULL);
}
static inline void *sdp_mem_gpu_buffer(sdp_Mem *mem, sdp_Error *status) {
  return umemArray_device_pointer(mem, true, status);
}

/* ---- questions ---- */

#define sdp_mem_type umemArray_type
#define sdp_mem_type_size umem_element_size
#define sdp_mem_num_dims umemArray_rank
#define sdp_mem_num_elements umemArray_elements
#define sdp_mem_shape_dim umemArray_extent
#define sdp_mem_stride_bytes_dim umemArray_stride
#define sdp_mem_is_c_contiguous umemArray_is_c_contiguous
#define sdp_mem_is_floating_point umemArray_is_floating_point
#define sdp_mem_is_complex umemArray_is_complex
#define sdp_mem_is_complex4 umemArray_is_complex4
#define sdp_mem_is_double umemArray_is_double
#define sdp_mem_is_matching umemArray_is_matching
#define sdp_mem_is_read_only umemArray_is_read_only
static inline int64_t sdp_mem_stride_elements_dim(sdp_Mem const *mem, int32_t dim) {
  return umemArray_stride(mem, dim) / (int64_t)umem_element_size(umemArray_type(mem));
}
static inline void sdp_mem_set_read_only(sdp_Mem *mem, int32_t value) {
  umemArray_set_read_only(mem, value, NULL);
}
static inline sdp_MemLocation sdp_mem_location(sdp_Mem const *mem) {
  return umem_is_same_device(umemArray_context(mem), sdp_contexts[SDP_MEM_GPU]) ? SDP_MEM_GPU
                                                                                : SDP_MEM_CPU;
}

/* ---- checks ---- */

#define sdp_mem_check_writeable umemArray_check_writeable
#define sdp_mem_check_c_contiguity umemArray_check_c_contiguity
#define sdp_mem_check_location(mem, location, status)                                              \
  umemArray_check_location(                                                                        \
      mem, (location) == SDP_MEM_GPU ? (unsigned)umemDeviceAccessible : (unsigned)umemCpuReadable, \
      status)
#define sdp_mem_check_num_dims umemArray_check_rank
#define sdp_mem_check_dim_size umemArray_check_extent
#define sdp_mem_check_shape umemArray_check_shape
#define sdp_mem_check_shape_dim umemArray_check_extent
#define sdp_mem_check_same_shape(mem, dim, mem2, dim2, status)                                     \
  umemArray_check_same_extent(mem, dim, mem2, dim2, status)
#define sdp_mem_check_type umemArray_check_type
