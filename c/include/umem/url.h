/* umem/url.h - objects of web servers, which umem reads by HTTP. */
#ifndef UMEM_URL_H
#define UMEM_URL_H

#include <umem/base.h>

/* The bytes of one object behind a URL (http: or https:), as a file opened with mode "r": addresses
 * are byte offsets (umemOffsets: 0 is a valid address, UINTPTR_MAX is null), blocks are ranges of
 * the bytes there are, placed as those of a umemFile, and a copy may read any byte. Writes fail
 * with umemNotSupportedError. Concurrent, not ordered.
 *
 * libcurl 7.66 or later (Debian: libcurl4) is loaded when the first such context is constructed,
 * which fails with umemNotSupportedError where there is none. Its proxies (http_proxy, https_proxy,
 * no_proxy) apply. Certificates are checked; those of the authorities are in ca_file, or else in
 * the file of the variable CURL_CA_BUNDLE or SSL_CERT_FILE, the folder SSL_CERT_DIR, or where
 * libcurl was built to find them.
 *
 * A copy requests ranges of bytes, many at a time, over connections that stay open for later
 * copies. Bytes go straight into memory that the CPU can write, and otherwise through buffers, that
 * are pinned for a GPU. In a list of copies (umem_copy_many) neighbours are one request.
 *
 * One object, never a mixture: the constructor notes the length, and the ETag or the date
 * (Last-Modified), of the object, and each answer must have the same. If the object has changed, a
 * copy fails with umemIOError, and the bytes of its target are undefined. A weak ETag and a date
 * are as good as the server: a date cannot show two changes within one second. A server that gives
 * neither is refused, unless the option unpinned allows it: then only the length is compared. A
 * server that sends other bytes than those asked for is refused, and so is one that has no ranges.
 *
 * Errors that may pass (a connection cut or refused, the statuses 408, 429, 500, 502, 503 and 504,
 * no byte in stall_ms) are tried again, after a time that doubles, with chance in it, or that the
 * server wants (Retry-After). Only the bytes that are missing are asked for again.
 *
 * Redirects are followed, at most 5 in a row: never from https to http, and without user, password,
 * token and headers if they lead to another scheme, host or port. No message, ledger or umemInfo
 * has them, nor the query of the URL, which may be a signature.
 *
 * A child of fork may use the context; it opens connections of its own. umem_dtor ends the
 * connections; no copy may be running then. */
typedef struct umemUrl {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemUrl;

/* The version of HTTP. */
typedef enum umemUrlVersion {
  umemUrlVersionAuto = 0, /* HTTP/1.1, which reads sooner by several connections */
  umemUrlVersion1,        /* HTTP/1.1 */
  umemUrlVersion2         /* HTTP/2 over https where the server has it, else HTTP/1.1 */
} umemUrlVersion;

/* Which redirects are followed. */
typedef enum umemUrlRedirects {
  umemUrlRedirectsAuto = 0, /* all that are not from https to http */
  umemUrlRedirectsSame,     /* those to the same scheme, host and port */
  umemUrlRedirectsNone
} umemUrlRedirects;

/* The largest number of requests that one context has in flight. */
#define UMEM_URL_CONNECTIONS 64

/* Options of umemUrl_ctor. Texts are borrowed for the call. */
typedef struct umemUrlOptions {
  size_t size;          /* sizeof(umemUrlOptions) as the caller was compiled */
  uint32_t connections; /* requests in flight at a time; 1 to UMEM_URL_CONNECTIONS */
  uint32_t retries;     /* of one request, after the first attempt; 0: none */
  size_t piece;         /* bytes of one request at most; 64 KiB or more */
  size_t gap;           /* bytes between two neighbours of a list that are read to join them */
  uint32_t connect_ms;  /* milliseconds until a connection must stand; 0: no limit */
  uint32_t stall_ms; /* milliseconds without a byte after which a request has failed; 0: no limit */
  uint32_t total_ms; /* milliseconds that a copy may take; 0: no limit */
  umemUrlVersion version;
  umemUrlRedirects redirects;
  uint32_t unpinned;          /* 1: reads an object without ETag and date, too */
  char const *ca_file;        /* certificates of the authorities (PEM); NULL: see umemUrl */
  char const *user;           /* for basic authentication; NULL: that of the URL, if it has one */
  char const *password;       /* of the user */
  char const *bearer;         /* a token for "Authorization: Bearer"; NULL: none */
  char const *const *headers; /* more headers, "Name: value" each; treated as secrets */
  size_t header_count;
  /* Hosts that the URL and redirects may name, separated by spaces: "example.org" for the usual
   * ports, "example.org:8080", "*.example.org" for all below it. NULL: all. */
  char const *hosts;
} umemUrlOptions;

/* The defaults. */
#define UMEM_URL_OPTIONS_INIT                                                                      \
  {                                                                                                \
    sizeof(umemUrlOptions), 16, 5, 8 << 20, 64 << 10, 10000, 30000, 0, umemUrlVersionAuto,         \
        umemUrlRedirectsAuto, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL                             \
  }

/* Opens the object at url, and finds its length, its ETag and its date by one request. options:
 * borrowed for the call; NULL: the defaults.
 *
 * Errors: umemValueError for a URL that cannot be right or is not allowed, and for wrong options;
 * umemNotSupportedError without libcurl, for a server without ranges, and for an object that cannot
 * be pinned; umemIOError with the HTTP status or the words of libcurl; umemMemoryError. */
UMEM_EXTERN umemStatusType umemUrl_ctor(umemUrl *ctx, char const *url,
                                        umemUrlOptions const *options);

/* What a context has done so far. */
typedef struct umemUrlStats {
  size_t size;       /* sizeof(umemUrlStats) as the caller was compiled; set it before the call */
  uint64_t requests; /* attempts that were sent, that of the constructor included */
  uint64_t retries;  /* of them, attempts after one that had failed */
  uint64_t nbytes;   /* bytes of answers that were used */
} umemUrlStats;

/* What an umemUrlStats starts as. */
#define UMEM_URL_STATS_INIT                                                                        \
  { sizeof(umemUrlStats), 0, 0, 0 }

/* Fills in *stats. Errors: umemValueError if stats is NULL or too short; umemTypeError if ctx is no
 * context behind a URL. */
UMEM_EXTERN umemStatusType umemUrl_stats(umemUrl *ctx, umemUrlStats *stats);

#endif
