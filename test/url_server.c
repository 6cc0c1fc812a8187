/* url_server.c - a thread accepts connections, and one for each of them answers. */
#include "url_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <umem.h>
#include <unistd.h>

enum { most_connections = 256 };

typedef struct Connection {
  UrlServer *server;
  pthread_t thread;
  int fd;
  bool used;
  unsigned number;
  UrlRequest request; /* that it answers now */
} Connection;

struct UrlServer {
  UrlAnswer *answer;
  void *user;
  int listener;
  unsigned port;
  pthread_t thread;
  char url[64];
  pthread_mutex_t lock; /* of all below */
  unsigned char const *bytes;
  size_t size;
  char etag[64];
  bool over;
  Connection connections[most_connections];
  unsigned count, requests, working, most;
};

static void fail(char const *what) {
  perror(what);
  abort();
}

char const *url_server_url(UrlServer const *server) { return server->url; }
unsigned url_server_port(UrlServer const *server) { return server->port; }

bool url_has_libcurl(void) {
  umemUrl url;
  umemUrlOptions options = UMEM_URL_OPTIONS_INIT;
  options.retries = 0;
  umemStatusType status = umemUrl_ctor(&url, "http://127.0.0.1:1/", &options);
  if (status == umemNotSupportedError) printf("skipped: %s\n", umem_thread_message());
  umem_thread_clear();
  return status != umemNotSupportedError;
}

static unsigned look(UrlServer const *server, unsigned const *number) {
  pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&server->lock;
  pthread_mutex_lock(lock);
  unsigned value = *number;
  pthread_mutex_unlock(lock);
  return value;
}

unsigned url_server_requests(UrlServer const *server) { return look(server, &server->requests); }
unsigned url_server_most(UrlServer const *server) { return look(server, &server->most); }
unsigned url_server_connections(UrlServer const *server) { return look(server, &server->count); }

void url_server_settle(UrlServer *server) {
  while (look(server, &server->working)) sched_yield();
}

void url_server_replace(UrlServer *server, void const *bytes, size_t size, char const *etag) {
  pthread_mutex_lock(&server->lock);
  server->bytes = bytes;
  server->size = size;
  snprintf(server->etag, sizeof server->etag, "%s", etag);
  pthread_mutex_unlock(&server->lock);
}

/* ---- answers ---- */

bool url_send(UrlRequest *request, void const *bytes, size_t size) {
  char const *at = bytes;
  while (size) {
    ssize_t sent = send(request->fd, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

bool url_head(UrlRequest *request, char const *format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text - 4, format, arguments);
  va_end(arguments);
  strcpy(text + length, "\r\n");
  return url_send(request, text, (size_t)length + 2);
}

bool url_serve(void *user, UrlRequest *request) {
  (void)user;
  UrlServer *server = request->server;
  pthread_mutex_lock(&server->lock);
  unsigned char const *bytes = server->bytes;
  size_t size = server->size;
  char etag[64];
  strcpy(etag, server->etag);
  pthread_mutex_unlock(&server->lock);
  if (*request->match && strcmp(request->match, etag))
    return url_head(request, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n");
  if (!request->has_range)
    return url_head(request, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nETag: %s\r\n", size,
                    etag) &&
           url_send(request, bytes, size);
  if (request->first >= size)
    return url_head(request,
                    "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */%zu\r\n"
                    "Content-Length: 0\r\n",
                    size);
  size_t last = request->last < size ? request->last : size - 1;
  return url_head(request,
                  "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %zu-%zu/%zu\r\n"
                  "Content-Length: %zu\r\nETag: %s\r\n",
                  request->first, last, size, last + 1 - request->first, etag) &&
         url_send(request, bytes + request->first, last + 1 - request->first);
}

/* ---- requests ---- */

/* Copies the value of a header to text; "" if there is none. */
static void find_header(char const *head, char const *name, char *text, size_t size) {
  *text = 0;
  char const *at = strcasestr(head, name);
  if (at) snprintf(text, size, "%.*s", (int)strcspn(at + strlen(name), "\r\n"), at + strlen(name));
}

static void parse(UrlRequest *request) {
  char range[128];
  sscanf(request->head, "%7s %511s", request->method, request->path);
  find_header(request->head, "\r\nRange: bytes=", range, sizeof range);
  find_header(request->head, "\r\nIf-Match: ", request->match, sizeof request->match);
  request->last = SIZE_MAX;
  request->has_range = sscanf(range, "%zu-%zu", &request->first, &request->last) >= 1;
}

/* Reads one head, byte by byte, so that nothing of a body is lost. */
static bool read_head(UrlRequest *request) {
  size_t used = 0;
  while (used < sizeof request->head - 1) {
    ssize_t got = recv(request->fd, request->head + used, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    request->head[++used] = 0;
    if (used >= 4 && !memcmp(request->head + used - 4, "\r\n\r\n", 4)) return true;
  }
  return false;
}

static void count(UrlServer *server, UrlRequest *request) {
  pthread_mutex_lock(&server->lock);
  if (request) request->number = server->requests++;
  if (request && ++server->working > server->most) server->most = server->working;
  if (!request) server->working--;
  pthread_mutex_unlock(&server->lock);
}

static void *serve(void *data) {
  Connection *connection = data;
  UrlServer *server = connection->server;
  for (bool open = true; open;) {
    UrlRequest *request = &connection->request;
    *request =
        (UrlRequest){.server = server, .fd = connection->fd, .connection = connection->number};
    open = read_head(request);
    if (open) {
      parse(request);
      count(server, request);
      open = server->answer(server->user, request);
      count(server, NULL);
    }
  }
  shutdown(connection->fd, SHUT_RDWR);
  return NULL;
}

static void begin(UrlServer *server, int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  pthread_mutex_lock(&server->lock);
  bool room = server->count < most_connections && !server->over;
  if (room) {
    Connection *connection = &server->connections[server->count];
    *connection = (Connection){.server = server, .fd = fd, .number = server->count++};
    if (pthread_create(&connection->thread, NULL, serve, connection)) fail("pthread_create");
  }
  pthread_mutex_unlock(&server->lock);
  if (!room) close(fd);
}

static void *accept_all(void *data) {
  UrlServer *server = data;
  for (;;) {
    int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
      begin(server, fd);
    else if (errno != EINTR && errno != ECONNABORTED)
      return NULL;
  }
}

UrlServer *url_server_start(void const *bytes, size_t size, UrlAnswer *answer, void *user) {
  UrlServer *server = calloc(1, sizeof *server);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof at;
  if (!server) fail("calloc");
  server->answer = answer ? answer : url_serve;
  server->user = user;
  pthread_mutex_init(&server->lock, NULL);
  url_server_replace(server, bytes, size, "\"first\"");
  server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (server->listener < 0 || bind(server->listener, (struct sockaddr *)&at, sizeof at) ||
      listen(server->listener, 64) ||
      getsockname(server->listener, (struct sockaddr *)&at, &length))
    fail("a port for the server of a test");
  server->port = ntohs(at.sin_port);
  snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/object", server->port);
  if (pthread_create(&server->thread, NULL, accept_all, server)) fail("pthread_create");
  return server;
}

void url_server_stop(UrlServer *server) {
  if (!server) return;
  pthread_mutex_lock(&server->lock);
  server->over = true;
  pthread_mutex_unlock(&server->lock);
  shutdown(server->listener, SHUT_RDWR);
  pthread_join(server->thread, NULL);
  close(server->listener);
  for (unsigned i = 0; i < server->count; i++) shutdown(server->connections[i].fd, SHUT_RDWR);
  for (unsigned i = 0; i < server->count; i++) {
    pthread_join(server->connections[i].thread, NULL);
    close(server->connections[i].fd);
  }
  pthread_mutex_destroy(&server->lock);
  free(server);
}
