/* sites.h - call sites: the frames of the stack, and their names. */
#ifndef UMEM_SITES_H
#define UMEM_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/base.h>

/* The most frames of a site. */
enum { umemSiteFrames = 32 };

/* Whether umemSite_capture can capture so many frames. If so, umemSite_capture allocates nothing from now on. If not,
 * records a status on ctx. */
bool umemSite_check(umemVirtual *ctx, unsigned frames);

/* Writes up to frames (at most umemSiteFrames) return addresses to trace, from the caller of the running public
 * function outwards. Returns how many. */
unsigned umemSite_capture(void **trace, unsigned frames);

/* Writes the names of some frames to text: first the innermost frame outside of umem, then its callers. Cuts the text
 * if it does not fit. Example: "read_all+0x1f < main+0x4c < libc.so.6+0x27249". Allocates nothing. */
void umemSite_name(void *const *trace, unsigned frames, char *text, size_t size);

#endif
