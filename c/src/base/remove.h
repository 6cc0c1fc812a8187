/* remove.h - removes a file by its name, but no other file that has got the name meanwhile. */
#ifndef UMEM_REMOVE_H
#define UMEM_REMOVE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether `name` in folder is the file of fd, and that has this length in bytes. */
bool umem_is_file(int fd, int folder, char const *name, uint64_t length);

/* Removes `name` in folder if umem_is_file. Does nothing otherwise, or where the system refuses. */
void umem_remove_file(int fd, int folder, char const *name, uint64_t length);

#endif
