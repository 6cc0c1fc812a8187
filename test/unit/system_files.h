/* system_files.h - files below /proc and /sys that a test makes up.
 *
 * A test that includes this is linked with --wrap=open. */
#pragma once

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
  assert_true(temporary_write(system_folder, name + 1, text));
}

static void begin_system(void) {
  static char made[256];
  assert_true(temporary_folder(made, sizeof made));
  system_folder = made;
}

static void end_system(void) {
  temporary_remove(system_folder);
  system_folder = NULL;
}
