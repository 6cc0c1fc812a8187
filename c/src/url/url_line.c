/* url_line.c - ranges read straight to their place, over connections that carry nothing else.
 *
 * libcurl reads into a buffer of its own, from which a copy takes each byte once more. So a long
 * copy reads by lines. libcurl opens their connections, with its names, proxies, certificates and
 * limits; umem sends the requests, and reads the answers to where the bytes belong. A request is a
 * model with another range: what libcurl has sent for a range of this object, and got a good answer
 * to. So credentials and signatures remain libcurl's. An answer that is not just the bytes that
 * were asked for is left to libcurl, which sends the request again.
 *
 * Each line has a multi handle of its own: beside other transfers, libcurl may take a connection
 * for idle and close it. */
#include "url/url_fetch.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  head_bytes = 16 << 10,   /* of a request, and of the headers of an answer */
  first_bytes = 4 << 10,   /* that are read with the headers */
  least_direct = 16 << 10, /* bytes: what is shorter goes through the line's text */
  turn_bytes = 1 << 20,    /* until other lines have their turn */
  least_copy = 1 << 20     /* bytes of a copy that opens lines */
};

typedef enum LineState { lineIdle = 0, lineConnects, lineSends, lineReads, lineTakes } LineState;

struct umemLine {
  void *multi, *easy; /* the handle stays in its multi handle as long as the line */
  int socket;
  LineState state;
  bool used;         /* has answered before: the server may have closed it since */
  bool ends;         /* with this answer */
  bool chunked;      /* its body */
  size_t size, done; /* bytes of text, and of these sent or read */
  char text[head_bytes];
};

/* ==== requests ==== */

/* Writes the request of a slot. False if there is no model, or it does not fit. */
static bool write_request(umemSlot *slot, umemLine *line) {
  umemFetch *fetch = slot->fetch;
  umemModel const *model = &fetch->model;
  char pin[umemFetchPinSize] = "";
  umemLock_acquire(&fetch->lock);
  bool good = umemFetch_may_use_model(fetch);
  if (good && !model->pinned) umemFetch_write_pin(fetch, pin);
  int size =
      !good ? 0
            : snprintf(line->text, sizeof line->text, "%.*s%" PRIu64 "-%" PRIu64 "%.*s%s%s\r\n",
                       (int)model->from, model->text, slot->from + slot->got,
                       slot->from + slot->size - 1, (int)(model->size - model->to - 2),
                       model->text + model->to, pin, *pin ? "\r\n" : "");
  umemLock_release(&fetch->lock);
  line->size = (size_t)size;
  line->done = 0;
  return size > 0 && (size_t)size < sizeof line->text;
}

/* ==== lines ==== */

void umemLine_end(umemSlot *slot) {
  umemCurl const *curl = slot->fetch->curl;
  umemLine *line = slot->line;
  slot->line = NULL;
  slot->lined = false;
  if (!line) return;
  if (line->multi && line->easy) curl->multi_remove(line->multi, line->easy);
  if (line->easy) curl->easy_cleanup(line->easy);
  if (line->multi) curl->multi_cleanup(line->multi);
  explicit_bzero(line->text, sizeof line->text);
  free(line);
}

static bool prepare_line(umemSlot *slot, umemLine *line) {
  umemCurl const *curl = slot->fetch->curl;
  return (line->multi = curl->multi_init()) != NULL && (line->easy = curl->easy_init()) != NULL &&
         umemSlot_prepare(slot, line->easy) &&
         !curl->easy_setopt(line->easy, umemCurlOptUrl, slot->fetch->home.url) &&
         !curl->easy_setopt(line->easy, umemCurlOptConnectOnly, 1L) &&
         !curl->multi_add(line->multi, line->easy);
}

static bool open_line(umemSlot *slot) {
  slot->line = calloc(1, sizeof *slot->line);
  if (!slot->line) return false;
  slot->line->state = lineConnects;
  if (prepare_line(slot, slot->line)) return true;
  umemLine_end(slot);
  return false;
}

/* Whether the connection is open, and the server has sent no byte beyond its last answer. */
static bool is_quiet(umemSlot const *slot) {
  char byte;
  size_t size;
  return slot->fetch->curl->easy_recv(slot->line->easy, &byte, 1, &size) == umemCurlAgain;
}

/* A short copy goes over the connection that libcurl has. */
static bool wants_line(umemSlot const *slot) {
  umemFetch *fetch = slot->fetch;
  umemFetchJob const *job = slot->job;
  if (!job || slot->plain || __atomic_load_n(&fetch->unlined, __ATOMIC_RELAXED)) return false;
  if (!slot->line && job->nbytes < least_copy && job->count <= fetch->options.connections)
    return false;
  return umemFetch_has_model(fetch);
}

/* Begins an attempt on the line. False: libcurl has to make it. */
static bool begin_on_line(umemSlot *slot) {
  if (!wants_line(slot)) return false;
  if (slot->line && !is_quiet(slot)) umemLine_end(slot);
  bool connected = slot->line != NULL;
  if (!connected && !open_line(slot)) return false;
  umemLine *line = slot->line;
  if (!write_request(slot, line)) {
    umemLine_end(slot);
    return false;
  }
  if (connected) line->state = lineSends;
  line->ends = line->chunked = false;
  strcpy(slot->after, "0"); /* not what libcurl's last answer said */
  slot->away = false;
  slot->trusted = slot->lined = true;
  return true;
}

bool umemLine_send(umemLane *lane, umemSlot *slot) {
  umemSlot_begin(slot);
  if (!begin_on_line(slot) && !umemSlot_send(lane, slot)) return false;
  slot->state = slotRuns;
  __atomic_fetch_add(&slot->fetch->requests, 1, __ATOMIC_RELAXED);
  if (slot->attempts) __atomic_fetch_add(&slot->fetch->retries, 1, __ATOMIC_RELAXED);
  return true;
}

bool umemLine_wait(umemSlot const *slot, umemCurlWait *wait) {
  umemLine const *line = slot->line;
  if (line->state == lineConnects) return false;
  bool sends = line->state == lineSends;
  *wait = (umemCurlWait){line->socket, sends ? umemCurlWaitOut : umemCurlWaitIn, 0};
  return true;
}

/* ---- one step ---- */

static int connect_line(umemSlot *slot) {
  umemCurl const *curl = slot->fetch->curl;
  umemLine *line = slot->line;
  int running, left;
  if (curl->multi_perform(line->multi, &running)) return umemCurlNoMemory;
  umemCurlMessage const *message = curl->multi_read(line->multi, &left);
  if (!message) return umemLineWaits;
  if (message->data.result) return message->data.result;
  slot->heard = umemFetch_now();
  line->state = lineSends;
  return curl->easy_getinfo(line->easy, umemCurlInfoSocket, &line->socket);
}

static int send_request(umemSlot *slot) {
  umemLine *line = slot->line;
  while (line->done < line->size) {
    size_t sent = 0;
    int code = slot->fetch->curl->easy_send(line->easy, line->text + line->done,
                                            line->size - line->done, &sent);
    if (code) return code == umemCurlAgain ? umemLineWaits : code;
    line->done += sent;
  }
  line->state = lineReads;
  line->size = line->done = 0;
  return umemCurlOK;
}

static int receive(umemSlot *slot, char *to, size_t size, size_t *received) {
  int code = slot->fetch->curl->easy_recv(slot->line->easy, to, size, received);
  if (code) return code == umemCurlAgain ? umemLineWaits : code;
  if (*received) slot->heard = umemFetch_now();
  return umemCurlOK;
}

/* What of a header concerns the connection, and not the object. */
static void read_line(umemSlot *slot, char const *text, size_t size) {
  umemLine *line = slot->line;
  char value[64] = "";
  umemFetchReply_read(&slot->reply, text, size);
  umemFetchReply_find(text, size, "Transfer-Encoding", value, sizeof value);
  line->chunked |= *value != 0;
  *value = 0;
  umemFetchReply_find(text, size, "Connection", value, sizeof value);
  line->ends |= *value && strcasecmp(value, "keep-alive");
  umemFetchReply_find(text, size, "Retry-After", slot->after, sizeof slot->after);
}

/* Reads the lines that are there. Whether the headers are complete. */
static bool read_lines(umemSlot *slot) {
  umemLine *line = slot->line;
  char *end;
  while ((end = memchr(line->text + line->done, '\n', line->size - line->done)) != NULL) {
    char const *begin = line->text + line->done;
    line->done = (size_t)(end + 1 - line->text);
    read_line(slot, begin, (size_t)(end + 1 - begin));
    bool informs = slot->reply.status / 100 == 1; /* another answer follows */
    if (slot->reply.complete && !informs) return true;
  }
  return false;
}

/* What follows from the headers. */
static int judge(umemSlot *slot) {
  umemLine *line = slot->line;
  int status = slot->reply.status;
  bool later = umemSlot_may_pass(slot) || umemFetchReply_refusal(status);
  if (status != 206) return later ? umemCurlOK : umemLineOdd;
  umemFetchReply const *reply = &slot->reply;
  slot->wrong = line->chunked ? NULL : umemSlot_check(slot);
  if (slot->wrong) return umemCurlOK;
  if (!reply->has_length || line->chunked) {
    __atomic_store_n(&slot->fetch->unlined, true, __ATOMIC_RELAXED);
    return umemLineOdd;
  }
  size_t rest = line->size - line->done, wanted = slot->size - slot->got;
  line->ends |= rest > wanted || strncmp(line->text, "HTTP/1.1", 8) != 0;
  line->state = lineTakes;
  __atomic_store_n(&slot->fetch->odd, 0, __ATOMIC_RELAXED);
  return umemSlot_take(slot, line->text + line->done, umem_lesser(rest, wanted))
             ? umemCurlOK
             : umemCurlWriteError;
}

static int read_head(umemSlot *slot) {
  umemLine *line = slot->line;
  while (line->state == lineReads) {
    size_t received = 0, room = umem_lesser(first_bytes, sizeof line->text - line->size);
    if (!room) return umemLineOdd;
    int code = receive(slot, line->text + line->size, room, &received);
    if (code) return code;
    if (!received) return line->size ? umemCurlOK : umemCurlGotNothing;
    line->size += received;
    size_t begin = umem_lesser(line->size, 7);
    if (memcmp(line->text, "HTTP/1.", begin)) return umemLineOdd;
    if (read_lines(slot)) {
      code = judge(slot);
      if (code || line->state == lineReads) return code;
    }
  }
  return umemCurlOK;
}

static int take_body(umemSlot *slot, bool *more) {
  umemLine *line = slot->line;
  for (size_t taken = 0; slot->got < slot->size;) {
    size_t rest = slot->size - slot->got, size = rest, received = 0;
    if (taken >= turn_bytes) return *more = true, umemLineWaits;
    char *place = umemSlot_room(slot, &size);
    bool direct = place && size >= umem_lesser(rest, least_direct);
    if (!direct) size = umem_lesser(rest, sizeof line->text);
    int code = receive(slot, direct ? place : line->text, size, &received);
    if (code) return code;
    if (!received) return umemCurlPartial;
    if (!(direct ? umemSlot_took(slot, received) : umemSlot_take(slot, line->text, received)))
      return umemCurlWriteError;
    taken += received;
  }
  line->state = lineIdle;
  return umemCurlOK;
}

/* A connection that the server has closed since its last answer says nothing about the request. */
static bool is_stale(umemLine const *line, int code) {
  return line->used && code != umemCurlOK && code != umemLineOdd &&
         (line->state == lineSends || (line->state == lineReads && !line->size));
}

int umemLine_step(umemSlot *slot, bool *more) {
  umemLine *line = slot->line;
  int code = umemCurlOK;
  if (line->state == lineConnects) code = connect_line(slot);
  if (!code && line->state == lineSends) code = send_request(slot);
  if (!code && line->state == lineReads) code = read_head(slot);
  if (!code && line->state == lineTakes) code = take_body(slot, more);
  if (code == umemLineWaits) return code;
  if (is_stale(line, code)) code = umemLineOdd;
  slot->lined = false;
  line->used = true;
  if (line->state != lineIdle || line->ends) umemLine_end(slot);
  return code;
}
