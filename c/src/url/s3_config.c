/* s3_config.c - finds the credentials, the region and the server of requests to S3.
 *
 * AWS's files have sections "[profile NAME]" (of the file credentials: "[NAME]") of lines
 * "name = value". Indented lines belong to the line above, and are skipped. Messages name a file
 * and a line, and never show what is in it. */
#include "url/s3.h"
#include "base/files.h"
#include "base/number.h"
#include "core/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t const file_most = 1 << 20;

/* What stands for itself in a part of a URL. */
static char const letters_and_more[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";

/* ==== texts ==== */

/* Copies text to out, of size bytes. False if it is too long or has other characters than visible
 * ASCII. */
static bool take_visible(char *out, size_t size, char const *text) {
  size_t length = strlen(text);
  if (length >= size) return false;
  for (char const *c = text; *c; c++)
    if (*c <= ' ' || *c > '~') return false;
  memcpy(out, text, length + 1);
  return true;
}

static bool take_region(umemS3Config *config, char const *text) {
  bool good = take_visible(config->region, sizeof config->region, text) && *text;
  good = good && strspn(text, letters_and_more) == strlen(text) && !strpbrk(text, ".~/");
  return good ||
         UMEM_FAIL(NULL, umemValueError, "the region must be of letters, digits, \"-\" and \"_\"");
}

static bool take_endpoint(umemS3Config *config, char const *text) {
  bool good = take_visible(config->endpoint, sizeof config->endpoint, text);
  size_t scheme = !strncmp(text, "https://", 8) ? 8 : !strncmp(text, "http://", 7) ? 7 : 0;
  if (!good || !scheme || !text[scheme] || text[scheme] == '/' || strpbrk(text, "@?#\\\"<>"))
    return UMEM_FAIL(NULL, umemValueError,
                     "the endpoint must be \"https://HOST\", without a user and a query");
  for (size_t length = strlen(text); config->endpoint[length - 1] == '/'; length--)
    config->endpoint[length - 1] = 0;
  return true;
}

/* The text of a variable; NULL where it is not set, or empty. */
static char const *variable(char const *name) {
  char const *text = secure_getenv(name);
  return text && *text ? text : NULL;
}

static char const *variable_of(char const *name, char const *other) {
  char const *text = variable(name);
  return text ? text : variable(other);
}

/* ==== AWS's files ==== */

/* What a section of a file may have. */
typedef struct Entries {
  char const *key_id, *secret, *token, *region, *endpoint;
  char const *elsewhere; /* the name of an entry that says to get the keys from elsewhere */
  bool found;            /* there is such a section */
} Entries;

/* A file, which is read whole. */
typedef struct File {
  char path[PATH_MAX];
  char *text; /* owned; NULL: there is no file */
  size_t size;
  unsigned line;
} File;

static bool refuse_file(File const *file, char const *why) {
  if (file->line)
    return UMEM_FAIL(NULL, umemIOError, "%.200s, line %u: %s", file->path, file->line, why);
  return UMEM_FAIL(NULL, umemIOError, "%.200s: %s", file->path, why);
}

static bool refuse_errno(File const *file) { return refuse_file(file, UMEM_WORDS(errno)); }

/* The path of a file: that of the variable, or below the user's folder. False without one. */
static bool find_path(char *path, char const *name, char const *usual) {
  char const *given = variable(name), *home = variable("HOME");
  bool is_below = !given || !strncmp(given, "~/", 2);
  if (is_below && !home) return false;
  int length = is_below ? snprintf(path, PATH_MAX, "%s/%s", home, given ? given + 2 : usual)
                        : snprintf(path, PATH_MAX, "%s", given);
  return length > 0 && length < PATH_MAX;
}

static bool read_descriptor(File *file, int fd) {
  struct stat about;
  if (fstat(fd, &about)) return refuse_errno(file);
  if (!S_ISREG(about.st_mode)) return refuse_file(file, "this is no regular file");
  if (about.st_mode & S_IWOTH) return refuse_file(file, "every user may write this file");
  if (about.st_uid != geteuid() && about.st_uid != 0)
    return refuse_file(file, "this file belongs to another user");
  file->text = malloc(file_most + 2);
  if (!file->text) return UMEM_FAIL(NULL, umemMemoryError, "cannot allocate %zu bytes", file_most);
  while (file->size <= file_most) {
    ssize_t n = UMEM_AGAIN(read(fd, file->text + file->size, file_most + 1 - file->size));
    if (n < 0) return refuse_errno(file);
    if (n == 0) break;
    file->size += (size_t)n;
  }
  file->text[file->size] = 0;
  if (file->size > file_most) return refuse_file(file, "this file is longer than 1 MiB");
  return strlen(file->text) == file->size || refuse_file(file, "this file has a byte of value 0");
}

static bool read_file(File *file) {
  int fd = UMEM_AGAIN(open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd < 0) return errno == ENOENT || errno == ENOTDIR || refuse_errno(file);
  bool done = read_descriptor(file, fd);
  close(fd); /* of a file that was read: nothing can be lost */
  return done;
}

static void end_file(File *file) {
  if (file->text) explicit_bzero(file->text, file->size);
  free(file->text);
}

static char *trim(char *text) {
  text += strspn(text, " \t");
  size_t length = strlen(text);
  while (length && strchr(" \t\r", text[length - 1])) text[--length] = 0;
  return text;
}

/* Sets *text to the value of an entry, which a section may have once. */
static bool enter(File const *file, char const **text, char *value) {
  if (*text) return refuse_file(file, "this entry is there twice");
  *text = value;
  return true;
}

/* Whether an entry of this name says that keys are elsewhere. */
static bool is_elsewhere(char const *name) {
  static char const *const names[] = {"credential_process", "role_arn", "credential_source",
                                      "web_identity_token_file", "login_session"};
  if (!strncmp(name, "sso_", 4)) return true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i])) return true;
  return false;
}

static bool read_entry(File const *file, Entries *entries, char const *name, char *value) {
  if (!strcmp(name, "aws_access_key_id")) return enter(file, &entries->key_id, value);
  if (!strcmp(name, "aws_secret_access_key")) return enter(file, &entries->secret, value);
  if (!strcmp(name, "aws_session_token")) return enter(file, &entries->token, value);
  if (!strcmp(name, "region")) return enter(file, &entries->region, value);
  if (!strcmp(name, "endpoint_url")) return enter(file, &entries->endpoint, value);
  if (is_elsewhere(name)) entries->elsewhere = name;
  return true;
}

/* Reads a line "name = value" into entries; NULL: of another section. */
static bool read_line(File const *file, Entries *entries, char *line) {
  char *value = strchr(line, '=');
  if (!value) return refuse_file(file, "this is neither \"[section]\" nor \"name = value\"");
  *value++ = 0;
  char *name = trim(line);
  if (!*name) return refuse_file(file, "this entry has no name");
  for (char *c = name; *c; c++) *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
  return !entries || read_entry(file, entries, name, trim(value));
}

/* Sets *is_ours to whether a line "[...]" begins the section of the profile. */
static bool read_section(File const *file, char *line, char const *profile, bool *is_ours) {
  char *end = strchr(line, ']');
  if (!end || end[1 + strspn(end + 1, " \t\r")])
    return refuse_file(file, "this section does not end in \"]\"");
  *end = 0;
  char *name = trim(line + 1);
  if (!*name) return refuse_file(file, "this section has no name");
  if (!strncmp(name, "profile", 7) && strchr(" \t", name[7]) && name[7]) name = trim(name + 8);
  *is_ours = !strcmp(name, profile);
  return true;
}

/* Reads the section of the profile; entries point into the file. */
static bool parse(File *file, char const *profile, Entries *entries) {
  bool is_ours = false, has_section = false;
  char *next = file->text;
  for (char *line = next; line; line = next) {
    next = strchr(line, '\n');
    if (next) *next++ = 0;
    file->line++;
    bool const indented = *line == ' ' || *line == '\t';
    char *text = trim(line);
    if (!*text || *text == '#' || *text == ';') continue;
    if (*text == '[' && !indented) {
      if (!read_section(file, text, profile, &is_ours)) return false;
      if (is_ours && entries->found) return refuse_file(file, "this section is there twice");
      entries->found |= is_ours;
      has_section = true;
    } else if (!has_section) {
      return refuse_file(file, "this is before the first \"[section]\"");
    } else if (!indented && !read_line(file, is_ours ? entries : NULL, text)) {
      return false;
    }
  }
  file->line = 0;
  return true;
}

static bool read_entries(File *file, char const *variable_name, char const *usual,
                         char const *profile, Entries *entries) {
  if (!find_path(file->path, variable_name, usual)) return true;
  return read_file(file) && (!file->text || parse(file, profile, entries));
}

/* ==== credentials ==== */

/* Where they are from: with it, messages begin. */
static bool take_keys(umemS3Config *config, char const *key_id, char const *secret,
                      char const *token, char const *source) {
  if (!key_id || !secret || !*key_id || !*secret)
    return UMEM_FAIL(NULL, umemIOError, "%.100s has only one of the access key and its secret",
                     source);
  bool good = take_visible(config->key_id, sizeof config->key_id, key_id) &&
              !strpbrk(key_id, ":/") &&
              take_visible(config->secret, sizeof config->secret, secret) &&
              take_visible(config->token, sizeof config->token, token ? token : "");
  return good ||
         UMEM_FAIL(NULL, umemIOError,
                   "a key of %.100s is too long, or has characters that no key has", source);
}

static bool take_keys_of(umemS3Config *config, Entries const *entries, char const *profile,
                         bool *found) {
  char source[128];
  snprintf(source, sizeof source, "the profile \"%.60s\"", profile);
  *found = entries->key_id || entries->secret;
  return !*found || take_keys(config, entries->key_id, entries->secret, entries->token, source);
}

static bool lacks_keys(char const *profile, Entries const *credentials, Entries const *rest) {
  char const *elsewhere = credentials->elsewhere ? credentials->elsewhere : rest->elsewhere;
  if (elsewhere)
    return UMEM_FAIL(NULL, umemNotSupportedError,
                     "the profile \"%.60s\" gets its keys by %.30s, which umem cannot do: set the "
                     "variables that \"aws configure export-credentials --format env\" prints",
                     profile, elsewhere);
  if (credentials->found || rest->found)
    return UMEM_FAIL(NULL, umemIOError, "the profile \"%.60s\" has no access key", profile);
  return UMEM_FAIL(NULL, umemIOError,
                   "no credentials for s3 (profile \"%.60s\"): set AWS_ACCESS_KEY_ID and "
                   "AWS_SECRET_ACCESS_KEY, write ~/.aws/credentials, or use the option anonymous",
                   profile);
}

/* The keys: variables, unless the options name a profile, then the two files. */
static bool find_keys(umemS3Config *config, umemS3Options const *options, char const *profile,
                      Entries const *credentials, Entries const *rest) {
  char const *key_id = variable("AWS_ACCESS_KEY_ID"), *secret = variable("AWS_SECRET_ACCESS_KEY");
  bool found = false;
  if (config->anonymous) return true;
  if (!options->profile && (key_id || secret))
    return take_keys(config, key_id, secret, variable("AWS_SESSION_TOKEN"), "the environment");
  if (!take_keys_of(config, credentials, profile, &found)) return false;
  if (!found && !take_keys_of(config, rest, profile, &found)) return false;
  return found || lacks_keys(profile, credentials, rest);
}

static bool ignores_configured_endpoints(void) {
  char const *text = variable("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  return text && !strcasecmp(text, "true");
}

static bool find_server(umemS3Config *config, umemS3Options const *options, Entries const *rest) {
  char const *region = options->region, *endpoint = options->endpoint;
  if (!region) region = variable_of("AWS_REGION", "AWS_DEFAULT_REGION");
  if (!region) region = rest->region;
  if (!endpoint && !ignores_configured_endpoints()) {
    endpoint = variable_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
    if (!endpoint) endpoint = rest->endpoint;
  }
  return take_region(config, region ? region : "us-east-1") &&
         (!endpoint || take_endpoint(config, endpoint));
}

bool umemS3Config_read(umemS3Config *config, umemS3Options const *options) {
  char const *profile = options->profile;
  if (!profile) profile = variable_of("AWS_PROFILE", "AWS_DEFAULT_PROFILE");
  if (!profile) profile = "default";
  *config = (umemS3Config){.anonymous = options->anonymous != 0, .style = options->style};
  File *files = calloc(2, sizeof *files);
  if (!files)
    return UMEM_FAIL(NULL, umemMemoryError, "cannot allocate %zu bytes", 2 * sizeof *files);
  Entries credentials = {0}, rest = {0};
  bool read = (config->anonymous || read_entries(&files[0], "AWS_SHARED_CREDENTIALS_FILE",
                                                 ".aws/credentials", profile, &credentials)) &&
              read_entries(&files[1], "AWS_CONFIG_FILE", ".aws/config", profile, &rest) &&
              find_keys(config, options, profile, &credentials, &rest) &&
              find_server(config, options, &rest);
  end_file(&files[0]);
  end_file(&files[1]);
  free(files);
  if (!read) umemS3Config_clear(config);
  return read;
}

void umemS3Config_clear(umemS3Config *config) { explicit_bzero(config, sizeof *config); }

/* ==== the URL ==== */

static bool refuse_url(char const *why) {
  return UMEM_FAIL(NULL, umemValueError, "the name must be \"s3://BUCKET/KEY\": %s", why);
}

/* Copies the bucket of "BUCKET/KEY" to bucket. Returns the key; NULL, with a status, without. */
static char const *take_bucket(char *bucket, char const *text) {
  size_t length = strcspn(text, "/~");
  length = umem_lesser(length, strspn(text, letters_and_more));
  char const *why = NULL;
  if (length < 3 || length > umemS3BucketMost)
    why = "a bucket has 3 to 255 letters, digits, \".\", \"-\" and \"_\"";
  else if (text[length] != '/' || !text[length + 1])
    why = "a key follows the bucket, behind a \"/\"";
  else if (strchr(".-_", *text) || memmem(text, length, "..", 2))
    why = "a bucket begins with a letter or a digit, and has no \"..\"";
  if (why) {
    refuse_url(why);
    return NULL;
  }
  memcpy(bucket, text, length);
  bucket[length] = 0;
  return text + length + 1;
}

static int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Whether a part of the key between slashes is "." or "..", which a URL leaves out. */
static bool has_dots(char const *key) {
  for (; key; key = strchr(key, '/') ? strchr(key, '/') + 1 : NULL) {
    size_t length = strcspn(key, "/");
    if ((length == 1 && *key == '.') || (length == 2 && !strncmp(key, "..", 2))) return true;
  }
  return false;
}

/* Writes the decoded key to key, umemS3KeyMost + 1 bytes. */
static bool take_key(char *key, char const *text) {
  size_t length = 0;
  for (; *text; text++) {
    int byte = (unsigned char)*text;
    if (byte == '?' || byte == '#')
      return refuse_url("in a key \"?\" is %3F and \"#\" is %23; options follow a \"#\"");
    if (byte == '%') {
      int high = hexadecimal(text[1]), low = high < 0 ? -1 : hexadecimal(text[2]);
      byte = high << 4 | low;
      if (low < 0) return refuse_url("a \"%\" in a key is written %25");
      text += 2;
    }
    if (!byte) return refuse_url("a key has no byte of value 0");
    if (length == umemS3KeyMost) return refuse_url("a key has at most 1024 bytes");
    key[length++] = (char)byte;
  }
  key[length] = 0;
  return !has_dots(key) || refuse_url("libcurl cannot ask for a key with a part \".\" or \"..\"");
}

/* Writes the key to out as a part of a URL: all but letters, digits and -._~/ as %XX, which is what
 * a signature needs. */
static void encode(char *out, char const *key) {
  for (; *key; key++) {
    unsigned char c = (unsigned char)*key;
    if (strchr(letters_and_more, c))
      *out++ = (char)c;
    else
      out += sprintf(out, "%%%02X", c);
  }
  *out = 0;
}

bool umemS3Config_url(umemS3Config const *config, char const *url, char *out) {
  char bucket[umemS3BucketMost + 1], key[umemS3KeyMost + 1], encoded[3 * umemS3KeyMost + 1];
  if (!url || strncmp(url, "s3://", 5)) return refuse_url("it begins otherwise");
  char const *rest = take_bucket(bucket, url + 5);
  if (!rest || !take_key(key, rest)) return false;
  encode(encoded, key);
  bool in_host = config->style == umemS3StyleHost ||
                 (config->style == umemS3StyleAuto && !*config->endpoint && !strchr(bucket, '.'));
  if (in_host && strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789.-") != strlen(bucket))
    return refuse_url("this bucket cannot be in the name of a host: use the style path");
  char endpoint[sizeof config->endpoint];
  char const *domain = strncmp(config->region, "cn-", 3) ? "com" : "com.cn";
  if (*config->endpoint)
    memcpy(endpoint, config->endpoint, sizeof endpoint);
  else
    snprintf(endpoint, sizeof endpoint, "https://s3.%s.amazonaws.%s", config->region, domain);
  size_t scheme = (size_t)(strstr(endpoint, "://") - endpoint) + 3;
  int length = in_host ? snprintf(out, umemS3UrlSize, "%.*s%s.%s/%s", (int)scheme, endpoint, bucket,
                                  endpoint + scheme, encoded)
                       : snprintf(out, umemS3UrlSize, "%s/%s/%s", endpoint, bucket, encoded);
  return (length > 0 && length < umemS3UrlSize) || refuse_url("it is too long");
}
