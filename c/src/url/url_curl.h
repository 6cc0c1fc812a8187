/* url_curl.h - the functions of libcurl that umem uses, found at run time, and their numbers.
 *
 * The numbers and structs are those that libcurl documents and keeps for the life of its shared
 * library (libcurl.so.4). Tests put other tables in place of libcurl's. */
#ifndef UMEM_URL_CURL_H
#define UMEM_URL_CURL_H

#include <stddef.h>
#include <stdint.h>
#include <umem/base.h>

/* struct curl_slist */
typedef struct umemCurlList {
  char *text;
  struct umemCurlList *next;
} umemCurlList;

/* struct CURLMsg */
typedef struct umemCurlMessage {
  int message; /* umemCurlDone */
  void *easy;
  union {
    void *whatever;
    int result;
  } data;
} umemCurlMessage;

/* struct curl_waitfd */
typedef struct umemCurlWait {
  int socket;
  short wanted, found;
} umemCurlWait;

/* The first members of curl_version_info_data. */
typedef struct umemCurlVersion {
  int age;
  char const *text;
  unsigned number; /* 0x074200: 7.66.0 */
  char const *host;
  int features;
} umemCurlVersion;

enum { umemCurlOldest = 0x074200 };

enum { /* CURLcode */
       umemCurlOK = 0,
       umemCurlNoProxy = 5,
       umemCurlNoHost = 6,
       umemCurlNoConnection = 7,
       umemCurlHttp2 = 16,
       umemCurlPartial = 18,
       umemCurlWriteError = 23,
       umemCurlNoMemory = 27,
       umemCurlTimedOut = 28,
       umemCurlTlsConnect = 35,
       umemCurlGotNothing = 52,
       umemCurlSendError = 55,
       umemCurlReceiveError = 56,
       umemCurlAgain = 81,
       umemCurlHttp2Stream = 92
};

enum { umemCurlDone = 1 }; /* CURLMSG_DONE */

enum { /* CURLoption */
       umemCurlOptVerbose = 41,
       umemCurlOptHttpVersion = 84,
       umemCurlOptBufferSize = 98,
       umemCurlOptNoSignal = 99,
       umemCurlOptHttpAuth = 107,
       umemCurlOptNoBody = 44,
       umemCurlOptUpload = 46,
       umemCurlOptFollow = 52,
       umemCurlOptHttpGet = 80,
       umemCurlOptConnectOnly = 141,
       umemCurlOptConnectMs = 156,
       umemCurlOptProtocols = 181,
       umemCurlOptKeepAlive = 213,
       umemCurlOptExpectMs = 227,
       umemCurlOptUploadBuffer = 280,
       umemCurlOptNoConnectHeaders = 265,
       umemCurlOptWriteData = 10001,
       umemCurlOptUrl = 10002,
       umemCurlOptUserPwd = 10005,
       umemCurlOptRange = 10007,
       umemCurlOptReadData = 10009,
       umemCurlOptErrorText = 10010,
       umemCurlOptUserAgent = 10018,
       umemCurlOptHeaders = 10023,
       umemCurlOptHeaderData = 10029,
       umemCurlOptMethod = 10036,
       umemCurlOptCaFile = 10065,
       umemCurlOptDebugData = 10095,
       umemCurlOptCaFolder = 10097,
       umemCurlOptPrivate = 10103,
       umemCurlOptSeekData = 10168,
       umemCurlOptUser = 10173,
       umemCurlOptPassword = 10174,
       umemCurlOptBearer = 10220,
       umemCurlOptAwsSigv4 = 10305,
       umemCurlOptWrite = 20011,
       umemCurlOptRead = 20012,
       umemCurlOptHeader = 20079,
       umemCurlOptDebug = 20094,
       umemCurlOptSeek = 20167,
       umemCurlOptUploadSize = 30115
};

enum { /* CURLMoption, CURLAUTH_..., CURL_HTTP_VERSION_..., CURLPROTO_..., CURL_READFUNC_..., ... */
       umemCurlMultiConnections = 6,
       umemCurlAuthBasic = 1 << 0,
       umemCurlAuthBearer = 1 << 6,
       umemCurlHttp11 = 2,
       umemCurlHttp2Tls = 4,
       umemCurlProtoHttp = 1 << 0,
       umemCurlProtoHttps = 1 << 1,
       umemCurlWaitIn = 1 << 0,
       umemCurlWaitOut = 1 << 2,
       umemCurlHeaderOut = 2,
       umemCurlSeekOK = 0,
       umemCurlSeekFailed = 1
};

enum { /* CURLINFO */
       umemCurlInfoPrivate = 0x100015,
       umemCurlInfoRedirect = 0x10001f,
       umemCurlInfoSocket = 0x50002c,
       umemCurlInfoRetryAfter = 0x600039
};

enum { /* CURLUPart, a CURLUcode, and flags */
       umemCurlPartUrl = 0,
       umemCurlPartScheme,
       umemCurlPartUser,
       umemCurlPartPassword,
       umemCurlPartOptions,
       umemCurlPartHost,
       umemCurlPartPort,
       umemCurlPartPath,
       umemCurlPartQuery,
       umemCurlPartFragment,
       umemCurlUrlNoMemory = 7, /* CURLUE_OUT_OF_MEMORY */
       umemCurlUrlDefaultPort = 1 << 0,
       umemCurlUrlDecode = 1 << 6
};

/* FUNCTION(member, symbol, result, parameters) */
#define UMEM_CURL_FUNCTIONS(FUNCTION)                                                              \
  FUNCTION(global_init, curl_global_init, int, (long flags))                                       \
  FUNCTION(version, curl_version_info, umemCurlVersion const *, (int age))                         \
  FUNCTION(easy_init, curl_easy_init, void *, (void))                                              \
  FUNCTION(easy_cleanup, curl_easy_cleanup, void, (void *easy))                                    \
  FUNCTION(easy_setopt, curl_easy_setopt, int, (void *easy, int option, ...))                      \
  FUNCTION(easy_getinfo, curl_easy_getinfo, int, (void *easy, int info, ...))                      \
  FUNCTION(easy_send, curl_easy_send, int,                                                         \
           (void *easy, void const *bytes, size_t size, size_t *sent))                             \
  FUNCTION(easy_recv, curl_easy_recv, int,                                                         \
           (void *easy, void *bytes, size_t size, size_t *received))                               \
  FUNCTION(easy_words, curl_easy_strerror, char const *, (int code))                               \
  FUNCTION(multi_init, curl_multi_init, void *, (void))                                            \
  FUNCTION(multi_cleanup, curl_multi_cleanup, int, (void *multi))                                  \
  FUNCTION(multi_setopt, curl_multi_setopt, int, (void *multi, int option, ...))                   \
  FUNCTION(multi_add, curl_multi_add_handle, int, (void *multi, void *easy))                       \
  FUNCTION(multi_remove, curl_multi_remove_handle, int, (void *multi, void *easy))                 \
  FUNCTION(multi_perform, curl_multi_perform, int, (void *multi, int *running))                    \
  FUNCTION(multi_read, curl_multi_info_read, umemCurlMessage *, (void *multi, int *left))          \
  FUNCTION(multi_poll, curl_multi_poll, int,                                                       \
           (void *multi, umemCurlWait *more, unsigned count, int timeout_ms, int *ready))          \
  FUNCTION(multi_words, curl_multi_strerror, char const *, (int code))                             \
  FUNCTION(list_append, curl_slist_append, umemCurlList *,                                         \
           (umemCurlList * list, char const *text))                                                \
  FUNCTION(list_free, curl_slist_free_all, void, (umemCurlList * list))                            \
  FUNCTION(url, curl_url, void *, (void))                                                          \
  FUNCTION(url_cleanup, curl_url_cleanup, void, (void *url))                                       \
  FUNCTION(url_set, curl_url_set, int, (void *url, int part, char const *text, unsigned flags))    \
  FUNCTION(url_get, curl_url_get, int, (void *url, int part, char **text, unsigned flags))         \
  FUNCTION(free, curl_free, void, (void *text))

typedef struct umemCurl {
#define UMEM_CURL_MEMBER(member, symbol, result, parameters) result(*member) parameters;
  UMEM_CURL_FUNCTIONS(UMEM_CURL_MEMBER)
#undef UMEM_CURL_MEMBER
} umemCurl;

/* The functions of libcurl, which is loaded and set up once. NULL, and umemNotSupportedError on ctx
 * with the name of the package, where it is missing or too old. */
umemCurl const *umemCurl_get(umemVirtual *ctx);

/* What umemCurl_get returns instead of libcurl's functions, for tests; NULL: these. */
extern umemCurl const *umem_curl_double;

#endif
