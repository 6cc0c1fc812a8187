/* archive.c - umem/formats.h on every context, and what is refused. What files may hold, the tests
 * of the Python package compare with the library safetensors and with NumPy. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <umem.h>
#include <umem/formats.h>

#include "child.h"
#include "fake/doubles.h"
#include "temporary.h"
#include "unit/each_backend.h"
#include "zip_file.h"

enum { rows = 3, columns = 5, elements = rows * columns };

static umemHost host;
static umemStatusType status;
static char path[200];

static void set_up(void **state UNUSED) {
  status = umemOK;
  umem_thread_clear();
  doubles_use();
  temporary_name(path, sizeof path);
  assert_ok(umemHost_ctor(&host));
}

static void tear_down(void **state UNUSED) {
  remove(path);
  umem_dtor(&host);
  char const *complaint = doubles_complaint();
  if (complaint) fail_msg("%s", complaint);
  assert_ok(status);
  assert_ok(umem_thread_status());
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* That the last call has failed so, and that the sequence of calls is at its end. */
static void expect_failure(umemStatusType type, char const *text) {
  assert_int_equal(status, type);
  if (!strstr(umem_thread_message(), text)) fail_msg("%s", umem_thread_message());
  umem_thread_clear();
  umem_clear_status(&host);
  status = umemOK;
}

/* ---- arrays ---- */

static char const *const names[] = {"numbers", "turned", "nothing", "flag"};
enum { count = 4 };

static umemArray *make(void *ctx, umemElementType type, int rank, int64_t const *shape,
                       char first) {
  char bytes[elements * 8];
  umemArray *in_ram = umemArray_create(&host, type, rank, shape, NULL, &status);
  for (size_t i = 0; i < umemArray_nbytes(in_ram); i++) bytes[i] = (char)(first + (char)i) & 1;
  if (umemArray_nbytes(in_ram))
    memcpy(umemArray_host_pointer(in_ram, true, &status), bytes, umemArray_nbytes(in_ram));
  umemArray *array = umemArray_copy(in_ram, ctx, umemOrderC, &status);
  umem_synchronize(ctx); /* before its source ends */
  umemArray_release(in_ram);
  assert_int_equal(status, umemOK);
  return array;
}

static void make_all(void *ctx, umemArray *arrays[count]) {
  arrays[0] = make(ctx, umemInt16, 2, (int64_t[]){rows, columns}, 0);
  umemArray *whole = make(ctx, umemDouble, 2, (int64_t[]){columns, rows}, 1);
  arrays[1] = umemArray_permute(whole, NULL, &status);
  umemArray_release(whole);
  arrays[2] = make(ctx, umemFloat, 2, (int64_t[]){0, 7}, 0);
  arrays[3] = make(ctx, umemBool, 0, NULL, 1);
  assert_int_equal(status, umemOK);
}

static void release_all(umemArray *arrays[count]) {
  for (size_t k = 0; k < count; k++) umemArray_release(arrays[k]);
}

static void expect_equal(umemArray *found, umemArray *expected) {
  umemArray *one = umemArray_copy(found, &host, umemOrderC, &status);
  umemArray *other = umemArray_copy(expected, &host, umemOrderC, &status);
  umem_synchronize(umemArray_context(found));
  umem_synchronize(umemArray_context(expected));
  assert_int_equal(status, umemOK);
  assert_true(umemArray_is_matching(one, other, false));
  if (umemArray_nbytes(one))
    assert_memory_equal(umemArray_host_pointer(one, false, &status),
                        umemArray_host_pointer(other, false, &status), umemArray_nbytes(one));
  umemArray_release(one);
  umemArray_release(other);
}

/* ---- there and back ---- */

static umemArchiveFormat format = umemArchiveSafetensors; /* of new files */

static void save(umemArray *arrays[count]) {
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.format = format;
  umemArchive_save(path, count, names, arrays, &options, &status);
}

static void there_and_back(Backend const *row, umemVirtual *ctx) {
  umemArray *arrays[count], *loaded[count], *into[count];
  (void)row;
  make_all(ctx, arrays);
  save(arrays);
  umemArchive *archive = umemArchive_open(path, &status);
  assert_int_equal(status, umemOK);
  umemArchive_load(archive, count, names, ctx, loaded, NULL, &status);
  umem_synchronize(ctx);
  assert_int_equal(status, umemOK);
  make_all(ctx, into);
  for (size_t k = 0; k < count; k++) umemArray_clear(into[k], &status);
  umemArchive_load_into(archive, count, names, into, NULL, &status);
  umem_synchronize(ctx);
  for (size_t k = 0; k < count; k++) {
    umemArray *seen = umemArchive_get(archive, names[k], &status);
    assert_int_equal(status, umemOK);
    assert_true(umemArray_is_read_only(seen));
    expect_equal(seen, arrays[k]);
    expect_equal(loaded[k], arrays[k]);
    expect_equal(into[k], arrays[k]);
    umemArray_release(seen);
  }
  umemArchive_release(archive);
  release_all(arrays);
  release_all(loaded);
  release_all(into);
  umem_synchronize(ctx);
}

TEST(arrays_of_every_context_go_to_a_file_and_back) {
  for (format = umemArchiveSafetensors; format <= umemArchiveNpz; format++)
    assert_true(for_each_backend(there_and_back) > 0);
}

/* The whole file is a block of a context. */
static void read_on(Backend const *row, umemVirtual *ctx) {
  umemArray *arrays[count];
  umemFile file;
  umemInfo info = UMEM_INFO_INIT;
  make_all(&host, arrays);
  save(arrays);
  umemFile_ctor(&file, path, "r");
  umem_get_info(&file, &info);
  uintptr_t adr = umem_alloc(ctx, info.capacity);
  if (umem_copy_to(&file, 0, ctx, adr, info.capacity) != umemOK)
    fail_msg("%s: %s", row->name, umem_thread_message());
  umem_synchronize(ctx);
  umem_dtor(&file);
  umemArchive *archive = umemArchive_read(ctx, adr, info.capacity, &status);
  if (!archive) fail_msg("%s: %s", row->name, umem_thread_message());
  assert_int_equal(umemArchive_count(archive), count);
  for (size_t k = 0; k < count; k++) {
    umemArchiveInfo found = UMEM_ARCHIVE_INFO_INIT;
    assert_true(
        umemArchive_info(archive, umemArchive_find(archive, names[k], &status), &found, &status));
    umemArray *seen = umemArchive_get(archive, names[k], &status);
    assert_int_equal(status, umemOK);
    assert_true(umemArray_context(seen) == ctx && umemArray_address(seen) == adr + found.offset);
    assert_string_equal(found.file, "");
    expect_equal(seen, arrays[k]);
    umemArray_release(seen);
  }
  umemArchive_check(archive, count, NULL, NULL, &status);
  assert_int_equal(status, umemOK);
  umemArchive_release(archive);
  release_all(arrays);
  umem_free(ctx, adr);
}

TEST(a_file_is_read_on_every_context) {
  for (format = umemArchiveSafetensors; format <= umemArchiveNpz; format++)
    assert_true(for_each_backend(read_on) > 0);
}

/* ---- orders of bytes ---- */

/* Saves one number, loads it again, and expects it and its bytes in the file. */
static void expect_order(void *ctx, umemArchiveFormat kind, umemByteOrder order, bool is_big,
                         char const *bytes, int16_t number) {
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
  umemArray *array = make(&host, umemInt16, 1, (int64_t[]){1}, 0), *copy, *found;
  *(int16_t *)umemArray_host_pointer(array, true, &status) = 0x0102;
  copy = umemArray_copy(array, ctx, umemOrderC, &status);
  umem_synchronize(ctx);
  options.format = kind;
  options.order = order;
  options.big_endian = &is_big;
  umemArchive_save(path, 1, (char const *[]){"n"}, &copy, &options, &status);
  if (status != umemOK) fail_msg("%s", umem_thread_message());
  umemArchive *archive = umemArchive_open(path, &status);
  umemArchive_info(archive, 0, &info, &status);
  umemArchive_check(archive, 1, NULL, NULL, &status);
  umemArchive_load(archive, 1, NULL, ctx, &found, NULL, &status);
  *(int16_t *)umemArray_host_pointer(array, true, &status) = number;
  expect_equal(found, array);
  char held[2];
  umemFile file;
  umemFile_ctor(&file, path, "r");
  umem_copy_to(&file, info.offset, &host, (uintptr_t)held, sizeof held);
  umem_dtor(&file);
  assert_memory_equal(held, bytes, sizeof held);
  umemArray_release(found);
  umemArray_release(copy);
  umemArray_release(array);
  umemArchive_release(archive);
}

static void write_orders(Backend const *row, umemVirtual *ctx) {
  (void)row;
  umemArchiveFormat const npz = umemArchiveNpz, tensors = umemArchiveSafetensors;
  expect_order(ctx, npz, umemOrderOfArray, false, "\2\1", 0x0102);
  expect_order(ctx, npz, umemOrderOfArray, true, "\2\1", 0x0201);
  expect_order(ctx, npz, umemOrderLittle, true, "\1\2", 0x0201);
  expect_order(ctx, npz, umemOrderBig, false, "\1\2", 0x0102);
  expect_order(ctx, npz, umemOrderBig, true, "\2\1", 0x0201);
  expect_order(ctx, tensors, umemOrderOfArray, false, "\2\1", 0x0102);
  expect_order(ctx, tensors, umemOrderLittle, true, "\1\2", 0x0201);
}

TEST(numbers_have_the_wanted_order_of_bytes_in_the_file) {
  assert_true(for_each_backend(write_orders) > 0);
}

TEST(orders_of_bytes_that_do_not_exist_are_refused) {
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.order = umemOrderBig;
  umemArchive_save(path, 0, NULL, NULL, &options, &status);
  expect_failure(umemValueError, "safetensors files are little endian");
  memcpy(&options.order, &(int){3}, sizeof options.order);
  umemArchive_save(path, 0, NULL, NULL, &options, &status);
  expect_failure(umemValueError, "there is no order of bytes 3");
}

/* ---- compressed arrays ---- */

static unsigned char file_bytes[long_bytes + 4096];
static size_t file_size;

/* Inflates into arrays with gaps: each row and each part of the buffer begins elsewhere. */
static void inflate_on(Backend const *row, umemVirtual *ctx) {
  static float seen[long_rows * (long_columns + 1)];
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)file_bytes, file_size, &status);
  umemArray *whole =
      umemArray_create(ctx, umemFloat, 2, (int64_t[]){long_rows, long_columns + 1}, NULL, &status);
  if (status != umemOK) { /* less memory than that: shorter ones are in the tests of Python */
    umem_thread_clear();
    umem_clear_status(ctx);
    status = umemOK;
  } else {
    umemArray *part = umemArray_slice(whole, 1, 1, long_columns, 1, &status);
    umemArray_clear(whole, &status);
    umemArchive_load_into(archive, 1, (char const *[]){"w"}, &part, NULL, &status);
    umem_copy_to(ctx, umemArray_address(whole), &host, (uintptr_t)seen, sizeof seen);
    umem_synchronize(ctx);
    if (status != umemOK) fail_msg("%s: %s", row->name, umem_thread_message());
    for (int i = 0; i < long_rows; i++) {
      float const *line = seen + i * (long_columns + 1);
      assert_true(line[0] == 0 && line[1] == (float)(i * long_columns) &&
                  line[long_columns] == (float)(i * long_columns + long_columns - 1));
    }
    umemArray_release(part);
  }
  umemArray_release(whole);
  umem_synchronize(ctx);
  umemArchive_release(archive);
}

TEST(compressed_arrays_are_inflated_to_every_context) {
  file_size = make_compressed(file_bytes);
  assert_true(for_each_backend(inflate_on) > 0);
}

TEST(big_endian_arrays_are_turned_on_every_context) {
  for (int compressed = setting_small(); compressed < 2; compressed++) {
    file_size = make_zip(file_bytes, compressed, true);
    assert_true(for_each_backend(inflate_on) > 0);
  }
}

static bool stop_at(void *user, uint64_t done, uint64_t total) {
  assert_int_equal(total, long_bytes);
  return done < *(uint64_t *)user;
}

/* ---- long headers ---- */

/* A file of safetensors without elements, whose header has about nbytes, in *text. */
static size_t make_long(char **text, size_t nbytes) {
  enum { entry_size = 100 };
  size_t used = 8;
  *text = malloc(nbytes + entry_size);
  assert_non_null(*text);
  for (unsigned k = 0; used < nbytes; k++)
    used += (size_t)sprintf(*text + used, "%c\"%x\":{\"dtype\":\"U8\",\"shape\":[0],%s}",
                            k ? ',' : '{', k, "\"data_offsets\":[0,0]");
  (*text)[used++] = '}';
  memcpy(*text, &(uint64_t){used - 8}, 8);
  return used;
}

static void open_long(char const *text, size_t nbytes) {
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)text, nbytes, &status);
  assert_int_equal(status, umemOK);
  umemArchive_release(archive);
}

/* Of the processor, the least of three. */
static double seconds_for(size_t nbytes) {
  char *text;
  clock_t least = 0;
  size_t const length = make_long(&text, nbytes);
  for (int times = 0; times < 3; times++) {
    clock_t const begun = clock();
    open_long(text, length);
    clock_t const taken = clock() - begun;
    if (!times || taken < least) least = taken;
  }
  free(text);
  return (double)least / CLOCKS_PER_SEC;
}

static long most_kilobytes(void) {
  struct rusage usage;
  assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_maxrss;
}

/* The library safetensors takes 15 times the bytes of such a header. */
TEST(a_long_header_takes_time_and_memory_of_its_length) {
  enum { some = 1 << 17, many = 1 << 23 };
  char *text;
  if (UNDER_SANITIZER) skip();
  size_t const length = make_long(&text, many);
  IN_CHILD {
    long const before = most_kilobytes();
    open_long(text, length);
    EXPECT(most_kilobytes() - before < 10 * (many >> 10));
  }
  free(text);
  assert_true(seconds_for(8 * some) < 3 * 8 * seconds_for(some));
}

TEST(a_compressed_array_is_a_copy_that_lives_on) {
  umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
  umemArchiveOptions options = UMEM_ARCHIVE_OPTIONS_INIT;
  size_t const size = make_compressed(file_bytes);
  umemArchive *archive = umemArchive_read(&host, (uintptr_t)file_bytes, size, &status);
  umemArchive_info(archive, 0, &info, &status);
  assert_true(info.compressed && !info.problem && info.nbytes == long_bytes);
  umemArchive_check(archive, 1, NULL, NULL, &status);
  umemArray *seen = umemArchive_get(archive, "w", &status), *none = NULL;
  assert_int_equal(status, umemOK);
  uint64_t last = 1;
  options.progress = stop_at;
  options.user = &last;
  umemArchive_load(archive, 1, NULL, &host, &none, &options, &status);
  expect_failure(umemCancelledError, "umemArchive_load: cancelled after");
  assert_null(none);
  file_bytes[size / 2] ^= 1;
  umemArchive_load(archive, 1, NULL, &host, &none, NULL, &status);
  expect_failure(umemValueError, "\"w\": its checksum (CRC-32) is wrong");
  umemArchive_check(archive, 1, (char const *[]){"w"}, NULL, &status);
  expect_failure(umemValueError, "umemArchive_check: \"w\": its checksum");
  umemArchive_release(archive);
  float const *inflated = umemArray_host_pointer(seen, true, &status);
  assert_true(inflated[long_columns] == long_columns);
  umemArray_release(seen);
}

TEST(an_array_keeps_its_archive) {
  umemArray *arrays[count];
  make_all(&host, arrays);
  umemArchive_save(path, count, names, arrays, NULL, &status);
  umemArchive *archive = umemArchive_open(path, &status);
  assert_ptr_equal(umemArchive_retain(archive), archive);
  umemArchive_release(archive);
  umemArray *seen = umemArchive_get(archive, "turned", &status);
  umemArchive_release(archive);
  umemArray *part = umemArray_select(seen, 0, 1, &status);
  umemArray_release(seen);
  remove(path);
  umemArray *expected = umemArray_select(arrays[1], 0, 1, &status);
  expect_equal(part, expected);
  umemArray_release(expected);
  umemArray_release(part);
  release_all(arrays);
}

TEST(texts_about_the_file_are_kept) {
  char const *const keys[] = {"b", "a", "\xc3\xa4\""}, *const values[] = {"1", "", "\n"};
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  options.metadata_count = 3;
  options.metadata_keys = keys;
  options.metadata_values = values;
  umemArchive_save(path, 0, NULL, NULL, &options, &status);
  umemArchive *archive = umemArchive_open(path, &status);
  char const *value = NULL;
  assert_int_equal(umemArchive_count(archive), 0);
  assert_string_equal(umemArchive_metadata(archive, 0, &value), "a");
  assert_string_equal(value, "");
  assert_string_equal(umemArchive_metadata(archive, 1, NULL), "b");
  assert_string_equal(umemArchive_metadata(archive, 2, &value), keys[2]);
  assert_string_equal(value, "\n");
  assert_null(umemArchive_metadata(archive, 3, &value));
  umemArchive_release(archive);
}

/* ---- what is refused ---- */

TEST(a_missing_archive_or_name_is_refused) {
  umemArray *array = NULL;
  umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT;
  assert_null(umemArchive_open(NULL, &status));
  expect_failure(umemValueError, "umemArchive_open: the path is NULL");
  assert_null(umemArchive_open("/nowhere/x.safetensors", &status));
  expect_failure(umemIOError, "No such file");
  assert_null(umemArchive_read(&host, 0, 100, &status));
  expect_failure(umemValueError, "null");
  assert_null(umemArchive_read(NULL, 0, 100, &status));
  expect_failure(umemValueError, "NULL");
  assert_int_equal(umemArchive_count(NULL), 0);
  assert_null(umemArchive_metadata(NULL, 0, NULL));
  assert_null(umemArchive_retain(NULL));
  umemArchive_release(NULL);
  assert_true(umemArchive_find(NULL, "w", &status) == SIZE_MAX);
  expect_failure(umemValueError, "umemArchive_find: the archive is NULL");
  assert_false(umemArchive_info(NULL, 0, &info, &status));
  expect_failure(umemValueError, "umemArchive_info: the archive is NULL");
  assert_null(umemArchive_get(NULL, "w", &status));
  expect_failure(umemValueError, "umemArchive_get: the archive is NULL");
  umemArchive_load(NULL, 1, names, &host, &array, NULL, &status);
  expect_failure(umemValueError, "umemArchive_load: the archive is NULL");
  umemArchive_load_into(NULL, 1, names, &array, NULL, &status);
  expect_failure(umemValueError, "umemArchive_load_into: the archive is NULL");
  umemArchive_check(NULL, 1, names, NULL, &status);
  expect_failure(umemValueError, "umemArchive_check: the archive is NULL");
}

TEST(wrong_arguments_are_refused) {
  umemArray *arrays[count], *loaded[2] = {NULL, NULL};
  umemArchiveInfo info = UMEM_ARCHIVE_INFO_INIT, before;
  make_all(&host, arrays);
  umemArchive_save(path, count, names, arrays, NULL, &status);
  umemArchive *archive = umemArchive_open(path, &status);
  assert_null(umemArchive_get(archive, "w", &status));
  expect_failure(umemIndexError, "there is no array \"w\"");
  assert_null(umemArchive_get(archive, NULL, &status));
  expect_failure(umemIndexError, "without a name");
  memcpy(&before, &info, sizeof info);
  assert_false(umemArchive_info(archive, count, &info, &status));
  expect_failure(umemIndexError, "there is no array 4: there are 4");
  assert_memory_equal(&info, &before, sizeof info);
  info.size = 8;
  assert_false(umemArchive_info(archive, 0, &info, &status));
  expect_failure(umemValueError, "size");
  loaded[0] = loaded[1] = arrays[0];
  umemArchive_load(archive, 2, (char const *[]){"flag", "w"}, &host, loaded, NULL, &status);
  expect_failure(umemIndexError, "\"w\"");
  assert_true(!loaded[0] && !loaded[1]);
  umemArchive_load(archive, 2, NULL, &host, loaded, NULL, &status);
  expect_failure(umemValueError, "there are 4 arrays, not 2");
  umemArchive_load(archive, 2, names, &host, NULL, NULL, &status);
  expect_failure(umemValueError, "NULL");
  umemArchive_load(archive, 1, names, NULL, loaded, NULL, &status);
  expect_failure(umemValueError, "NULL");
  umemArchiveOptions options = UMEM_ARCHIVE_OPTIONS_INIT;
  options.size = 8;
  umemArchive_load(archive, 1, names, &host, loaded, &options, &status);
  expect_failure(umemValueError, "size of the options");
  umemArchive_check(archive, 1, names, &options, &status);
  expect_failure(umemValueError, "size of the options");
  umemArchive_check(archive, 1, (char const *[]){"w"}, NULL, &status);
  expect_failure(umemIndexError, "\"w\"");
  loaded[1] = arrays[0];
  umemArchive_load_into(archive, 2, (char const *[]){"numbers", "flag"}, loaded, NULL, &status);
  expect_failure(umemValueError, "NULL");
  umemArray *seen = umemArchive_get(archive, "numbers", &status);
  umemArchive_load_into(archive, 1, names, &seen, NULL, &status);
  expect_failure(umemNotSupportedError, "read-only");
  umemArchive_load_into(archive, 1, &names[3], arrays, NULL, &status);
  expect_failure(umemTypeError, "another type");
  umemArray_release(seen);
  umemArchive_release(archive);
  release_all(arrays);
}

TEST(wrong_arrays_are_not_saved) {
  umemArray *arrays[count];
  umemArchiveSaveOptions options = UMEM_ARCHIVE_SAVE_OPTIONS_INIT;
  char const *const twice[] = {"a", "a"}, *const none[] = {"a", NULL},
                    *const no_text[] = {"\xff", "b"};
  make_all(&host, arrays);
  umemArchive_save(NULL, count, names, arrays, NULL, &status);
  expect_failure(umemValueError, "path");
  umemArchive_save(path, 2, twice, arrays, NULL, &status);
  expect_failure(umemValueError, "two arrays have the name \"a\"");
  umemArchive_save(path, 2, none, arrays, NULL, &status);
  expect_failure(umemValueError, "name or array 1 is NULL");
  umemArchive_save(path, 2, NULL, arrays, NULL, &status);
  expect_failure(umemValueError, "NULL");
  umemArchive_save(path, 2, no_text, arrays, NULL, &status);
  expect_failure(umemValueError, "is not UTF-8");
  options.metadata_count = 2;
  options.metadata_keys = options.metadata_values = twice;
  umemArchive_save(path, 2, names, arrays, &options, &status);
  expect_failure(umemValueError, "the metadata have \"a\" twice");
  options.metadata_keys = names;
  options.format = umemArchiveNpz;
  umemArchive_save(path, 2, names, arrays, &options, &status);
  expect_failure(umemValueError, "no metadata");
  options.metadata_count = 0;
  umemArchive_save(path, 2, no_text, arrays, &options, &status);
  expect_failure(umemValueError, "is not UTF-8");
  options.format = 7;
  umemArchive_save(path, 2, names, arrays, &options, &status);
  expect_failure(umemValueError, "there is no format 7");
  options.size = 8;
  umemArchive_save(path, 2, names, arrays, &options, &status);
  expect_failure(umemValueError, "size of the options");
  assert_int_not_equal(access(path, F_OK), 0);
  release_all(arrays);
}

TEST(calls_after_a_failure_do_nothing) {
  umemArray *array = (umemArray *)&host;
  status = umemIOError;
  assert_null(umemArchive_open(path, &status));
  assert_null(umemArchive_read(&host, 0, 0, &status));
  assert_null(umemArchive_get(NULL, "w", &status));
  assert_true(umemArchive_find(NULL, "w", &status) == SIZE_MAX);
  umemArchive_load(NULL, 1, names, &host, &array, NULL, &status);
  assert_null(array);
  umemArchive_save(path, 0, NULL, NULL, NULL, &status);
  assert_int_not_equal(access(path, F_OK), 0);
  assert_int_equal(status, umemIOError);
  status = umemOK;
}
