/* url_curl.c - finds libcurl at run time. */
#include "url/url_curl.h"
#include "base/system.h"
#include "core/status.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct {
  pthread_once_t once;
  umemCurl table;
  bool found;
  char absence[160]; /* why it was not found */
} library = {.once = PTHREAD_ONCE_INIT};

umemCurl const *umem_curl_double;

static bool find(void *handle, char const *symbol, void *function) {
  void *at = dlsym(handle, symbol);
  if (at)
    memcpy(function, &at, sizeof at);
  else
    snprintf(library.absence, sizeof library.absence, "it lacks %s", symbol);
  return at != NULL;
}

static bool find_all(void *handle) {
#define FIND(member, symbol, result, parameters) find(handle, #symbol, &library.table.member) &&
  return UMEM_CURL_FUNCTIONS(FIND) true;
#undef FIND
}

static bool is_new_enough(void) {
  umemCurlVersion const *version = library.table.version(0);
  if (version && version->number >= umemCurlOldest) return true;
  snprintf(library.absence, sizeof library.absence, "it has version %.20s",
           version && version->text ? version->text : "0");
  return false;
}

static bool set_up(void) {
  int code = library.table.global_init(3); /* CURL_GLOBAL_ALL */
  if (code) snprintf(library.absence, sizeof library.absence, "curl_global_init returns %d", code);
  return !code;
}

/* The library stays loaded: it may have threads, and others may use it. */
static void find_library(void) {
  static char const *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"};
  void *handle = NULL;
  char const *error = NULL;
  for (size_t i = 0; !handle && i < sizeof names / sizeof *names; i++)
    handle = umem_open_library(names[i], RTLD_NOW, &error);
  if (!handle) snprintf(library.absence, sizeof library.absence, "%s", error ? error : "not found");
  library.found = handle && find_all(handle) && is_new_enough() && set_up();
}

umemCurl const *umemCurl_get(umemVirtual *ctx) {
  if (umem_curl_double) return umem_curl_double;
  pthread_once(&library.once, find_library);
  if (library.found) return &library.table;
  return UMEM_FAIL_NULL(ctx, umemNotSupportedError,
                        "places behind a URL need libcurl 7.66 or later, libcurl.so.4 (Debian and "
                        "Ubuntu: apt install libcurl4; Fedora: dnf install libcurl): %s",
                        library.absence);
}
