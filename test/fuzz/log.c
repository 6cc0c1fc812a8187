/* log.c - logs for umem-trace, as libFuzzer damages them. The input is what differs from a sound
 * log: three bytes tell a place and what is added to the byte there; two that are left at the end,
 * how many bytes of the file are missing.
 *
 * Each is read from memory and from a file that has holes where nothing stands; what is made of it
 * is text that does nothing to a terminal, whatever the contexts are called. */
#include "trace.h"

#include "fuzz.h"

#include <sys/mman.h>

enum {
  contexts = 2,
  capacity = 2048, /* of which a page has records */
  records = 64,
  header_bytes = 144,
  context_bytes = (1 + contexts) * sizeof(umemLogContext),
  ring_bytes = records * sizeof(umemLogRecord),
  written_bytes = umemLog_ring_at + ring_bytes,
  all_bytes = umemLog_ring_at + capacity * sizeof(umemLogRecord),
};

static unsigned char log_bytes[all_bytes];

/* In turns an allocation, a set, a copy, a resize and a free, of a few blocks. */
static void make_sound(void) {
  static umemLogKind const kinds[] = {umemLogAlloc,       umemLogSet,       umemLogCopy,
                                      umemLogResizeBegin, umemLogResizeEnd, umemLogFree,
                                      umemLogCopy,        umemLogAlloc};
  umemLogHeader *header = (umemLogHeader *)log_bytes;
  umemLogContext *names = (umemLogContext *)(log_bytes + umemLog_contexts_at);
  umemLogRecord *ring = (umemLogRecord *)(log_bytes + umemLog_ring_at);
  memset(log_bytes, 0, written_bytes); /* the rest stays so */
  *header = (umemLogHeader){.magic = UMEM_LOG_MAGIC,
                            .version = umemLog_version,
                            .byte_order = umemLog_byte_order,
                            .record_size = sizeof(umemLogRecord),
                            .context_size = sizeof(umemLogContext),
                            .capacity = capacity,
                            .contexts = contexts,
                            .next = records};
  strcpy(names[1].name, "A\x1b\"\\\xf0\x9f\x98\x80");
  strcpy(names[2].name, "B\xe2\x80\xae\xed\xa0");
  for (unsigned i = 0; i < records; i++)
    ring[i] = (umemLogRecord){.number = i + 1,
                              .time = i * 10,
                              .adr = 4096 + (i / 8 % 2) * 100,
                              .other_adr = 4096,
                              .size = kinds[i % 8] == umemLogFree ? 0 : 64,
                              .ctx = (uint16_t)(i / 16 % contexts + 1),
                              .kind = (uint8_t)kinds[i % 8]};
}

/* Where the byte at this place of all that is read is: in the header, a context or the ring. */
static unsigned char *byte_at(size_t place) {
  if (place < header_bytes) return log_bytes + place;
  place -= header_bytes;
  if (place < context_bytes) return log_bytes + umemLog_contexts_at + place;
  return log_bytes + umemLog_ring_at + (place - context_bytes) % ring_bytes;
}

/* On a context that has room for little, whatever sizes are in the log; nothing may stay. */
static void run(Replay *replay, FILE *sink) {
  umemHost host;
  umemLimit limit;
  if (umemHost_ctor(&host) != umemOK || umemLimit_ctor(&limit, &host, 1 << 16) != umemOK) abort();
  replay_run(replay, &limit, sink);
  if (umemLimit_used(&limit)) abort();
  umem_dtor(&limit);
  umem_dtor(&host);
  umem_thread_clear();
}

/* From memory that ends where the file does. */
static bool parse(Trace *trace, size_t nbytes) {
  unsigned char *file = malloc(nbytes);
  if (!file) abort();
  memcpy(file, log_bytes, nbytes);
  bool parsed = trace_parse(trace, file, nbytes);
  free(file);
  return parsed;
}

/* This log, read from a file, has equal records. */
static void parse_file(Trace const *expected, bool parsed, size_t nbytes) {
  static char name[32];
  static int fd = -1;
  Trace trace;
  if (fd < 0) {
    fd = memfd_create("log", 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  }
  size_t written = nbytes < written_bytes ? nbytes : written_bytes;
  if (ftruncate(fd, 0) || ftruncate(fd, (off_t)nbytes) ||
      pwrite(fd, log_bytes, written, 0) != (ssize_t)written)
    abort();
  if (trace_read(&trace, name) != parsed) abort();
  if (!parsed) return;
  if (trace.count != expected->count || trace.incomplete != expected->incomplete ||
      trace.overwritten != expected->overwritten ||
      (trace.count &&
       memcmp(trace.records, expected->records, trace.count * sizeof *trace.records) != 0))
    abort();
  trace_close(&trace);
}

/* ---- what is written ---- */

typedef struct Text {
  char *bytes;
  size_t length;
} Text;

static bool write_chrome(Trace const *trace, FILE *out) {
  return trace_write_chrome(trace, out, true);
}

static Text written_by(bool (*write)(Trace const *trace, FILE *out), Trace const *trace) {
  Text text = {NULL, 0};
  FILE *out = open_memstream(&text.bytes, &text.length);
  if (!out || !write(trace, out) || fclose(out)) abort();
  for (size_t i = 0; i < text.length; i++)
    if ((text.bytes[i] < ' ' || text.bytes[i] > '~') && text.bytes[i] != '\n') abort();
  return text;
}

/* Strings end, their escapes are of JSON, brackets are in pairs. */
static void check_json(Text text) {
  char open[16];
  size_t depth = 0;
  bool in_string = false;
  for (char const *c = text.bytes; c < text.bytes + text.length; c++) {
    if (in_string && *c == '\\') {
      if (!*++c || !strchr("\"\\u", *c)) abort();
      if (*c == 'u' && strspn(c + 1, "0123456789abcdef") < 4) abort();
    } else if (*c == '"') {
      in_string = !in_string;
    } else if (in_string) {
      if (*c == '\n') abort();
    } else if (*c == '{' || *c == '[') {
      if (depth == sizeof open) abort();
      open[depth++] = *c;
    } else if (*c == '}' || *c == ']') {
      if (!depth || open[--depth] != (*c == '}' ? '{' : '[')) abort();
    }
  }
  if (in_string || depth) abort();
}

/* Each line has five commas, and no quotation mark. */
static void check_csv(Text text) {
  int commas = 0;
  for (size_t i = 0; i < text.length; i++) {
    commas += text.bytes[i] == ',';
    if (text.bytes[i] == '"' || (text.bytes[i] == '\n' && commas != 5)) abort();
    if (text.bytes[i] == '\n') commas = 0;
  }
}

static void check_texts(Trace const *trace) {
  Text json = written_by(write_chrome, trace), csv = written_by(trace_write_csv, trace);
  Text summary = written_by(trace_write_summary, trace);
  check_json(json);
  check_csv(csv);
  free(json.bytes);
  free(csv.bytes);
  free(summary.bytes);
}

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  static FILE *sink;
  Trace trace;
  size_t nbytes = all_bytes;
  if (!sink) sink = fopen("/dev/null", "w");
  make_sound();
  for (; size >= 3; data += 3, size -= 3) {
    unsigned char *byte = byte_at(data[0] + 256u * data[1]);
    *byte = (unsigned char)(*byte + data[2]);
  }
  if (size == 2) nbytes -= (data[0] + 256u * data[1]) * (size_t)4 % all_bytes;
  if (!sink) abort();
  bool parsed = parse(&trace, nbytes);
  parse_file(&trace, parsed, nbytes);
  if (!parsed) return 0;
  if (trace.count > records) abort();
  Replay *replay = replay_make(&trace);
  if (!replay) abort();
  check_texts(&trace);
  run(replay, sink);
  replay_free(replay);
  trace_close(&trace);
  return 0;
}
