/* sites.h - call sites: the frames of the stack, and what to call them. */
#ifndef UMEM_SITES_H
#define UMEM_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <umem/base.h>

/* The most frames of a site. */
enum { umemSiteFrames = 32 };

/* Whether umemSite_capture can capture so many frames, and from now on allocates nothing; false with a status
 * on ctx otherwise. */
bool umemSite_check(umemVirtual *ctx, unsigned frames);

/* Writes up to frames (at most umemSiteFrames) return addresses to trace, from what has called the
 * public function that is running outwards. Returns how many. */
unsigned umemSite_capture(void **trace, unsigned frames);

/* Writes the names of some frames, the first that is not umem's own before those that called it, to
 * text, and cuts what does not fit: "read_all+0x1f < main+0x4c < libc.so.6+0x27249". Allocates
 * nothing. */
void umemSite_name(void *const *trace, unsigned frames, char *text, size_t size);

#endif
