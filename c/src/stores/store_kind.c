/* store_kind.c - refuses what is no regular file of a file system that stores files.
 *
 * The files of /proc, /sys and their kin are regular by name only: reading and writing them talks to the
 * kernel, and a write by root can change the machine. */
#include "stores/store_kind.h"
#include "core/status.h"
#include "base/again.h"
#include "stores/store_cached.h"

#include <limits.h>
#include <string.h>
#include <sys/vfs.h>

/* The numbers of linux/magic.h and of the kernel's sources, which do not change. */
static struct {
  uint32_t magic;
  char const *name;
} const interfaces[] = {
    {0x9fa0, "proc"},           {0x62656572, "sysfs"},       {0x64626720, "debugfs"},
    {0x74726163, "tracefs"},    {0x27e0eb, "cgroup"},        {0x63677270, "cgroup2"},
    {0x73636673, "securityfs"}, {0xcafe4a11, "bpf"},         {0x62656570, "configfs"},
    {0xde5e81e4, "efivarfs"},   {0x6165676c, "pstore"},      {0xf97cff8c, "selinuxfs"},
    {0x43415d53, "smackfs"},    {0x42494e4d, "binfmt_misc"}, {0x7655821, "resctrl"},
    {0x1cd1, "devpts"},         {0x50495045, "pipefs"},      {0x534f434b, "sockfs"},
    {0x19800202, "mqueue"},     {0x65735543, "fusectl"},     {0x67596969, "rpc_pipefs"},
    {0x6e736673, "nsfs"},       {0x5a3c69f0, "apparmorfs"},  {0xabba1974, "xenfs"},
    {0x6e667364, "nfsd"},
};

/* What kind of interface the file system is; NULL for one that stores files. */
static char const *interface_of(struct statfs const *disk) {
  for (size_t i = 0; i < sizeof interfaces / sizeof *interfaces; i++)
    if ((uint32_t)disk->f_type == interfaces[i].magic) return interfaces[i].name;
  return NULL;
}

/* tmpfs and ramfs. Newer kernels open files of a tmpfs with O_DIRECT, and copy as without. */
static bool takes_ram(uint32_t magic) { return magic == 0x01021994 || magic == 0x858458f6; }

/* hugetlbfs, too, whose pages are set aside. */
static bool is_in_memory(uint32_t magic) { return takes_ram(magic) || magic == 0x958458f6; }

static bool stores(umemStore *store, struct statfs const *disk) {
  char const *name = interface_of(disk);
  if (!name) return true;
  return UMEM_FAIL(store->ctx, umemIOError,
                   "%s is on a file system that stores nothing (%s), so it is no regular file",
                   store->label, name);
}

bool umemStore_check_mode(umemStore const *store, mode_t mode) {
  return S_ISREG(mode) ||
         UMEM_FAIL(store->ctx, umemIOError, "%s is %s, not a regular file", store->label,
                   S_ISDIR(mode) ? "a directory" : "a device, a pipe or a socket");
}

bool umemStore_fail_planted(umemStore const *store) {
  return UMEM_FAIL(store->ctx, umemIOError,
                   "cannot write to %s: another user has put it into a folder that everybody may "
                   "write to",
                   store->label);
}

bool umemStore_check_kind(umemStore *store) {
  struct stat st;
  struct statfs disk = {0};
  if (fstat(store->fd, &st) != 0 || UMEM_AGAIN(fstatfs(store->fd, &disk)) != 0)
    return umemStore_fail(store, umemIOError, errno, "cannot examine");
  store->asks = umemStore_way_to_ask((uint32_t)disk.f_type);
  store->in_memory = is_in_memory((uint32_t)disk.f_type);
  store->takes_ram = takes_ram((uint32_t)disk.f_type);
  return umemStore_check_mode(store, st.st_mode) && stores(store, &disk);
}

/* The folder in which a file of this path would be created. False where it has no room. */
static bool folder_of(char const *path, char folder[PATH_MAX]) {
  char const *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 1;
  if (length >= PATH_MAX) return false;
  memcpy(folder, slash ? path : ".", length);
  folder[length] = 0;
  return true;
}

/* Errors of a path itself, which opening it reports as well. */
static bool is_of_path(int error) {
  return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
         error == ENAMETOOLONG;
}

bool umemStore_check_place(umemStore *store, char const *path) {
  struct statfs disk;
  char folder[PATH_MAX];
  int result = UMEM_AGAIN(statfs(path, &disk));
  if (result != 0 && errno == ENOENT && folder_of(path, folder))
    result = UMEM_AGAIN(statfs(folder, &disk));
  if (result == 0) return stores(store, &disk);
  return is_of_path(errno) || umemStore_fail(store, umemIOError, errno, "cannot examine");
}
