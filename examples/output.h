/* output.h - the file that the program writes the array to.
 *
 * It gets its name last: until the file is complete, an older file of this name stays as it is. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>
#include <umem.h>

#include "helper.h"

typedef struct Output {
  char const *given;      /* its name as the user gave it */
  char path[PATH_SIZE];   /* the same after all symbolic links, so that these stay */
  char folder[PATH_SIZE]; /* where this is: empty, or with a '/' at its end */
  mode_t mode;            /* the permissions that it will have */
  char const *part;       /* its name until it is complete */
  umemFile file;
} Output;

/* The functions report failures, and return whether they succeeded. */

/* Finds the path of the output, and changes nothing. Fails if a file exists there that is not
 * regular: the program must not replace a device, a pipe or a folder. */
bool output_find(Output *output, char const *given);

/* Opens output->file, which is empty, for reading and writing. */
bool output_open(Output *output);

/* Closes the file and gives it its name, or removes it. */
bool output_close(Output *output, bool keep);

#endif
