/* archive.c - files of named arrays as libFuzzer makes them up. An archive that opens describes
 * arrays that fill the file behind its header, each byte once. */
#include "fuzz.h"

#include <umem/formats.h>

static void check(umemArchive *archive, size_t size) {
  uint64_t end = 0;
  for (size_t i = 0; i < umemArchive_count(archive); i++) {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    umemStatusType status = umemOK;
    expect(umemArchive_info(archive, i, &info, &status));
    expect(i == 0 || info.offset == end);
    end = info.offset + info.nbytes;
    expect(end <= size && umemArchive_find(archive, info.name, &status) == i);
    umemArray *array = umemArchive_get(archive, info.name, &status);
    if (array) { /* one without elements may have extents that leave the address space */
      expect(umemArray_nbytes(array) == info.nbytes);
      umemArray_release(umemArray_copy(array, umemArray_context(array), umemOrderC, &status));
    }
    expect(status == umemOK || info.nbytes == 0);
    umemArray_release(array);
  }
  char const *value;
  for (size_t i = 0; umemArchive_metadata(archive, i, &value); i++) expect(value != NULL);
  expect(end == 0 || end == size);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  SCOPED(umem_dtor) umemHost host;
  umemHost_ctor(&host);
  umemStatusType status = umemOK;
  /* three inputs of four are the text of a header and up to 15 bytes behind it */
  size_t first = size && data[0] % 4 ? 8 : 0, behind = first ? data[0] >> 4 : 0;
  SCOPED(free_bytes) unsigned char *file = calloc(first + size + behind + 1, 1);
  memcpy(file + first, data + !!first, size - !!first);
  if (first) memcpy(file, &(uint64_t){size - 1}, 8);
  size_t whole = first ? first + size - 1 + behind : size;
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)file, whole, &status);
  expect((archive != NULL) == (status == umemOK));
  if (archive)
    check(archive, whole);
  else
    expect(status == umemValueError && strlen(umem_thread_message()) > 20);
  umemArchive_release(archive);
  umem_thread_clear();
  umem_clear_status(&host);
  return 0;
}
