/* url_fetch.h - requests to a web server: of one object, many at a time, tried again where that may
 * help, and checked before a byte is used.
 *
 *   url_curl.c     finds libcurl
 *   url_request.c  one attempt after the other: what is sent, the answer, failures, retries
 *   url_line.c     ranges that are read straight to their place
 *   url_lane.c     many requests at a time, and copies by them
 *   url_fetch.c    what requests share: the URL, redirects, credentials, what answers must be
 *   url.c          the place */
#ifndef UMEM_URL_FETCH_H
#define UMEM_URL_FETCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem/base.h>
#include <umem/url.h>
#include <umem/virtual.h>

#include "base/thread.h"
#include "core/context.h"
#include "core/threads.h"
#include "url/url_curl.h"

/* ---- answers ---- */

/* What the headers of an answer say, as far as umem needs it. A server may say anything. */
typedef struct umemFetchReply {
  int status; /* of HTTP; 0: no answer */
  bool has_range, has_total, has_length;
  uint64_t first, last, total; /* of Content-Range */
  uint64_t length;             /* of Content-Length */
  bool encoded;                /* the body is compressed or the like */
  bool complete;               /* the empty line behind the headers has come */
  bool malformed;              /* a header contradicts itself, or is of no sense */
  char etag[256];              /* with its quotes; "": none */
  char modified[64];           /* the date, as it is; "": none */
} umemFetchReply;

/* Reads one line of the headers, which need not end with zero. The line of the status begins
 * anew. */
void umemFetchReply_read(umemFetchReply *reply, char const *line, size_t size);

/* Copies the value of the header `name` from such a line to out, if it is that header and fits. */
void umemFetchReply_find(char const *line, size_t size, char const *name, char *out, size_t room);

/* Whether there is an ETag that promises that the bytes are the same: quoted, and not weak. */
bool umemFetchReply_is_strong(umemFetchReply const *reply);

/* ---- credentials ---- */

/* One attempt of a request, for the signer. */
typedef struct umemFetchAttempt {
  umemCurl const *curl;
  void *easy;             /* URL, method, range and headers are set */
  umemCurlList **headers; /* list_append(*headers, ...) adds one */
  char const *method;
} umemFetchAttempt;

/* Signs attempts that go to the origin of the URL, never those that a redirect has sent
 * elsewhere. */
typedef struct umemFetchSigner {
  /* Thread-safe. False with a recorded failure. NULL: nothing is signed. */
  bool (*sign)(void *user, umemFetchAttempt *attempt);
  void (*release)(void *user); /* with the umemFetch; may be NULL */
  void *user;
} umemFetchSigner;

/* ---- what the requests of one place share ---- */

typedef struct umemFetch umemFetch;

/* The URL url, whose failures are those of ctx. label: its name in messages; NULL: the URL without
 * user, password and query. NULL with a status; signer is the fetch's from now on, also then. */
umemFetch *umemFetch_create(umemVirtual *ctx, char const *url, char const *label,
                            umemUrlOptions const *options, umemFetchSigner signer);
/* Ends the connections. No copy may be running. NULL is ignored. */
void umemFetch_destroy(umemFetch *fetch);

/* Finds length, ETag and date of the object, which all later answers must have. */
bool umemFetch_pin(umemFetch *fetch);

uint64_t umemFetch_length(umemFetch const *fetch);
char const *umemFetch_label(umemFetch const *fetch);
void umemFetch_stats(umemFetch const *fetch, umemUrlStats *stats);

/* Reads those of count runs that wait to dst: straight to its addresses if the CPU can write them,
 * else through buffers. src_adr of a run is an offset of the object; runs in the order of their
 * offsets are joined. Sets the states. Stops between runs when umem_thread.until has come, and sets
 * umem_thread.stopped. meter: of the one run; NULL: none. False after a failure. */
bool umemFetch_runs(umemFetch *fetch, umemVirtual *dst, umemCopyRun *runs, size_t count,
                    umemMeter *meter);

/* ---- single requests ---- */

typedef struct umemFetchCall {
  char const *what;           /* for messages: "cannot WHAT LABEL: ..." */
  char const *method;         /* "GET", "HEAD", "PUT", ... */
  char const *url;            /* of the same origin as that of the place; NULL: that of the place */
  char const *range;          /* "0-99"; NULL: all */
  char const *const *headers; /* "Name: value", besides those of the place */
  size_t header_count;
  void const *body; /* NULL: none; else it goes with its length, also if that is 0 */
  size_t body_size;
  char *answer; /* gets the first bytes of the body, and a zero; NULL: they are dropped */
  size_t answer_size;
  char const *wanted; /* a header of the answer, whose value goes to found; NULL: none */
  /* Set by umemFetch_call: */
  char found[64]; /* "": there is none, or it is longer */
  umemFetchReply reply;
  size_t answered; /* bytes in answer */
} umemFetchCall;

/* Sends one request, and returns its final answer in call->reply, whatever its status. False with a
 * status if there is none. Redirects are followed for GET and HEAD of the place's URL. */
bool umemFetch_call(umemFetch *fetch, umemFetchCall *call);

/* Records umemIOError for a final answer that is of no use. False. */
bool umemFetch_refuse(umemFetch *fetch, char const *what, int status);

/* ==== what the files of the engine share ==== */

enum {
  umemFetchErrorText = 256, /* CURL_ERROR_SIZE */
  umemFetchPinSize = 256 + 32,
  umemFetchMostDropped =
      64 << 10 /* bytes of the body of a refusal that are read, to keep its connection */
};

static uint64_t const umem_ns_of_ms = 1000 * 1000;

/* What umemFetch_destroy does besides the lanes. */
void umemFetch_free(umemFetch *fetch);

static inline uint64_t umemFetch_now(void) { return umemClock_read(CLOCK_MONOTONIC); }

/* Where requests go. */
typedef struct umemTarget {
  char *url;    /* without user and password; owned */
  char *origin; /* "https://host:443"; owned */
} umemTarget;

typedef struct umemLane umemLane;
typedef struct umemLine umemLine;

/* The lines of a request that has got a good answer. */
typedef struct umemModel {
  char *text; /* owned; NULL: there is none */
  size_t size;
  size_t from, to; /* of the bytes in its line Range */
  bool pinned;     /* has the headers of the pin */
  uint64_t until;  /* as umemFetch_now(), for its signature; 0: for ever */
} umemModel;

struct umemFetch {
  umemVirtual *ctx;
  umemCurl const *curl;
  umemUrlOptions options; /* its texts are in texts */
  umemCurlList *headers;  /* of the options */
  char *user, *password, *bearer, *ca_file, *ca_folder, *hosts, *held_hosts,
      *label; /* owned; may be NULL */
  umemFetchSigner signer;
  umemTarget home;
  bool secure; /* by TLS */
  uint64_t length;
  umemFetchReply pin;
  umemLock lock;     /* of the four below */
  umemTarget target; /* where a redirect has led; url NULL: home */
  umemModel model;
  umemLane *idle;
  unsigned forks; /* umem_fork_count() of the lanes */
  bool unlined;   /* lines cannot use what the server answers; atomic, as are the rest */
  unsigned odd;   /* answers in a row that they could not use */
  uint32_t inflight;
  uint64_t requests, retries, nbytes;
};

/* What several lanes read together. */
typedef struct umemFetchJob {
  umemFetch *fetch;
  umemVirtual *dst, *host; /* host: of the buffers; NULL: the addresses of dst are written */
  umemCopyRun *runs;
  size_t count;
  size_t nbytes;            /* of all runs */
  size_t piece, room;       /* bytes of a request at most, and of a buffer */
  umemMeter *meter;         /* NULL: none */
  pthread_t caller;         /* the thread of the copy */
  size_t *left;             /* bytes of each run that are not there; NULL: of one run; atomic */
  uint64_t until, deadline; /* ns; 0: none */
  pthread_mutex_t lock;     /* of the next byte to ask for: that of a run, after skip bytes */
  size_t run, skip;
  bool taken;           /* something was asked for */
  pthread_mutex_t turn; /* to write to a queue */
  unsigned planned;     /* lanes that the threads of the library will bring; */
  uint64_t gathered;    /* when those that come are there */
  unsigned lanes;       /* at work; atomic, as are the two below */
  unsigned inflight;    /* requests */
  bool over;            /* ask for nothing more */
} umemFetchJob;

typedef enum umemSlotState { slotIdle = 0, slotWaits, slotRuns } umemSlotState;

typedef struct umemSlot {
  umemFetch *fetch;
  void *easy;
  umemCurlList *headers;
  umemSlotState state;
  umemFetchJob *job;   /* or a */
  umemFetchCall *call; /* that it works for */
  umemLine *line;      /* NULL: none is open */
  /* Of a job: */
  uint64_t from;
  uint64_t begin;   /* as of umem_route_clock */
  size_t used;      /* bytes of runs, without gaps */
  size_t size, got; /* bytes in all, and there */
  size_t emptied;   /* of those there, bytes that are no longer in the buffer */
  size_t run, skip; /* where the next byte goes */
  size_t first_run, first_skip;
  uintptr_t buffer; /* of the host; null: none yet */
  /* Of a call: */
  size_t sent;
  /* Of the request: */
  unsigned attempts, hops; /* attempts that have failed */
  bool counts;             /* as in flight */
  bool plain;              /* no line is of use for it */
  uint64_t wake;           /* when to go on */
  /* Of the attempt: */
  uint64_t heard;  /* when the last byte came or went */
  bool lined;      /* goes over the line, not by easy */
  umemModel model; /* what libcurl has sent */
  char after[16];  /* Retry-After of a line's answer */
  umemFetchReply reply;
  bool checked;
  bool away, trusted; /* to where a redirect has led; with credentials */
  char const *wrong;  /* what is wrong with the answer; static */
  bool failed;        /* to write bytes to their place, with a status */
  size_t dropped;
  char error[umemFetchErrorText];
} umemSlot;

struct umemLane {
  umemFetch *fetch;
  void *multi;
  umemLane *next;
  unsigned slots, busy;
  uint64_t random;
  uint64_t listened; /* when the thread last let libcurl look at its connections */
  uint64_t asked;    /* when it last let the program cancel */
  umemSlot slot[];
};

/* ---- url_fetch.c ---- */

/* What is wrong with the headers of an answer with status 206 to a request for the bytes from first
 * to last; NULL: nothing. */
char const *umemFetchReply_check(umemFetchReply const *reply, umemFetch const *fetch,
                                 uint64_t first, uint64_t last);

/* Why the status of an answer to a range is final; NULL: it is not. */
char const *umemFetchReply_refusal(int status);

/* Records umemMemoryError. False. */
bool umemFetch_no_memory(umemFetch *fetch);

/* From now on, requests go to location, if that is allowed. Returns what forbids it, or NULL. */
char const *umemFetch_follow(umemFetch *fetch, char const *location);

/* From now on, requests go home again. */
void umemFetch_go_home(umemFetch *fetch);

/* Writes the header by which the server checks the pin, too; "": there is none. */
void umemFetch_write_pin(umemFetch const *fetch, char line[umemFetchPinSize]);

void umemModel_end(umemModel *model);

/* Whether lines can send the model: it is there and young, and requests go home. may_use: for those
 * that hold the lock. */
bool umemFetch_may_use_model(umemFetch const *fetch);
bool umemFetch_has_model(umemFetch *fetch);

/* Reads a model from what libcurl has sent; without text, if it is none. */
void umemFetch_read_model(umemFetch const *fetch, umemModel *model, char const *text, size_t size);

/* Lines use it from now on. */
void umemFetch_keep_model(umemFetch *fetch, umemModel *model);
void umemFetch_forget_model(umemFetch *fetch);

/* ---- url_request.c ---- */

/* Nothing of the attempt before counts any more. */
void umemSlot_begin(umemSlot *slot);

/* Sends the request of a slot by libcurl. False with a status. */
bool umemSlot_send(umemLane *lane, umemSlot *slot);

/* The slot, which is busy, waits for nothing: it is sent when the lane looks at it. */
void umemSlot_send_soon(umemSlot *slot);

/* An attempt has ended with a CURLcode: the slot is idle, if its request is done, or waits. False
 * with a status if that is the end of the request. */
bool umemSlot_end(umemLane *lane, umemSlot *slot, int code);

/* No byte has come for too long: ends the attempt, but not its line. */
bool umemSlot_end_stalled(umemLane *lane, umemSlot *slot);

/* umemSlot_end for the attempt of a line. */
bool umemSlot_end_line(umemLane *lane, umemSlot *slot, int code);

void umemSlot_set_free(umemSlot *slot);
void umemSlot_end_headers(umemSlot *slot);

/* Sets what is the same for all handles of a slot. */
bool umemSlot_prepare(umemSlot *slot, void *easy);

/* Whether the status of the answer is one of those that may pass. */
bool umemSlot_may_pass(umemSlot const *slot);

/* What is wrong with the headers of the answer of a job; NULL: nothing. */
char const *umemSlot_check(umemSlot const *slot);

/* Where the next bytes of a job belong: *size of them at most, which may be none. NULL: nowhere. */
char *umemSlot_room(umemSlot const *slot, size_t *size);

/* So many bytes are there now. False with a status. */
bool umemSlot_took(umemSlot *slot, size_t size);

/* Puts the next bytes where they belong. False with a status. */
bool umemSlot_take(umemSlot *slot, char const *data, size_t size);

/* ---- url_line.c ---- */

enum { umemLineWaits = -1, umemLineOdd = -2 }; /* beside CURLcodes */

/* Begins an attempt of a slot: on its line if that may be, else by libcurl. False with a status. */
bool umemLine_send(umemLane *lane, umemSlot *slot);

/* Goes on with it. Returns umemLineWaits, with *more if it need not wait; umemLineOdd, if libcurl
 * has to send the request again; else, the attempt has ended with this CURLcode. */
int umemLine_step(umemSlot *slot, bool *more);

/* What it waits for. False while it connects, of which libcurl says nothing. */
bool umemLine_wait(umemSlot const *slot, umemCurlWait *wait);

/* Closes the line, if there is one. */
void umemLine_end(umemSlot *slot);

#endif
