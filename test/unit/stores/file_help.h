/* file_help.h - what the tests of files share.
 *
 * What File and MMap both promise is tested once and run on both. kind says which; an `Any` is
 * either. The tests name blocks by their offset in the file. */
#pragma once

#include "failures.h"
#include "temporary.h"
#include "workers.h"

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)

typedef enum { kindFile, kindMMap } Kind;
static Kind kind;

typedef union {
  umemVirtual super;
  umemFile file;
  umemMMap mmap;
} Any;

/* What most tests open, and RAM beside it. */
static Any any;
static umemHost host;

/* A directory of the test's own, and a path in it. */
static char folder[256];
static char path[300];

/* ---- contexts ---- */

static inline umemStatusType any_ctor(Any *ctx, char const *name, char const *mode) {
  return kind == kindFile ? umemFile_ctor(&ctx->file, name, mode)
                          : umemMMap_ctor(&ctx->mmap, name, mode);
}

static inline umemStatusType any_adopt(Any *ctx, int fd) {
  return kind == kindFile ? umemFile_adopt(&ctx->file, fd) : umemMMap_adopt(&ctx->mmap, fd);
}

static inline umemStatusType any_ctor_with(Any *ctx, char const *name, char const *mode,
                                           umemFileOptions const *options) {
  return kind == kindFile ? umemFile_ctor_with(&ctx->file, name, mode, options)
                          : umemMMap_ctor_with(&ctx->mmap, name, mode, options);
}

static inline umemStatusType any_adopt_with(Any *ctx, int fd, umemFileOptions const *options) {
  return kind == kindFile ? umemFile_adopt_with(&ctx->file, fd, options)
                          : umemMMap_adopt_with(&ctx->mmap, fd, options);
}

/* Opens path, which must succeed. */
static inline void open_any_with(Any *ctx, char const *mode, umemFileOptions const *options) {
  if (any_ctor_with(ctx, path, mode, options) != umemOK) fail_msg("%s", umem_thread_message());
}

static inline void open_any(Any *ctx, char const *mode) { open_any_with(ctx, mode, NULL); }

/* With no disk space reserved. */
static inline void open_sparse(Any *ctx, char const *mode) {
  umemFileOptions options = {.size = sizeof options, .reserve = umemReserveNone};
  open_any_with(ctx, mode, &options);
}

/* A descriptor of the file at path. */
static inline int open_path(int flags) {
  int fd = open(path, flags | O_CLOEXEC, 0600);
  assert_true(fd >= 0);
  return fd;
}

/* Destructs a context on which nothing failed, or was cleared. */
static inline void close_any(Any *ctx) {
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
  umem_dtor(ctx);
  if (!umem_is_ok(ctx)) fail_msg("%s", umem_get_message(ctx));
}

/* That path can be opened so. */
static inline void expect_opened(char const *mode) {
  open_any(&any, mode);
  close_any(&any);
}

/* ---- offsets ---- */

static uint64_t const none = UINT64_MAX;

/* Where in the file adr is; none for null. */
static inline uint64_t offset_of(Any *ctx, uintptr_t adr) {
  if (adr == umem_null(ctx)) return none;
  return kind == kindFile ? adr : umemMMap_offset(&ctx->mmap, adr);
}

/* The address of offset, also past the end. */
static inline uintptr_t at(Any *ctx, uint64_t offset) {
  if (kind == kindFile) return offset;
  uintptr_t base = umemMMap_address(&ctx->mmap, 0);
  if (!base) fail_msg("%s", umem_thread_message());
  return base + offset;
}

static inline uint64_t alloc(Any *ctx, size_t size) {
  return offset_of(ctx, umem_alloc(ctx, size));
}

/* ---- bytes ---- */

static inline void put(Any *ctx, uint64_t offset, void const *bytes, size_t size) {
  umem_copy_from(ctx, at(ctx, offset), &host, (uintptr_t)bytes, size);
}

static inline umemStatusType get(Any *ctx, uint64_t offset, void *bytes, size_t size) {
  return umem_copy_to(ctx, at(ctx, offset), &host, (uintptr_t)bytes, size);
}

/* ---- the file as others see it ---- */

static inline uint64_t length_of(char const *name) {
  struct stat st;
  assert_int_equal(stat(name, &st), 0);
  return (uint64_t)st.st_size;
}

static inline uint64_t disk_of(char const *name) {
  struct stat st;
  assert_int_equal(stat(name, &st), 0);
  return (uint64_t)st.st_blocks * 512;
}

static inline unsigned char pattern(uint64_t i) { return (unsigned char)(i * 7 + i / 251 + 1); }

static inline void check_pattern(unsigned char const *bytes, size_t size, uint64_t first) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != pattern(first + i)) fail_msg("byte %zu has changed", i);
}

/* Writes size bytes of the pattern as the file at path. */
static inline void make_file(size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  for (size_t i = 0; i < size; i++) putc_unlocked(pattern(i), file);
  assert_int_equal(fclose(file), 0);
}

/* The bytes [offset, offset + size) of the file at path, for free(). */
static inline unsigned char *slurp(uint64_t offset, size_t size) {
  unsigned char *bytes = malloc(size + 1);
  SCOPED(close_fd) int fd = open_path(O_RDONLY);
  assert_non_null(bytes);
  assert_int_equal(pread(fd, bytes, size, (off_t)offset), size);
  return bytes;
}

/* [from, from + size) of the file at path still holds the pattern. */
static inline void expect_pattern(uint64_t from, size_t size) {
  SCOPED(free_bytes) unsigned char *bytes = slurp(from, size);
  check_pattern(bytes, size, from);
}

/* Bytes of the file at path that this process maps. */
static inline size_t mapped_bytes(void) {
  char line[600];
  size_t sum = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) {
    unsigned long first, end;
    char *name = strstr(line, path);
    bool same = name && name[strlen(path)] == '\n';
    if (same && sscanf(line, "%lx-%lx", &first, &end) == 2) sum += end - first;
  }
  fclose(maps);
  return sum;
}

/* How many descriptors this process has; in *found one of the file at name, or -1. */
static inline int count_descriptors(char const *name, int *found) {
  int count = 0;
  struct stat wanted = {0}, st;
  if (name) assert_int_equal(stat(name, &wanted), 0);
  if (found) *found = -1;
  for (int fd = 0; fd < 1024; fd++) {
    if (fstat(fd, &st) != 0) continue;
    count++;
    if (found && st.st_dev == wanted.st_dev && st.st_ino == wanted.st_ino) *found = fd;
  }
  return count;
}

/* ---- each test ---- */

static int descriptors_before;

static inline void set_up(void **state UNUSED) {
  assert_true(temporary_folder(folder, sizeof folder));
  snprintf(path, sizeof path, "%s/a.bin", folder);
  assert_ok(umemHost_ctor(&host));
  descriptors_before = count_descriptors(NULL, NULL);
}

/* Ends `any`, if the test has left it open, and removes the files of the test; none of its
 * descriptors and failures may be left. */
static inline void tear_down(void **state UNUSED) {
  if (any.super.vptr) close_any(&any);
  DIR *directory = opendir(folder);
  assert_non_null(directory);
  umem_dtor(&host);
  struct dirent const *entry;
  while ((entry = readdir(directory)))
    if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
  closedir(directory);
  assert_int_equal(rmdir(folder), 0);
  assert_ok(umem_thread_status());
  assert_true(count_descriptors(NULL, NULL) == descriptors_before);
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

/* Runs the tests with a File, and then with a MMap. */
static inline int run_on_both(void) {
  kind = kindFile;
  int failed = run_cases(NULL, NULL);
  kind = kindMMap;
  return failed + run_cases(NULL, NULL);
}
