/* without_zlib.c - a component that was built without zlib: what is stored is read, and the rest
 * refused with the name of what is missing. */
#include <umem.h>
#include <umem/formats.h>

#include "cases.h"
#include "temporary.h"
#include "zip_file.h"

static unsigned char bytes[long_bytes + 4096];

static void expect_refusal(umemStatusType status, umemStatusType expected) {
  assert_int_equal(status, expected);
  if (!strstr(umem_thread_message(), "was built without zlib (Debian: zlib1g-dev)"))
    fail_msg("%s", umem_thread_message());
  umem_thread_clear();
}

TEST_CASE(what_needs_zlib_is_refused) {
  umemHost host;
  umemStatusType status = umemOK;
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
  char path[200];
  umemHost_ctor(&host);
  umemArray *w = umemArray_zeros(&host, umemFloat, 1, (int64_t[]){3}, NULL, &status);
  temporary_name(path, sizeof path);
  options.format = umemArchiveNpz;
  umemArchive_save(path, 1, (char const *[]){"w"}, &w, &options, &status);
  expect_refusal(status, umemNotSupportedError);
  assert_int_not_equal(access(path, F_OK), 0);
  umemArray_release(w);
  status = umemOK;
  size_t const size = make_compressed(bytes);
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)bytes, size, &status);
  assert_true(umemArchive_info(archive, 0, &info, &status) && !info.type);
  assert_non_null(strstr(info.problem, "without zlib"));
  umemArchive_check(archive, 1, NULL, NULL, &status);
  expect_refusal(status, umemNotSupportedError);
  status = umemOK;
  assert_null(umemArchive_get(archive, "w", &status));
  expect_refusal(status, umemTypeError);
  umemArchive_release(archive);
  umem_dtor(&host);
}

TEST_CASE(what_is_stored_is_read) {
  umemHost host;
  umemStatusType status = umemOK;
  umemHost_ctor(&host);
  size_t const size = make_stored(bytes);
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)bytes, size, &status);
  umemArray *w = umemArchive_get(archive, "w", &status);
  assert_int_equal(status, umemOK);
  float element; /* not aligned in the file */
  char const *elements = umemArray_host_pointer(w, false, &status);
  memcpy(&element, elements + long_columns * sizeof element, sizeof element);
  assert_true(element == long_columns);
  umemArray_release(w);
  umemArchive_release(archive);
  umem_dtor(&host);
}
