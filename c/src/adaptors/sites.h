/* sites.h - call sites: the frames of the stack, their names, and the room for them beside a
 * record. */
#ifndef UMEM_SITES_H
#define UMEM_SITES_H

#include "base/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <umem/base.h>

/* The most frames of a site. */
enum { umemSiteFrames = 32 };

/* Whether umemSite_capture can capture so many frames. If so, umemSite_capture allocates nothing
 * from now on. If not, records a status on ctx. */
bool umemSite_check(umemVirtual *ctx, unsigned frames);

/* Writes up to frames (at most umemSiteFrames) return addresses to trace, from the caller of the
 * running public function outwards. Returns how many. */
unsigned umemSite_capture(void **trace, unsigned frames);

/* Reserves room for a record of a block of ctx, and allocates *traces for so many call sites of
 * frames addresses each. Captures the first of them, of *captured addresses. Both are 0 before.
 * Returns false, and records a status on ctx, without memory. */
bool umemSite_reserve(umemRecords *records, umemVirtual *ctx, unsigned sites, unsigned frames,
                      void ***traces, uint16_t *captured);

/* Releases both. */
void umemSite_release(umemRecords *records, void **traces);

/* Writes the names of some frames to text: first the innermost frame outside of umem, then its
 * callers. Cuts the text if it does not fit. Example: "read_all+0x1f < main+0x4c <
 * libc.so.6+0x27249". Allocates nothing. */
void umemSite_name(void *const *trace, unsigned frames, char *text, size_t size);

#endif
