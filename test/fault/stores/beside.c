/* beside.c - others who use the same file at the same time: a process that appends without asking
 * for a lock, and a second context on a duplicate of the descriptor. Whatever fails, is freed or
 * trimmed here, they lose nothing. */

#include "fault/trial.h"

/* Where a test runs: on a disk of its own, or in $TMPDIR for NULL. */
typedef struct Ground {
  char const *name, *type;
  unsigned mebibytes;
  bool lacks; /* fallocate says that it is not supported */
} Ground;

static Ground const grounds[] = {
    {"here", NULL, 0, false},      {"here without fallocate", NULL, 0, true},
    {"tmpfs", "tmpfs", 16, false}, {"tmpfs without fallocate", "tmpfs", 16, true},
    {"ext2", "ext2", 16, false},   {"ext4", "ext4", 16, false},
};

enum { record_count = 4000, record_size = 16, impossible = 62 };

static SmallDisk disk;

/* In a child. Sets the path of a file that is not there yet. False where the ground cannot be
 * had. */
static bool enter(Ground const *ground, char path[256]) {
  if (ground->type && !small_disk_mount(&disk, ground->type, ground->mebibytes)) return false;
  if (ground->type)
    snprintf(path, 256, "%s/file", disk.folder);
  else
    temporary_name(path, 256);
  inject_count();
  if (ground->lacks) inject_lacking(callReserve, EOPNOTSUPP);
  return true;
}

static void leave(Ground const *ground, char const *path) {
  inject_reset();
  EXPECT(unlink(path) == 0);
  if (ground->type) small_disk_unmount(&disk);
}

/* ---- a process that appends ---- */

typedef struct Record {
  char mark[8];
  uint64_t number;
} Record;

/* opens: the file anew for each record, as a shell does. */
static void append_records(char const *path, bool opens) {
  int fd = -1;
  for (uint64_t i = 0; i < record_count; i++) {
    Record record = {"record:", i};
    if (fd < 0) fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || write(fd, &record, sizeof record) != sizeof record) _exit(1);
    if (opens && close(fd) == 0) fd = -1;
  }
  _exit(0);
}

static void expect_records(char const *path) {
  static bool seen[record_count];
  size_t length = file_length(path), count = 0;
  unsigned char *bytes = malloc(length);
  EXPECT(bytes);
  if (!bytes) return; /* not reached */
  EXPECT(read_file(path, bytes, length) == length);
  for (size_t at = 0; at + record_size <= length; at += record_size) {
    Record record;
    memcpy(&record, bytes + at, sizeof record);
    if (strcmp(record.mark, "record:") != 0) continue;
    EXPECT(record.number < record_count && !seen[record.number]);
    seen[record.number] = true;
    count++;
  }
  free(bytes);
  if (count != record_count) fprintf(stderr, "%zu of %d records are there\n", count, record_count);
  EXPECT(count == record_count);
}

/* A call for too much, or one that the system refuses, at once or after a part. What succeeds all
 * the same is freed. */
static void fail_once(void *ctx, unsigned i) {
  size_t const sizes[] = {(size_t)1 << impossible, 1 << 20, 256 << 10};
  InjectCall const calls[] = {callHeap, callReserve, callWrite};
  unsigned kind = i % 3;
  if (kind) inject_fail_here(calls[kind], 1 + i / 3 % 2, ENOSPC, true);
  uintptr_t adr = umem_alloc(ctx, sizes[kind]);
  inject_off_here();
  if (adr != umem_null(ctx)) umem_free(ctx, adr);
  FORGET(ctx);
}

/* Allocations that fail, some that succeed, frees and trims, until the child has ended. */
static void work_beside(void *ctx, pid_t child) {
  int status;
  unsigned i = 0;
  uintptr_t kept = umem_null(ctx);
  while (waitpid(child, &status, WNOHANG) == 0) {
    fail_once(ctx, i++);
    if (i % 64 == 0) {
      umem_free(ctx, kept);
      kept = umem_alloc(ctx, 160);
    }
    if (i % 16 == 0) umem_trim(ctx, 0);
    FORGET(ctx);
  }
  EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void construct(umemFile *ctx, char const *path, bool adopts) {
  if (!adopts) {
    EXPECT(umemFile_ctor(ctx, path, "r+") == umemOK);
    return;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC);
  EXPECT(fd >= 0 && umemFile_adopt(ctx, fd) == umemOK);
}

static void beside_appends(Ground const *ground, bool opens, bool adopts) {
  char path[256];
  umemFile ctx;
  if (!enter(ground, path)) _exit(child_not_permitted);
  write_file(path, 0);
  construct(&ctx, path, adopts);
  pid_t child = fork();
  EXPECT(child >= 0);
  if (!child) append_records(path, opens);
  work_beside(&ctx, child);
  umem_dtor(&ctx);
  EXPECT(umem_is_ok(&ctx));
  expect_records(path);
  leave(ground, path);
}

static void kept_open(void *ground) { beside_appends(ground, false, false); }
static void opened_anew(void *ground) { beside_appends(ground, true, false); }
static void kept_open_adopted(void *ground) { beside_appends(ground, false, true); }

/* ---- two contexts on duplicates of one descriptor ---- */

enum { block_count = 4000, block_size = 64, apart = 1 << 20 };

typedef struct Half {
  Any own;
  uint64_t start; /* of its blocks */
  uint64_t offsets[block_count];
  unsigned char seed;
} Half;

static void adopt_half(Half *half, int fd, bool mapped, uint64_t start) {
  half->start = start;
  half->seed = (unsigned char)(1 + start);
  EXPECT((mapped ? umemMMap_adopt(&half->own.mmap, fd) : umemFile_adopt(&half->own.file, fd)) ==
         umemOK);
  if (!start) return;
  /* A block over the other's half keeps this one's blocks off it. */
  uintptr_t over = umem_alloc(&half->own, start);
  EXPECT(over != umem_null(&half->own));
}

static uint64_t offset_in(Half *half, uintptr_t adr) {
  return half->own.super.capabilities & umemOffsets ? adr : umemMMap_offset(&half->own.mmap, adr);
}

static void *fill_half(void *argument) {
  Half *half = argument;
  for (unsigned i = 0; i < block_count; i++) {
    uintptr_t adr = umem_alloc(&half->own, block_size);
    EXPECT(adr != umem_null(&half->own));
    EXPECT(umem_set(&half->own, adr, half->seed, block_size) == umemOK);
    half->offsets[i] = offset_in(half, adr);
    EXPECT(half->start || half->offsets[i] + block_size <= apart);
    fail_once(&half->own, i);
    if (i % 16 == 0) umem_trim(&half->own, 0);
  }
  return NULL;
}

static void expect_half(Half const *half, char const *path) {
  unsigned char found[block_size], expected[block_size];
  unsigned lost = 0;
  memset(expected, half->seed, sizeof expected);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  EXPECT(fd >= 0);
  for (unsigned i = 0; i < block_count; i++) {
    ssize_t n = pread(fd, found, sizeof found, (off_t)half->offsets[i]);
    lost += n != sizeof found || memcmp(found, expected, sizeof found) != 0;
  }
  close(fd);
  if (lost) fprintf(stderr, "%u of %d blocks are lost\n", lost, block_count);
  EXPECT(!lost);
}

static void two_halves(Ground const *ground, bool mapped) {
  static Half one, other;
  char path[256];
  pthread_t thread;
  if (!enter(ground, path)) _exit(child_not_permitted);
  int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT(fd >= 0);
  adopt_half(&one, dup(fd), mapped, 0);
  adopt_half(&other, fd, mapped, apart);
  EXPECT(pthread_create(&thread, NULL, fill_half, &one) == 0);
  fill_half(&other);
  EXPECT(pthread_join(thread, NULL) == 0);
  expect_half(&one, path);
  expect_half(&other, path);
  DESTRUCT(&one.own, &other.own);
  leave(ground, path);
}

static void two_files(void *ground) { two_halves(ground, false); }
static void two_mappings(void *ground) { two_halves(ground, true); }

/* ---- what trim still does ---- */

/* A file that nobody else has open is cut; while somebody has it open, it only loses its disk
 * space. */
static void trim_alone_and_not(void *argument) {
  Ground const *ground = argument;
  enum { kept = 5000, freed = 1 << 20 };
  char path[256];
  umemFile ctx;
  struct stat st;
  if (!enter(ground, path)) _exit(child_not_permitted);
  EXPECT(umemFile_ctor(&ctx, path, "w+") == umemOK);
  EXPECT(umem_alloc(&ctx, kept) == 0);
  uintptr_t adr = umem_alloc(&ctx, freed);
  EXPECT(adr != umem_null(&ctx));
  umem_free(&ctx, adr);
  int reader = open(path, O_RDONLY | O_CLOEXEC);
  EXPECT(reader >= 0);
  EXPECT(umem_trim(&ctx, 0) == umemOK);
  EXPECT(fstat(reader, &st) == 0 && st.st_size == (off_t)adr + freed);
  if (!ground->lacks && (!ground->type || strcmp(ground->type, "ext2") != 0))
    EXPECT(st.st_blocks * 512 < freed / 2);
  close(reader);
  EXPECT(umem_trim(&ctx, 0) == umemOK);
  EXPECT(file_length(path) == kept);
  umem_dtor(&ctx);
  leave(ground, path);
}

/* ---- all of them ---- */

static void (*const bodies[])(void *) = {kept_open, opened_anew,  kept_open_adopted,
                                         two_files, two_mappings, trim_alone_and_not};
static char const *const names[] = {"kept open", "opened anew",  "adopted",
                                    "two files", "two mappings", "trim"};

static void run(void **state) {
  size_t i = (size_t)(uintptr_t)*state;
  if (!child_run(bodies[i % 6], (void *)&grounds[i / 6])) skip();
}

int main(void) {
  for (size_t i = 0; i < 6 * sizeof grounds / sizeof *grounds; i++)
    add_case(run, (void *)(uintptr_t)i, "%s: %s", grounds[i / 6].name, names[i % 6]);
  return run_cases(NULL, NULL);
}
