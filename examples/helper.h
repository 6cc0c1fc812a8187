/* helper.h - files that the program needs while it works, and always removes. */
#ifndef HELPER_H
#define HELPER_H

#include <stdbool.h>

enum { PATH_SIZE = 4096 }; /* bytes of the longest name of a file, its terminating zero included */

/* Creates an empty file and returns its name: prefix, such as a folder with its '/', and then a
 * unique part. SIGHUP, SIGINT and SIGTERM, unless ignored, remove the file before they end
 * the program. The name stays valid until one of the functions below is called with it.
 *
 * Returns NULL on failure, and errno says why. */
char const *helper_create(char const *prefix);

/* Removes the file. */
void helper_remove(char const *name);

/* Gives the file its final name, and replaces a file of this name. If that fails, errno says why,
 * and the file is still a helper. */
bool helper_rename(char const *name, char const *final_name);

#endif
