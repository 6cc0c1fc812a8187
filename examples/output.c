/* output.c - the file that the program writes the array to. */
#include "output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

enum { MAX_LINKS = 40 }; /* as Linux follows in one name */

/* Reports the text of errno. */
static bool cannot_write(Output const *output) {
  report_problem("cannot write \"%s\": %s", output->given, strerror(errno));
  return false;
}

static char const *kind_of(mode_t mode) {
  switch (mode & S_IFMT) {
  case S_IFDIR:
    return "a folder";
  case S_IFIFO:
    return "a pipe (FIFO)";
  case S_IFSOCK:
    return "a socket";
  case S_IFCHR:
  case S_IFBLK:
    return "a device";
  default:
    return "no regular file";
  }
}

/* The part of path after the folder. */
static char *file_in(char *path) {
  char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* Replaces path by its target, as long as path is a symbolic link. */
static bool follow_links(char path[PATH_SIZE]) {
  char target[PATH_SIZE];
  for (int links = 0; links < MAX_LINKS; ++links) {
    ssize_t length = readlink(path, target, PATH_SIZE);
    if (length < 0) return true;
    char *from = *target == '/' ? path : file_in(path);
    if (length >= path + PATH_SIZE - from) {
      errno = ENAMETOOLONG;
      return false;
    }
    memcpy(from, target, (size_t)length);
    from[length] = 0;
  }
  errno = ELOOP;
  return false;
}

static mode_t mode_of_new_files(void) {
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

bool output_find(Output *output, char const *given) {
  struct stat found;
  output->given = given;
  bool exists = !stat(given, &found);
  if (!exists && (errno != ENOENT || !*given)) return cannot_write(output);
  if (exists && !S_ISREG(found.st_mode)) {
    report_problem("\"%s\" is %s, and the output replaces nothing but files", given,
                   kind_of(found.st_mode));
    return false;
  }
  snprintf(output->path, PATH_SIZE, "%s", given); /* stat refuses longer names */
  if (!follow_links(output->path)) return cannot_write(output);
  memcpy(output->folder, output->path, (size_t)(file_in(output->path) - output->path));
  output->mode = exists ? found.st_mode & 0777 : mode_of_new_files();
  return true;
}

bool output_open(Output *output) {
  output->part = helper_create(output->folder);
  if (!output->part) return cannot_write(output);
  if (umemFile_ctor(&output->file, output->part, "w+") == umemOK) return true;
  report_problem("cannot write \"%s\": %s", output->given, umem_get_message(&output->file));
  helper_remove(output->part);
  return false;
}

bool output_close(Output *output, bool keep) {
  if (keep) umem_flush(&output->file);
  umem_dtor(&output->file);
  if (keep && umem_get_status(&output->file) != umemOK) {
    report_problem("cannot write \"%s\": %s", output->given, umem_get_message(&output->file));
    keep = false;
  }
  /* Some file systems cannot change modes; this is not an error. */
  if (keep) (void)chmod(output->part, output->mode);
  if (keep && helper_rename(output->part, output->path)) return true;
  if (keep) cannot_write(output);
  helper_remove(output->part);
  return false;
}
