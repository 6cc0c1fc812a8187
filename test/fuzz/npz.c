/* npz.c - .npz files as libFuzzer changes them. An archive that opens describes bytes of the file
 * that do not overlap, and no array of it harms who reads it.
 *
 * An input that begins with a zip file's mark is a file. Another one is a list of changes, of three
 * bytes each, to a file that umem has written: offset, and the new byte. */
#include "fuzz.h"

#include <stdio.h>

#include <umem/formats.h>

enum { most = 1 << 16 };
static unsigned char written[most];
static size_t length; /* of it */
static umemHost host;

/* A file of two stored arrays. */
static void write_file(void) {
  char path[] = "/tmp/umem-fuzz-XXXXXX";
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  umemStatusType status = umemOK;
  umemFile file;
  umemInfo info = UMEM_INFO_INIT;
  close(mkstemp(path));
  umemHost_ctor(&host);
  umemArray *arrays[] = {umemArray_zeros(&host, umemInt16, 2, (int64_t[]){3, 5}, NULL, &status),
                         umemArray_zeros(&host, umemDouble, 1, (int64_t[]){9}, NULL, &status)};
  options.format = umemArchiveNpz;
  umemArchive_save(path, 2, (char const *[]){"a", "b"}, arrays, &options, &status);
  umemArray_release(arrays[0]);
  umemArray_release(arrays[1]);
  umemFile_ctor(&file, path, "r");
  umem_get_info(&file, &info);
  length = info.capacity;
  expect(status == umemOK && length < most);
  expect(umem_copy_to(&file, 0, &host, (uintptr_t)written, length) == umemOK);
  umem_dtor(&file);
  remove(path);
}

static void forget(void) {
  umem_thread_clear();
  umem_clear_status(&host);
}

static void use(umemArchive *archive, umemArchiveInfo const *info, size_t size) {
  umemStatusType status = umemOK;
  expect((info->problem != NULL) == (info->type == 0));
  if (!info->compressed && !info->problem)
    expect(info->offset <= size && info->nbytes <= size - info->offset);
  if (info->nbytes > 1 << 24) return; /* what a few bytes inflate to */
  umemArray *array = umemArchive_get(archive, info->name, &status);
  expect(!info->problem || status == umemTypeError);
  if (array) {
    expect(umemArray_nbytes(array) == info->nbytes);
    umemArray_release(umemArray_copy(array, &host, umemOrderC, &status));
  }
  umemArray_release(array);
  status = umemOK;
  umemArchive_check(archive, 1, (char const *[]){info->name}, NULL, &status);
  expect(status == umemOK || status == umemValueError);
  forget();
}

static void read_file(unsigned char const *file, size_t size) {
  umemStatusType status = umemOK;
  SCOPED(free_bytes) unsigned char *exact = malloc(size + !size);
  memcpy(exact, file, size);
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)exact, size, &status);
  expect((archive != NULL) == (status == umemOK));
  if (!archive) expect(status == umemValueError && strlen(umem_thread_message()) > 20);
  forget();
  for (size_t i = 0; i < umemArchive_count(archive); i++) {
    umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
    expect(umemArchive_info(archive, i, &info, &status));
    expect(umemArchive_find(archive, info.name, &status) == i);
    use(archive, &info, size);
  }
  umemArchive_release(archive);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  static unsigned char changed[most];
  if (!length) write_file();
  if (size > 4 && !memcmp(data, "PK", 2)) {
    read_file(data, size);
    return 0;
  }
  memcpy(changed, written, length);
  for (size_t i = 0; i + 3 <= size; i += 3)
    changed[(data[i] | (size_t)data[i + 1] << 8) % length] = data[i + 2];
  read_file(changed, length - (size % 3 && size < 200 ? size : 0));
  return 0;
}
