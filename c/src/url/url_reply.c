/* url_reply.c - reads the headers of an answer. Each of them may be missing, malformed or a lie:
 * what is not understood counts as missing, and what contradicts itself makes the answer
 * malformed. */
#include "url/url_fetch.h"

#include <string.h>
#include <strings.h>

/* A part of a line. */
typedef struct Text {
  char const *at, *end;
} Text;

static Text trim(Text text) {
  while (text.at < text.end && (*text.at == ' ' || *text.at == '\t')) text.at++;
  while (text.at < text.end && strchr(" \t\r\n", text.end[-1])) text.end--;
  return text;
}

static bool skip(Text *text, char c) {
  bool there = text->at < text->end && *text->at == c;
  text->at += there;
  return there;
}

/* False without digits, and where the number exceeds 63 bits. */
static bool read_number(Text *text, uint64_t *number) {
  char const *begin = text->at;
  for (*number = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
    if (__builtin_mul_overflow(*number, 10, number) ||
        __builtin_add_overflow(*number, (uint64_t)(*text->at - '0'), number) || *number >> 63)
      return false;
  return text->at != begin;
}

/* "bytes 0-99/1234"; an asterisk stands for a range or a total that is not known. */
static bool read_range(umemFetchReply *reply, Text text) {
  if (text.end - text.at < 6 || strncasecmp(text.at, "bytes", 5) || text.at[5] != ' ') return false;
  text.at += 6;
  text = trim(text);
  bool none = skip(&text, '*');
  if (!none && !(read_number(&text, &reply->first) && skip(&text, '-') &&
                 read_number(&text, &reply->last) && reply->first <= reply->last))
    return false;
  if (!skip(&text, '/')) return false;
  bool unknown = skip(&text, '*');
  if (!unknown && !read_number(&text, &reply->total)) return false;
  if (text.at != text.end || (none && unknown)) return false;
  if (!none && !unknown && reply->last >= reply->total) return false;
  reply->has_range = !none;
  reply->has_total = !unknown;
  return true;
}

/* Copies text, which goes into headers of later requests. False if it is too long, or has other
 * characters than those of a header. */
static bool copy(char *to, size_t size, Text text) {
  size_t length = (size_t)(text.end - text.at);
  if (length >= size) return false;
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text.at[i] < ' ' || text.at[i] == 127) return false;
  memcpy(to, text.at, length);
  to[length] = 0;
  return true;
}

/* A header that comes twice must say the same. */
static bool copy_once(char *to, size_t size, Text text) {
  char before[256];
  strcpy(before, to);
  return copy(to, size, text) && (!*before || !strcmp(before, to));
}

bool umemFetchReply_is_strong(umemFetchReply const *reply) {
  size_t length = strlen(reply->etag);
  return length >= 2 && *reply->etag == '"' &&
         strchr(reply->etag + 1, '"') == reply->etag + length - 1;
}

static bool read_length(umemFetchReply *reply, Text text) {
  uint64_t before = reply->length;
  bool again = reply->has_length;
  reply->has_length = read_number(&text, &reply->length) && text.at == text.end;
  return reply->has_length && (!again || before == reply->length);
}

static bool read_encoding(umemFetchReply *reply, Text text) {
  bool plain = text.end - text.at == 8 && !strncasecmp(text.at, "identity", 8);
  reply->encoded |= !plain && text.at != text.end;
  return true;
}

/* "HTTP/1.1 206 Partial Content": the headers of an answer, maybe after those of another one, such
 * as 100 Continue. */
static bool begin(umemFetchReply *reply, Text text) {
  uint64_t status = 0;
  memset(reply, 0, sizeof *reply);
  while (text.at < text.end && *text.at != ' ') text.at++;
  text = trim(text);
  if (!read_number(&text, &status) || status < 100 || status > 999) return false;
  reply->status = (int)status;
  return true;
}

static bool is(Text name, char const *header) {
  size_t length = strlen(header);
  return (size_t)(name.end - name.at) == length && !strncasecmp(name.at, header, length);
}

static bool read_header(umemFetchReply *reply, Text name, Text value) {
  if (is(name, "Content-Range")) return !reply->has_range && read_range(reply, value);
  if (is(name, "Content-Length")) return read_length(reply, value);
  if (is(name, "Content-Encoding")) return read_encoding(reply, value);
  if (is(name, "ETag")) return copy_once(reply->etag, sizeof reply->etag, value);
  if (is(name, "Last-Modified")) return copy_once(reply->modified, sizeof reply->modified, value);
  return true;
}

void umemFetchReply_read(umemFetchReply *reply, char const *line, size_t size) {
  Text text = {line, line + size};
  bool good = true;
  char const *colon = memchr(line, ':', size);
  if (size >= 5 && !strncmp(line, "HTTP/", 5))
    good = begin(reply, text);
  else if (colon)
    good = read_header(reply, (Text){line, colon}, trim((Text){colon + 1, text.end}));
  text = trim(text);
  reply->complete |= text.at == text.end;
  reply->malformed |= !good;
}

/* ---- what an answer to a request for a range must be ---- */

char const *umemFetchReply_check(umemFetchReply const *reply, umemFetch const *fetch,
                                 uint64_t first, uint64_t last) {
  umemFetchReply const *pin = &fetch->pin;
  if (reply->malformed) return "the headers of the answer contradict themselves";
  if (reply->encoded) return "the server has compressed the bytes, which nobody has asked for";
  if (!reply->has_range || reply->first != first || reply->last != last)
    return "the server sends another range than that asked for";
  if (reply->has_length && reply->length != last + 1 - first)
    return "the lengths in the headers of the answer contradict themselves";
  if (reply->has_total && reply->total != fetch->length)
    return "the object has changed: it has another length";
  if (*pin->etag && strcmp(pin->etag, reply->etag))
    return "the object has changed: it has another ETag";
  if (!*pin->etag && strcmp(pin->modified, reply->modified))
    return "the object has changed: it has another date";
  return NULL;
}

char const *umemFetchReply_refusal(int status) {
  switch (status) {
  case 200:
    return "the server sends the whole object instead of a range";
  case 412:
    return "the object has changed";
  case 416:
    return "the object has changed: it is shorter";
  default:
    return NULL;
  }
}
