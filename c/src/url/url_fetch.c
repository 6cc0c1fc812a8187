/* url_fetch.c - what the requests of one place share: the URL, redirects, credentials, and what an
 * answer must be: what the object was when it was opened. */
#include "url/url_fetch.h"
#include "base/number.h"
#include "core/status.h"
#include "base/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool umemFetch_no_memory(umemFetch *fetch) {
  return UMEM_FAIL(fetch->ctx, umemMemoryError, "no memory for a request to %s", fetch->label);
}

uint64_t umemFetch_length(umemFetch const *fetch) { return fetch->length; }
char const *umemFetch_label(umemFetch const *fetch) { return fetch->label; }

void umemFetch_stats(umemFetch const *fetch, umemUrlStats *stats) {
  stats->requests = __atomic_load_n(&fetch->requests, __ATOMIC_RELAXED);
  stats->retries = __atomic_load_n(&fetch->retries, __ATOMIC_RELAXED);
  stats->nbytes = __atomic_load_n(&fetch->nbytes, __ATOMIC_RELAXED);
}

/* ==== URLs ==== */

/* False without memory. *copy stays NULL for a part that the URL lacks. */
static bool get_part(umemCurl const *curl, void *url, int part, unsigned flags, char **copy) {
  char *text = NULL;
  int code = curl->url_get(url, part, &text, flags);
  if (!code && text) *copy = strdup(text);
  if (text) curl->free(text);
  return code != umemCurlUrlNoMemory && (code || *copy);
}

typedef struct umemParsedUrl {
  char *scheme, *host, *port, *path, *user, *password; /* owned; the last two may be NULL */
  umemTarget target;
} umemParsedUrl;

static void end_target(umemTarget *target) {
  free(target->url);
  free(target->origin);
  *target = (umemTarget){0};
}

static void end_parsed(umemParsedUrl *parsed) {
  free(parsed->scheme);
  free(parsed->host);
  free(parsed->port);
  free(parsed->path);
  free(parsed->user);
  free(parsed->password);
  end_target(&parsed->target);
}

typedef enum Parsing { isParsed, isMalformed, hasNoMemory } Parsing;

static bool get_parts(umemCurl const *curl, void *url, umemParsedUrl *to) {
  return get_part(curl, url, umemCurlPartScheme, 0, &to->scheme) &&
         get_part(curl, url, umemCurlPartHost, 0, &to->host) &&
         get_part(curl, url, umemCurlPartPort, umemCurlUrlDefaultPort, &to->port) &&
         get_part(curl, url, umemCurlPartPath, 0, &to->path) &&
         get_part(curl, url, umemCurlPartUser, umemCurlUrlDecode, &to->user) &&
         get_part(curl, url, umemCurlPartPassword, umemCurlUrlDecode, &to->password);
}

/* The URL of requests has no user and no password. */
static bool get_target(umemCurl const *curl, void *url, umemTarget *target) {
  static int const secret[] = {umemCurlPartUser, umemCurlPartPassword, umemCurlPartOptions,
                               umemCurlPartFragment};
  for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
    if (curl->url_set(url, secret[i], NULL, 0)) return false;
  return get_part(curl, url, umemCurlPartUrl, 0, &target->url) && target->url;
}

static bool make_origin(umemParsedUrl *to) {
  size_t size = strlen(to->scheme) + strlen(to->host) + strlen(to->port) + 5;
  to->target.origin = malloc(size);
  if (to->target.origin)
    snprintf(to->target.origin, size, "%s://%s:%s", to->scheme, to->host, to->port);
  return to->target.origin != NULL;
}

static Parsing take_parts(umemCurl const *curl, void *url, umemParsedUrl *to) {
  if (!get_parts(curl, url, to)) return hasNoMemory;
  if (!to->scheme || !to->host || !to->port || !to->path) return isMalformed;
  if (strcmp(to->scheme, "http") && strcmp(to->scheme, "https")) return isMalformed;
  return get_target(curl, url, &to->target) && make_origin(to) ? isParsed : hasNoMemory;
}

/* libcurl alone takes URLs apart, here and for the request: two readers could disagree about the
 * host. */
static Parsing parse(umemCurl const *curl, char const *text, umemParsedUrl *to) {
  *to = (umemParsedUrl){0};
  void *url = curl->url();
  int code = url ? curl->url_set(url, umemCurlPartUrl, text, 0) : umemCurlUrlNoMemory;
  Parsing parsing = code == umemCurlUrlNoMemory ? hasNoMemory
                    : code                      ? isMalformed
                                                : take_parts(curl, url, to);
  if (url) curl->url_cleanup(url);
  if (parsing != isParsed) end_parsed(to);
  return parsing;
}

/* Whether both the options and the caller of umem_open_with allow the host. */
static bool allows_host(umemFetch const *fetch, umemParsedUrl const *to) {
  bool usual = !strcmp(to->port, strcmp(to->scheme, "https") ? "80" : "443");
  return umemHosts_allow(fetch->hosts, to->host, to->port, usual) &&
         umemHosts_allow(fetch->held_hosts, to->host, to->port, usual);
}

/* ---- redirects ---- */

/* What forbids to follow; NULL: nothing. */
static char const *check_redirect(umemFetch const *fetch, umemParsedUrl const *to) {
  bool same = !strcasecmp(to->target.origin, fetch->home.origin);
  if (fetch->options.redirects == umemUrlRedirectsNone)
    return "the server redirects elsewhere, which the option redirects forbids";
  if (fetch->options.redirects == umemUrlRedirectsSame && !same)
    return "the server redirects to another host, which the option redirects forbids";
  if (fetch->secure && strcmp(to->scheme, "https"))
    return "the server redirects from https to http";
  if (!allows_host(fetch, to)) return "the server redirects to a host that is not allowed";
  return NULL;
}

char const *umemFetch_follow(umemFetch *fetch, char const *location) {
  umemParsedUrl to;
  Parsing parsing = location ? parse(fetch->curl, location, &to) : isMalformed;
  if (parsing == hasNoMemory) return "no memory for a redirect";
  if (parsing != isParsed) return "the server redirects to no URL of http or https";
  char const *wrong = check_redirect(fetch, &to);
  if (!wrong) {
    umemLock_acquire(&fetch->lock);
    end_target(&fetch->target);
    fetch->target = to.target;
    umemLock_release(&fetch->lock);
    to.target = (umemTarget){0};
  }
  end_parsed(&to);
  return wrong;
}

void umemFetch_go_home(umemFetch *fetch) {
  umemLock_acquire(&fetch->lock);
  end_target(&fetch->target);
  umemLock_release(&fetch->lock);
}
/* ==== the beginning and the end ==== */

static bool copy_text(char **to, char const *text) {
  if (text && !*to) *to = strdup(text);
  return !text || *to;
}

static char const *from_environment(char const *name) {
  char const *text = secure_getenv(name);
  return text && *text ? text : NULL;
}

/* libcurl's program reads these variables, and its library does not. */
static bool copy_authorities(umemFetch *fetch) {
  char const *file = fetch->options.ca_file;
  if (!file) file = from_environment("CURL_CA_BUNDLE");
  if (!file) file = from_environment("SSL_CERT_FILE");
  char const *folder = file ? NULL : from_environment("SSL_CERT_DIR");
  return copy_text(&fetch->ca_file, file) && copy_text(&fetch->ca_folder, folder);
}

static bool copy_headers(umemFetch *fetch) {
  for (size_t i = 0; i < fetch->options.header_count; i++) {
    umemCurlList *list = fetch->curl->list_append(fetch->headers, fetch->options.headers[i]);
    if (!list) return false;
    fetch->headers = list;
  }
  return true;
}

/* The URL without what may be secret. */
static char *label_of(umemParsedUrl const *parsed, bool has_query) {
  bool usual = !strcmp(parsed->port, strcmp(parsed->scheme, "https") ? "80" : "443");
  size_t size = strlen(parsed->target.url) + strlen(parsed->port) + 16;
  char *label = malloc(size);
  if (label)
    snprintf(label, size, "%s://%s%s%s%s%s", parsed->scheme, parsed->host, usual ? "" : ":",
             usual ? "" : parsed->port, parsed->path, has_query ? "?..." : "");
  return label;
}

static bool copy_texts(umemFetch *fetch, umemParsedUrl *parsed, char const *label) {
  umemUrlOptions const *options = &fetch->options;
  bool query = strchr(parsed->target.url, '?') != NULL;
  fetch->label = label ? strdup(label) : label_of(parsed, query);
  bool good =
      fetch->label && copy_text(&fetch->user, options->user) &&
      copy_text(&fetch->password, options->password) && copy_text(&fetch->user, parsed->user) &&
      copy_text(&fetch->password, options->user ? NULL : parsed->password) &&
      copy_text(&fetch->bearer, options->bearer) && copy_authorities(fetch) && copy_headers(fetch);
  fetch->secure = !strcmp(parsed->scheme, "https");
  fetch->home = parsed->target;
  parsed->target = (umemTarget){0};
  return good;
}

static bool take_url(umemFetch *fetch, char const *url, char const *label) {
  umemParsedUrl parts;
  umemVirtual *ctx = fetch->ctx;
  Parsing parsing = parse(fetch->curl, url, &parts);
  if (parsing == hasNoMemory) return UMEM_FAIL(ctx, umemMemoryError, "no memory for a URL");
  if (parsing != isParsed)
    return UMEM_FAIL(ctx, umemValueError,
                     "the URL is malformed: right would be http://HOST/PATH or https://HOST/PATH, "
                     "with %%XX for special characters");
  bool good = copy_text(&fetch->hosts, fetch->options.hosts) &&
              copy_text(&fetch->held_hosts, umemHosts_held());
  bool allowed = good && allows_host(fetch, &parts);
  if (good && !allowed)
    umemVirtual_fail(ctx, umemValueError, "the host \"%.100s\" is not allowed here", parts.host);
  else if (!good || !copy_texts(fetch, &parts, label))
    good = UMEM_FAIL(ctx, umemMemoryError, "no memory for a URL");
  end_parsed(&parts);
  return good && allowed;
}

umemFetch *umemFetch_create(umemVirtual *ctx, char const *url, char const *label,
                            umemUrlOptions const *options, umemFetchSigner signer) {
  umemCurl const *curl = umemCurl_get(ctx);
  umemFetch *fetch = curl ? calloc(1, sizeof *fetch) : NULL;
  if (curl && !fetch) umemVirtual_fail(ctx, umemMemoryError, "no memory for a context");
  if (!fetch) {
    if (signer.release) signer.release(signer.user);
    return NULL;
  }
  fetch->ctx = ctx;
  fetch->curl = curl;
  fetch->options = *options;
  fetch->signer = signer;
  fetch->forks = umem_fork_count();
  umemLock_init(&fetch->lock);
  if (take_url(fetch, url, label)) return fetch;
  umemFetch_free(fetch);
  return NULL;
}

/* ---- the model ---- */

enum {
  most_model = 8 << 10,     /* bytes */
  signed_ms = 5 * 60 * 1000 /* of the 15 minutes that S3 takes a signature for */
};

void umemModel_end(umemModel *model) {
  if (model->text) explicit_bzero(model->text, model->size);
  free(model->text);
  *model = (umemModel){0};
}

bool umemFetch_may_use_model(umemFetch const *fetch) {
  umemModel const *model = &fetch->model;
  return model->text && !fetch->target.url && (!model->until || umemFetch_now() < model->until);
}

bool umemFetch_has_model(umemFetch *fetch) {
  umemLock_acquire(&fetch->lock);
  bool const has = umemFetch_may_use_model(fetch);
  umemLock_release(&fetch->lock);
  return has;
}

void umemFetch_read_model(umemFetch const *fetch, umemModel *model, char const *text, size_t size) {
  static char const range[] = "\r\nRange: bytes=";
  umemModel_end(model);
  /* What a proxy got, a whole URL with the password of the proxy, is for that proxy alone. */
  if (size >= most_model || size < 9 || memcmp(text, "GET /", 5)) return;
  if (memcmp(text + size - 4, "\r\n\r\n", 4) || memchr(text, 0, size)) return;
  *model = (umemModel){.text = strndup(text, size), .size = size};
  char const *line = model->text ? strstr(model->text, range) : NULL;
  if (!line) return umemModel_end(model);
  model->from = (size_t)(line - model->text) + sizeof range - 1;
  model->to = model->from + strcspn(model->text + model->from, "\r");
  if (fetch->signer.sign) model->until = umemFetch_now() + signed_ms * umem_ns_of_ms;
}

void umemFetch_forget_model(umemFetch *fetch) {
  umemLock_acquire(&fetch->lock);
  umemModel_end(&fetch->model);
  umemLock_release(&fetch->lock);
}

void umemFetch_keep_model(umemFetch *fetch, umemModel *model) {
  umemLock_acquire(&fetch->lock);
  umemModel_end(&fetch->model);
  fetch->model = *model;
  umemLock_release(&fetch->lock);
  *model = (umemModel){0};
}

void umemFetch_free(umemFetch *fetch) {
  if (fetch->headers) fetch->curl->list_free(fetch->headers);
  if (fetch->signer.release) fetch->signer.release(fetch->signer.user);
  char *texts[] = {fetch->user,      fetch->password, fetch->bearer,     fetch->ca_file,
                   fetch->ca_folder, fetch->hosts,    fetch->held_hosts, fetch->label};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
  end_target(&fetch->home);
  end_target(&fetch->target);
  umemFetch_forget_model(fetch);
  umemLock_destroy(&fetch->lock);
  free(fetch);
}

/* ==== answers ====
 *
 * Each header may be missing, malformed or a lie: what is not understood counts as missing, and
 * what contradicts itself makes the answer malformed. */

/* A part of a line. */
typedef struct Text {
  char const *at, *end;
} Text;

static Text trim(Text text) {
  while (text.at < text.end && (*text.at == ' ' || *text.at == '\t')) text.at++;
  while (text.at < text.end && strchr(" \t\r\n", text.end[-1])) text.end--;
  return text;
}

static bool skip(Text *text, char c) {
  bool there = text->at < text->end && *text->at == c;
  text->at += there;
  return there;
}

/* False without digits, and where the number exceeds 63 bits. */
static bool read_number(Text *text, uint64_t *number) {
  char const *begin = text->at;
  for (*number = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(*text->at - '0'), number) || *number >> 63)
      return false;
  return text->at != begin;
}

/* "bytes 0-99/1234"; an asterisk stands for a range or a total that is not known. */
static bool read_range(umemFetchReply *reply, Text text) {
  if (text.end - text.at < 6 || strncasecmp(text.at, "bytes", 5) || text.at[5] != ' ') return false;
  text.at += 6;
  text = trim(text);
  bool none = skip(&text, '*');
  if (!none && !(read_number(&text, &reply->first) && skip(&text, '-') &&
                 read_number(&text, &reply->last) && reply->first <= reply->last))
    return false;
  if (!skip(&text, '/')) return false;
  bool unknown = skip(&text, '*');
  if (!unknown && !read_number(&text, &reply->total)) return false;
  if (text.at != text.end || (none && unknown)) return false;
  if (!none && !unknown && reply->last >= reply->total) return false;
  reply->has_range = !none;
  reply->has_total = !unknown;
  return true;
}

/* Copies text, which goes into headers of later requests. False if it is too long, or has other
 * characters than those of a header. */
static bool copy(char *to, size_t size, Text text) {
  size_t length = (size_t)(text.end - text.at);
  if (length >= size) return false;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text.at[i] < ' ' || text.at[i] == 127) return false;
  memcpy(to, text.at, length);
  to[length] = 0;
  return true;
}

/* A header that comes twice must say the same. */
static bool copy_once(char *to, size_t size, Text text) {
  char before[256];
  strcpy(before, to);
  return copy(to, size, text) && (!*before || !strcmp(before, to));
}

bool umemFetchReply_is_strong(umemFetchReply const *reply) {
  size_t length = strlen(reply->etag);
  return length >= 2 && *reply->etag == '"' &&
         strchr(reply->etag + 1, '"') == reply->etag + length - 1;
}

static bool read_length(umemFetchReply *reply, Text text) {
  uint64_t before = reply->length;
  bool again = reply->has_length;
  reply->has_length = read_number(&text, &reply->length) && text.at == text.end;
  return reply->has_length && (!again || before == reply->length);
}

static bool read_encoding(umemFetchReply *reply, Text text) {
  bool plain = text.end - text.at == 8 && !strncasecmp(text.at, "identity", 8);
  reply->encoded |= !plain && text.at != text.end;
  return true;
}

/* "HTTP/1.1 206 Partial Content": the headers of an answer, maybe after those of another one, such
 * as 100 Continue. */
static bool begin(umemFetchReply *reply, Text text) {
  uint64_t status = 0;
  memset(reply, 0, sizeof *reply);
  while (text.at < text.end && *text.at != ' ') text.at++;
  text = trim(text);
  if (!read_number(&text, &status) || status < 100 || status > 999) return false;
  reply->status = (int)status;
  return true;
}

static bool is(Text name, char const *header) {
  size_t length = strlen(header);
  return (size_t)(name.end - name.at) == length && !strncasecmp(name.at, header, length);
}

static bool read_header(umemFetchReply *reply, Text name, Text value) {
  if (is(name, "Content-Range")) return !reply->has_range && read_range(reply, value);
  if (is(name, "Content-Length")) return read_length(reply, value);
  if (is(name, "Content-Encoding")) return read_encoding(reply, value);
  if (is(name, "ETag")) return copy_once(reply->etag, sizeof reply->etag, value);
  if (is(name, "Last-Modified")) return copy_once(reply->modified, sizeof reply->modified, value);
  return true;
}

void umemFetchReply_read(umemFetchReply *reply, char const *line, size_t size) {
  Text text = {line, line + size};
  bool good = true;
  char const *colon = memchr(line, ':', size);
  if (size >= 5 && !strncmp(line, "HTTP/", 5))
    good = begin(reply, text);
  else if (colon)
    good = read_header(reply, (Text){line, colon}, trim((Text){colon + 1, text.end}));
  text = trim(text);
  reply->complete |= text.at == text.end;
  reply->malformed |= !good;
}

void umemFetchReply_find(char const *line, size_t size, char const *name, char *out, size_t room) {
  char const *colon = memchr(line, ':', size);
  if (colon && is((Text){line, colon}, name)) copy(out, room, trim((Text){colon + 1, line + size}));
}

/* ---- what an answer to a request for a range must be ---- */

char const *umemFetchReply_check(umemFetchReply const *reply, umemFetch const *fetch,
                                 uint64_t first, uint64_t last) {
  umemFetchReply const *pin = &fetch->pin;
  if (reply->malformed) return "the headers of the answer contradict themselves";
  if (reply->encoded) return "the server has compressed the bytes, which nobody has asked for";
  if (!reply->has_range || reply->first != first || reply->last != last)
    return "the server sends another range than that asked for";
  if (reply->has_length && reply->length != last + 1 - first)
    return "the lengths in the headers of the answer contradict themselves";
  if (reply->has_total && reply->total != fetch->length)
    return "the object has changed: it has another length";
  if (*pin->etag && strcmp(pin->etag, reply->etag))
    return "the object has changed: it has another ETag";
  if (!*pin->etag && strcmp(pin->modified, reply->modified))
    return "the object has changed: it has another date";
  return NULL;
}

void umemFetch_write_pin(umemFetch const *fetch, char line[umemFetchPinSize]) {
  umemFetchReply const *pin = &fetch->pin;
  *line = 0;
  if (umemFetchReply_is_strong(pin))
    snprintf(line, umemFetchPinSize, "If-Match: %s", pin->etag);
  else if (*pin->modified)
    snprintf(line, umemFetchPinSize, "If-Unmodified-Since: %s", pin->modified);
}

char const *umemFetchReply_refusal(int status) {
  switch (status) {
  case 200:
    return "the server sends the whole object instead of a range";
  case 412:
    return "the object has changed";
  case 416:
    return "the object has changed: it is shorter";
  default:
    return NULL;
  }
}
