/* temporary.h - names for files and folders of a test, and of shared memory.
 *
 * All begin with "umem-test-", the number of the process that runs the test, and "-". The first
 * name that a process makes removes what processes that have ended have left, because they were
 * killed. Tests in Python use such names, too. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_PREFIX "umem-test-"

/* ---- what killed tests have left ---- */

static inline int temporary_remove_one(char const *path, struct stat const *st, int what,
                                       struct FTW *at) {
  (void)st, (void)what, (void)at;
  remove(path);
  return 0;
}

/* Removes a file, or a folder with all that is in it. */
static inline void temporary_remove(char const *path) {
  nftw(path, temporary_remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Whether name is of a process that has ended. */
static inline bool temporary_is_left(char const *name) {
  size_t const length = sizeof TEMPORARY_PREFIX - 1;
  char *end;
  if (strncmp(name, TEMPORARY_PREFIX, length)) return false;
  long process = strtol(name + length, &end, 10);
  return end != name + length && *end == '-' && process > 0 && kill((pid_t)process, 0) &&
         errno == ESRCH;
}

/* Only what belongs to this user, and has not changed for ten minutes: in a PID namespace of its
 * own, as the tests of MPI have, a process sees no others, and takes them for ended. */
static inline void temporary_sweep(char const *folder) {
  char path[1024];
  struct stat st;
  DIR *opened = opendir(folder);
  if (!opened) return;
  for (struct dirent const *entry; (entry = readdir(opened));) {
    if (!temporary_is_left(entry->d_name)) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (lstat(path, &st) == 0 && st.st_uid == geteuid() && st.st_mtime < time(NULL) - 600)
      temporary_remove(path);
  }
  closedir(opened);
}

static inline char const *temporary_parent(void) {
  char const *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

/* ---- names ---- */

/* Of the process that runs the test: names that its children make last as long as it runs. */
static long temporary_process;

__attribute__((constructor)) static inline void temporary_begin(void) {
  temporary_process = (long)getpid();
}

/* Writes a name without a folder, which begins with "umem-test-" and the number of the process, and
 * ends with what. */
static inline void temporary_word(char *name, size_t size, char const *what) {
  static bool swept;
  if (!__atomic_exchange_n(&swept, true, __ATOMIC_RELAXED)) {
    int before = errno;
    temporary_sweep(temporary_parent());
    temporary_sweep("/dev/shm");
    errno = before;
  }
  int length = snprintf(name, size, TEMPORARY_PREFIX "%ld-%s", temporary_process, what);
  if (length < 0 || (size_t)length >= size) abort();
}

/* Writes a path in folder that no file ever had; size: bytes of room. The time is in the name
 * because ids of processes come again. */
static inline void temporary_name_in(char const *folder, char *path, size_t size) {
  static unsigned next;
  struct timespec now;
  char what[64], name[128];
  if (clock_gettime(CLOCK_REALTIME, &now)) abort();
  snprintf(what, sizeof what, "%ld-%llx%08lx-%u", (long)getpid(), (unsigned long long)now.tv_sec,
           (unsigned long)now.tv_nsec, __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED));
  temporary_word(name, sizeof name, what);
  int length = snprintf(path, size, "%s/%s", folder, name);
  if (length < 0 || (size_t)length >= size) abort();
}

/* A path in $TMPDIR or /tmp. */
static inline void temporary_name(char *path, size_t size) {
  temporary_name_in(temporary_parent(), path, size);
}

/* Creates an empty file, and returns its descriptor; -1, and path "", if that fails. */
static inline int temporary_file(char *path, size_t size) {
  temporary_name(path, size);
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) *path = 0;
  return fd;
}

/* Creates an empty folder; false if that fails. */
static inline bool temporary_folder(char *path, size_t size) {
  temporary_name(path, size);
  return mkdir(path, 0700) == 0;
}

/* Writes a file of folder, and makes the folders on the way to it; name: relative to folder. False
 * if that fails. */
static inline bool temporary_write(char const *folder, char const *name, char const *text) {
  char path[1024];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  if (length < 0 || (size_t)length >= sizeof path) abort();
  for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
    *slash = 0;
    mkdir(path, 0700);
  }
  FILE *file = fopen(path, "w");
  bool written = file && fputs(text, file) >= 0;
  return file && fclose(file) == 0 && written;
}

/* How many files and folders of a folder have names that begin so, without "." and "..". */
static inline int count_entries(char const *folder, char const *beginning) {
  int count = 0;
  DIR *opened = opendir(folder);
  if (!opened) perror(folder), abort();
  for (struct dirent const *entry; (entry = readdir(opened));)
    count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") &&
             !strncmp(entry->d_name, beginning, strlen(beginning));
  closedir(opened);
  return count;
}

#ifdef O_DIRECT
/* Whether the file system of a file does direct I/O. */
static inline bool is_direct(char const *path) {
  int fd = open(path, O_RDONLY | O_DIRECT);
  return fd >= 0 && close(fd) == 0;
}

/* Whether that of temporary files does. Without, cuFile registers no file of it. */
static inline bool has_direct(void) {
  char path[256];
  int fd = temporary_file(path, sizeof path);
  bool direct = fd >= 0 && close(fd) == 0 && is_direct(path);
  unlink(path);
  return direct;
}
#endif
