/* s3_local.c - what umemS3 does without a server: it notes which bytes of an upload are written,
 * finds the URLs of requests, and reads credentials. */
#include "cases.h"
#include "s3_help.h"
#include "scoped.h"
#include "temporary.h"
#include "url/s3.h"

static void open_config(void **state UNUSED) { set_s3_environment("http://127.0.0.1:1"); }

#define TEST(name) TEST_CASE_WITH(name, open_config, NULL)

/* ---- marks ---- */

/* Beside a byte for each byte. */
TEST_CASE(marks_count_each_byte_once) {
  enum { size = 700, words = (size + 63) / 64 };
  uint32_t random = 7;
  for (unsigned round = 0; round < 200; round++) {
    uint64_t marks[words] = {0};
    char bytes[size], wanted[size];
    bool written[size] = {false};
    umemS3Buffer buffer = {.bytes = bytes, .marks = marks};
    memset(bytes, 'x', size);
    for (unsigned writes = round % 8; writes; writes--) {
      random = random * 1664525u + 1013904223u;
      size_t from = (random >> 8) % size, most = size - from;
      size_t count = round % 3 ? (random >> 20) % most + 1 : most < 64 ? most : 64;
      if (round % 5 == 1) from = from / 64 * 64;
      umemS3Buffer_mark(&buffer, from, count);
      memset(written + from, true, count);
    }
    size_t covered = 0;
    for (size_t i = 0; i < size; i++) covered += written[i];
    for (size_t i = 0; i < size; i++) wanted[i] = written[i] ? 'x' : 0;
    assert_int_equal(buffer.covered, covered);
    size_t const cleared = size - round % 70;
    memset(wanted + cleared, 'x', size - cleared);
    umemS3Buffer_clear_unmarked(&buffer, cleared);
    assert_memory_equal(bytes, wanted, size);
  }
}

/* ---- parts ---- */

TEST_CASE(parts_and_the_gaps_between_blocks) {
  size_t const size = 1 << 20;
  bool full;
  CONTEXT(umemHost, host);
  umemS3Parts parts = {.ctx = (umemVirtual *)&host, .label = "x", .size = size};
  assert_true(umemS3Parts_init(&parts, 2));
  assert_int_equal(umemS3Parts_alloc(&parts, size - 100, 1, false), 0);
  assert_int_equal(umemS3Parts_alloc(&parts, 100, size, false), size);
  assert_true(umemS3Parts_choose_size(&parts));
  assert_int_equal(umemS3Parts_missing(&parts), size);
  umemS3Buffer *buffer = umemS3Parts_take(&parts, 0, NULL, &full);
  assert_ptr_equal(umemS3Parts_take(&parts, 0, NULL, &full), buffer);
  umemS3Buffer_mark(buffer, 0, size - 101);
  assert_false(umemS3Parts_is_ready(&parts, buffer));
  umemS3Buffer_mark(buffer, 0, size - 100);
  assert_true(umemS3Parts_is_ready(&parts, buffer));
  buffer->writers++; /* who writes the same bytes again */
  assert_false(umemS3Parts_is_ready(&parts, buffer));
  buffer->writers--;
  umemS3Buffer *last = umemS3Parts_take(&parts, 1, NULL, &full);
  umemS3Buffer_mark(last, 0, 100);
  assert_false(umemS3Parts_is_ready(&parts, last)); /* a block may follow */
  assert_int_equal(umemS3Parts_missing(&parts), 0);
  assert_null(umemS3Parts_take(&parts, 2, NULL, &full));
  assert_true(full);
  assert_int_equal(umemS3Parts_alloc(&parts, 16, 1, false), size - 96);
  assert_int_equal(umemS3Parts_missing(&parts), 16);
  assert_false(umemS3Parts_is_ready(&parts, buffer));
  umemS3Buffer_mark(buffer, size - 96, 16);
  assert_true(umemS3Parts_is_ready(&parts, buffer));
  buffer->state = umemS3BufferQueued;
  assert_int_equal(umemS3Parts_alloc(&parts, 16, 1, false), size + 112); /* not in what is queued */
  umemS3Buffer_set_free(buffer);
  strcpy(parts.parts[0].etag, "\"1\"");
  assert_int_equal(umemS3Parts_alloc(&parts, 16, 1, false), size + 128); /* nor in what is sent */
  assert_null(umemS3Parts_take(&parts, 0, NULL, &full));
  assert_false(full);
  assert_int_equal(umem_thread_status(), umemNotSupportedError);
  umemS3Parts_end(&parts);
}

/* ---- where requests go ---- */

static void expect_url(umemS3Options const *options, char const *name, char const *wanted) {
  umemS3Config config;
  char url[umemS3UrlSize];
  assert_true(umemS3Config_read(&config, options));
  bool made = umemS3Config_url(&config, name, url);
  if (wanted)
    assert_string_equal(made ? url : umem_thread_message(), wanted);
  else
    assert_false(made);
  umemS3Config_clear(&config);
}

TEST(urls_of_requests) {
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  options.endpoint = "http://127.0.0.1:9000/";
  expect_url(&options, "s3://bucket/a b/%3F", "http://127.0.0.1:9000/bucket/a%20b/%3F");
  options.style = umemS3StyleHost;
  expect_url(&options, "s3://bucket/k", "http://bucket.127.0.0.1:9000/k");
  unsetenv("AWS_ENDPOINT_URL");
  options = (umemS3Options)UMEM_S3_OPTIONS_INIT;
  expect_url(&options, "s3://bucket/k", "https://bucket.s3.us-east-1.amazonaws.com/k");
  setenv("AWS_DEFAULT_REGION", "eu-west-1", 1);
  expect_url(&options, "s3://with.dot/k", "https://s3.eu-west-1.amazonaws.com/with.dot/k");
  setenv("AWS_REGION", "cn-north-1", 1);
  expect_url(&options, "s3://bucket/k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
  setenv("AWS_ENDPOINT_URL", "https://one", 1);
  expect_url(&options, "s3://bucket/k", "https://one/bucket/k");
  setenv("AWS_ENDPOINT_URL_S3", "https://two", 1);
  expect_url(&options, "s3://bucket/k", "https://two/bucket/k");
  setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
  expect_url(&options, "s3://bucket/k", "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
  unsetenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  expect_url(&options, "s3://bucket/a/../k", NULL);
  expect_url(&options, "s3://bucket/k?x", NULL);
  expect_url(&options, NULL, NULL);
}

TEST(lengths_that_no_object_can_have) {
  uint64_t const most = 10000 * UMEM_S3_PART_MOST;
  uint64_t const lengths[] = {0, most, most + 1, UINT64_MAX - 5000, UINT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    umemS3 place;
    umemS3Options options = UMEM_S3_OPTIONS_INIT;
    options.length = lengths[i], options.anonymous = 1;
    umemStatusType status = umemS3_ctor_with(&place, "s3://bucket/key", "w", &options);
    if (status == umemNotSupportedError) return; /* there is no libcurl */
    assert_int_equal(status, lengths[i] > most ? umemValueError : umemOK);
    umem_thread_clear();
    if (status == umemOK) umemS3_abandon(&place);
    umem_dtor(&place);
  }
}

/* ---- hostile files ---- */

static char const good_file[] = "# keys\n[other]\naws_access_key_id = other\n[default]\n"
                                "aws_access_key_id = fileKEY\naws_secret_access_key = fileSECRET\n"
                                "s3 =\n  addressing_style = path\nregion = eu-west-1\n";

static bool read_file(char const *path, char const *bytes, size_t size) {
  umemS3Options options = UMEM_S3_OPTIONS_INIT;
  umemS3Config config;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  assert_int_equal(write(fd, bytes, size), size);
  close(fd);
  options.profile = "default";
  umem_thread_clear();
  bool good = umemS3Config_read(&config, &options);
  assert_true(good == (umem_thread_status() == umemOK));
  umemS3Config_clear(&config);
  return good;
}

TEST(changed_files_are_read_or_refused_without_showing_keys) {
  char path[PATH_MAX], text[sizeof good_file];
  temporary_name(path, sizeof path);
  setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
  assert_true(read_file(path, good_file, sizeof good_file - 1));
  uint32_t random = 1;
  for (unsigned round = 0; round < 3000; round++) {
    memcpy(text, good_file, sizeof text);
    for (unsigned changes = 1 + round % 4; changes; changes--) {
      static char const odd[] = "\n[]= \t\r#;\0\x7f\xff";
      random = random * 1664525u + 1013904223u;
      text[(random >> 8) % (sizeof text - 1)] = odd[(random >> 24) % (sizeof odd - 1)];
    }
    if (!read_file(path, text, sizeof text - 1 - round % 7)) {
      assert_null(strstr(umem_thread_message(), "fileKEY"));
      assert_null(strstr(umem_thread_message(), "fileSECRET"));
    }
  }
  unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  remove(path);
}
