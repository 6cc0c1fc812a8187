/* system_files.h - files below /proc and /sys that a test makes up.
 *
 * A test that includes this is linked with --wrap=open. */
#ifndef UMEM_TEST_SYSTEM_FILES_H
#define UMEM_TEST_SYSTEM_FILES_H

#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cases.h"
#include "temporary.h"

/* NULL: files of the system are its own. Else they are those of this folder. */
static char const *system_folder;
static unsigned system_opened; /* files of the system, so far */

int __real_open(char const *name, int flags, ...);
int __wrap_open(char const *name, int flags, ...);
int __wrap_open(char const *name, int flags, ...) {
  char other[600];
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  bool is_of_system = !strncmp(name, "/proc/", 6) || !strncmp(name, "/sys/", 5);
  system_opened += is_of_system;
  if (system_folder && is_of_system) {
    snprintf(other, sizeof other, "%s%s", system_folder, name);
    name = other;
  }
  return __real_open(name, flags, mode);
}

/* Writes a file of the system, and makes the folders around it. */
static void write_there(char const *name, char const *text) {
  char whole[400];
  snprintf(whole, sizeof whole, "%s%s", system_folder, name);
  for (char *at = whole + strlen(system_folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
    *at = 0;
    mkdir(whole, 0700);
  }
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void begin_system(void) {
  static char made[256];
  assert_true(temporary_folder(made, sizeof made));
  system_folder = made;
}

static void end_system(void) {
  char command[300];
  snprintf(command, sizeof command, "rm -r '%s'", system_folder);
  system_folder = NULL;
  assert_int_equal(system(command), 0);
}

#endif
