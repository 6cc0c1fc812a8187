/* log.c - logs for umem-trace, as libFuzzer damages them. The input is what differs from a sound
 * log: three bytes tell a place and what is added to the byte there; two that are left at the end, how
 * many bytes of the file are missing. */
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <umem.h>

enum {
  contexts = 2,
  capacity = 64,
  header_bytes = 144,
  context_bytes = (1 + contexts) * sizeof(umemLogContext),
  ring_bytes = capacity * sizeof(umemLogRecord),
};

static unsigned char log_bytes[umemLog_ring_at + ring_bytes];

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size);

/* In turns an allocation, a set, a copy, a resize and a free, of a few blocks. */
static void make_sound(void) {
  static umemLogKind const kinds[] = {umemLogAlloc,       umemLogSet,       umemLogCopy,
                                      umemLogResizeBegin, umemLogResizeEnd, umemLogFree,
                                      umemLogCopy,        umemLogAlloc};
  umemLogHeader *header = (umemLogHeader *)log_bytes;
  umemLogRecord *ring = (umemLogRecord *)(log_bytes + umemLog_ring_at);
  memset(log_bytes, 0, sizeof log_bytes);
  *header = (umemLogHeader){.magic = UMEM_LOG_MAGIC,
                            .version = umemLog_version,
                            .byte_order = umemLog_byte_order,
                            .record_size = sizeof(umemLogRecord),
                            .context_size = sizeof(umemLogContext),
                            .capacity = capacity,
                            .contexts = contexts,
                            .next = capacity};
  for (unsigned i = 0; i < capacity; i++)
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

/* On a context that has room for little, whatever sizes the log tells; nothing may stay. */
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

int LLVMFuzzerTestOneInput(unsigned char const *data, size_t size) {
  static FILE *sink;
  Trace trace;
  size_t nbytes = sizeof log_bytes;
  if (!sink) sink = fopen("/dev/null", "w");
  make_sound();
  for (; size >= 3; data += 3, size -= 3) {
    unsigned char *byte = byte_at(data[0] + 256u * data[1]);
    *byte = (unsigned char)(*byte + data[2]);
  }
  if (size == 2) nbytes -= (data[0] + 256u * data[1]) % sizeof log_bytes;
  if (!sink || !parse(&trace, nbytes)) return 0;
  if (trace.count > capacity) abort();
  Replay *replay = replay_make(&trace);
  if (!replay || !trace_write_chrome(&trace, sink, true) || !trace_write_csv(&trace, sink) ||
      !trace_write_summary(&trace, sink))
    abort();
  run(replay, sink);
  replay_free(replay);
  trace_close(&trace);
  return 0;
}
