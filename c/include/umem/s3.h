/* umem/s3.h - objects in buckets of S3 and of servers that speak its protocol. */
#ifndef UMEM_S3_H
#define UMEM_S3_H

#include <umem/base.h>

/* The bytes of one object of a bucket. Requests are signed (AWS signature 4) by libcurl 7.88 or
 * later; older ones read with the option anonymous only.
 *
 * With mode "r" it is a umemUrl: see umem/url.h for ranges, the pin, retries and redirects.
 *
 * With mode "w" it is write-only. Addresses are byte offsets, and blocks follow one another as in a
 * new umemFile, but a freed block leaves its bytes in the object, and no later block takes them.
 * Copies fill buffers of one part each. A part is sent as soon as all of its bytes are written, by
 * several threads; its buffer is then free for a later part. So memory is bounded: as many buffers
 * as connections, and 4 more. Write in ascending order: if all buffers are incomplete, a copy into
 * another part fails with umemMemoryError. A byte may be written several times until its part is
 * sent; from then on a write fails with umemNotSupportedError. Bytes that no block has, and those
 * between blocks, are zero. The length of the object is the end of its last block.
 *
 * The object appears, or takes the place of an older one, when it is complete, in one step:
 * - umem_flush completes it: it sends what is left, with zeros for bytes that nothing has written.
 *   Afterwards no block can be allocated and no byte written.
 * - umem_dtor completes it if nothing has failed on the context since it was constructed, and all
 *   bytes of all blocks were written, those of freed ones, too. Blocks of umem_calloc need not be
 *   written: they are zero; and neither need blocks of one byte, as a request for 0 bytes makes
 *   them. Otherwise it ends the upload,
 *   leaves an older object as it was, and records umemIOError with the reason. After
 *   umemS3_abandon there is nothing to make, and it records nothing.
 * Without a block the object is empty, as a file that was opened for writing.
 * Writes and umem_flush that wait for the server can be cancelled (umem_set_wait_hook). A write may
 * have sent later parts of its bytes by then, which cannot be written again; a flush may be tried
 * again. As one that fails, it has sent the last part as short as it is: no block can be allocated
 * from the first flush on. umem_dtor of an incomplete upload cuts its requests, and gives the
 * server 5 seconds to forget what was sent.
 *
 * An object of one part is one request (PUT); a longer one is a multipart upload, whose object has
 * the metadata x-amz-meta-umem-upload, a random number: by it umem knows its own object when the
 * answer to the last request is lost. A process that
 * is killed may leave an unfinished upload, which is no object but is stored: let a rule of the
 * bucket remove those (AbortIncompleteMultipartUpload).
 *
 * Parts have the size of the option part, or else at least 8 MiB, and more if the option length, or
 * the blocks that exist at the first send, have more than 10,000 such parts.
 *
 * Concurrent, not ordered. A forked child must not use a context of mode "w": it fails with
 * umemNotSupportedError, and its umem_dtor leaves the upload to the parent. */
typedef struct umemS3 {
  umemVirtual super;
  void *impl; /* owned */
  uintptr_t reserved[7];
} umemS3;

/* Where the name of the bucket is in requests. */
typedef enum umemS3Style {
  umemS3StyleAuto = 0, /* in the host for AWS, unless the name has a dot; else in the path */
  umemS3StylePath,     /* https://ENDPOINT/BUCKET/KEY */
  umemS3StyleHost      /* https://BUCKET.ENDPOINT/KEY */
} umemS3Style;

struct umemUrlOptions; /* url.h */

/* Options of umemS3_ctor_with. Texts are borrowed for the call. */
typedef struct umemS3Options {
  size_t size; /* sizeof(umemS3Options) as the caller was compiled */
  /* NULL: AWS_REGION, AWS_DEFAULT_REGION, the profile's, or "us-east-1" */
  char const *region;
  /* "https://HOST", with a port and a path if needed; NULL: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL,
   * the profile's endpoint_url, or AWS */
  char const *endpoint;
  /* the part of AWS's files that has the credentials; not NULL: the variables are not used for
   * these. NULL: AWS_PROFILE, AWS_DEFAULT_PROFILE, or "default" */
  char const *profile;
  umemS3Style style;
  uint32_t anonymous; /* 1: requests are not signed, and no credentials are looked for */
  uint64_t length;    /* mode w: the most bytes that the object will have; 0: unknown */
  uint64_t part;      /* mode w: bytes of a part, 5 MiB to 5 GiB; 0: see umemS3 */
  struct umemUrlOptions const *url; /* connections, retries, time limits; NULL: the defaults */
} umemS3Options;

/* The defaults. */
#define UMEM_S3_OPTIONS_INIT                                                                       \
  { sizeof(umemS3Options), NULL, NULL, NULL, umemS3StyleAuto, 0, 0, 0, NULL }

/* Opens the object at url, "s3://BUCKET/KEY", in mode "r" or "w". In the key %XX is the byte with
 * this hexadecimal number: "%3F" for "?", "%23" for "#", "%25" for "%". Other characters stand for
 * themselves. Mode "r" makes one request; mode "w" none before the first part is sent.
 *
 * Credentials are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, or else those of
 * the profile in the files ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE) and ~/.aws/config
 * (AWS_CONFIG_FILE). A profile that gets its keys from elsewhere (sso_..., role_arn,
 * credential_process) is refused. Files of more than 1 MiB, files that other users may write, and
 * files that are malformed are refused. No message, ledger or umemInfo has credentials.
 *
 * Errors: umemValueError for a URL, mode or option that cannot be right; umemIOError without
 * credentials, for files that cannot be used, and for what the server answers;
 * umemNotSupportedError without a libcurl that signs; umemMemoryError. */
UMEM_EXTERN umemStatusType umemS3_ctor(umemS3 *ctx, char const *url, char const *mode);

/* Does what umemS3_ctor does, with options; NULL: the defaults. */
UMEM_EXTERN umemStatusType umemS3_ctor_with(umemS3 *ctx, char const *url, char const *mode,
                                            umemS3Options const *options);

/* Gives up the object of a context of mode "w": later writes fail, and umem_dtor ends the upload.
 * An older object remains as it was. Does nothing in mode "r", or if the object is complete.
 * Errors: umemTypeError for another context. */
UMEM_EXTERN umemStatusType umemS3_abandon(umemS3 *ctx);

#endif
