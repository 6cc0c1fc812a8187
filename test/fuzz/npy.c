/* npy.c - headers of .npy files as libFuzzer makes them up. A header that passes describes elements
 * that lie in the file; one that does not is unchanged. */
#include "fuzz.h"

static void check(umemNpyHeader const *header, size_t size) {
  expect(header->rank >= 0 && header->rank <= UMEM_MAX_RANK);
  expect(header->offset <= size && header->nbytes <= size - header->offset);
  uint64_t elements = 1;
  for (int k = 0; k < header->rank; k++) {
    expect(header->shape[k] >= 0 && header->strides[k] > 0);
    elements *= (uint64_t)header->shape[k]; /* of other extents, if there are none */
  }
  if (header->type && header->nbytes)
    expect(elements * umem_element_size(header->type) == header->nbytes);
  expect(strlen(header->descr) >= 3);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  SCOPED(umem_dtor) umemHost host;
  umemHost_ctor(&host);
  /* two inputs of three are the text alone */
  size_t first = size && data[0] % 3 ? 10 : 0;
  SCOPED(free_bytes) unsigned char *file = malloc(first + size + !size);
  memcpy(file + first, data, size);
  if (first) memcpy(file, "\x93NUMPY\1\0", 8);
  if (first) file[8] = (unsigned char)(size < 200 ? size : 200), file[9] = 0;
  umemNpyHeader header = UMEM_NPY_HEADER_INIT;
  header.big_endian = size && data[0] & 4;
  umemNpyHeader const before = header;
  umemStatusType status = umem_npy_read_header(&host, (uintptr_t)file, first + size, &header);
  expect(umem_is_ok(&host));
  if (status == umemOK) {
    check(&header, first + size);
  } else {
    expect(status == umemValueError || status == umemTypeError);
    expect(!memcmp(&header, &before, sizeof header));
    umem_thread_clear();
  }
  return 0;
}
