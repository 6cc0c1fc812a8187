/* url.c - an object behind a URL as a place: blocks over its bytes, and copies out of it.
 *
 * Blocks are placed as those of a file: the sequence of sizes, alignments and frees alone decides.
 * So a program that wrote a file finds its arrays in the object that the file has become. */
#include "url/url.h"
#include "base/number.h"
#include "base/range.h"
#include "base/thread.h"
#include "core/context.h"
#include "core/layout.h"
#include "core/live.h"
#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/host.h>

typedef struct Place {
  umemLive live;
  umemHost host; /* for buffers */
  umemFetch *fetch;
  umemLock lock; /* of the blocks */
  umemRange *range;
} Place;

static uint64_t const last_offset = (uint64_t)INT64_MAX & ~(uint64_t)(umemUrlGranule - 1);

static Place *place_of(umemVirtual *ctx) { return ((umemUrl *)ctx)->impl; }

umemFetch *umemUrl_fetch_of(umemVirtual *ctx) { return place_of(ctx)->fetch; }

static char const *label_of(umemVirtual *ctx) { return umemFetch_label(place_of(ctx)->fetch); }
static uint64_t length_of(umemVirtual *ctx) { return umemFetch_length(place_of(ctx)->fetch); }

/* ---- blocks ---- */

uintptr_t umemUrlContext_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  Place *place = place_of(ctx);
  umemLock_acquire(&place->lock);
  uint64_t at = umemRange_alloc(place->range, size, alignment);
  bool fits = at != UMEM_RANGE_NONE && size <= length_of(ctx) && at <= length_of(ctx) - size;
  if (at != UMEM_RANGE_NONE && !fits) umemRange_free(place->range, at);
  umemLock_release(&place->lock);
  if (fits) return (uintptr_t)at;
  umemVirtual_fail(ctx, umemMemoryError,
                   "no room for %zu bytes in %s, which has %" PRIu64 " bytes and is only read",
                   size, label_of(ctx), length_of(ctx));
  return UINTPTR_MAX;
}

uintptr_t umemUrlContext_alloc(umemVirtual *ctx, size_t nbytes) {
  return umemUrlContext_aligned_alloc(ctx, umemUrlGranule, nbytes);
}

/* The live block that begins at adr. Otherwise a status. */
static bool find_block(umemVirtual *ctx, uintptr_t adr, umemRangeItem *block) {
  Place *place = place_of(ctx);
  umemLock_acquire(&place->lock);
  bool found = umemRange_find(place->range, adr, block) && block->live && block->start == adr;
  umemLock_release(&place->lock);
  return found || UMEM_FAIL(ctx, umemValueError, "%" PRIuPTR " is not a live block of %s", adr,
                            label_of(ctx));
}

uintptr_t umemUrlContext_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  umemRangeItem block;
  return find_block(ctx, adr, &block) ? adr : UINTPTR_MAX;
}

void umemUrlContext_free(umemVirtual *ctx, uintptr_t adr) {
  Place *place = place_of(ctx);
  umemLock_acquire(&place->lock);
  bool freed = umemRange_free(place->range, adr) != 0;
  umemLock_release(&place->lock);
  if (!freed)
    umemVirtual_fail(ctx, umemValueError, "%" PRIuPTR " is not a live block of %s", adr,
                     label_of(ctx));
}

/* No bytes are moved: the writer of the object has done so. */
uintptr_t umemUrlContext_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size,
                                 size_t new_size) {
  umemRangeItem block;
  if (!find_block(ctx, adr, &block)) return UINTPTR_MAX;
  if (old_size > block.size) {
    umemVirtual_fail(ctx, umemValueError,
                     "the block at %" PRIuPTR " of %s has %" PRIu64 " bytes, not %zu", adr,
                     label_of(ctx), block.size, old_size);
    return UINTPTR_MAX;
  }
  if (new_size <= block.size && new_size > block.size / 2) return adr;
  uintptr_t moved = umemUrlContext_alloc(ctx, new_size);
  if (moved != UINTPTR_MAX) umemUrlContext_free(ctx, adr);
  return moved;
}

/* ---- copies ---- */

/* Whether the object has these bytes. Otherwise a status. */
static bool has(umemVirtual *ctx, uintptr_t adr, size_t nbytes) {
  uint64_t length = length_of(ctx);
  return (nbytes <= length && adr <= length - nbytes) ||
         UMEM_FAIL(ctx, umemIndexError,
                   "read of %zu bytes at %" PRIuPTR " past the end of %s (%" PRIu64 " bytes)",
                   nbytes, adr, label_of(ctx), length);
}

static bool read_runs(umemVirtual *ctx, umemVirtual *dst, umemCopyRun *runs, size_t count,
                      umemMeter *meter) {
  for (size_t i = 0; i < count; i++) {
    if (runs[i].state == umemRunWaits && !has(ctx, runs[i].src_adr, runs[i].nbytes)) {
      runs[i].state = umemRunFailed;
      return false;
    }
  }
  return umemFetch_runs(umemUrl_fetch_of(ctx), dst, runs, count, meter);
}

void umemUrlContext_copy_to(umemVirtual *ctx, uintptr_t src_adr, umemVirtual *host,
                            uintptr_t dst_adr, size_t nbytes) {
  umemMeter *meter = umem_thread.meter ? umemMeter_find(ctx, src_adr, dst_adr, nbytes) : NULL;
  umemCopyRun run = {
      .src_adr = src_adr, .dst_adr = dst_adr, .nbytes = meter ? umemMeter_take(meter) : nbytes};
  read_runs(ctx, host, &run, 1, meter);
}

static bool are_in_order(umemCopyRun const *runs, size_t count) {
  size_t i = 1;
  while (i < count && runs[i - 1].src_adr <= runs[i].src_adr) i++;
  return i >= count;
}

bool umemUrlContext_copy_runs(umemVirtual *ctx, umemVirtual *src, umemVirtual *dst,
                              umemCopyRun *runs, size_t count) {
  if (ctx != src || UMEM_SLOT(dst, upstream) || !are_in_order(runs, count)) return false;
  read_runs(ctx, dst, runs, count, NULL);
  return true;
}

/* What the CPU cannot write to goes through buffers that are all in flight at once. An adaptor
 * passes the copy on to what it stands on. */
bool umemUrlContext_plan_copy(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                              umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  (void)src_adr, (void)dst_adr;
  if (ctx != src || UMEM_SLOT(dst, upstream)) return false;
  return layout->rank ? umem_cpu_writes(dst) : !umem_cpu_writes(dst);
}

/* Items of a layout that are read together. */
enum { most_items = 1 << 14 };

typedef struct Items {
  umemVirtual *ctx, *dst;
  umemCopyRun *runs;
  size_t count;
} Items;

/* Also when an exception of C++ passes, which a report has thrown. */
static void end_items(Items *items) { free(items->runs); }

static int by_source(void const *one, void const *other) {
  uintptr_t a = ((umemCopyRun const *)one)->src_adr, b = ((umemCopyRun const *)other)->src_adr;
  return (a > b) - (a < b);
}

static bool read_items(Items *items) {
  if (!are_in_order(items->runs, items->count))
    qsort(items->runs, items->count, sizeof *items->runs, by_source);
  bool good = read_runs(items->ctx, items->dst, items->runs, items->count, NULL);
  items->count = 0;
  return good;
}

/* Copies the items of dimension k and those inside of it. */
static bool copy_items(Items *items, umemLayout const *layout, int k, uintptr_t src_adr,
                       uintptr_t dst_adr) {
  if (k == layout->rank) {
    items->runs[items->count++] =
        (umemCopyRun){.src_adr = src_adr, .dst_adr = dst_adr, .nbytes = layout->item_size};
    return items->count < most_items || read_items(items);
  }
  for (size_t i = 0; i < layout->extents[k]; i++) {
    if (!copy_items(items, layout, k + 1, src_adr, dst_adr)) return false;
    src_adr += (uintptr_t)layout->src_strides[k];
    dst_adr += (uintptr_t)layout->dst_strides[k];
  }
  return true;
}

bool umemUrlContext_copy_direct(umemVirtual *ctx, umemVirtual *src, uintptr_t src_adr,
                                umemVirtual *dst, uintptr_t dst_adr, umemLayout const *layout) {
  (void)src;
  if (!layout->rank) {
    umemUrlContext_copy_to(ctx, src_adr, dst, dst_adr, layout->item_size);
    return true;
  }
  size_t count = umem_lesser(umem_count_items(layout), most_items);
  __attribute__((cleanup(end_items)))
  Items items = {.ctx = ctx, .dst = dst, .runs = malloc(count * sizeof *items.runs)};
  if (!items.runs)
    umemVirtual_fail(ctx, umemMemoryError, "no memory for %zu items of a copy", count);
  else if (copy_items(&items, layout, 0, src_adr, dst_adr) && items.count)
    read_items(&items);
  return true;
}

/* ---- queries ---- */

void umemUrlContext_info(umemVirtual *ctx, umemInfo *info) {
  Place *place = place_of(ctx);
  umemLock_acquire(&place->lock);
  uint64_t live = umemRange_totals(place->range).live_bytes;
  umemLock_release(&place->lock);
  info->capacity = length_of(ctx);
  info->available = info->capacity - umem_lesser(live, info->capacity);
  snprintf(info->name, sizeof info->name, "%s", label_of(ctx));
}

umemSearch umemUrlContext_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  Place *place = place_of(ctx);
  umemRangeItem block;
  if (!umemLock_try(&place->lock)) return umemSearchBusy;
  bool has = umemRange_find(place->range, adr, &block) && block.live;
  umemLock_release(&place->lock);
  if (!has || adr - block.start >= block.size) return umemSearchNone;
  found->adr = (uintptr_t)block.start;
  found->nbytes = (size_t)block.size;
  return umemSearchFound;
}

bool umemUrlContext_usage(umemVirtual *ctx, umemUsage *usage) {
  Place *place = place_of(ctx);
  if (!umemLock_try(&place->lock)) return false;
  usage->nbytes = umemRange_totals(place->range).live_bytes;
  umemLock_release(&place->lock);
  return true;
}

/* ---- construction ---- */

/* What is wrong with a header of the options; NULL: nothing. */
static bool is_header(char const *text) {
  size_t name = text ? strcspn(text, ": \t") : 0;
  return name && text[name] == ':' && !text[strcspn(text, "\r\n")];
}

static bool check_headers(umemVirtual *ctx, umemUrlOptions const *options) {
  if (options->header_count && !options->headers)
    return UMEM_FAIL(ctx, umemValueError, "headers is NULL, but header_count is %zu",
                     options->header_count);
  for (size_t i = 0; i < options->header_count; i++)
    if (!is_header(options->headers[i]))
      return UMEM_FAIL(ctx, umemValueError,
                       "header %zu of the options is none: right would be \"Name: value\"", i);
  return true;
}

static bool has_line_end(char const *text) { return text && text[strcspn(text, "\r\n")]; }

bool umemUrl_check_options(umemVirtual *ctx, umemUrlOptions const *options) {
  if (!options->connections || options->connections > UMEM_URL_CONNECTIONS)
    return UMEM_FAIL(ctx, umemValueError, "%" PRIu32 " connections: right would be 1 to %d",
                     options->connections, UMEM_URL_CONNECTIONS);
  if (options->piece < 64 << 10)
    return UMEM_FAIL(ctx, umemValueError, "a piece of %zu bytes: right would be 64 KiB or more",
                     options->piece);
  if (options->version > umemUrlVersion2 || options->redirects > umemUrlRedirectsNone)
    return UMEM_FAIL(ctx, umemValueError, "the version or redirects of the options is unknown");
  if (has_line_end(options->bearer) || has_line_end(options->user) ||
      has_line_end(options->password))
    return UMEM_FAIL(ctx, umemValueError,
                     "the user, password or token of the options has two lines");
  return check_headers(ctx, options);
}

static void end_place(Place *place) {
  umemFetch_destroy(place->fetch);
  umemRange_destroy(place->range);
  umemLock_destroy(&place->lock);
  umem_dtor(&place->host);
  free(place);
}

static Place *new_place(umemVirtual *ctx) {
  Place *place = calloc(1, sizeof *place);
  if (!place) return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for a context");
  umemHost_ctor(&place->host);
  umemLock_init(&place->lock);
  place->range = umemRange_create(umemUrlGranule);
  if (place->range && umemRange_add(place->range, 0, last_offset, true)) return place;
  end_place(place);
  return UMEM_FAIL_NULL(ctx, umemMemoryError, "no memory for a context");
}

/* From here on the signer is in the hands of the fetch, or released. */
static bool open_place(umemVirtual *ctx, umemUrlWish const *wish, umemUrlOptions const *options,
                       Place *place) {
  if (!place || !wish->url) {
    if (wish->signer.release) wish->signer.release(wish->signer.user);
    return !place ? false : UMEM_FAIL(ctx, umemValueError, "the URL is NULL");
  }
  place->fetch = umemFetch_create(ctx, wish->url, wish->label, options, wish->signer);
  return place->fetch && umemFetch_pin(place->fetch);
}

umemStatusType umemUrl_construct(void *ctx, umemKind const *kind, umemUrlWish const *wish) {
  umemVirtual *self = ctx;
  uint64_t before = umem_thread.failures;
  umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  memset(ctx, 0, kind->scheme.context_size);
  umem_construct(self, kind, NULL);
  bool good = umem_read_sized(self, &options, sizeof options, wish->options, "umemUrlOptions") &&
              umemUrl_check_options(self, &options);
  Place *place = good ? new_place(self) : NULL;
  if (open_place(self, wish, &options, place)) {
    ((umemUrl *)ctx)->impl = place;
    self->host = &place->host;
    umemLive_add(&place->live, self);
    return umemOK;
  }
  if (place) end_place(place);
  umem_construct_failed(self);
  return umem_result(before);
}

void umemUrlContext_dtor(umemVirtual *ctx) {
  umemLive_remove(&place_of(ctx)->live);
  end_place(place_of(ctx));
}

/* ---- by name: "https://host/path?query#connections=32" ---- */

_Static_assert(umemUrlVersionAuto == 0 && umemUrlVersion2 == 2,
               "the indices of the words of version");
_Static_assert(umemUrlRedirectsAuto == 0 && umemUrlRedirectsNone == 2, "those of redirects");

umemOption const umem_url_place = {
    .name = "URL", .kind = umemUrlOption, .required = true, .help = "the rest of the URL"};

umemUrlOptions const umem_url_defaults = UMEM_URL_OPTIONS_INIT;

umemOption const umem_url_options[umemUrlOptionCount] = {
    UMEM_OPTION_NOT_0(umemUrlOptions, connections, "connections", umemNumberOption,
                      "requests in flight; default: 16"),
    UMEM_OPTION(umemUrlOptions, retries, "retries", umemNumberOption, "of one request; default: 5"),
    UMEM_OPTION_NOT_0(umemUrlOptions, piece, "piece", umemSizeOption,
                      "bytes of one request; default: 8M"),
    UMEM_OPTION(umemUrlOptions, gap, "gap", umemSizeOption,
                "bytes between neighbours that are read along; default: 64K"),
    UMEM_OPTION(umemUrlOptions, connect_ms, "connect-ms", umemNumberOption,
                "until a connection stands; 0: no limit; default: 10000"),
    UMEM_OPTION(umemUrlOptions, stall_ms, "stall-ms", umemNumberOption,
                "without a byte; 0: no limit; default: 30000"),
    UMEM_OPTION(umemUrlOptions, total_ms, "total-ms", umemNumberOption,
                "for a copy; 0: no limit; default: 0"),
    UMEM_OPTION_WORD(umemUrlOptions, version, "version", "auto 1.1 2",
                     "of HTTP; default: auto, 1.1"),
    UMEM_OPTION_WORD(umemUrlOptions, redirects, "redirects", "auto same none",
                     "which are followed; default: auto, all but from https to http"),
    UMEM_OPTION_WORD(umemUrlOptions, unpinned, "unpinned", "no yes",
                     "reads an object without ETag and date, too; default: no"),
    UMEM_OPTION(umemUrlOptions, ca_file, "ca-file", umemPathOption,
                "certificates of the authorities (PEM)"),
    UMEM_OPTION(umemUrlOptions, user, "user", umemTextOption, "for basic authentication"),
    UMEM_OPTION(umemUrlOptions, password, "password", umemTextOption, "of the user"),
    UMEM_OPTION(umemUrlOptions, bearer, "bearer", umemTextOption, "a token for authorization"),
    [umemUrlHeaders] = {.name = "headers",
                        .kind = umemTextOption,
                        .help = "more headers, one a line: \"Name: value\""},
};

/* Cuts text, which has lines, in place. Returns how many there are, or more than `most`. */
static size_t cut_lines(char *text, char const **lines, size_t most) {
  size_t count = 0;
  for (char *line = text; line && count <= most; count++) {
    char *end = strchr(line, '\n');
    if (end) *end = 0;
    if (count < most) lines[count] = line;
    line = end ? end + 1 : NULL;
  }
  return count;
}

enum { most_named_headers = 32 };

static umemStatusType open_with_headers(void *ctx, umemKind const *kind, umemUrlWish const *wish,
                                        umemUrlOptions *options, char *headers) {
  char const *lines[most_named_headers];
  options->headers = lines;
  options->header_count = headers ? cut_lines(headers, lines, most_named_headers) : 0;
  if (options->header_count <= most_named_headers) return umemUrl_construct(ctx, kind, wish);
  return umemVirtual_fail(NULL, umemValueError, "there are more than %d headers",
                          most_named_headers);
}

/* The place is what follows "https:". */
static umemStatusType open_named(void *ctx, void *upstream, umemOptionValue const *place,
                                 umemOptionValue const *given, void *user) {
  (void)upstream;
  umemKind const *kind = user;
  umemKindOptions options;
  if (!umemKind_read(kind, given, &options)) return umemValueError;
  if (!place->text) return umemVirtual_fail(NULL, umemValueError, "the URL is missing");
  umemOptionValue const *named = &given[umemUrlHeaders];
  size_t size = strlen(kind->scheme.name) + strlen(place->text) + 2;
  char *url = malloc(size), *headers = named->given ? strdup(named->text) : NULL;
  umemStatusType status = umemMemoryError;
  umemUrlWish wish = {.url = url, .options = (umemUrlOptions *)(void *)&options};
  if (!url || (named->given && !headers)) {
    umemVirtual_fail(NULL, umemMemoryError, "no memory for a URL");
  } else {
    snprintf(url, size, "%s:%s", kind->scheme.name, place->text);
    status = open_with_headers(ctx, kind, &wish, (umemUrlOptions *)(void *)&options, headers);
  }
  free(headers);
  free(url);
  return status;
}

/* ---- the kinds, each of which is the other one, too, where a layer is looked for ---- */

static struct umemVtbl const http_vtbl = {UMEM_URL_METHODS}, https_vtbl = {UMEM_URL_METHODS};

#define URL_KIND(scheme_name, table, other, text)                                                  \
  {                                                                                                \
    .scheme = {.size = sizeof(umemScheme),                                                         \
               .name = #scheme_name,                                                               \
               .context_size = sizeof(umemUrl),                                                    \
               .place = &umem_url_place,                                                           \
               UMEM_OPTIONS(umem_url_options),                                                     \
               .construct = open_named,                                                            \
               .user = (void *)&umem_##scheme_name##_kind,                                         \
               .vtbl = &(table),                                                                   \
               .help = text},                                                                      \
    .label = "Url", .variant = &(other), UMEM_URL_KIND                                             \
  }

extern umemKind const umem_http_kind, umem_https_kind;
umemKind const umem_http_kind =
    URL_KIND(http, http_vtbl, https_vtbl, "an object of a web server, read by HTTP");
umemKind const umem_https_kind =
    URL_KIND(https, https_vtbl, http_vtbl, "an object of a web server, read by HTTP over TLS");

umemStatusType umemUrl_ctor(umemUrl *ctx, char const *url, umemUrlOptions const *options) {
  UMEM_ENTER();
  bool plain = url && !strncmp(url, "http:", 5);
  umemUrlWish wish = {.url = url, .options = options};
  return umemUrl_construct(ctx, plain ? &umem_http_kind : &umem_https_kind, &wish);
}

umemStatusType umemUrl_stats(umemUrl *ctx, umemUrlStats *stats) {
  UMEM_ENTER();
  umemVirtual *self = umem_check(ctx);
  if (!self) return UMEM_RESULT();
  if (self->vptr->dtor != umemUrlContext_dtor)
    return umemVirtual_fail(self, umemTypeError, "this %s is no umemUrl",
                            umem_get_device_name(self));
  if (!umem_can_write_sized(self, stats, sizeof *stats, "stats", "umemUrlStats"))
    return UMEM_RESULT();
  umemUrlStats full = UMEM_URL_STATS_INIT;
  umemFetch_stats(umemUrl_fetch_of(self), &full);
  umem_write_sized(stats, &full, sizeof full);
  return umemOK;
}
