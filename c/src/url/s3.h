/* s3.h - what a place in a bucket is made of: where requests go and how they are signed, and the
 * upload of an object that is written. */
#ifndef UMEM_URL_S3_H
#define UMEM_URL_S3_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <umem/s3.h>

#include "base/range.h"
#include "base/table.h"
#include "url/url_fetch.h"

/* ==== from options, variables of the environment and AWS's files ==== */

enum { umemS3UrlSize = 4096, umemS3BucketMost = 255, umemS3KeyMost = 1024 };

/* Holds secrets: clear it with umemS3Config_clear. */
typedef struct umemS3Config {
  bool anonymous;
  umemS3Style style;
  char region[64];    /* no more than libcurl's signature takes */
  char endpoint[512]; /* "https://host", without a slash at its end; "": AWS */
  char key_id[257], secret[257];
  char token[8193]; /* "": none */
} umemS3Config;

/* Fills in *config. Returns false, with a status of the thread, after a failure. */
bool umemS3Config_read(umemS3Config *config, umemS3Options const *options);
void umemS3Config_clear(umemS3Config *config);

/* Writes the URL of requests for the object at url, "s3://BUCKET/KEY", to out: umemS3UrlSize bytes.
 * False, with a status of the thread, after a failure. */
bool umemS3Config_url(umemS3Config const *config, char const *url, char *out);

/* ==== requests that write an object ====
 *
 * Each records a failure on ctx, and returns false. */

enum { umemS3IdMost = 1024, umemS3EtagSize = sizeof((umemFetchReply *)0)->etag };

typedef struct umemS3Requests {
  umemVirtual *ctx;
  umemFetch *fetch;              /* borrowed, as is its URL */
  char const *url;               /* of the object */
  char id[3 * umemS3IdMost + 1]; /* of a multipart upload, as in a URL; "": none */
  char mark[33];                 /* drawn for it: metadata of the object, by which it is known */
} umemS3Requests;

typedef struct umemS3Part {
  uint64_t needed;           /* bytes of blocks in it */
  char etag[umemS3EtagSize]; /* of the server, when it is sent; else "" */
} umemS3Part;

/* Requests a number of a multipart upload. */
bool umemS3Requests_begin(umemS3Requests *self);

/* Sends the part with this number, from 1, or, number 0, a whole object. */
bool umemS3Requests_put(umemS3Requests *self, unsigned number, void const *bytes, uint64_t size,
                        char etag[umemS3EtagSize]);

/* Makes the object, of length bytes, of its parts. */
bool umemS3Requests_join(umemS3Requests *self, umemS3Part const *parts, unsigned count,
                         uint64_t length);

/* Lets the server forget the parts. Tries for a while, also when the call is cancelled. */
bool umemS3Requests_abort(umemS3Requests *self);

enum { umemS3GraceMs = 5000 }; /* for what a cancelled call still sends to leave nothing behind */

/* ==== parts of an object, and buffers for those that are written ====
 *
 * Under the lock of who has them. */

enum { umemS3PartsMost = 10000 };
#define UMEM_S3_PART_LEAST ((uint64_t)5 << 20) /* of servers, but for the last part */
#define UMEM_S3_PART_MOST ((uint64_t)5 << 30)

typedef enum umemS3BufferState {
  umemS3BufferFree = 0,
  umemS3BufferFills,
  umemS3BufferQueued,
  umemS3BufferSends
} umemS3BufferState;

typedef struct umemS3Buffer {
  umemS3BufferState state;
  unsigned part;    /* from 0 */
  unsigned writers; /* threads that copy into it */
  char *bytes;      /* of a part; owned; NULL: not allocated yet */
  uint64_t *marks;  /* behind them: a bit for each byte that was written */
  uint64_t covered; /* those */
  /* Of a part that a long write has whole: its bytes in the program's memory, and the write, which
   * returns when they are sent; else NULL. */
  void const *lent, *lender;
  uint64_t unwanted; /* when that write was cancelled, as umemFetch_now(); 0: it was not; atomic */
} umemS3Buffer;

/* Marks [from, from + size) as written. */
void umemS3Buffer_mark(umemS3Buffer *buffer, uint64_t from, uint64_t size);
/* Makes those of the first size bytes zero that are not marked. */
void umemS3Buffer_clear_unmarked(umemS3Buffer *buffer, uint64_t size);
void umemS3Buffer_set_free(umemS3Buffer *buffer);

/* All zero, but for the first four, before umemS3Parts_init. */
typedef struct umemS3Parts {
  umemVirtual *ctx; /* of failures, and label for them; borrowed */
  char const *label;
  uint64_t length;  /* that the object will have, at most; 0: unknown */
  uint64_t size;    /* of a part; 0: not chosen */
  umemRange *range; /* of the blocks; those that were freed are held. Owned, as are the next two */
  uint64_t end;     /* of the last block */
  umemS3Buffer *buffers;
  unsigned buffer_count;
  umemS3Part *parts; /* once the size of parts is chosen: all that have blocks */
  unsigned room;
  umemTable zeros; /* start and size of blocks that need not be written */
} umemS3Parts;

/* False without memory. umemS3Parts_end is right in both cases. */
bool umemS3Parts_init(umemS3Parts *self, unsigned buffer_count);
void umemS3Parts_end(umemS3Parts *self);

/* Chooses the size of parts, by what is known of the object when the first byte is written. False
 * with a status. */
bool umemS3Parts_choose_size(umemS3Parts *self);

unsigned umemS3Parts_count(umemS3Parts const *self);
uint64_t umemS3Parts_size_of(umemS3Parts const *self, unsigned part);
bool umemS3Parts_is_sent(umemS3Parts const *self, unsigned part);
/* Whether the part may be sent before the end: it becomes no longer, and there will be another
 * one. */
bool umemS3Parts_is_closed(umemS3Parts const *self, unsigned part);
/* Whether the buffer has all that will be written to its part, which may be sent. */
bool umemS3Parts_is_ready(umemS3Parts const *self, umemS3Buffer const *buffer);
/* Bytes of blocks that nothing has written, though they are not zero by themselves. */
uint64_t umemS3Parts_missing(umemS3Parts const *self);

/* The buffer of a part; NULL: none. */
umemS3Buffer *umemS3Parts_buffer_of(umemS3Parts const *self, unsigned part);
/* That buffer, or a free one, which has memory unless bytes are lent. NULL with a status, or with
 * *full: if no buffer is free. */
umemS3Buffer *umemS3Parts_take(umemS3Parts *self, unsigned part, void const *lent, bool *full);

/* zero: it need not be written, and neither need a block of one byte, which a request for none
 * makes. UINT64_MAX with a status. */
uint64_t umemS3Parts_alloc(umemS3Parts *self, uint64_t size, uint64_t alignment, bool zero);
/* The block that begins at offset, or has it. False for one that was freed. */
bool umemS3Parts_find(umemS3Parts *self, uint64_t offset, umemRangeItem *block);
/* False, with a status, if no live block begins there, or has all of these bytes. */
bool umemS3Parts_begins(umemS3Parts *self, uint64_t offset, umemRangeItem *block);
bool umemS3Parts_is_inside(umemS3Parts *self, uint64_t offset, size_t size);

/* ==== an object that is written part by part, with bounded memory ====
 *
 * Functions that return bool record a failure on the context of the fetch, and return false. Any
 * threads may call them at the same time, but for complete and destroy, during which no write may
 * run. */

typedef struct umemS3Upload umemS3Upload;

/* An upload to url, that of the fetch, both borrowed. length: the most bytes that the object will
 * have, and part: those of a part; 0: unknown. connections: the most requests in flight. NULL with
 * a status. */
umemS3Upload *umemS3Upload_create(umemVirtual *ctx, umemFetch *fetch, char const *url,
                                  uint64_t length, uint64_t part, unsigned connections);

/* Ends an upload that is not complete, with its requests in flight, and records if the server
 * cannot do so. NULL is ignored. */
void umemS3Upload_destroy(umemS3Upload *upload);

/* ---- blocks: placed as those of a file; the bytes of a freed one are not used again ---- */

/* zero: see umemS3Parts_alloc. UINT64_MAX after a failure. */
uint64_t umemS3Upload_alloc(umemS3Upload *upload, uint64_t size, uint64_t alignment, bool zero);
bool umemS3Upload_free(umemS3Upload *upload, uint64_t offset);

/* The size of the live block that begins at offset; 0 with a status. */
uint64_t umemS3Upload_begins(umemS3Upload *upload, uint64_t offset);
umemSearch umemS3Upload_find(umemS3Upload *upload, uint64_t offset, umemFound *found);
bool umemS3Upload_usage(umemS3Upload *upload, umemUsage *usage);

/* ---- bytes ---- */

/* Writes size bytes at offset: those of bytes, or NULL: each of value. A call that waits for the
 * server can be cancelled; later parts of its bytes may be sent by then. meter: of a run that
 * begins with these bytes, and is taken if its parts are sent from where they are; NULL: none.
 * False with a status, or because the meter is over. */
bool umemS3Upload_write(umemS3Upload *upload, uint64_t offset, void const *bytes, int value,
                        size_t size, umemMeter *meter);

/* Sends what is left, and makes the object. whole: fails if a byte of a block was not written;
 * else those become zero. Does nothing if the object is complete. */
bool umemS3Upload_complete(umemS3Upload *upload, bool whole);

/* The object is not to be made: later calls fail, and umemS3Upload_destroy ends what was sent. */
void umemS3Upload_abandon(umemS3Upload *upload);

/* Whether the object is neither complete nor abandoned. False in a forked child. */
bool umemS3Upload_is_open(umemS3Upload *upload);

#endif
