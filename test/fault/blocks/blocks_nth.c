/* blocks_nth.c - umem/blocks.h: the n-th call into the system fails, for every n that a passage
 * from file to file reaches; and the source is cut in the middle.
 *
 * After each fault: success with all rows checked, or a status that names the block and the leg;
 * the destination has whole blocks up to the one that the message names; no descriptor is left.
 * What is not freed is for the sanitizer to find. */

#include "fault/trial.h"

/* Blocks are long enough for threads of their own. */
enum {
  count = 40,
  width = 33 << 10,
  rows = 8,
  blocks_in_all = count / rows,
  nbytes = count * width
};

typedef struct Files {
  char from[256], to[256];
  umemFile source, destination;
  umemHost host;
  uintptr_t source_adr, destination_adr;
} Files;

static unsigned thread_count = 1; /* of umem */

static void set_up(void **state UNUSED) { assert_ok(umem_set_threads(thread_count)); }
static void tear_down(void **state UNUSED) {
  inject_reset();
  assert_ok(umem_set_threads(0));
}

#define BLOCKS_TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static unsigned char value(size_t i) { return (unsigned char)(i * 7 + i / 256 + 1); }

static void open_files(Files *files) {
  static unsigned char bytes[nbytes];
  for (size_t i = 0; i < nbytes; i++) bytes[i] = value(i);
  temporary_name(files->from, sizeof files->from);
  temporary_name(files->to, sizeof files->to);
  assert_int_equal(umemHost_ctor(&files->host), umemOK);
  assert_int_equal(umemFile_ctor(&files->source, files->from, "w+"), umemOK);
  assert_int_equal(umemFile_ctor(&files->destination, files->to, "w+"), umemOK);
  files->source_adr = umem_alloc(&files->source, nbytes);
  files->destination_adr = umem_calloc(&files->destination, nbytes, 1);
  assert_int_equal(
      umem_copy_from(&files->source, files->source_adr, &files->host, (uintptr_t)bytes, nbytes),
      umemOK);
}

static void close_files(Files *files) {
  DESTRUCT(&files->source, &files->destination, &files->host);
  unlink(files->from);
  unlink(files->to);
}

static umemBlocksOptions options_of(Files *files) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  options.source = (umemRows){&files->source, files->source_adr, width, 0};
  options.destination = (umemRows){&files->destination, files->destination_adr, width, 0};
  options.count = count;
  options.place = &files->host;
  options.rows = rows;
  return options;
}

/* Returns how many blocks came, and the status. */
static umemStatusType pass(umemBlocksOptions const *options, size_t *number) {
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  umemBlocks_ctor(&blocks, options);
  for (*number = 0; umemBlocks_next(&blocks, &block); ++*number)
    for (size_t i = 0; i < block.rows * width; i++) ((unsigned char *)block.out)[i] ^= 0xFF;
  return umemBlocks_end(&blocks);
}

/* Whether the destination has the results of the blocks before end, and zeros from `from` on. */
static bool has_results(Files *files, size_t last, size_t from) {
  static unsigned char bytes[nbytes];
  bool right = umem_copy_to(&files->destination, files->destination_adr, &files->host,
                            (uintptr_t)bytes, nbytes) == umemOK;
  for (size_t i = 0; i < nbytes; i++) {
    size_t block = i / (rows * width);
    if (block < last && bytes[i] != (value(i) ^ 0xFF)) right = false;
    if (block >= from && bytes[i]) right = false;
  }
  return right;
}

/* The number of the block in a message such as "umemBlocks_next: writing block 7 of 12 (rows 56 to
 * 63): ...". */
static size_t block_in(char const *message, char const *verb) {
  char begin[64];
  snprintf(begin, sizeof begin, "umemBlocks_next: %s block ", verb);
  if (strncmp(message, begin, strlen(begin)) != 0) fail_msg("\"%s\"", message);
  unsigned long first = 0, last = 0;
  unsigned long number = strtoul(message + strlen(begin), NULL, 10);
  if (sscanf(strchr(message, '('), "(rows %lu to %lu)", &first, &last) != 2 ||
      first != number * rows || last != first + rows - 1)
    fail_msg("\"%s\"", message);
  return number;
}

/* ---- system calls ---- */

/* Checks what a faulty passage left. Whether the fault was met. */
static bool check(Files *files, InjectCall call, umemStatusType status, size_t number) {
  bool met = inject_off() > 0;
  inject_pause();
  char const *message = umem_thread_message();
  if (status == umemOK) {
    assert_int_equal(umem_thread_status(), umemOK);
    assert_int_equal(number, blocks_in_all);
    assert_true(has_results(files, blocks_in_all, blocks_in_all));
  } else if (call == callRead) {
    assert_int_equal(status, umemIOError);
    size_t failed = block_in(message, "reading");
    assert_int_equal(number, failed);
    assert_true(has_results(files, failed, failed));
  } else if (call == callWrite) {
    assert_int_equal(status, umemIOError);
    size_t failed = block_in(message, "writing");
    assert_true(has_results(files, failed, failed + 1));
  } else {
    assert_int_equal(status, umemMemoryError);
    assert_true(number == 0 || strstr(message, "block "));
  }
  umem_thread_clear();
  inject_resume();
  return met;
}

static void fail_each(InjectCall call, int error, bool lasting) {
  unsigned long nth = 1;
  for (bool met = true; met; nth++) {
    Files files;
    open_files(&files);
    long descriptors = open_descriptors();
    umemBlocksOptions options = options_of(&files);
    size_t number;
    inject_fail(call, nth, error, lasting);
    umemStatusType status = pass(&options, &number);
    met = check(&files, call, status, number);
    if (met && (call == callRead || call == callWrite)) assert_int_not_equal(status, umemOK);
    assert_int_equal(open_descriptors(), descriptors);
    close_files(&files);
  }
  if (call != callMap) assert_true(nth > 2);
}

BLOCKS_TEST(reads_fail) {
  fail_each(callRead, EIO, false);
  fail_each(callRead, EIO, true);
}
BLOCKS_TEST(disks_are_full) {
  fail_each(callWrite, ENOSPC, false);
  fail_each(callWrite, ENOSPC, true);
}
BLOCKS_TEST(there_is_no_memory) {
  fail_each(callHeap, ENOMEM, false);
  fail_each(callHeap, ENOMEM, true);
}
/* ---- long blocks, which threads read ---- */

enum { long_width = 600 << 10, long_count = 18, long_rows = 4 };

/* A sum of bytes that no other order of rows has. */
static uint64_t sum_of(unsigned char const *bytes, size_t first, size_t number_of_rows) {
  uint64_t sum = 0;
  for (size_t i = 0; i < number_of_rows; i++) sum += (first + i + 1) * bytes[i * long_width + i];
  return sum;
}

static unsigned char long_value(size_t row_number) { return (unsigned char)(row_number * 13 + 5); }

static void open_long(Files *files) {
  SCOPED_BYTES(unsigned char, bytes, long_count *(size_t)long_width);
  for (size_t i = 0; i < long_count; i++) memset(bytes + i * long_width, long_value(i), long_width);
  temporary_name(files->from, sizeof files->from);
  assert_int_equal(umemHost_ctor(&files->host), umemOK);
  assert_int_equal(umemFile_ctor(&files->source, files->from, "w+"), umemOK);
  files->source_adr = umem_alloc(&files->source, (size_t)long_count * long_width);
  assert_int_equal(umem_copy_from(&files->source, files->source_adr, &files->host, (uintptr_t)bytes,
                                  (size_t)long_count * long_width),
                   umemOK);
}

/* Returns the status, how many blocks came, and whether all had the right bytes. */
static umemStatusType pass_long(Files *files, size_t *number, bool *right) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  options.source = (umemRows){&files->source, files->source_adr, long_width, 0};
  options.count = long_count;
  options.place = &files->host;
  options.rows = long_rows;
  umemBlocks_ctor(&blocks, &options);
  *right = true;
  for (*number = 0; umemBlocks_next(&blocks, &block); ++*number) {
    uint64_t wanted = 0;
    for (size_t i = 0; i < block.rows; i++)
      wanted += (block.first + i + 1) * long_value(block.first + i);
    *right = *right && block.number == *number &&
             sum_of((unsigned char const *)block.adr, block.first, block.rows) == wanted;
  }
  return umemBlocks_end(&blocks);
}

static void fail_each_long(InjectCall call, int error, bool lasting) {
  unsigned long nth = 1;
  for (bool met = true; met; nth++) {
    Files files;
    open_long(&files);
    long descriptors = open_descriptors();
    size_t number, blocks = (long_count + long_rows - 1) / long_rows;
    bool right;
    inject_fail(call, nth, error, lasting);
    umemStatusType status = pass_long(&files, &number, &right);
    met = inject_off() > 0;
    inject_pause();
    assert_true(right);
    char const *message = umem_thread_message();
    char words[80];
    snprintf(words, sizeof words, "umemBlocks_next: reading block %zu of %zu ", number, blocks);
    if (status == umemOK)
      assert_int_equal(number, blocks);
    else if (call == callRead)
      assert_true(status == umemIOError && strstr(message, words));
    else
      assert_true(status == umemMemoryError && (number == 0 || strstr(message, words)));
    if (!met || call == callThread) assert_int_equal(status, umemOK);
    if (met && call == callRead) assert_int_not_equal(status, umemOK);
    assert_int_equal(open_descriptors(), descriptors);
    umem_thread_clear();
    inject_resume();
    DESTRUCT(&files.source, &files.host);
    unlink(files.from);
  }
  assert_true(nth > 2);
}

BLOCKS_TEST(reads_of_long_blocks_fail) {
  fail_each_long(callRead, EIO, false);
  fail_each_long(callRead, EIO, true);
}
BLOCKS_TEST(long_blocks_have_no_memory) {
  fail_each_long(callHeap, ENOMEM, false);
  fail_each_long(callHeap, ENOMEM, true);
}
BLOCKS_TEST(threads_for_long_blocks_do_not_start) {
  if (thread_count == 1) skip();
  fail_each_long(callThread, EAGAIN, false);
  fail_each_long(callThread, EAGAIN, true);
}

/* ---- a source that gets shorter ---- */

BLOCKS_TEST(the_source_is_cut) {
  Files files;
  open_files(&files);
  umemBlocksOptions options = options_of(&files);
  options.depth = 2;
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  assert_int_equal(umemBlocks_ctor(&blocks, &options), umemOK);
  size_t number = 0;
  for (; umemBlocks_next(&blocks, &block); number++) {
    if (number == 2) assert_int_equal(truncate(files.from, 4 * rows * width + 10), 0);
    for (size_t i = 0; i < block.rows * width; i++) ((unsigned char *)block.out)[i] ^= 0xFF;
  }
  assert_int_equal(number, 4);
  assert_int_equal(block_in(umem_thread_message(), "reading"), 4);
  assert_non_null(strstr(umem_thread_message(), "truncated by another process"));
  assert_int_equal(umem_get_status(&files.source), umemIOError);
  assert_int_equal(umemBlocks_end(&blocks), umemIOError);
  assert_true(has_results(&files, 4, 4));
  umem_thread_clear();
  close_files(&files);
}

int main(void) {
  int failed = 0;
  for (; thread_count <= 4; thread_count *= 2) {
    print_message("with %u threads\n", thread_count);
    failed += run_cases(NULL, NULL);
  }
  return failed;
}
