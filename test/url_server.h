/* url_server.h - a small web server for tests, on 127.0.0.1, in threads of the test.
 *
 * By default it serves one object, with ranges, an ETag, and connections that stay open. A test
 * that needs a bad server gives a function that answers. */
#ifndef TEST_URL_SERVER_H
#define TEST_URL_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct UrlServer UrlServer;

/* One request: its method, its path with the query, the value of If-Match, and all of its head. */
typedef struct UrlRequest {
  UrlServer *server;
  int fd;          /* of the connection */
  unsigned number; /* of the request, from 0; connection: of its connection */
  unsigned connection;
  char method[8], path[512], match[256];
  bool has_range;
  size_t first, last; /* of the range, cut at the end of the object */
  char head[8192];
} UrlRequest;

/* Answers a request. Returns whether the connection stays open. */
typedef bool UrlAnswer(void *user, UrlRequest *request);

/* Whether umem finds libcurl. Otherwise says so: systems for which none is installed have no places
 * behind a URL. */
bool url_has_libcurl(void);

/* Starts a server of these bytes, which it borrows. answer NULL: url_serve. Fails the process if
 * there is no port. */
UrlServer *url_server_start(void const *bytes, size_t size, UrlAnswer *answer, void *user);
void url_server_stop(UrlServer *server);

/* "http://127.0.0.1:PORT/object" */
char const *url_server_url(UrlServer const *server);
unsigned url_server_port(UrlServer const *server);

/* Atomic: how many requests there were, and the most that were in work at a time. */
unsigned url_server_requests(UrlServer const *server);
unsigned url_server_most(UrlServer const *server);
unsigned url_server_connections(UrlServer const *server);

/* What a good server answers. */
bool url_serve(void *user, UrlRequest *request);

/* Returns when no request is in work: what the server reads may change then. */
void url_server_settle(UrlServer *server);

/* The object is another one now, of these bytes and this ETag, with its quotes. */
void url_server_replace(UrlServer *server, void const *bytes, size_t size, char const *etag);

/* Sends the head of an answer: status and lines of headers, format as of printf. Whether the client
 * has taken it. */
bool url_head(UrlRequest *request, char const *format, ...) __attribute__((format(printf, 2, 3)));
bool url_send(UrlRequest *request, void const *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
