/* url_request.c - one attempt of a request after the other: what the server gets, what its answer
 * must be, and what follows from a failure.
 *
 * No byte is used before the headers of its answer have been compared with what was asked for, and
 * with the pin: the length and the ETag, or the date, that the object had at first. */
#include "url/url_fetch.h"
#include "base/number.h"
#include "core/copy.h"
#include "core/status.h"
#include "watch/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  most_hops = 5,          /* redirects of one request */
  first_backoff_ms = 100, /* before the second attempt; doubles */
  most_backoff_ms = 10 * 1000,
  most_wanted_ms = 60 * 1000, /* that a server may want */
  least_secret = 4            /* characters of a header that messages do not show */
};

/* ==== failures ==== */

/* libcurl writes no secrets to its text, but servers choose what some of them contain. */
static bool has_secret(umemFetch const *fetch, char const *text) {
  char const *query = fetch->home.url ? strchr(fetch->home.url, '?') : NULL;
  char const *secrets[] = {fetch->user, fetch->password, fetch->bearer, query ? query + 1 : NULL};
  for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++)
    if (secrets[i] && *secrets[i] && strcasestr(text, secrets[i])) return true;
  for (umemCurlList const *next = fetch->headers; next; next = next->next) {
    char const *value = strchr(next->text, ':') + 1; /* is_header */
    value += strspn(value, " \t");
    if (strlen(value) >= least_secret && strcasestr(text, value)) return true;
  }
  return false;
}

/* What the request was for. */
static void describe(umemSlot const *slot, char text[128]) {
  if (slot->call)
    snprintf(text, 128, "%s", slot->call->what);
  else
    snprintf(text, 128, "read %zu bytes at %" PRIu64 " of", slot->size, slot->from);
}

static bool fail(umemSlot const *slot, umemStatusType type, char const *cause) {
  char what[128], tried[48] = "";
  describe(slot, what);
  if (slot->attempts) snprintf(tried, sizeof tried, " (after %u attempts)", slot->attempts + 1);
  return UMEM_FAIL(slot->fetch->ctx, type, "cannot %s %s: %s%s", what, slot->fetch->label, cause,
                   tried);
}

/* ---- statuses ---- */

typedef struct StatusWords {
  int status;
  bool may_pass; /* the same request may succeed later */
  char const *words;
} StatusWords;

static StatusWords const statuses[] = {{400, false, "bad request"},
                                       {401, false, "user, password or token are missing or wrong"},
                                       {403, false, "forbidden"},
                                       {404, false, "not found"},
                                       {407, false, "the proxy wants a password"},
                                       {408, true, "timed out"},
                                       {410, false, "gone"},
                                       {429, true, "too many requests"},
                                       {500, true, "error of the server"},
                                       {502, true, "the server is not available"},
                                       {503, true, "the server is not available"},
                                       {504, true, "timed out"},
                                       {0, false, "no answer that was expected"}}; /* any other */

static StatusWords const *status_of(int status) {
  StatusWords const *row = statuses;
  while (row->status && row->status != status) row++;
  return row;
}

bool umemSlot_may_pass(umemSlot const *slot) { return status_of(slot->reply.status)->may_pass; }

static bool fail_with_status(umemSlot const *slot) {
  char cause[96];
  snprintf(cause, sizeof cause, "HTTP status %d, %s", slot->reply.status,
           status_of(slot->reply.status)->words);
  return fail(slot, umemIOError, cause);
}

bool umemFetch_refuse(umemFetch *fetch, char const *what, int status) {
  return UMEM_FAIL(fetch->ctx, umemIOError, "cannot %s %s: HTTP status %d, %s", what, fetch->label,
                   status, status_of(status)->words);
}

/* ==== where bytes go ==== */

/* Calls write for each part of a run in the size bytes at data, which follow at the next byte of
 * the slot. Bytes between two runs are dropped. data: NULL where write needs none. */
static bool scatter(umemSlot *slot, uint64_t at, char const *data, size_t size,
                    bool (*write)(umemSlot *slot, umemCopyRun *run, size_t skip, char const *data,
                                  size_t size)) {
  while (size) {
    umemCopyRun *run = &slot->job->runs[slot->run];
    uint64_t wanted = run->src_adr + slot->skip;
    if (at < wanted) { /* a gap */
      size_t gap = (size_t)umem_lesser(wanted - at, size);
      at += gap, size -= gap;
      if (data) data += gap;
      continue;
    }
    size_t part = umem_lesser(run->nbytes - slot->skip, size);
    if (!write(slot, run, slot->skip, data, part)) return false;
    at += part, size -= part;
    if (data) data += part;
    slot->skip += part;
    if (slot->skip == run->nbytes) slot->run++, slot->skip = 0;
  }
  return true;
}

/* data NULL: they are there already. */
static bool write_memory(umemSlot *slot, umemCopyRun *run, size_t skip, char const *data,
                         size_t size) {
  (void)slot;
  if (data) memcpy((char *)run->dst_adr + skip, data, size);
  return true;
}

static bool count_bytes(umemSlot *slot, umemCopyRun *run, size_t skip, char const *data,
                        size_t size) {
  (void)skip, (void)data;
  umemFetchJob *job = slot->job;
  if (!job->left) return true;
  size_t index = (size_t)(run - job->runs);
  if (__atomic_sub_fetch(&job->left[index], size, __ATOMIC_ACQ_REL) == 0) run->state = umemRunDone;
  return true;
}

static bool write_place(umemSlot *slot, umemCopyRun *run, size_t skip, char const *data,
                        size_t size) {
  umemFetchJob *job = slot->job;
  uint64_t before = umem_thread.failures;
  umem_empty_buffer(job->dst, run->dst_adr + skip, job->host, data, size);
  if (umem_thread.failures == before) return count_bytes(slot, run, skip, data, size);
  run->state = umemRunFailed;
  return false;
}

/* Writes what is in the buffer to dst, and returns when it can be filled again. */
static bool empty_buffer(umemSlot *slot) {
  umemFetchJob *job = slot->job;
  bool queues = umem_can(job->dst, umemOrdered);
  bool turns = queues || !umem_can(job->dst, umemConcurrent);
  uint64_t before = umem_thread.failures, at = slot->from + slot->emptied;
  size_t size = slot->got - slot->emptied;
  if (turns) pthread_mutex_lock(&job->turn);
  bool good = scatter(slot, at, (char const *)slot->buffer, size, write_place);
  if (queues) umem_finish(job->dst);
  if (turns) pthread_mutex_unlock(&job->turn);
  slot->emptied = slot->got;
  slot->failed = !good || umem_thread.failures != before;
  return !slot->failed;
}

static bool fill_buffer(umemSlot *slot, char const *data, size_t size) {
  for (size_t part; size; data += part, size -= part) {
    size_t filled = slot->got - slot->emptied, room = slot->job->room;
    part = umem_lesser(size, room - filled);
    memcpy((char *)slot->buffer + filled, data, part);
    slot->got += part;
    if (filled + part == room && !empty_buffer(slot)) return false;
  }
  return true;
}

bool umemSlot_take(umemSlot *slot, char const *data, size_t size) {
  if (slot->job->host) return fill_buffer(slot, data, size);
  scatter(slot, slot->from + slot->got, data, size, write_memory);
  slot->got += size;
  return true;
}

char *umemSlot_room(umemSlot const *slot, size_t *size) {
  umemFetchJob const *job = slot->job;
  size_t filled = slot->got - slot->emptied;
  if (job->host) {
    *size = umem_lesser(*size, job->room - filled);
    return (char *)slot->buffer + filled;
  }
  umemCopyRun const *run = &job->runs[slot->run];
  if (slot->from + slot->got < run->src_adr + slot->skip) return NULL; /* a gap */
  *size = umem_lesser(*size, run->nbytes - slot->skip);
  return (char *)run->dst_adr + slot->skip;
}

bool umemSlot_took(umemSlot *slot, size_t size) {
  umemFetchJob const *job = slot->job;
  slot->got += size;
  if (job->host) return slot->got - slot->emptied < job->room || empty_buffer(slot);
  return scatter(slot, slot->from + slot->got - size, NULL, size, write_memory);
}

/* For the route of the copy. */
static void note(umemSlot const *slot) {
  umemFetchJob const *job = slot->job;
  if (!slot->begin) return;
  umemRoutePlace src = umem_device_place(slot->fetch->ctx, -1);
  umemRoutePlace buffer = job->host ? umem_buffer_place(job->host) : (umemRoutePlace){0};
  umem_note_between(&src, job->host ? &buffer : NULL, umemWayHttp, slot->used, 1, slot->begin);
}

/* Counts the bytes of a request in its runs, once more from the first one on. */
static bool count_all(umemSlot *slot) {
  slot->run = slot->first_run;
  slot->skip = slot->first_skip;
  return scatter(slot, slot->from, NULL, slot->size, count_bytes);
}

static bool finish(umemSlot *slot) {
  umemFetchJob const *job = slot->job;
  note(slot);
  __atomic_fetch_add(&slot->fetch->nbytes, slot->size, __ATOMIC_RELAXED);
  bool good = job->host ? empty_buffer(slot) : count_all(slot);
  if (good && job->meter)
    umemMeter_add(job->meter, (size_t)(slot->from - job->runs->src_adr), slot->size);
  return good;
}

/* ==== what may pass ==== */

static bool may_pass_code(int code) {
  static int const codes[] = {umemCurlNoProxy,   umemCurlNoHost,      umemCurlNoConnection,
                              umemCurlHttp2,     umemCurlHttp2Stream, umemCurlPartial,
                              umemCurlTimedOut,  umemCurlTlsConnect,  umemCurlGotNothing,
                              umemCurlSendError, umemCurlReceiveError};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (code == codes[i]) return true;
  return false;
}

/* ==== what libcurl calls ==== */

static size_t on_header(char *line, size_t one, size_t count, void *user) {
  umemSlot *slot = user;
  slot->heard = umemFetch_now();
  umemFetchReply_read(&slot->reply, line, one * count);
  umemFetchCall *call = slot->call;
  if (call && call->wanted)
    umemFetchReply_find(line, one * count, call->wanted, call->found, sizeof call->found);
  return one * count;
}

/* Keeps the beginning of an answer. The rest is read if it is short. */
static size_t keep_answer(umemSlot *slot, char const *data, size_t size) {
  umemFetchCall *call = slot->call;
  size_t room = call->answer ? call->answer_size - 1 - call->answered : 0;
  size_t kept = umem_lesser(room, size);
  if (kept) memcpy(call->answer + call->answered, data, kept);
  call->answered += kept;
  slot->dropped += size - kept;
  return slot->dropped > umemFetchMostDropped ? 0 : size;
}

char const *umemSlot_check(umemSlot const *slot) {
  return umemFetchReply_check(&slot->reply, slot->fetch, slot->from + slot->got,
                              slot->from + slot->size - 1);
}

/* Returns another number than size to end the transfer. */
static size_t on_body(char *data, size_t one, size_t count, void *user) {
  umemSlot *slot = user;
  size_t size = one * count;
  slot->heard = umemFetch_now();
  if (slot->call) return keep_answer(slot, data, size);
  if (slot->reply.status != 206) {
    slot->dropped += size;
    return slot->dropped > umemFetchMostDropped ? 0 : size;
  }
  if (!slot->checked) slot->wrong = umemSlot_check(slot);
  slot->checked = true;
  if (!slot->wrong && size > slot->size - slot->got)
    slot->wrong = "the server sends more bytes than asked for";
  if (slot->wrong) return 0;
  return umemSlot_take(slot, data, size) ? size : 0;
}

static size_t on_send(char *data, size_t one, size_t count, void *user) {
  umemSlot *slot = user;
  umemFetchCall const *call = slot->call;
  size_t size = umem_lesser(one * count, call->body_size - slot->sent);
  slot->heard = umemFetch_now();
  if (size) memcpy(data, (char const *)call->body + slot->sent, size);
  slot->sent += size;
  return size;
}

/* off_t of libcurl has 64 bits. */
static int on_rewind(void *user, int64_t offset, int origin) {
  umemSlot *slot = user;
  if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > slot->call->body_size)
    return umemCurlSeekFailed;
  slot->sent = (size_t)offset;
  return umemCurlSeekOK;
}

/* ---- redirects ---- */

static bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* From now on, requests go to the place that the answer names. */
static bool redirect(umemSlot *slot) {
  char *location = NULL;
  slot->fetch->curl->easy_getinfo(slot->easy, umemCurlInfoRedirect, &location);
  if (++slot->hops > most_hops) return fail(slot, umemIOError, "the server redirects in circles");
  char const *wrong = umemFetch_follow(slot->fetch, location);
  return !wrong || fail(slot, umemIOError, wrong);
}

/* ==== attempts ==== */

#define SET(slot, option, value)                                                                   \
  ((slot)->fetch->curl->easy_setopt((slot)->easy, option, value) == umemCurlOK)

#define SET_EASY(option, value) (fetch->curl->easy_setopt(easy, option, value) == umemCurlOK)

bool umemSlot_prepare(umemSlot *slot, void *easy) {
  umemFetch *fetch = slot->fetch;
  long protocols = fetch->secure ? umemCurlProtoHttps : umemCurlProtoHttp | umemCurlProtoHttps;
  long version = fetch->options.version == umemUrlVersion2 ? umemCurlHttp2Tls : umemCurlHttp11;
  return SET_EASY(umemCurlOptNoSignal, 1L) && SET_EASY(umemCurlOptFollow, 0L) &&
         SET_EASY(umemCurlOptProtocols, protocols) && SET_EASY(umemCurlOptKeepAlive, 1L) &&
         SET_EASY(umemCurlOptHttpVersion, version) && SET_EASY(umemCurlOptBufferSize, 512L << 10) &&
         SET_EASY(umemCurlOptNoConnectHeaders, 1L) &&
         SET_EASY(umemCurlOptConnectMs, (long)fetch->options.connect_ms) &&
         SET_EASY(umemCurlOptUserAgent, "umem/" UMEM_VERSION) &&
         (!fetch->ca_file || SET_EASY(umemCurlOptCaFile, fetch->ca_file)) &&
         (!fetch->ca_folder || SET_EASY(umemCurlOptCaFolder, fetch->ca_folder)) &&
         SET_EASY(umemCurlOptErrorText, slot->error) && SET_EASY(umemCurlOptPrivate, slot);
}

/* What remains the same for all requests of a slot. */
static bool prepare_requests(umemSlot *slot) {
  return umemSlot_prepare(slot, slot->easy) && SET(slot, umemCurlOptWrite, on_body) &&
         SET(slot, umemCurlOptWriteData, slot) && SET(slot, umemCurlOptHeader, on_header) &&
         SET(slot, umemCurlOptHeaderData, slot) && SET(slot, umemCurlOptRead, on_send) &&
         SET(slot, umemCurlOptReadData, slot) && SET(slot, umemCurlOptSeek, on_rewind) &&
         SET(slot, umemCurlOptSeekData, slot);
}

static bool add_header(umemSlot *slot, char const *text) {
  umemCurlList *list = slot->fetch->curl->list_append(slot->headers, text);
  if (list) slot->headers = list;
  return list != NULL;
}

/* Headers of the pin: the server checks it, too. */
static bool add_pin(umemSlot *slot) {
  char line[umemFetchPinSize];
  umemFetch_write_pin(slot->fetch, line);
  return !*line || add_header(slot, line);
}

/* Where this attempt goes, and whether it may have credentials there. */
static bool set_target(umemSlot *slot) {
  umemFetch *fetch = slot->fetch;
  slot->away = false;
  slot->trusted = true;
  if (slot->call && slot->call->url) return SET(slot, umemCurlOptUrl, slot->call->url);
  umemLock_acquire(&fetch->lock);
  slot->away = fetch->target.url != NULL;
  umemTarget const *target = slot->away ? &fetch->target : &fetch->home;
  slot->trusted = !strcasecmp(target->origin, fetch->home.origin);
  bool good = SET(slot, umemCurlOptUrl, target->url);
  umemLock_release(&fetch->lock);
  return good;
}

static bool set_credentials(umemSlot *slot) {
  umemFetch const *fetch = slot->fetch;
  bool bearer = slot->trusted && fetch->bearer, user = slot->trusted && fetch->user && !bearer;
  for (umemCurlList *next = slot->trusted ? fetch->headers : NULL; next; next = next->next)
    if (!add_header(slot, next->text)) return false;
  return SET(slot, umemCurlOptUserPwd, NULL) &&
         SET(slot, umemCurlOptUser, user ? fetch->user : NULL) &&
         SET(slot, umemCurlOptPassword, user ? fetch->password : NULL) &&
         SET(slot, umemCurlOptHttpAuth,
             bearer ? (long)umemCurlAuthBearer : (long)umemCurlAuthBasic) &&
         SET(slot, umemCurlOptBearer, bearer ? fetch->bearer : NULL);
}

static bool set_method(umemSlot *slot) {
  umemFetchCall const *call = slot->call;
  bool head = call && !strcmp(call->method, "HEAD");
  bool custom = call && !head && strcmp(call->method, "GET") != 0;
  bool good = SET(slot, umemCurlOptHttpGet, 1L) && (!head || SET(slot, umemCurlOptNoBody, 1L));
  if (good && call && call->body)
    good = SET(slot, umemCurlOptUpload, 1L) &&
           SET(slot, umemCurlOptUploadSize, (int64_t)call->body_size) &&
           SET(slot, umemCurlOptUploadBuffer, 512L << 10) && add_header(slot, "Expect:") &&
           SET(slot, umemCurlOptExpectMs, 1L); /* where a signer drops the header */
  return good && SET(slot, umemCurlOptMethod, custom ? call->method : NULL);
}

static bool set_range(umemSlot *slot) {
  umemFetchCall const *call = slot->call;
  char range[48];
  if (call) return SET(slot, umemCurlOptRange, call->range);
  snprintf(range, sizeof range, "%" PRIu64 "-%" PRIu64, slot->from + slot->got,
           slot->from + slot->size - 1);
  return SET(slot, umemCurlOptRange, range) && add_pin(slot);
}

static bool set_headers(umemSlot *slot) {
  umemFetchCall const *call = slot->call;
  if (!add_header(slot, "Accept-Encoding: identity")) return false;
  for (size_t i = 0; call && i < call->header_count; i++)
    if (!add_header(slot, call->headers[i])) return false;
  return true;
}

/* Signs the attempt, if that is for home. */
static bool sign(umemSlot *slot) {
  umemFetch const *fetch = slot->fetch;
  umemFetchAttempt attempt = {.curl = fetch->curl,
                              .easy = slot->easy,
                              .headers = &slot->headers,
                              .method = slot->call ? slot->call->method : "GET"};
  return !fetch->signer.sign || !slot->trusted || fetch->signer.sign(fetch->signer.user, &attempt);
}

void umemSlot_end_headers(umemSlot *slot) {
  if (slot->headers) slot->fetch->curl->list_free(slot->headers);
  slot->headers = NULL;
}

/* ---- a model for lines ---- */

/* What libcurl calls with all that it sends and gets. */
static int on_debug(void *easy, int what, char *text, size_t size, void *user) {
  umemSlot *slot = user;
  (void)easy;
  if (what != umemCurlHeaderOut) return 0;
  umemFetch_read_model(slot->fetch, &slot->model, text, size);
  slot->model.pinned = !slot->call;
  return 0;
}

/* Whether the attempt is for a range of the object at home, over HTTP 1.1. */
static bool is_plain_range(umemSlot const *slot) {
  umemFetchCall const *call = slot->call;
  return slot->fetch->options.version != umemUrlVersion2 && slot->trusted && !slot->away &&
         (!call || (!call->url && call->range && !strcmp(call->method, "GET")));
}

/* Lets libcurl show what it sends, if lines need it. */
static bool watch(umemSlot *slot) {
  umemFetch *fetch = slot->fetch;
  bool lines = !__atomic_load_n(&fetch->unlined, __ATOMIC_RELAXED) && is_plain_range(slot);
  return SET(slot, umemCurlOptDebug, on_debug) && SET(slot, umemCurlOptDebugData, slot) &&
         SET(slot, umemCurlOptVerbose, (long)(lines && !umemFetch_has_model(fetch)));
}

void umemSlot_begin(umemSlot *slot) {
  slot->reply = (umemFetchReply){0};
  slot->checked = false;
  slot->wrong = NULL;
  slot->failed = false;
  slot->dropped = slot->sent = 0;
  slot->error[0] = slot->after[0] = 0;
  slot->heard = umemFetch_now();
  umemModel_end(&slot->model);
  if (slot->call) slot->call->answered = 0, *slot->call->found = 0;
}

/* A handle that lacks options is none: the next request would go by it. */
static bool open_handle(umemSlot *slot) {
  umemCurl const *curl = slot->fetch->curl;
  slot->easy = curl->easy_init();
  if (slot->easy && prepare_requests(slot)) return true;
  if (slot->easy) curl->easy_cleanup(slot->easy);
  slot->easy = NULL;
  return umemFetch_no_memory(slot->fetch);
}

bool umemSlot_send(umemLane *lane, umemSlot *slot) {
  umemFetch *fetch = lane->fetch;
  umemCurl const *curl = fetch->curl;
  if (!slot->easy && !open_handle(slot)) return false;
  umemSlot_end_headers(slot);
  bool ready = set_target(slot) && set_method(slot) && set_range(slot) && set_headers(slot) &&
               set_credentials(slot) && watch(slot);
  if (!ready) return umemFetch_no_memory(fetch);
  if (!sign(slot)) return false;
  if (!SET(slot, umemCurlOptHeaders, slot->headers) || curl->multi_add(lane->multi, slot->easy))
    return umemFetch_no_memory(fetch);
  return true;
}

/* ---- after a failure ---- */

/* xorshift; G. Marsaglia 2003 */
static uint64_t draw(umemLane *lane) {
  lane->random ^= lane->random << 13;
  lane->random ^= lane->random >> 7;
  lane->random ^= lane->random << 17;
  return lane->random;
}

/* Half of the backoff is left to chance, so that requests that failed together come back one by
 * one. */
static uint64_t backoff_of(umemLane *lane, umemSlot const *slot) {
  uint64_t backoff = most_backoff_ms, wanted = 0;
  if (slot->attempts < 8)
    backoff = umem_lesser(backoff, (uint64_t)first_backoff_ms << slot->attempts);
  backoff = backoff / 2 + draw(lane) % (backoff / 2 + 1);
  int64_t seconds = strtol(slot->after, NULL, 10);
  if (slot->reply.status && slot->easy && !*slot->after)
    lane->fetch->curl->easy_getinfo(slot->easy, umemCurlInfoRetryAfter, &seconds);
  if (seconds > 0) wanted = umem_lesser((uint64_t)seconds, most_wanted_ms / 1000) * 1000;
  return umem_greater(backoff, wanted) * umem_ns_of_ms;
}

/* Sends the request again later, or records why not: for cause, or for the status of the answer. */
static bool again(umemLane *lane, umemSlot *slot, umemStatusType type, char const *cause) {
  if (slot->attempts >= lane->fetch->options.retries)
    return cause ? fail(slot, type, cause) : fail_with_status(slot);
  slot->wake = umemFetch_now() + backoff_of(lane, slot);
  slot->attempts++;
  slot->state = slotWaits;
  return true;
}

void umemSlot_send_soon(umemSlot *slot) {
  slot->wake = 0;
  slot->state = slotWaits;
}

static umemStatusType type_of(int code) {
  return code == umemCurlNoMemory ? umemMemoryError : umemIOError;
}

/* What libcurl says of a failure. */
static char const *words_of_code(umemSlot const *slot, int code) {
  bool usable = *slot->error && !has_secret(slot->fetch, slot->error);
  return usable ? slot->error : slot->fetch->curl->easy_words(code);
}

/* ---- the end of an attempt ---- */

void umemSlot_set_free(umemSlot *slot) {
  if (slot->counts) {
    __atomic_fetch_sub(&slot->fetch->inflight, 1, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&slot->job->inflight, 1, __ATOMIC_RELAXED);
  }
  slot->counts = false;
  slot->state = slotIdle;
}

/* An answer to a request for a range. */
static bool take_range(umemLane *lane, umemSlot *slot) {
  char const *refused = umemFetchReply_refusal(slot->reply.status);
  if (refused) return fail(slot, umemIOError, refused);
  if (slot->reply.status != 206) return fail_with_status(slot);
  if (slot->got < slot->size) return again(lane, slot, umemIOError, "the answer is too short");
  if (!finish(slot)) return false;
  umemSlot_set_free(slot);
  return true;
}

static bool take_answer(umemLane *lane, umemSlot *slot) {
  int status = slot->reply.status;
  bool own = !slot->call || !slot->call->url;
  bool follows =
      !slot->call || !strcmp(slot->call->method, "GET") || !strcmp(slot->call->method, "HEAD");
  if (own && follows && is_redirect(status)) {
    if (!redirect(slot)) return false;
    umemSlot_send_soon(slot);
    return true;
  }
  if (umemSlot_may_pass(slot)) return again(lane, slot, umemIOError, NULL);
  if (slot->away && status >= 400 && status <= 410) {
    umemFetch_go_home(lane->fetch);
    return again(lane, slot, umemIOError, NULL);
  }
  if (!slot->call) return take_range(lane, slot);
  slot->call->reply = slot->reply;
  umemSlot_set_free(slot);
  return true;
}

static bool end_attempt(umemLane *lane, umemSlot *slot, int code) {
  if (slot->failed) return false;
  if (slot->wrong) return fail(slot, umemIOError, slot->wrong);
  bool cut = code == umemCurlWriteError && slot->dropped > umemFetchMostDropped; /* by on_body */
  /* libcurl 7.88 says nothing of an end in the middle of the headers */
  if (code == umemCurlOK && (!slot->reply.complete || slot->reply.status / 100 == 1))
    return again(lane, slot, umemIOError,
                 "the server has closed the connection within its headers");
  if (code == umemCurlOK || cut) return take_answer(lane, slot);
  char const *words = words_of_code(slot, code);
  if (may_pass_code(code)) return again(lane, slot, umemIOError, words);
  return fail(slot, type_of(code), words);
}

bool umemSlot_end(umemLane *lane, umemSlot *slot, int code) {
  slot->state = slotIdle;
  if (lane->fetch->curl->multi_remove(lane->multi, slot->easy))
    return umemFetch_no_memory(lane->fetch);
  bool models = code == umemCurlOK && slot->reply.status == 206 && slot->model.text;
  if (models) umemFetch_keep_model(lane->fetch, &slot->model);
  return end_attempt(lane, slot, code);
}

/* A server that answers so often is read by libcurl alone. */
static void note_odd(umemFetch *fetch) {
  enum { most_odd = 4 };
  umemFetch_forget_model(fetch);
  if (__atomic_add_fetch(&fetch->odd, 1, __ATOMIC_RELAXED) >= most_odd)
    __atomic_store_n(&fetch->unlined, true, __ATOMIC_RELAXED);
}

bool umemSlot_end_line(umemLane *lane, umemSlot *slot, int code) {
  slot->state = slotIdle;
  if (code != umemLineOdd) return end_attempt(lane, slot, code);
  if (slot->reply.status) note_odd(lane->fetch);
  slot->plain = true;
  umemSlot_send_soon(slot);
  return true;
}

bool umemSlot_end_stalled(umemLane *lane, umemSlot *slot) {
  char cause[64];
  snprintf(cause, sizeof cause, "no byte in %u ms (stall_ms)", lane->fetch->options.stall_ms);
  slot->state = slotIdle;
  if (!slot->lined && lane->fetch->curl->multi_remove(lane->multi, slot->easy))
    return umemFetch_no_memory(lane->fetch);
  return again(lane, slot, umemIOError, cause);
}
