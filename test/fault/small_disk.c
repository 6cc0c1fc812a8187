#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "fault/trial.h"
#include "trial.h"

static bool run(char const *format, char const *one, char const *other) {
  char command[600];
  snprintf(command, sizeof command, format, one, other);
  return system(command) == 0; /* NOLINT: names that this file has made */
}

static bool mount_image(SmallDisk *disk, char const *type, unsigned mebibytes) {
  temporary_name(disk->image, sizeof disk->image);
  int fd = open(disk->image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT(fd >= 0 && ftruncate(fd, (off_t)mebibytes << 20) == 0 && close(fd) == 0);
  char const *make = strncmp(type, "ext", 3) == 0
                         ? "PATH=$PATH:/usr/sbin:/sbin mkfs.%s -q -m 0 -F %s >&2"
                         : "PATH=$PATH:/usr/sbin:/sbin mkfs.%s -q -f %s >&2";
  return run(make, type, disk->image) && run("mount -o loop %s %s", disk->image, disk->folder);
}

static bool mount_memory(SmallDisk *disk, unsigned mebibytes) {
  char size[40];
  snprintf(size, sizeof size, "size=%um", mebibytes);
  return mount("tmpfs", disk->folder, "tmpfs", 0, size) == 0;
}

/* Over the folders of a tmpfs, on the same folder. */
static bool mount_overlay(SmallDisk *disk, unsigned mebibytes) {
  char path[300], options[800];
  if (!mount_memory(disk, mebibytes)) return false;
  for (char const *part = "luw"; *part; part++) {
    snprintf(path, sizeof path, "%s/%c", disk->folder, *part);
    EXPECT(mkdir(path, 0700) == 0);
  }
  snprintf(options, sizeof options, "lowerdir=%s/l,upperdir=%s/u,workdir=%s/w", disk->folder,
           disk->folder, disk->folder);
  disk->twice = mount("overlay", disk->folder, "overlay", 0, options) == 0;
  if (!disk->twice) EXPECT(umount(disk->folder) == 0);
  return disk->twice;
}

bool small_disk_mount(SmallDisk *disk, char const *type, unsigned mebibytes) {
  memset(disk, 0, sizeof *disk);
  temporary_name(disk->folder, sizeof disk->folder);
  EXPECT(mkdir(disk->folder, 0700) == 0);
  bool done = unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (done && !strcmp(type, "tmpfs"))
    done = mount_memory(disk, mebibytes);
  else if (done && !strcmp(type, "overlay"))
    done = mount_overlay(disk, mebibytes);
  else if (done)
    done = mount_image(disk, type, mebibytes);
  if (done) return true;
  fprintf(stderr, "skipped: a %s of its own cannot be mounted here\n", type);
  rmdir(disk->folder);
  if (*disk->image) unlink(disk->image);
  return false;
}

void small_disk_unmount(SmallDisk *disk) {
  if (disk->twice) EXPECT(umount(disk->folder) == 0);
  EXPECT(umount(disk->folder) == 0);
  EXPECT(rmdir(disk->folder) == 0);
  if (*disk->image) EXPECT(unlink(disk->image) == 0);
}

void small_disk_fill(SmallDisk const *disk, size_t left) {
  static char const bytes[4096] = {1};
  char path[300];
  struct statvfs now;
  snprintf(path, sizeof path, "%s/filler", disk->folder);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  EXPECT(fd >= 0);
  for (;;) {
    EXPECT(fstatvfs(fd, &now) == 0);
    if (now.f_bavail * now.f_frsize <= left) break;
    if (write(fd, bytes, sizeof bytes) < 0) {
      EXPECT(errno == ENOSPC);
      break;
    }
  }
  EXPECT(fsync(fd) == 0 && close(fd) == 0);
}
