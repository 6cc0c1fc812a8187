/* url_fetch.c - what the requests of one place share: the URL, the credentials, and what the object
 * was when it was opened. */
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

static char *get_part(umemCurl const *curl, void *url, int part, unsigned flags) {
  char *text = NULL, *copy = NULL;
  if (!curl->url_get(url, part, &text, flags) && text) copy = strdup(text);
  if (text) curl->free(text);
  return copy;
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

/* Takes the parts of url, which become those of a request without user and password. */
static bool take_parts(umemCurl const *curl, void *url, umemParsedUrl *parsed) {
  parsed->scheme = get_part(curl, url, umemCurlPartScheme, 0);
  parsed->host = get_part(curl, url, umemCurlPartHost, 0);
  parsed->port = get_part(curl, url, umemCurlPartPort, umemCurlUrlDefaultPort);
  parsed->path = get_part(curl, url, umemCurlPartPath, 0);
  parsed->user = get_part(curl, url, umemCurlPartUser, umemCurlUrlDecode);
  parsed->password = get_part(curl, url, umemCurlPartPassword, umemCurlUrlDecode);
  static int const secret[] = {umemCurlPartUser, umemCurlPartPassword, umemCurlPartOptions,
                               umemCurlPartFragment};
  for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
    if (curl->url_set(url, secret[i], NULL, 0)) return false;
  parsed->target.url = get_part(curl, url, umemCurlPartUrl, 0);
  if (!parsed->scheme || !parsed->host || !parsed->port || !parsed->path || !parsed->target.url)
    return false;
  size_t size = strlen(parsed->scheme) + strlen(parsed->host) + strlen(parsed->port) + 5;
  parsed->target.origin = malloc(size);
  if (parsed->target.origin)
    snprintf(parsed->target.origin, size, "%s://%s:%s", parsed->scheme, parsed->host, parsed->port);
  return parsed->target.origin != NULL;
}

/* libcurl alone takes URLs apart, here and for the request: two readers could disagree about the
 * host. */
static bool parse(umemCurl const *curl, char const *text, umemParsedUrl *parsed) {
  *parsed = (umemParsedUrl){0};
  void *url = curl->url();
  bool good = url && !curl->url_set(url, umemCurlPartUrl, text, 0) &&
              take_parts(curl, url, parsed) &&
              (!strcmp(parsed->scheme, "http") || !strcmp(parsed->scheme, "https"));
  if (url) curl->url_cleanup(url);
  if (!good) end_parsed(parsed);
  return good;
}

static bool allows_host(umemFetch const *fetch, umemParsedUrl const *parsed) {
  bool usual = !strcmp(parsed->port, strcmp(parsed->scheme, "https") ? "80" : "443");
  return umemHosts_allow(fetch->hosts, parsed->host, parsed->port, usual);
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
  if (!location || !parse(fetch->curl, location, &to))
    return "the server redirects to no URL of http or https";
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
  umemParsedUrl parsed;
  umemVirtual *ctx = fetch->ctx;
  if (!parse(fetch->curl, url, &parsed))
    return UMEM_FAIL(ctx, umemValueError,
                     "the URL is malformed: right would be http://HOST/PATH or https://HOST/PATH, "
                     "with %%XX for special characters");
  char const *hosts = fetch->options.hosts, *held = umemHosts_held();
  bool good = copy_text(&fetch->hosts, held ? held : hosts);
  if (good && !(allows_host(fetch, &parsed) &&
                (!held || !hosts || umemHosts_allow(hosts, parsed.host, parsed.port, false)))) {
    umemVirtual_fail(ctx, umemValueError, "the host \"%.100s\" is not allowed here", parsed.host);
    good = false;
  } else if (good) {
    good = copy_texts(fetch, &parsed, label) || umemFetch_no_memory(fetch);
  }
  end_parsed(&parsed);
  return good;
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
  umemFetch_destroy(fetch);
  return NULL;
}

void umemFetch_destroy(umemFetch *fetch) {
  if (!fetch) return;
  if (fetch->headers) fetch->curl->list_free(fetch->headers);
  if (fetch->signer.release) fetch->signer.release(fetch->signer.user);
  char *texts[] = {fetch->user,      fetch->password, fetch->bearer, fetch->ca_file,
                   fetch->ca_folder, fetch->hosts,    fetch->label};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
  end_target(&fetch->home);
  end_target(&fetch->target);
  umemLock_destroy(&fetch->lock);
  free(fetch);
}
