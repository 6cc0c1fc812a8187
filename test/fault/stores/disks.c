/* disks.c - long copies on file systems of several types, with each value of the option direct.
 * Each test skips what cannot be mounted here: it needs root, the file system in the kernel and its
 * mkfs. */
#include <sys/vfs.h>

#include "fault/trial.h"
#include "stores/store_file.h"

enum { length = (9 << 20) + 777 };

static umemHost host;
static unsigned char *data, *back;

static uintptr_t adr_of(unsigned char *bytes) { return (uintptr_t)bytes; }

/* Leaves the file out of the cache, as far as the file system does so. */
static void drop(char const *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  EXPECT(fd >= 0 && fdatasync(fd) == 0);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  EXPECT(close(fd) == 0);
}

static void expect_bytes(umemFile *file, char const *path) {
  for (int cached = 0; cached < 3; cached++) { /* from the disk, and twice from wherever it is */
    if (!cached) drop(path);
    memset(back, 0, length);
    EXPECT(umem_copy_to(file, 0, &host, adr_of(back), length) == umemOK);
    EXPECT(memcmp(back, data, length) == 0);
  }
}

/* Writes a file, reads it, and copies it to another one. */
static void copies(char const *folder, umemDirect direct) {
  char path[300], other[300];
  umemFile file, copy;
  umemFileOptions options = UMEM_FILE_OPTIONS_INIT;
  snprintf(path, sizeof path, "%s/one", folder);
  snprintf(other, sizeof other, "%s/other", folder);
  EXPECT(umemFile_ctor(&file, path, "w+") == umemOK && umem_alloc(&file, length) == 0);
  umem_dtor(&file);
  options.direct = direct;
  if (direct == umemDirectOn && !is_direct(path)) {
    EXPECT(umemFile_ctor_with(&file, path, "r+", &options) == umemNotSupportedError);
    umem_dtor(&file);
    umem_thread_clear();
    return;
  }
  for (size_t i = 0; i < length; i++)
    data[i] = (unsigned char)((i * 2654435761u >> 13) + (unsigned)direct);
  EXPECT(umemFile_ctor_with(&file, path, "r+", &options) == umemOK);
  EXPECT(umemFile_ctor_with(&copy, other, "w+", &options) == umemOK);
  EXPECT(umem_alloc(&file, length) == 0 && umem_alloc(&copy, length) == 0);
  EXPECT(umem_copy_from(&file, 0, &host, adr_of(data), length) == umemOK);
  expect_bytes(&file, path);
  EXPECT(umem_copy_to(&file, 0, &copy, 0, length) == umemOK);
  expect_bytes(&copy, other);
  DESTRUCT(&file, &copy);
}

/* What was written a moment ago is in the cache, and umem knows. */
static void knows_the_cache(char const *folder) {
  char path[300];
  snprintf(path, sizeof path, "%s/cached", folder);
  umemStore store = {.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  struct statfs disk;
  EXPECT(store.fd >= 0 && fstatfs(store.fd, &disk) == 0);
  store.query = umemStore_first_query((uint32_t)disk.f_type);
  EXPECT(pwrite(store.fd, data, 1 << 20, 0) == 1 << 20);
  EXPECT(umemStore_is_cached(&store, 0));
  EXPECT(umemStore_is_cached(&store, (1 << 20) - 4096));
  EXPECT(close(store.fd) == 0);
}

static void on_disk(void *type) {
  SmallDisk disk;
  umemDirect const routes[] = {umemDirectAuto, umemDirectOn, umemDirectOff};
  if (!small_disk_mount(&disk, type, 320)) _exit(child_not_permitted);
  data = malloc(length);
  back = malloc(length);
  EXPECT(data && back && umemHost_ctor(&host) == umemOK);
  for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) copies(disk.folder, routes[i]);
  knows_the_cache(disk.folder);
  umem_dtor(&host);
  free(data);
  free(back);
  small_disk_unmount(&disk);
}

static void test_disk(void **state) {
  if (!child_run(on_disk, *state)) skip();
}

int main(void) {
  char const *const types[] = {"tmpfs", "overlay", "ext2", "ext4", "xfs", "btrfs"};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    add_case(test_disk, types[i], "copies on %s", types[i]);
  return run_cases(NULL, NULL);
}
