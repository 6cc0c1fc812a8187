/* url_reply.c - headers of answers of a web server as libFuzzer makes them up, line by line. What
 * is read of them is consistent, and has only what may go into headers of later requests. */
#include "fuzz.h"

#include "url/url_fetch.h"

static void expect_text(char const *text, size_t size) {
  expect(strnlen(text, size) < size);
  for (; *text; text++) expect((unsigned char)*text >= ' ' && *text != 127);
}

static void check(umemFetchReply const *reply) {
  umemFetch fetch = {.length = reply->total, .pin = *reply};
  expect(reply->status == 0 || (reply->status >= 100 && reply->status <= 999));
  expect_text(reply->etag, sizeof reply->etag);
  expect_text(reply->modified, sizeof reply->modified);
  expect(!umemFetchReply_is_strong(reply) || strlen(reply->etag) >= 2);
  if (reply->malformed) {
    expect(umemFetchReply_check(reply, &fetch, reply->first, reply->last) != NULL);
    return;
  }
  if (reply->has_range) expect(reply->first <= reply->last && !(reply->last >> 63));
  if (reply->has_range && reply->has_total) expect(reply->last < reply->total);
  if (reply->has_total) expect(!(reply->total >> 63));
  if (!umemFetchReply_check(reply, &fetch, 2, 5))
    expect(reply->has_range && reply->first == 2 && reply->last == 5 && !reply->encoded &&
           (!reply->has_length || reply->length == 4));
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  umemFetchReply reply = {0};
  while (size) {
    unsigned char const *end = memchr(data, '\n', size);
    size_t length = end ? (size_t)(end - data) + 1 : size;
    char *line = malloc(length); /* so that the sanitizer sees each byte behind it */
    memcpy(line, data, length);
    umemFetchReply_read(&reply, line, length);
    free(line);
    check(&reply);
    data += length;
    size -= length;
  }
  return 0;
}
