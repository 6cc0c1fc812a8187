/* url.c - objects of a good server: what is read, by how many requests, and what is refused. */
#include "url_help.h"

#include "child.h"
#include "workers.h"

#include <time.h>

/* ---- what is there ---- */

TEST(the_object_is_read) {
  serve(NULL, NULL);
  umemInfo info = UMEM_INFO_INIT;
  assert_ok(umem_get_info(&url, &info));
  assert_int_equal(info.capacity, object_size);
  assert_int_equal(info.available, object_size);
  assert_string_equal(info.name, url_server_url(server));
  assert_string_equal(umem_get_device_name(&url), "Url");
  assert_int_equal(url.super.type, umemUrlDevice);
  assert_read(0, object_size);
  assert_read(1234567, 1);
  assert_read(object_size - 1, 1);
}

TEST(a_long_copy_is_many_requests) {
  options.piece = 1 << 20;
  serve(NULL, NULL);
  assert_read(0, object_size);
  umemUrlStats stats = UMEM_URL_STATS_INIT;
  assert_ok(umemUrl_stats(&url, &stats));
  assert_int_equal(stats.requests, 1 + 3);
  assert_int_equal(stats.retries, 0);
  assert_int_equal(stats.nbytes, object_size);
  for (int i = 0; i < 10; i++) assert_read(0, object_size);
  assert_in_range(url_server_connections(server), 2, 1 + 3); /* they stay open */
}

TEST(no_more_than_the_wanted_requests_are_in_flight) {
  options.piece = 64 << 10;
  options.connections = 3;
  serve(NULL, NULL);
  assert_read(0, object_size);
  assert_in_range(url_server_most(server), 1, 3);
}

/* By four threads. *had: of so many connections, *most: at most busy at a time. */
static void read_long_copy(unsigned connections, unsigned *had, unsigned *most) {
  size_t const size = 40 << 20;
  SCOPED(free_bytes) unsigned char *all = malloc(size), *to = malloc(size);
  assert_non_null(all);
  assert_non_null(to);
  for (size_t i = 0; i < size; i++) all[i] = (unsigned char)(i >> 7);
  options.connections = connections;
  server = url_server_start(all, size, NULL, NULL);
  assert_ok(umem_set_threads(4));
  assert_ok(open_url());
  assert_ok(umem_copy_to(&url, 0, &host, (uintptr_t)to, size));
  assert_memory_equal(to, all, size);
  *had = url_server_connections(server);
  *most = url_server_most(server);
  assert_ok(umem_set_threads(0));
  umem_dtor(&url);
  end_server();
}

TEST(nor_if_several_threads_read_a_long_copy) {
  unsigned had, most;
  read_long_copy(1, &had, &most);
  assert_int_equal(most, 1);
}

/* Longer than a cache, past which it goes: no byte beside it changes. */
TEST(a_long_copy_goes_to_any_address) {
  size_t const size = (size_t)5 << 20, zone = 64;
  SCOPED(free_bytes) unsigned char *all = malloc(size), *to = malloc(size + 3 * zone);
  assert_non_null(all);
  assert_non_null(to);
  for (size_t i = 0; i < size; i++) all[i] = (unsigned char)(i * 2654435761u >> 11);
  server = url_server_start(all, size, NULL, NULL);
  assert_ok(open_url());
  for (size_t at = 0; at < zone; at += 13) {
    size_t const nbytes = size - 3 * at;
    memset(to, 0xA5, size + 3 * zone);
    assert_ok(umem_copy_to(&url, at, &host, (uintptr_t)to + zone + at, nbytes));
    assert_memory_equal(to + zone + at, all + at, nbytes);
    for (size_t i = 0; i < zone; i++)
      assert_true(to[at + i] == 0xA5 && to[zone + at + nbytes + i] == 0xA5);
  }
  umem_dtor(&url);
  url_server_stop(server);
  server = NULL;
}

static bool time_stands; /* atomic */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  if (!__atomic_load_n(&time_stands, __ATOMIC_RELAXED)) return __real_clock_gettime(clock, time);
  *time = (struct timespec){.tv_sec = 1000};
  return 0;
}

/* The first one would begin the requests of all. Where time stands, it never ceases to wait. */
TEST(the_threads_of_a_long_copy_share_its_connections) {
  unsigned had, most;
  __atomic_store_n(&time_stands, true, __ATOMIC_RELAXED);
  read_long_copy(4, &had, &most);
  __atomic_store_n(&time_stands, false, __ATOMIC_RELAXED);
  assert_in_range(had, 1, 1 + 4); /* with that of the constructor; fewer if a thread comes late */
  assert_in_range(most, 1, 4);
}

TEST(reads_past_the_end_are_refused) {
  serve(NULL, NULL);
  assert_failed(read_bytes(object_size, 1), umemIndexError, "past the end of");
  assert_failed(umem_copy_to(&url, 1, &host, (uintptr_t)got, object_size), umemIndexError,
                "read of 3000000 bytes at 1 past the end of http://127.0.0.1");
  assert_int_equal(url_server_requests(server), 1);
}

TEST(an_empty_object_has_no_bytes) {
  server = url_server_start(object, 0, NULL, NULL);
  assert_ok(open_url());
  umemInfo info = UMEM_INFO_INIT;
  assert_ok(umem_get_info(&url, &info));
  assert_int_equal(info.capacity, 0);
  assert_failed(read_bytes(0, 1), umemIndexError, "(0 bytes)");
}

/* ---- blocks, as in a file of mode "r" ---- */

TEST(blocks_are_where_a_file_has_them) {
  umemFile file;
  serve(NULL, NULL);
  assert_ok(umemFile_ctor(&file, NULL, "w+"));
  size_t const sizes[] = {1000, 1, 70000, 16, 31};
  uintptr_t blocks[5];
  for (int i = 0; i < 5; i++) {
    blocks[i] = umem_alloc(&url, sizes[i]);
    assert_int_equal(blocks[i], umem_alloc(&file, sizes[i]));
  }
  umem_free(&url, blocks[2]);
  umem_free(&file, blocks[2]);
  assert_int_equal(umem_aligned_alloc(&url, 4096, 5000), umem_aligned_alloc(&file, 4096, 5000));
  assert_int_equal(umem_realloc(&url, blocks[0], 1000, 9000),
                   umem_realloc(&file, blocks[0], 1000, 9000));
  umem_dtor(&file);
  assert_true(umem_is_ok(&url));
}

TEST(blocks_end_with_the_object) {
  serve(NULL, NULL);
  assert_int_equal(umem_alloc(&url, object_size + 1), UINTPTR_MAX);
  assert_failed(umem_thread_status(), umemMemoryError, "has 3000000 bytes and is only read");
  uintptr_t all = umem_alloc(&url, object_size);
  assert_int_equal(all, 0);
  assert_int_equal(umem_alloc(&url, 1), UINTPTR_MAX);
  assert_int_equal(umem_realloc(&url, all, object_size + 1, 1), UINTPTR_MAX);
  assert_failed(umem_thread_status(), umemValueError, "has 3000000 bytes, not 3000001");
  umem_free(&url, 16);
  assert_failed(umem_thread_status(), umemValueError, "16 is not a live block of");
  umem_free(&url, all);
}

TEST(writes_are_refused) {
  serve(NULL, NULL);
  uintptr_t adr = umem_alloc(&url, 100);
  char const words[] = "is not writable";
  assert_failed(umem_set(&url, adr, 1, 100), umemNotSupportedError, words);
  assert_failed(umem_copy_to(&host, (uintptr_t)got, &url, adr, 100), umemNotSupportedError, words);
  assert_int_equal(umem_calloc(&url, 1, 100), UINTPTR_MAX);
  assert_failed(umem_thread_status(), umemNotSupportedError, words);
}

/* ---- other targets, lists, items ---- */

TEST(a_file_gets_the_bytes) {
  serve(NULL, NULL);
  CONTEXT(umemFile, file, NULL, "w+");
  uintptr_t adr = umem_alloc(&file, object_size);
  assert_ok(umem_copy_to(&url, 0, &file, adr, object_size));
  assert_ok(umem_copy_to(&file, adr, &host, (uintptr_t)got, object_size));
  assert_memory_equal(got, object, object_size);
}

/* Neighbours are one request, and so are those with a small gap. */
TEST(a_list_is_few_requests) {
  enum { count = 100, size = 1000 };
  umemCopyItem items[count];
  serve(NULL, NULL);
  for (size_t i = 0; i < count; i++) {
    size_t from = i < 50 ? i * 2 * size : 1000000 + i * size; /* with gaps, and without */
    size_t k = i * 37 % count;                                /* in no order */
    items[k] = (umemCopyItem){&url, from, &host, (uintptr_t)got + from, size};
  }
  unsigned before = url_server_requests(server);
  assert_ok(umem_copy_many(items, count, NULL));
  assert_int_equal(url_server_requests(server) - before, 2);
  for (size_t i = 0; i < count; i++)
    assert_memory_equal(got + items[i].src_adr, object + items[i].src_adr, size);
  assert_int_equal(got[size], 0); /* a gap is not written */
}

TEST(runs_that_are_far_are_requests_of_their_own) {
  umemCopyItem items[20];
  serve(NULL, NULL);
  for (size_t i = 0; i < 20; i++)
    items[i] = (umemCopyItem){&url, i * 100000, &host, (uintptr_t)got + i * 100000, 10};
  assert_ok(umem_copy_many(items, 20, NULL));
  assert_int_equal(url_server_requests(server), 21);
  assert_in_range(url_server_most(server), 1, 16);
}

TEST(a_column_is_read_with_the_gaps) {
  enum { rows = 1000, row = 3000, item = 8 };
  size_t const extents[] = {rows};
  ptrdiff_t const from[] = {row}, to[] = {item};
  umemLayout layout = {.size = sizeof layout,
                       .item_size = item,
                       .rank = 1,
                       .extents = extents,
                       .src_strides = from,
                       .dst_strides = to};
  serve(NULL, NULL);
  assert_ok(umem_copy_strided(&url, 16, &host, (uintptr_t)got, &layout));
  for (size_t i = 0; i < rows; i++)
    assert_memory_equal(got + i * item, object + 16 + i * row, item);
  assert_in_range(url_server_requests(server), 2, 10);
}

TEST(a_transfer_goes_on_beside_the_program) {
  serve(NULL, NULL);
  umemTransfer *transfer = NULL;
  assert_ok(umem_start(&url, 0, &host, (uintptr_t)got, object_size, NULL, &transfer));
  assert_ok(umemTransfer_wait(transfer));
  umemTransfer_release(transfer);
  assert_memory_equal(got, object, object_size);
}

static bool count_reports(void *user, size_t done, size_t total) {
  int *reports = user;
  ++*reports;
  return done < 2000000 || done == total;
}

TEST(a_copy_reports_how_far_it_is_and_can_be_cancelled) {
  int reports = 0;
  umemCopyOptions steps = {
      .size = sizeof steps, .step = 1 << 20, .progress = count_reports, .user = &reports};
  serve(NULL, NULL);
  assert_int_equal(umem_copy_to_with(&url, 0, &host, (uintptr_t)got, object_size, &steps),
                   umemCancelledError);
  assert_int_equal(reports, 3);
  assert_memory_equal(got, object, 2 << 20);
}

/* A long copy that reports is not cut: as many requests are in flight as without. */

enum { long_size = 24 << 20 };

static bool serve_slowly(void *user, UrlRequest *request) {
  nanosleep(&(struct timespec){0, 20 * 1000 * 1000}, NULL);
  return url_serve(user, request);
}

typedef struct Reports {
  size_t last, most; /* bytes; to be cancelled after most */
  unsigned count;
} Reports;

static bool note_report(void *user, size_t done, size_t total) {
  Reports *reports = user;
  if (done < reports->last) fail_msg("%zu after %zu", done, reports->last);
  reports->last = done;
  reports->count++;
  return done < reports->most || done == total;
}

static umemStatusType read_long(Reports *reports, unsigned char *bytes) {
  umemCopyOptions steps = {
      .size = sizeof steps, .step = 1 << 20, .progress = note_report, .user = reports};
  return umem_copy_to_with(&url, 0, &host, (uintptr_t)bytes, long_size, &steps);
}

TEST(a_long_copy_reports_and_has_many_requests_in_flight) {
  SCOPED(free_bytes) unsigned char *bytes = malloc(long_size), *read = malloc(long_size);
  for (size_t i = 0; i < long_size; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 9);
  server = url_server_start(bytes, long_size, serve_slowly, NULL);
  options.piece = 1 << 20;
  assert_ok(open_url());
  Reports all = {.most = SIZE_MAX}, some = {.most = 4 << 20};
  assert_ok(read_long(&all, read));
  assert_memory_equal(read, bytes, long_size);
  assert_in_range(all.count, 24, 40);
  assert_in_range(url_server_most(server), 8, 16);
  umem_dtor(&url);
  options.connections = 4;
  assert_ok(open_url());
  unsigned before = url_server_requests(server);
  memset(read, 0, long_size);
  assert_int_equal(read_long(&some, read), umemCancelledError);
  assert_in_range(some.last, 4 << 20, 16 << 20);
  assert_memory_equal(read, bytes, some.last);
  assert_in_range(url_server_requests(server) - before, 4, 16);
}

/* ---- threads and children ---- */

static void *read_often(void *data) {
  size_t from = *(size_t const *)data, nbytes = object_size / 8;
  for (int i = 0; i < 4; i++)
    if (read_bytes(from, nbytes) != umemOK || memcmp(got + from, object + from, nbytes))
      return data;
  return NULL;
}

TEST(many_threads_read) {
  size_t from[8];
  options.piece = 64 << 10;
  serve(NULL, NULL);
  for (size_t i = 0; i < 8; i++) from[i] = i * (object_size / 8);
  run_at_once(8, read_often, from, sizeof *from);
}

/* It opens connections of its own, and its end does not end those of the parent. */
TEST(a_child_of_fork_reads_too) {
  options.connections = 1;
  serve(NULL, NULL);
  assert_read(0, object_size);
  unsigned before = url_server_connections(server);
  pid_t child = fork();
  if (!child) {
    bool good = read_bytes(0, object_size) == umemOK && !memcmp(got, object, object_size);
    umem_dtor(&url);
    _exit(good ? 0 : 1);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_true(url_server_connections(server) > before);
  before = url_server_connections(server);
  assert_read(0, object_size);
  assert_int_equal(url_server_connections(server), before);
}

/* ---- names ---- */

static char seen_path[512], seen_head[8192];

static bool note_request(void *user, UrlRequest *request) {
  if (!request->number) {
    strcpy(seen_path, request->path);
    strcpy(seen_head, request->head);
  }
  return url_serve(user, request);
}

static void *open_name(char const *format, ...) {
  char name[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name, sizeof name, format, arguments);
  va_end(arguments);
  return umem_open(name);
}

TEST(names_keep_the_query_of_the_server) {
  start(note_request, NULL);
  void *ctx =
      open_name("limit+http://127.0.0.1:%u/a%%2Fb%%20c?x=1&y=%%26#connections=4&limit.limit=1M",
                url_server_port(server));
  if (!ctx) fail_msg("%s", umem_thread_message());
  assert_string_equal(seen_path, "/a%2Fb%20c?x=1&y=%26");
  assert_ptr_equal(umem_find_layer(ctx, "https"), umem_get_upstream(ctx)); /* a umemUrl, as http */
  assert_ptr_equal(umem_find_layer(ctx, "http"), umem_get_upstream(ctx));
  assert_ok(umem_copy_to(ctx, 0, &host, (uintptr_t)got, 1000));
  assert_memory_equal(got, object, 1000);
  assert_ok(umem_close(ctx));
}

TEST(options_of_names_reach_the_requests) {
  start(note_request, NULL);
  void *ctx =
      open_name("http://127.0.0.1:%u/x#user=me&password=a%%26b&headers=X-One: 1%%0AX-Two: 2",
                url_server_port(server));
  if (!ctx) fail_msg("%s", umem_thread_message());
  assert_non_null(strstr(seen_head, "\r\nAuthorization: Basic bWU6YSZi\r\n"));
  assert_non_null(strstr(seen_head, "\r\nX-One: 1\r\n"));
  assert_non_null(strstr(seen_head, "\r\nX-Two: 2\r\n"));
  assert_non_null(strstr(seen_head, "\r\nAccept-Encoding: identity\r\n"));
  assert_ok(umem_close(ctx));
  ctx = open_name("http://you:p%%40ss@127.0.0.1:%u/x", url_server_port(server));
  assert_non_null(ctx);
  assert_ok(umem_close(ctx));
  assert_null(open_name("http://127.0.0.1:%u/x#speed=9", url_server_port(server)));
  assert_failed(umem_thread_status(), umemValueError, "there is no option \"speed\"");
  assert_null(open_name("http:"));
  assert_failed(umem_thread_status(), umemValueError, "is missing: right would be //HOST/PATH");
}

TEST(untrusted_names_reach_allowed_hosts_only) {
  char name[128], hosts[128];
  umemOpenOptions limits = UMEM_OPEN_OPTIONS_INIT;
  start(NULL, NULL);
  snprintf(name, sizeof name, "http://127.0.0.1:%u/x", url_server_port(server));
  assert_null(umem_open_with(name, &limits));
  assert_failed(umem_thread_status(), umemValueError, "no host is allowed here");
  char const *const others[] = {"example.org", "127.0.0.1", "*.0.0.1", "127.0.0.1:1"};
  for (int i = 0; i < 4; i++) {
    limits.hosts = others[i];
    assert_null(umem_open_with(name, &limits));
    assert_failed(umem_thread_status(), umemValueError, "\"127.0.0.1\" is not allowed here");
  }
  assert_int_equal(url_server_requests(server), 0);
  snprintf(hosts, sizeof hosts, "example.org *.0.0.1:%u", url_server_port(server));
  limits.hosts = hosts;
  void *ctx = umem_open_with(name, &limits);
  if (!ctx) fail_msg("%s", umem_thread_message());
  assert_ok(umem_close(ctx));
}

/* ---- what is refused ---- */

TEST(malformed_urls_are_refused) {
  static char const *const wrong[] = {"",
                                      "x",
                                      "http:",
                                      "http://",
                                      "ftp://127.0.0.1/x",
                                      "file:///etc/passwd",
                                      "http://[::1/x",
                                      "http://127.0.0.1:99999/x",
                                      "http://127.0.0.1/a b",
                                      "http://127.0.0.1/a\r\nHost: evil",
                                      "gopher://127.0.0.1/"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_failed(umemUrl_ctor(&url, wrong[i], &options), umemValueError, "the URL is malformed");
  assert_failed(umemUrl_ctor(&url, NULL, &options), umemValueError, "the URL is NULL");
  assert_failed(umemUrl_ctor(NULL, "http://127.0.0.1/", &options), umemValueError,
                "the context is NULL");
}

TEST(wrong_options_are_refused) {
  static char const *const lines[] = {"X-Bad: a\r\nX-More: b"}, *const nameless[] = {": x"};
#define REFUSED(change, words)                                                                     \
  do {                                                                                             \
    umemUrlOptions good = options;                                                                 \
    change;                                                                                        \
    assert_failed(umemUrl_ctor(&url, "http://127.0.0.1:1/", &options), umemValueError, words);     \
    options = good;                                                                                \
  } while (0)
  REFUSED(options.connections = 0, "0 connections: right would be 1 to 64");
  REFUSED(options.connections = 65, "65 connections");
  REFUSED(options.piece = 65535, "a piece of 65535 bytes");
  REFUSED(options.version = 3, "version or redirects");
  REFUSED(options.redirects = 3, "version or redirects");
  REFUSED(options.header_count = 1, "headers is NULL");
  REFUSED((options.headers = lines, options.header_count = 1), "header 0 of the options");
  REFUSED((options.headers = nameless, options.header_count = 1), "header 0 of the options");
  REFUSED(options.bearer = "a\r\nX: y", "has two lines");
  REFUSED(options.size = 1, "too small");
}

TEST(a_server_that_is_not_there_is_an_error) {
  options.retries = 1;
  assert_failed(umemUrl_ctor(&url, "http://127.0.0.1:1/x?secret", &options), umemIOError,
                "cannot open http://127.0.0.1:1/x?...: Failed to connect");
  assert_failed(umem_copy_to(&url, 0, &host, (uintptr_t)got, 1), umemIOError, "not constructed");
}

/* The proxy of the environment gets whole URLs. */
TEST(the_proxy_of_the_environment_is_used) {
  char proxy[64];
  start(note_request, NULL);
  snprintf(proxy, sizeof proxy, "http://127.0.0.1:%u", url_server_port(server));
  setenv("http_proxy", proxy, 1);
  umemStatusType status = umemUrl_ctor(&url, "http://nowhere.invalid/object", &options);
  unsetenv("http_proxy");
  if (status != umemOK) fail_msg("%s", umem_thread_message());
  assert_string_equal(seen_path, "http://nowhere.invalid/object");
}

static unsigned whole_urls, passwords;

static bool count_what_a_proxy_gets(void *user, UrlRequest *request) {
  __atomic_add_fetch(&whole_urls, request->path[0] != '/', __ATOMIC_RELAXED);
  bool has_password = strstr(request->head, "\r\nProxy-Authorization: ") != NULL;
  __atomic_add_fetch(&passwords, has_password, __ATOMIC_RELAXED);
  return url_serve(user, request);
}

/* libcurl looks for a proxy whenever it connects, so a long copy may meet another one than the
 * requests before it. Here the server itself is the proxy. */
TEST(the_password_of_a_proxy_is_for_the_proxy) {
  char proxy[64];
  options.connections = 1;
  start(count_what_a_proxy_gets, NULL);
  snprintf(proxy, sizeof proxy, "http://me:secret@127.0.0.1:%u", url_server_port(server));
  setenv("http_proxy", proxy, 1);
  umemStatusType status = open_url();
  if (status == umemOK) assert_read(5000, 10);
  unsetenv("http_proxy");
  assert_ok(status);
  assert_int_equal(whole_urls, 2);
  assert_int_equal(passwords, 2);
  assert_read(0, object_size);
  assert_int_equal(whole_urls, 2);
  assert_int_equal(passwords, 2);
}

int main(void) { return url_has_libcurl() ? run_cases(NULL, NULL) : 0; }
