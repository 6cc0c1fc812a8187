/* sized.h - structs that begin with their own size, of programs that were compiled against another umem. */
#ifndef UMEM_SIZED_H
#define UMEM_SIZED_H

#include <stdbool.h>
#include <stddef.h>

/* Copies given over full, a struct of full_size bytes that holds the defaults. given may be shorter or longer,
 * as its first member says; NULL leaves the defaults. Returns false, and records a status on ctx, for a size
 * that cannot be true; type is the name of the struct. */
bool umem_read_sized(void *ctx, void *full, size_t full_size, void const *given, char const *type);

/* Copies full, a struct of full_size bytes, to out, whose first member holds the bytes that there is room for,
 * and keeps that member. */
void umem_write_sized(void *out, void const *full, size_t full_size);

#endif
