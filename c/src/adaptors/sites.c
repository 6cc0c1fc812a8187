/* sites.c - captures call sites by the unwinder of the C library, and names their frames by its
 * dynamic linker. */
#include "adaptors/sites.h"
#include "core/status.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/status.h>
#if __has_include(<execinfo.h>)
#include <execinfo.h>
#include <umem/base.h>
#define HAS_BACKTRACE 1
#else
#define HAS_BACKTRACE 0
#endif

/* Older C libraries have it in a library of its own, which a program need not link. */
#pragma weak dladdr

enum {
  own_frames = 8,        /* umem's of most calls */
  most_own_frames = 100, /* those through a stack of many contexts */
  shown_frames = 4       /* of a site */
};

/* The first call loads the unwinder, which takes memory. */
static bool can_capture(void) {
#if HAS_BACKTRACE
  void *frame;
  return backtrace(&frame, 1) > 0;
#else
  return false;
#endif
}

bool umemSite_check(umemVirtual *ctx, unsigned frames) {
  if (frames > umemSiteFrames)
    umemVirtual_fail(ctx, umemValueError, "%u frames are more than %d", frames, umemSiteFrames);
  else if (frames && !can_capture())
    umemVirtual_fail(ctx, umemNotSupportedError, "this C library has no backtrace");
  else
    return true;
  return false;
}

#if HAS_BACKTRACE
/* The index of the program's first frame in all; count where it is further out. */
static int first_of_program(void *const *all, int count) {
  int first = 0;
  while (first < count && all[first] != umem_thread.caller) first++;
  return first;
}
#endif

unsigned umemSite_capture(void **trace, unsigned frames) {
#if HAS_BACKTRACE
  void *all[umemSiteFrames + most_own_frames];
  if (!frames) return 0;
  int count = backtrace(all, (int)frames + own_frames), first = first_of_program(all, count);
  if (count - first < (int)frames && count == (int)frames + own_frames) {
    count = backtrace(all, (int)frames + most_own_frames);
    first = first_of_program(all, count);
  }
  if (first == count) first = 0; /* a call that is not umem's alone */
  unsigned rest = (unsigned)(count - first);
  if (rest > frames) rest = frames;
  memcpy(trace, all + first, rest * sizeof *trace);
  return rest;
#else
  (void)trace, (void)frames;
  return 0;
#endif
}

bool umemSite_reserve(umemRecords *records, umemVirtual *ctx, unsigned sites, unsigned frames,
                      void ***traces, uint16_t *captured) {
  if (frames) *traces = malloc(sites * frames * sizeof **traces);
  if ((!frames || *traces) && umemRecords_reserve(records)) {
    if (frames) *captured = (uint16_t)umemSite_capture(*traces, frames);
    return true;
  }
  free(*traces);
  return UMEM_FAIL(ctx, umemMemoryError, "no memory to remember a block");
}

void umemSite_release(umemRecords *records, void **traces) {
  umemRecords_release(records);
  free(traces);
}

/* ---- names ---- */

/* What the dynamic linker knows of frame; all NULL for nothing. */
static Dl_info look_up(void const *frame) {
  Dl_info info;
  if (!dladdr || !dladdr(frame, &info)) memset(&info, 0, sizeof info);
  return info;
}

/* Whether frame is umem's: of its object, and of a function with such a name, or without a name
 * where umem's functions have some (a program with a static umem mostly names none: then all
 * count as its own). */
static bool is_umems(void const *frame) {
  Dl_info here = look_up((void const *)(uintptr_t)umem_get_status), info = look_up(frame);
  if (!here.dli_sname || info.dli_fbase != here.dli_fbase) return false;
  return !info.dli_sname || !strncmp(info.dli_sname, "umem", 4);
}

static int name_frame(void const *frame, char *text, size_t size) {
  Dl_info info = look_up(frame);
  uintptr_t at = (uintptr_t)frame;
  if (info.dli_sname)
    return snprintf(text, size, "%s+0x%" PRIxPTR, info.dli_sname, at - (uintptr_t)info.dli_saddr);
  if (!info.dli_fname) return snprintf(text, size, "0x%" PRIxPTR, at);
  char const *slash = strrchr(info.dli_fname, '/');
  return snprintf(text, size, "%s+0x%" PRIxPTR, slash ? slash + 1 : info.dli_fname,
                  at - (uintptr_t)info.dli_fbase);
}

void umemSite_name(void *const *trace, unsigned frames, char *text, size_t size) {
  unsigned first = 0;
  while (first < frames && is_umems(trace[first])) first++;
  if (first == frames) first = 0;
  text[0] = 0;
  size_t used = 0;
  for (unsigned i = first; i < frames && i < first + shown_frames; i++) {
    if (i > first && used + 3 < size) used += (size_t)snprintf(text + used, size - used, " < ");
    int length = name_frame(trace[i], text + used, size - used);
    if (length < 0 || (size_t)length >= size - used) return;
    used += (size_t)length;
  }
}
