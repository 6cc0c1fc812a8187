/* space.c - disk space: what the file system has free is asked first, holes and file systems
 * without fallocate get theirs when a block is allocated, and who wants a sparse file says so. */
#include <sys/statvfs.h>

#include "fault/trial.h"

#define MiB ((size_t)1 << 20)

static char path[256];

/* Of each test. */
static Any any;

static umemStatusType construct(Any *ctx, bool mapped, char const *mode, umemReserve reserve) {
  umemFileOptions options = {.size = sizeof options, .reserve = reserve};
  return mapped ? umemMMap_ctor_with(&ctx->mmap, path, mode, &options)
                : umemFile_ctor_with(&ctx->file, path, mode, &options);
}

static size_t disk_of_file(void) {
  struct stat st;
  EXPECT(stat(path, &st) == 0);
  return (size_t)st.st_blocks * 512;
}

/* The last call failed for want of space, and says so. */
static void expect_full(Any *ctx, uintptr_t adr) {
  EXPECT(adr == umem_null(ctx));
  EXPECT(umem_thread_status() == umemMemoryError);
  EXPECT(strstr(umem_thread_message(), "cannot reserve space in "));
  EXPECT(strstr(umem_thread_message(), strerror(ENOSPC)));
  FORGET(ctx);
}

/* ---- the free space is asked first ---- */

static void ask_first(void *mapped) {
  temporary_name(path, sizeof path);
  write_file(path, old_size);
  EXPECT(construct(&any, mapped, "r+", umemReserveAuto) == umemOK);
  inject_count();
  inject_free_space(10 * MiB);
  expect_full(&any, umem_alloc(&any, 11 * MiB));
  expect_full(&any, umem_calloc(&any, 11, MiB));
  expect_full(&any, umem_aligned_alloc(&any, 4096, 11 * MiB));
  EXPECT(inject_calls(callReserve) == 0);
  EXPECT(inject_calls(callLength) == 0 && inject_calls(callWrite) == 0);
  EXPECT(file_length(path) == old_size && disk_of_file() < MiB);

  uintptr_t one = umem_alloc(&any, 8 * MiB); /* what the file has already does not count */
  EXPECT(one != umem_null(&any) && inject_calls(callReserve) > 0);
  unsigned long calls = inject_calls(callReserve);
  inject_free_space(2 * MiB);
  expect_full(&any, umem_alloc(&any, 3 * MiB));
  EXPECT(inject_calls(callReserve) == calls);
  umem_free(&any, one);
  one = umem_alloc(&any, 9 * MiB); /* of which 8 are there */
  EXPECT(one != umem_null(&any));
  inject_free_space(0);
  umem_free(&any, one);
  EXPECT(umem_alloc(&any, 9 * MiB) != umem_null(&any)); /* all of it is there */
  inject_reset();
  umem_dtor(&any);
  EXPECT(umem_is_ok(&any));

  EXPECT(construct(&any, mapped, "w+", umemReserveNone) == umemOK);
  inject_count();
  inject_free_space(1);
  EXPECT(umem_alloc(&any, 100 * MiB) != umem_null(&any)); /* nobody reserves */
  inject_reset();
  umem_dtor(&any);
  unlink(path);
}

/* Others on the disk have what they need while far too much is asked for. */
static void ask_on_disk(SmallDisk const *disk, bool mapped) {
  struct statvfs before, now;
  EXPECT(construct(&any, mapped, "w+", umemReserveAuto) == umemOK);
  EXPECT(umem_alloc(&any, MiB) != umem_null(&any));
  EXPECT(statvfs(disk->folder, &before) == 0);
  inject_count();
  for (int i = 0; i < 100; i++) expect_full(&any, umem_alloc(&any, (size_t)1 << 34));
  EXPECT(inject_calls(callReserve) == 0);
  EXPECT(statvfs(disk->folder, &now) == 0 && now.f_bavail == before.f_bavail);
  inject_reset();
  umem_dtor(&any);
  unlink(path);
}

/* The exact call decides, and when it fails half-way the space goes back to the disk. */
static void exact_call_decides(SmallDisk const *disk, bool mapped) {
  struct statvfs before, now;
  EXPECT(construct(&any, mapped, "w+", umemReserveAuto) == umemOK);
  EXPECT(umem_alloc(&any, MiB) != umem_null(&any));
  EXPECT(statvfs(disk->folder, &before) == 0);
  inject_free_space((uint64_t)1 << 40); /* which is wrong */
  for (int i = 0; i < 20; i++) expect_full(&any, umem_alloc(&any, 64 * MiB));
  EXPECT(file_length(path) == MiB);
  sync();
  EXPECT(statvfs(disk->folder, &now) == 0);
  EXPECT(now.f_bavail * now.f_frsize + 65536 >= before.f_bavail * before.f_frsize);
  inject_reset();
  umem_dtor(&any);
  unlink(path);
}

/* ---- holes ---- */

/* A file of 4 MiB with bytes at its ends and in the middle. */
static void make_sparse(void) {
  write_file(path, 4096);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  EXPECT(fd >= 0 && ftruncate(fd, 4 * MiB) == 0);
  EXPECT(pwrite(fd, "middle", 6, 2 * MiB) == 6 && pwrite(fd, "end", 3, 4 * MiB - 3) == 3);
  EXPECT(fsync(fd) == 0 && close(fd) == 0);
}

static void expect_sparse_bytes(void) {
  static unsigned char bytes[4 << 20];
  EXPECT(read_file(path, bytes, sizeof bytes) >= sizeof bytes);
  for (size_t i = 0; i < 4096; i++) EXPECT(bytes[i] == old_byte(i));
  EXPECT(!memcmp(bytes + 2 * MiB, "middle", 6) && !memcmp(bytes + 4 * MiB - 3, "end", 3));
  for (size_t i = 4096; i < 4 * MiB - 3; i++)
    EXPECT(!bytes[i] || (i >= 2 * MiB && i < 2 * MiB + 6));
}

/* Blocks over holes: all of their bytes can be written, also through a pointer, when others have
 * taken the rest of the disk. What does not fit is refused when it is allocated. */
static void holes_on_disk(SmallDisk const *disk, bool mapped) {
  static unsigned char bytes[3 << 20];
  umemHost host;
  EXPECT(umemHost_ctor(&host) == umemOK);
  make_sparse();
  EXPECT(construct(&any, mapped, "r+", umemReserveAuto) == umemOK);
  uintptr_t adr = umem_alloc(&any, 3 * MiB);
  EXPECT(adr != umem_null(&any) && disk_of_file() >= 3 * MiB);
  expect_sparse_bytes();
  small_disk_fill(disk, 256 << 10);
  expect_full(&any, umem_alloc(&any, MiB)); /* half of it is a hole */
  expect_sparse_bytes();
  EXPECT(file_length(path) == 4 * MiB);
  memset(bytes, 5, sizeof bytes);
  if (mapped)
    memset((void *)adr, 5, sizeof bytes); /* no SIGBUS */
  else
    EXPECT(umem_copy_from(&any, adr, &host, (uintptr_t)bytes, sizeof bytes) == umemOK);
  EXPECT(umem_flush(&any) == umemOK);
  umem_dtor(&any);
  EXPECT(umem_is_ok(&any));
  unlink(path);
}

/* While somebody else has the file open, holes are filled only by a call that changes no bytes. */
static void holes_with_others(SmallDisk const *disk, bool mapped) {
  (void)disk;
  make_sparse();
  int other = open(path, O_RDWR | O_CLOEXEC);
  EXPECT(other >= 0);
  EXPECT(construct(&any, mapped, "r+", umemReserveAuto) == umemOK);
  uintptr_t adr = umem_alloc(&any, MiB);
  if (adr == umem_null(&any)) {
    EXPECT(umem_get_status(&any) == umemNotSupportedError);
    EXPECT(strstr(umem_get_message(&any), "its file system has no fallocate"));
    EXPECT(umem_clear_status(&any) == umemOK);
    umem_thread_clear();
    EXPECT(disk_of_file() < MiB);
    close(other);
    adr = umem_alloc(&any, MiB);
    EXPECT(adr != umem_null(&any));
  } else {
    close(other);
  }
  EXPECT(disk_of_file() >= MiB);
  expect_sparse_bytes();
  umem_dtor(&any);
  unlink(path);
}

/* ---- behind the end ---- */

/* Blocks behind the end: all that were given out can be written. */
static void growth_on_disk(SmallDisk const *disk, bool mapped) {
  enum { most = 1000, size = 60000 };
  static uintptr_t blocks[most];
  int count = 0;
  EXPECT(construct(&any, mapped, "w+", umemReserveAuto) == umemOK);
  while (count < most && (blocks[count] = umem_alloc(&any, size)) != umem_null(&any)) count++;
  expect_full(&any, umem_null(&any));
  size_t length = file_length(path);
  EXPECT(count > 50 && length == (size_t)(count - 1) * size + size);
  small_disk_fill(disk, 0);
  for (int i = 0; i < count; i++)
    if (mapped)
      memset((void *)blocks[i], i, size);
    else
      EXPECT(umem_set(&any, blocks[i], i, size) == umemOK);
  EXPECT(umem_flush(&any) == umemOK);
  umem_dtor(&any);
  EXPECT(umem_is_ok(&any));
  unlink(path);
}

/* ---- sparse on purpose ---- */

static void none_on_disk(SmallDisk const *disk, bool mapped) {
  (void)disk;
  make_sparse();
  size_t before = disk_of_file();
  EXPECT(construct(&any, mapped, "r+", umemReserveNone) == umemOK);
  EXPECT(umem_alloc(&any, 4 * MiB) != umem_null(&any));
  EXPECT(umem_alloc(&any, 200 * MiB) != umem_null(&any));
  EXPECT(file_length(path) == 204 * MiB && disk_of_file() < before + MiB);
  expect_sparse_bytes();
  umem_dtor(&any);
  EXPECT(umem_is_ok(&any));
  unlink(path);
}

/* ---- all of them ---- */

typedef struct Ground {
  char const *name, *type;
  unsigned mebibytes;
  bool lacks;
} Ground;

static Ground const grounds[] = {
    {"tmpfs", "tmpfs", 8, false}, {"tmpfs without fallocate", "tmpfs", 8, true},
    {"ext4", "ext4", 8, false},   {"ext4 without fallocate", "ext4", 8, true},
    {"ext2", "ext2", 8, false},
};

static struct {
  char const *name;
  void (*body)(SmallDisk const *disk, bool mapped);
} const bodies[] = {
    {"asked first", ask_on_disk},       {"the exact call", exact_call_decides},
    {"holes", holes_on_disk},           {"holes with others", holes_with_others},
    {"behind the end", growth_on_disk}, {"sparse", none_on_disk},
};

enum {
  ground_count = sizeof grounds / sizeof *grounds,
  body_count = sizeof bodies / sizeof *bodies,
  case_count_of_disks = ground_count * body_count * 2
};

static void in_child(void *number) {
  size_t i = (size_t)(uintptr_t)number;
  Ground const *ground = &grounds[i / body_count / 2];
  SmallDisk disk;
  if (!small_disk_mount(&disk, ground->type, ground->mebibytes)) _exit(child_not_permitted);
  snprintf(path, sizeof path, "%s/file", disk.folder);
  inject_count();
  if (ground->lacks) inject_lacking(callReserve, EOPNOTSUPP);
  bodies[i / 2 % body_count].body(&disk, i % 2);
  inject_reset();
  small_disk_unmount(&disk);
}

static void on_small_disk(void **state) {
  if (!child_run(in_child, *state)) skip();
}

TEST_CASE(asked_first) {
  child_run(ask_first, (void *)(uintptr_t) false);
  child_run(ask_first, (void *)(uintptr_t) true);
}

int main(void) {
  for (size_t i = 0; i < case_count_of_disks; i++)
    add_case(on_small_disk, (void *)(uintptr_t)i, "%s: %s, %s", grounds[i / body_count / 2].name,
             bodies[i / 2 % body_count].name, i % 2 ? "mapped" : "by calls");
  return run_cases(NULL, NULL);
}
