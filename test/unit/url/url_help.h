/* url_help.h - what the tests of places behind a URL share: an object, a server of it, a context
 * that reads it, and RAM. */
#pragma once

#include "cases.h"
#include "failures.h"
#include "url_server.h"

enum { object_size = 3000000, secret_size = 64 };

static unsigned char object[object_size], got[object_size];
static UrlServer *server;
static umemUrl url;
static umemHost host;
static umemUrlOptions options;

static inline void begin(void **state UNUSED) {
  for (size_t i = 0; i < sizeof object; i++) object[i] = (unsigned char)(i * 2654435761u >> 11);
  memset(got, 0, sizeof got);
  options = (umemUrlOptions)UMEM_URL_OPTIONS_INIT;
  options.retries = 2;
  server = NULL;
  umemHost_ctor(&host);
  umem_thread_clear();
}

static inline void end(void **state UNUSED) {
  DESTRUCT(&url, &host);
  url_server_stop(server);
}

#define TEST(name) TEST_CASE_WITH(name, begin, end)

static inline void start(UrlAnswer *answer, void *user) {
  server = url_server_start(object, sizeof object, answer, user);
}

static inline umemStatusType open_url(void) {
  return umemUrl_ctor(&url, url_server_url(server), &options);
}

/* A server of the object, and the context open. */
static inline void serve(UrlAnswer *answer, void *user) {
  start(answer, user);
  assert_ok(open_url());
}

/* Ends the server, whose answers use variables of the test. */
static inline void end_server(void) {
  url_server_stop(server);
  server = NULL;
}

static inline umemStatusType read_bytes(size_t from, size_t nbytes) {
  return umem_copy_to(&url, from, &host, (uintptr_t)got + from, nbytes);
}

static inline void assert_read(size_t from, size_t nbytes) {
  umemStatusType status = read_bytes(from, nbytes);
  if (status != umemOK) fail_msg("%s", umem_thread_message());
  assert_memory_equal(got + from, object + from, nbytes);
}

/* That the last call has failed as type, with words in its message. */
static inline void assert_failed(umemStatusType status, umemStatusType type, char const *words) {
  if (status != type) fail_msg("%d, not %d: %s", status, type, umem_thread_message());
  if (!strstr(umem_thread_message(), words))
    fail_msg("\"%s\" lacks \"%s\"", umem_thread_message(), words);
  umem_thread_clear();
}
