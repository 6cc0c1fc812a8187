/* s3.c - objects in buckets of S3 as places: signed requests to read them, uploads to write them.
 *
 *   s3_config.c   credentials, region and server
 *   s3_requests.c the requests that write an object
 *   s3_parts.c    its blocks, parts and buffers
 *   s3_upload.c   the threads that write and send them
 *   s3.c          the signer, and the place */
#include "url/s3.h"
#include "url/url.h"
#include "base/number.h"
#include "core/context.h"
#include "core/live.h"
#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <umem/host.h>

extern umemKind const umem_s3_kind; /* below */

/* ==== signatures ==== */

/* libcurl before signs no headers, as S3 wants. */
enum { oldest_that_signs = 0x075800 };

typedef struct Signer {
  umemS3Config config;
  char token[sizeof((umemS3Config *)0)->token + 32]; /* the header; "": none */
  char how[sizeof((umemS3Config *)0)->region + 16];  /* for libcurl */
} Signer;

static void release_signer(void *user) {
  explicit_bzero(user, sizeof(Signer));
  free(user);
}

/* libcurl 7.88 signs headers that it does not send ("Expect:"), and proxies change that of the
 * encoding, which S3 does not look at. */
static void drop_unsigned(umemFetchAttempt *attempt) {
  for (umemCurlList **link = attempt->headers; *link;) {
    umemCurlList *header = *link;
    bool drops = !strcmp(header->text, "Expect:") || !strncmp(header->text, "Accept-Encoding:", 16);
    if (!drops) {
      link = &header->next;
      continue;
    }
    *link = header->next;
    header->next = NULL;
    attempt->curl->list_free(header);
  }
}

static bool add_header(umemFetchAttempt *attempt, char const *text) {
  umemCurlList *list = attempt->curl->list_append(*attempt->headers, text);
  if (list) *attempt->headers = list;
  return list != NULL;
}

/* The bytes of a body are not signed, for which they would be read twice. */
static bool sign(void *user, umemFetchAttempt *attempt) {
  Signer const *signer = user;
  umemCurl const *curl = attempt->curl;
  drop_unsigned(attempt);
  bool good = add_header(attempt, "x-amz-content-sha256: UNSIGNED-PAYLOAD") &&
              (!*signer->token || add_header(attempt, signer->token)) &&
              !curl->easy_setopt(attempt->easy, umemCurlOptAwsSigv4, signer->how) &&
              !curl->easy_setopt(attempt->easy, umemCurlOptUser, signer->config.key_id) &&
              !curl->easy_setopt(attempt->easy, umemCurlOptPassword, signer->config.secret);
  return good || UMEM_FAIL(NULL, umemMemoryError, "libcurl cannot sign a request");
}

/* Whether libcurl, if it is there, signs. */
static bool can_sign(umemVirtual *ctx) {
  umemCurl const *curl = umemCurl_get(ctx);
  umemCurlVersion const *version = curl ? curl->version(0) : NULL;
  if (!curl) return false;
  if (version && version->number >= oldest_that_signs) return true;
  return UMEM_FAIL(ctx, umemNotSupportedError,
                   "requests to S3 are signed by libcurl 7.88 or later; here is %.20s, which can "
                   "read public objects (the option anonymous)",
                   version && version->text ? version->text : "another one");
}

/* Fills in *signer, and writes the URL of requests. False with a status. */
static bool make_signer(umemVirtual *ctx, char const *url, umemS3Options const *options,
                        umemFetchSigner *made, char *target) {
  Signer *signer = calloc(1, sizeof *signer);
  if (!signer) return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  umemS3Config *config = &signer->config;
  if (!umemS3Config_read(config, options) || !umemS3Config_url(config, url, target) ||
      (!config->anonymous && !can_sign(ctx))) {
    release_signer(signer);
    return false;
  }
  snprintf(signer->how, sizeof signer->how, "aws:amz:%s:s3", config->region);
  if (*config->token)
    snprintf(signer->token, sizeof signer->token, "x-amz-security-token: %s", config->token);
  *made = (umemFetchSigner){config->anonymous ? NULL : sign, release_signer, signer};
  return true;
}

/* ==== mode w: methods ==== */

typedef struct Writer {
  umemLive live;
  umemHost host; /* for buffers */
  umemFetch *fetch;
  umemS3Upload *upload;
  char url[umemS3UrlSize];
  bool opened; /* with all adaptors: its end makes the object */
} Writer;

static Writer *writer_of(umemVirtual *ctx) { return ((umemS3 *)ctx)->impl; }
static umemS3Upload *upload_of(umemVirtual *ctx) { return writer_of(ctx)->upload; }

static uintptr_t writer_aligned_alloc(umemVirtual *ctx, size_t alignment, size_t size) {
  return (uintptr_t)umemS3Upload_alloc(upload_of(ctx), size, alignment, false);
}

static uintptr_t writer_alloc(umemVirtual *ctx, size_t nbytes) {
  return writer_aligned_alloc(ctx, umemUrlGranule, nbytes);
}

/* What nothing writes is zero. */
static uintptr_t writer_calloc(umemVirtual *ctx, size_t nmemb, size_t size) {
  return (uintptr_t)umemS3Upload_alloc(upload_of(ctx), nmemb * size, umemUrlGranule, true);
}

static void writer_free(umemVirtual *ctx, uintptr_t adr) { umemS3Upload_free(upload_of(ctx), adr); }

static uintptr_t writer_aligned_origin(umemVirtual *ctx, uintptr_t adr) {
  return umemS3Upload_begins(upload_of(ctx), adr) ? adr : UINTPTR_MAX;
}

static uintptr_t writer_realloc(umemVirtual *ctx, uintptr_t adr, size_t old_size, size_t new_size) {
  uint64_t size = umemS3Upload_begins(upload_of(ctx), adr);
  if (!size) return UINTPTR_MAX;
  if (old_size > size)
    umemVirtual_fail(ctx, umemValueError,
                     "the block at %" PRIuPTR " has %" PRIu64 " bytes, not %zu", adr, size,
                     old_size);
  else if (new_size > size)
    umemVirtual_fail(ctx, umemNotSupportedError,
                     "a block of an object that is written cannot become longer");
  else
    return adr;
  return UINTPTR_MAX;
}

static void writer_set(umemVirtual *ctx, uintptr_t adr, int c, size_t nbytes) {
  umemS3Upload_write(upload_of(ctx), adr, NULL, c, nbytes, NULL);
}

static void writer_copy_from(umemVirtual *ctx, uintptr_t dst_adr, umemVirtual *host,
                             uintptr_t src_adr, size_t nbytes) {
  (void)host;
  umemMeter *meter = umem_thread.meter ? umemMeter_find(ctx, src_adr, dst_adr, nbytes) : NULL;
  umemS3Upload_write(upload_of(ctx), dst_adr, (void const *)src_adr, 0, nbytes, meter);
}

static void writer_flush(umemVirtual *ctx) { umemS3Upload_complete(upload_of(ctx), false); }

static void writer_info(umemVirtual *ctx, umemInfo *info) {
  snprintf(info->name, sizeof info->name, "%s", umemFetch_label(writer_of(ctx)->fetch));
}

static umemSearch writer_find(umemVirtual *ctx, uintptr_t adr, umemFound *found) {
  return umemS3Upload_find(upload_of(ctx), adr, found);
}

static bool writer_usage(umemVirtual *ctx, umemUsage *usage) {
  return umemS3Upload_usage(upload_of(ctx), usage);
}

static void end_writer(Writer *writer) {
  umemS3Upload_destroy(writer->upload);
  umemFetch_destroy(writer->fetch);
  umem_dtor(&writer->host);
  free(writer);
}

static void writer_dtor(umemVirtual *ctx) {
  Writer *writer = writer_of(ctx);
  umemLive_remove(&writer->live);
  if (writer->opened && umemS3Upload_is_open(writer->upload)) {
    if (umem_is_ok(ctx))
      umemS3Upload_complete(writer->upload, true);
    else
      umemVirtual_fail(ctx, umemIOError, "%s was not made, because of an earlier failure",
                       umemFetch_label(writer->fetch));
  }
  end_writer(writer);
}

static struct umemVtbl const reader_vtbl = {UMEM_URL_METHODS};

static struct umemVtbl const writer_vtbl = {
    .dtor = writer_dtor,
    .alloc = writer_alloc,
    .calloc = writer_calloc,
    .free = writer_free,
    .aligned_alloc = writer_aligned_alloc,
    .aligned_origin = writer_aligned_origin,
    .aligned_free = writer_free,
    .set = writer_set,
    .copy_from = writer_copy_from,
    .flush = writer_flush,
    .info = writer_info,
    .realloc = writer_realloc,
    .find = writer_find,
    .usage = writer_usage,
};

/* ==== construction ==== */

static bool parse_mode(umemVirtual *ctx, char const *mode, bool *writes) {
  char const *text = mode ? mode : "NULL";
  *writes = *text == 'w';
  bool good = (*text == 'r' || *text == 'w') && (!text[1] || !strcmp(text + 1, "b"));
  return good || UMEM_FAIL(ctx, umemValueError, "bad mode \"%.20s\": r or w, and b", text);
}

static bool read_options(umemVirtual *ctx, umemS3Options const *given, umemS3Options *options,
                         umemUrlOptions *url) {
  *options = (umemS3Options)UMEM_S3_OPTIONS_INIT;
  *url = (umemUrlOptions)UMEM_URL_OPTIONS_INIT;
  if (!umem_read_sized(ctx, options, sizeof *options, given, "umemS3Options") ||
      !umem_read_sized(ctx, url, sizeof *url, options->url, "umemUrlOptions"))
    return false;
  if ((unsigned)options->style > umemS3StyleHost)
    return UMEM_FAIL(ctx, umemValueError, "the style %d of the options is unknown",
                     (int)options->style);
  if (options->part && (options->part < UMEM_S3_PART_LEAST || options->part > UMEM_S3_PART_MOST))
    return UMEM_FAIL(ctx, umemValueError,
                     "a part of %" PRIu64 " bytes: right would be 5 MiB to 5 GiB", options->part);
  if (options->length > umemS3PartsMost * UMEM_S3_PART_MOST)
    return UMEM_FAIL(ctx, umemValueError,
                     "a length of %" PRIu64 " bytes: right would be at most 10,000 parts of 5 GiB",
                     options->length);
  if (url->user || url->password || url->bearer)
    return UMEM_FAIL(ctx, umemValueError,
                     "requests to S3 are signed: they have no user and no token");
  return true;
}

static bool open_writer(umemVirtual *ctx, Writer *writer, char const *label,
                        umemS3Options const *options, umemUrlOptions const *url,
                        umemFetchSigner signer) {
  umemHost_ctor(&writer->host);
  ((umemS3 *)ctx)->impl = writer;
  writer->fetch = umemFetch_create(ctx, writer->url, label, url, signer);
  if (!writer->fetch) return false;
  writer->upload = umemS3Upload_create(ctx, writer->fetch, writer->url, options->length,
                                       options->part, url->connections);
  return writer->upload != NULL;
}

static bool write_object(umemVirtual *ctx, char const *label, umemS3Options const *options,
                         umemUrlOptions const *url) {
  Writer *writer = calloc(1, sizeof *writer);
  umemFetchSigner signer;
  if (!writer) return UMEM_FAIL(ctx, umemMemoryError, "no memory for a context");
  if (!umemUrl_check_options(ctx, url) || !make_signer(ctx, label, options, &signer, writer->url)) {
    free(writer);
    return false;
  }
  if (!open_writer(ctx, writer, label, options, url, signer)) {
    ((umemS3 *)ctx)->impl = NULL;
    end_writer(writer);
    return false;
  }
  ctx->vptr = &writer_vtbl;
  ctx->capabilities = umemWritable | umemConcurrent | umemOffsets;
  ctx->host = &writer->host;
  writer->opened = true;
  umemLive_add(&writer->live, ctx);
  return true;
}

static bool read_object(umemVirtual *ctx, char const *label, umemS3Options const *options,
                        umemUrlOptions const *url) {
  char target[umemS3UrlSize];
  umemUrlWish wish = {.url = target, .label = label, .options = url};
  return make_signer(ctx, label, options, &wish.signer, target) &&
         umemUrl_construct(ctx, &umem_s3_kind, &wish) == umemOK;
}

umemStatusType umemS3_ctor_with(umemS3 *ctx, char const *url, char const *mode,
                                umemS3Options const *given) {
  UMEM_ENTER();
  umemVirtual *self = (umemVirtual *)ctx;
  umemS3Options options;
  umemUrlOptions requests;
  bool writes;
  if (!ctx) return umemVirtual_fail(NULL, umemValueError, "the context is NULL");
  memset(ctx, 0, sizeof *ctx);
  umem_construct(self, &umem_s3_kind, NULL);
  if (parse_mode(self, mode, &writes) && read_options(self, given, &options, &requests) &&
      (writes ? write_object : read_object)(self, url, &options, &requests))
    return umemOK;
  umemVirtual_adopt(self, umem_entry_.failures);
  umem_construct_failed(self);
  return UMEM_RESULT();
}

umemStatusType umemS3_ctor(umemS3 *ctx, char const *url, char const *mode) {
  UMEM_ENTER();
  return umemS3_ctor_with(ctx, url, mode, NULL);
}

umemStatusType umemS3_abandon(umemS3 *ctx) {
  UMEM_ENTER();
  umemVirtual *self = umemKind_check(ctx, &umem_s3_kind);
  if (self && self->vptr == &writer_vtbl) umemS3Upload_abandon(upload_of(self));
  return UMEM_RESULT();
}

/* ==== by name: "s3://bucket/key#mode=w" ==== */

typedef struct Named {
  umemS3Options s3;
  umemUrlOptions url;
  uint32_t writes;
} Named;

static Named const named_defaults = {UMEM_S3_OPTIONS_INIT, UMEM_URL_OPTIONS_INIT, 0};

static umemOption const place = {.name = "URL",
                                 .kind = umemUrlOption,
                                 .required = true,
                                 .help = "//BUCKET/KEY, with %XX for special characters"};

static umemOption const options[] = {
    UMEM_OPTION_WORD(Named, writes, "mode", "r w", "default: r"),
    UMEM_OPTION(Named, s3.region, "region", umemTextOption, "default: AWS_REGION"),
    UMEM_OPTION(Named, s3.endpoint, "endpoint", umemTextOption,
                "https://HOST of another server; default: AWS_ENDPOINT_URL"),
    UMEM_OPTION(Named, s3.profile, "profile", umemTextOption,
                "of AWS's files, for the credentials; default: AWS_PROFILE"),
    UMEM_OPTION_WORD(Named, s3.style, "style", "auto path host",
                     "where the bucket is in requests; default: auto"),
    UMEM_OPTION_WORD(Named, s3.anonymous, "anonymous", "no yes",
                     "without credentials; default: no"),
    UMEM_OPTION(Named, s3.length, "length", umemSizeOption, "mode w: of the object, at most"),
    UMEM_OPTION(Named, s3.part, "part", umemSizeOption,
                "mode w: bytes of a part; default: 8M, or more for 10,000 parts"),
    UMEM_OPTION_NOT_0(Named, url.connections, "connections", umemNumberOption,
                      "requests in flight; default: 16"),
    UMEM_OPTION(Named, url.retries, "retries", umemNumberOption, "of one request; default: 5"),
    UMEM_OPTION_NOT_0(Named, url.piece, "piece", umemSizeOption,
                      "bytes of one request that reads; default: 8M"),
    UMEM_OPTION(Named, url.gap, "gap", umemSizeOption,
                "bytes between neighbours that are read along; default: 64K"),
    UMEM_OPTION(Named, url.connect_ms, "connect-ms", umemNumberOption,
                "until a connection stands; 0: no limit; default: 10000"),
    UMEM_OPTION(Named, url.stall_ms, "stall-ms", umemNumberOption,
                "without a byte; 0: no limit; default: 30000"),
    UMEM_OPTION(Named, url.total_ms, "total-ms", umemNumberOption,
                "for a copy; 0: no limit; default: 0"),
    UMEM_OPTION(Named, url.ca_file, "ca-file", umemPathOption,
                "certificates of the authorities (PEM)"),
};

/* The place is what follows "s3:". */
static umemStatusType open_named(void *ctx, void *upstream, umemOptionValue const *object,
                                 umemOptionValue const *given, void *user) {
  (void)upstream;
  Named named;
  if (!umemKind_read(user, given, &named)) return umemValueError;
  named.s3.url = &named.url;
  size_t size = strlen(object->text) + sizeof "s3:";
  char *url = malloc(size);
  if (!url) return umemVirtual_fail(NULL, umemMemoryError, "no memory for a name");
  snprintf(url, size, "s3:%s", object->text);
  umemStatusType status = umemS3_ctor_with(ctx, url, named.writes ? "w" : "r", &named.s3);
  free(url);
  if (status == umemOK && named.writes) writer_of(ctx)->opened = false;
  return status;
}

/* The adaptors over it are there, too. */
static void complete_named(void *ctx, void *user) {
  (void)user;
  if (((umemVirtual *)ctx)->vptr == &writer_vtbl) writer_of(ctx)->opened = true;
}

umemKind const umem_s3_kind = {
    .scheme = {.size = sizeof(umemScheme),
               .name = "s3",
               .context_size = sizeof(umemS3),
               .place = &place,
               UMEM_OPTIONS(options),
               .construct = open_named,
               .complete = complete_named,
               .user = (void *)&umem_s3_kind,
               .vtbl = &reader_vtbl,
               .help = "an object in a bucket of S3, or of a server that speaks its protocol"},
    .label = "S3",
    .type = umemUrlDevice,
    .capabilities = umemReadable | umemConcurrent | umemOffsets,
    .alignment = umemUrlGranule,
    .options_size = sizeof(Named),
    .defaults = &named_defaults,
    .variant = &writer_vtbl,
};
