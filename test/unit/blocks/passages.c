/* passages.c - umem/blocks.h against a model: random arrays, places, queues and threads, two
 * passages at a time, some of which end early. The GPU is a double of the runtime that does what is
 * queued as late as it may.
 *
 * UMEM_TEST_PASSAGES: how many. UMEM_TEST_FIRST: the number of the first. A passage is drawn from
 * its number alone. */
#include "blocks_help.h"

#include "cuda_double.h"

enum {
  lines = 2, /* threads of the test, each with a passage of its own */
  queues_most = 3,
  blocks_most = 64,
  region = 6 << 20 /* bytes that a passage has on each side, at most */
};

/* ---- contexts ---- */

/* A gate all of whose copies fail from one on. Neither short copies nor the CPU take a way around
 * its methods. */
typedef struct Far {
  Gate gate;
  unsigned long calls; /* atomic */
  unsigned long fails; /* this one and all after it; 0: none */
} Far;

static bool far_works(umemVirtual *ctx) {
  Far *far = (Far *)ctx;
  unsigned long call = __atomic_add_fetch(&far->calls, 1, __ATOMIC_RELAXED);
  if (call % 7 == 3) usleep(50); /* others overtake it */
  if (!far->fails || call < far->fails) return true;
  umemVirtual_fail(ctx, umemIOError, "the line is dead");
  return false;
}

static void far_copy_to(umemVirtual *ctx, uintptr_t src, umemVirtual *that, uintptr_t dst,
                        size_t nbytes) {
  if (far_works(ctx)) gate_copy_to(ctx, src, that, dst, nbytes);
}

static void far_copy_from(umemVirtual *ctx, uintptr_t dst, umemVirtual *that, uintptr_t src,
                          size_t nbytes) {
  if (far_works(ctx)) gate_copy_from(ctx, dst, that, src, nbytes);
}

static void far_ctor(Far *far) {
  static struct umemVtbl const vtbl = {.dtor = gate_dtor,
                                       .alloc = gate_alloc,
                                       .free = gate_free,
                                       .copy_to = far_copy_to,
                                       .copy_from = far_copy_from};
  memset(far, 0, sizeof *far);
  gate_ctor(&far->gate);
  far->gate.super.vptr = &vtbl;
  far->gate.super.name = "Far";
}

/* What one thread of the test has. */
typedef struct Line {
  umemHost host;
  umemFile file;
  umemMMap mmap;
  Far far[2]; /* sources and places; destinations */
  umemStats over_file, over_gpu;
  int device;
  umemCuda plain;
  umemCudaManaged managed;
  umemCudaAsync async, queue[queues_most];
  void *queues[queues_most];
  unsigned char *old, *before, *expected, *found; /* a region each */
  unsigned first, count;                          /* its passages */
  char complaint[400];
} Line;

static bool maps_files(void) { return !setting_leaves_out("mmap"); }

static void open_line(Line *line, int device) {
  line->device = device;
  umemHost_ctor(&line->host);
  umemFile_ctor(&line->file, NULL, "w+");
  if (maps_files()) umemMMap_ctor(&line->mmap, NULL, "w+");
  for (int i = 0; i < 2; i++) far_ctor(&line->far[i]);
  umemStats_ctor(&line->over_file, &line->file);
  umemCuda_ctor(&line->plain, device);
  umemCudaManaged_ctor(&line->managed, device, 0);
  umemStats_ctor(&line->over_gpu, &line->plain);
  umemCudaAsync_ctor(&line->async, device, UMEM_STREAM_NEW);
  for (int i = 0; i < queues_most; i++) {
    umemCudaAsync_ctor(&line->queue[i], device, UMEM_STREAM_NEW);
    line->queues[i] = &line->queue[i];
  }
  unsigned char **const bytes[] = {&line->old, &line->before, &line->expected, &line->found};
  for (int i = 0; i < 4; i++) *bytes[i] = malloc(region);
}

static void close_line(Line *line) {
  for (int i = 0; i < queues_most; i++) umem_dtor(&line->queue[i]);
  DESTRUCT(&line->async, &line->over_gpu, &line->managed, &line->plain, &line->over_file);
  for (int i = 0; i < 2; i++) umem_dtor(&line->far[i]);
  if (maps_files()) umem_dtor(&line->mmap);
  DESTRUCT(&line->file, &line->host);
  free(line->old);
  free(line->before);
  free(line->expected);
  free(line->found);
}

/* ---- a passage ---- */

typedef struct Side {
  umemVirtual *ctx;
  uintptr_t block;
  size_t width, distance, start; /* of row 0, in the region */
  ptrdiff_t stride;
} Side;

typedef struct Passage Passage;

/* What the program does with a block, now or when the GPU comes to it. */
typedef struct Work {
  Passage *passage;
  umemBlock block;
  bool right; /* all rows were as they should be */
} Work;

struct Passage {
  Line *line;
  uint64_t random;
  unsigned number;
  Side source, destination;
  bool writes, replaces;
  umemBlocksOptions options;
  void *stream; /* of the place; NULL: the CPU works */
  size_t stop;  /* the block at which the program stops */
  bool cancels;
  unsigned long fails; /* the first call of a Far that does; 0: none */
  /* What has happened: */
  umemStatusType status;
  size_t blocks, rows, given;
  bool keeps_budget;
  Work work[blocks_most];
};

static uint64_t draw(Passage *passage, uint64_t below) {
  passage->random ^= passage->random << 13;
  passage->random ^= passage->random >> 7;
  passage->random ^= passage->random << 17;
  return passage->random % below;
}

static bool toss(Passage *passage) { return draw(passage, 2); }

static unsigned char *row_of(Side const *side, unsigned char *bytes, size_t row) {
  return bytes + (ptrdiff_t)side->start + (ptrdiff_t)row * side->stride;
}

/* A row of the source as it was, where there is one or one stands for it. */
static unsigned char const *old_row(Passage *passage, ptrdiff_t row) {
  ptrdiff_t last = (ptrdiff_t)passage->options.count - 1;
  if (row < 0 || row > last) {
    if (passage->options.ghosts == umemGhostsLeftOut) return NULL;
    row = row < 0 ? 0 : last;
  }
  return row_of(&passage->source, passage->line->old, (size_t)row);
}

/* What becomes of a row: each byte depends on the rows that are the farthest that a block holds. */
static void compute_row(Passage const *passage, unsigned char const *before,
                        unsigned char const *row, unsigned char const *after, unsigned char *out) {
  size_t width = passage->source.width;
  for (size_t i = 0, k = 0; i < passage->destination.width; i++, k = k + 1 < width ? k + 1 : 0)
    out[i] =
        (unsigned char)(3 * row[k] + 5 * (before ? before[k] : 1) + 7 * (after ? after[k] : 2));
}

static bool is_right(Work const *work, unsigned char const *at) {
  Passage *passage = work->passage;
  umemBlock const *block = &work->block;
  size_t width = passage->source.width;
  ptrdiff_t end = (ptrdiff_t)(block->rows + block->after);
  for (ptrdiff_t i = -(ptrdiff_t)block->before; i < end; i++) {
    unsigned char const *row = old_row(passage, (ptrdiff_t)block->first + i);
    if (!row || memcmp(at + i * (ptrdiff_t)width, row, width)) return false;
  }
  return true;
}

static void run(Work *work, unsigned char *at, unsigned char *out) {
  Passage *passage = work->passage;
  umemBlock const *block = &work->block;
  umemBlocksOptions const *options = &passage->options;
  size_t width = passage->source.width, to = passage->destination.width;
  work->right = is_right(work, at);
  if (!passage->writes) return;
  SCOPED(free_bytes) unsigned char *results = malloc(block->rows * to);
  for (size_t i = 0; i < block->rows; i++)
    compute_row(
        passage,
        i + block->before >= options->before ? at + i * width - options->before * width : NULL,
        at + i * width,
        i + options->after < block->rows + block->after ? at + (i + options->after) * width : NULL,
        results + i * to);
  memcpy(out, results, block->rows * to);
}

static void run_on_gpu(void *argument) {
  Work *work = argument;
  umemBlock const *block = &work->block;
  if (work->passage->options.place == &work->passage->line->managed) {
    run(work, (unsigned char *)block->adr, (unsigned char *)block->out);
    return;
  }
  size_t ghosts = block->before * work->passage->source.width;
  unsigned char *at = fake_cudart_at(block->adr - ghosts, ghosts + 1);
  unsigned char *out = fake_cudart_at(block->out, 1);
  if (at && out) run(work, at + ghosts, out);
}

static void do_work(Work *work) {
  umemCudaEntry entry;
  if (!work->passage->stream) {
    run(work, (unsigned char *)work->block.adr, (unsigned char *)work->block.out);
  } else if (umemCuda_enter(&entry, work->passage->line->device) == umemOK) {
    fake_cudart_launch(work->passage->stream, run_on_gpu, work);
    umemCuda_leave(&entry);
  }
}

/* ---- what is drawn ---- */

static umemVirtual *draw_context(Passage *passage, Far *far) {
  Line *line = passage->line;
  umemVirtual *mapped = maps_files() ? &line->mmap.super : &line->file.super;
  umemVirtual *const all[] = {&line->host.super,  &line->file.super,      mapped,
                              &far->gate.super,   &line->over_file.super, &line->plain.super,
                              &line->async.super, &line->managed.super};
  return all[draw(passage, sizeof all / sizeof *all)];
}

static void draw_rows(Passage *passage, Side *side, size_t width, bool overlap) {
  size_t gap = toss(passage) ? draw(passage, width + 2) : 0;
  side->width = width;
  side->distance =
      overlap && width > 1 && !draw(passage, 4) ? 1 + draw(passage, width) : width + gap;
  bool backwards = !draw(passage, 3);
  side->stride = backwards ? -(ptrdiff_t)side->distance : (ptrdiff_t)side->distance;
  side->start = 64 + (backwards ? (passage->options.count - 1) * side->distance : 0);
}

static void draw_shape(Passage *passage) {
  umemBlocksOptions *options = &passage->options;
  bool is_long = !draw(passage, 3);
  size_t width = is_long ? 20000 + draw(passage, 30000) : 1 + draw(passage, 40);
  options->count = is_long ? 1 + draw(passage, 24) : 1 + draw(passage, 60);
  options->rows = 1 + draw(passage, options->count + 2);
  options->depth = draw(passage, 6);
  options->before = toss(passage) ? draw(passage, 2 * options->rows + 2) : 0;
  options->after = toss(passage) ? draw(passage, 2 * options->rows + 2) : 0;
  options->ghosts = toss(passage) ? umemGhostsClamped : umemGhostsLeftOut;
  if (!draw(passage, 4)) {
    options->rows = 0;
    options->budget = 1 + draw(passage, 8 * width * options->count);
  }
  passage->writes = draw(passage, 3);
  passage->replaces = passage->writes && !draw(passage, 3);
  options->apart = passage->writes && toss(passage);
  draw_rows(passage, &passage->source, width, !passage->replaces);
  if (passage->replaces)
    passage->destination = passage->source;
  else
    draw_rows(passage, &passage->destination, toss(passage) ? width : 1 + draw(passage, 2 * width),
              false);
}

static void draw_place(Passage *passage) {
  Line *line = passage->line;
  umemBlocksOptions *options = &passage->options;
  umemInfo info = UMEM_INFO_INIT;
  umemVirtual *const places[] = {&line->host.super,  &line->far[0].gate.super, &line->managed.super,
                                 &line->plain.super, &line->over_gpu.super,    &line->async.super};
  size_t drawn = draw(passage, sizeof places / sizeof *places);
  options->place = places[drawn];
  if (drawn == 5) {
    umem_get_info(&line->async, &info);
    passage->stream = (void *)info.stream;
  } else if (drawn > 1) {
    passage->stream = FAKE_STREAM_LEGACY;
  }
  if (drawn < 3 || !toss(passage)) return;
  options->queues = line->queues;
  options->queue_count = 1 + draw(passage, queues_most);
}

static void draw_passage(Passage *passage) {
  Line *line = passage->line;
  passage->random = 0x9E3779B97F4A7C15u * (passage->number + 1);
  for (int i = 0; i < 5; i++) draw(passage, 2);
  passage->options = (umemBlocksOptions)UMEM_BLOCKS_OPTIONS_INIT;
  draw_shape(passage);
  draw_place(passage);
  passage->source.ctx = draw_context(passage, &line->far[0]);
  passage->destination.ctx =
      passage->replaces ? passage->source.ctx : draw_context(passage, &line->far[1]);
  passage->stop = toss(passage) ? blocks_most : draw(passage, 8);
  passage->cancels = toss(passage);
  passage->fails = draw(passage, 4) ? 0 : 1 + draw(passage, 40);
}

/* ---- one passage from beginning to end ---- */

/* The bytes of a side that a passage can touch, and some around them. */
static size_t length_of(Passage const *passage, Side const *side) {
  return 128 + (passage->options.count - 1) * side->distance + side->width;
}

static umemRows put(Passage *passage, Side *side, unsigned char *bytes) {
  size_t length = length_of(passage, side);
  for (size_t i = 0; i < length; i += 8) {
    uint64_t word = draw(passage, UINT64_MAX);
    memcpy(bytes + i, &word, 8);
  }
  side->block = umem_alloc(side->ctx, length);
  umem_copy_from(side->ctx, side->block, &passage->line->host, (uintptr_t)bytes, length);
  umem_synchronize(side->ctx);
  return (umemRows){side->ctx, side->block + side->start, side->width, side->stride};
}

static void prepare(Passage *passage) {
  Line *line = passage->line;
  passage->options.source = put(passage, &passage->source, line->old);
  if (passage->replaces) {
    passage->options.destination = passage->options.source;
    passage->destination.block = passage->source.block;
    memcpy(line->before, line->old, length_of(passage, &passage->source));
  } else if (passage->writes) {
    passage->options.destination = put(passage, &passage->destination, line->before);
  }
  for (int i = 0; i < 2; i++) {
    line->far[i].calls = 0;
    line->far[i].fails = passage->fails;
  }
}

static void pass(Passage *passage) {
  umemBlocks blocks;
  umemBlock block = UMEM_BLOCK_INIT;
  passage->status = umemBlocks_ctor(&blocks, &passage->options);
  if (passage->status != umemOK) return;
  umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
  umemBlocks_info(&blocks, &info);
  passage->blocks = info.blocks;
  passage->rows = info.rows;
  passage->keeps_budget = !passage->options.budget || info.nbytes <= passage->options.budget;
  while (umemBlocks_next(&blocks, &block)) {
    Work *work = &passage->work[passage->given++];
    *work = (Work){.passage = passage, .block = block};
    do_work(work);
    if (block.number != passage->stop) continue;
    if (!passage->cancels) break;
    umemBlocks_cancel(&blocks);
  }
  passage->status = umemBlocks_end(&blocks);
  umem_synchronize(passage->options.place);
}

/* ---- what must have come of it ---- */

static char const *check_work(Passage const *passage) {
  for (size_t i = 0; i < passage->given; i++) {
    if (passage->work[i].block.number != i) return "a block came out of turn";
    if (!passage->work[i].right) return "a block was not as it should be";
  }
  return passage->keeps_budget ? NULL : "the budget was exceeded";
}

/* How many blocks the destination must have. *torn: a block of which nothing is known. */
static size_t written_blocks(Passage const *passage, size_t *torn) {
  char const *words = strstr(umem_thread_message(), "writing block ");
  *torn = SIZE_MAX;
  if (words) return *torn = strtoul(words + strlen("writing block "), NULL, 10);
  bool left = passage->given == passage->stop + 1 && !passage->cancels;
  return passage->given - left;
}

/* The destination as it must be. Rows of a torn block are taken as they are. */
static char const *check_destination(Passage *passage) {
  Line *line = passage->line;
  Side *side = &passage->destination;
  size_t length = length_of(passage, side), torn, width = side->width;
  size_t written = written_blocks(passage, &torn);
  umem_copy_to(side->ctx, side->block, &line->host, (uintptr_t)line->found, length);
  umem_synchronize(side->ctx);
  memcpy(line->expected, line->before, length);
  for (size_t row = 0; row < passage->options.count; row++) {
    unsigned char *out = row_of(side, line->expected, row);
    size_t number = row / passage->rows;
    ptrdiff_t at = (ptrdiff_t)row;
    if (number < written)
      compute_row(passage, old_row(passage, at - (ptrdiff_t)passage->options.before),
                  old_row(passage, at), old_row(passage, at + (ptrdiff_t)passage->options.after),
                  out);
    else if (number == torn)
      memcpy(out, row_of(side, line->found, row), width);
  }
  return memcmp(line->expected, line->found, length) ? "the destination is wrong" : NULL;
}

static char const *check_status(Passage const *passage) {
  bool stopped = passage->given == passage->stop + 1;
  umemStatusType status = passage->status;
  if (status == umemIOError) return passage->fails ? NULL : "a failure that nobody made";
  if (status == umemCancelledError)
    return stopped && passage->cancels ? NULL : "nobody has cancelled";
  if (status != umemOK) return "an unexpected status";
  return stopped || passage->given == passage->blocks ? NULL : "blocks are missing";
}

/* Some shapes allow no passage. */
static bool is_refused(Passage const *passage) {
  umemBlocksOptions const *options = &passage->options;
  return (passage->status == umemValueError && passage->replaces && options->before &&
          options->depth && strstr(umem_thread_message(), "too few to replace")) ||
         (passage->status == umemMemoryError && options->budget);
}

static char const *check(Passage *passage) {
  Line *line = passage->line;
  for (int i = 0; i < 2; i++) line->far[i].fails = 0;
  if (is_refused(passage)) return NULL;
  char const *complaint = check_status(passage);
  if (!complaint) complaint = check_work(passage);
  if (!complaint && passage->writes) complaint = check_destination(passage);
  return complaint;
}

static void complain(Passage const *passage, char const *what) {
  umemBlocksOptions const *options = &passage->options;
  snprintf(passage->line->complaint, sizeof passage->line->complaint,
           "passage %u: %s: %zu rows of %zu bytes, %zu a block, %zu deep, %zu before, %zu after, "
           "%s to %s, %s; %zu blocks given, %s",
           passage->number, what, options->count, options->source.nbytes, options->rows,
           options->depth, options->before, options->after,
           umem_get_device_name(passage->source.ctx),
           passage->writes ? umem_get_device_name(passage->destination.ctx) : "nowhere",
           umem_get_device_name(options->place), passage->given, umem_thread_message());
}

static void finish(Passage *passage) {
  umem_free(passage->source.ctx, passage->source.block);
  if (passage->writes && !passage->replaces)
    umem_free(passage->destination.ctx, passage->destination.block);
}

static void *run_line(void *argument) {
  Line *line = argument;
  SCOPED(free_bytes) Passage *passage = calloc(1, sizeof *passage);
  for (unsigned i = 0; i < line->count && !*line->complaint; i++) {
    *passage = (Passage){.line = line, .number = line->first + i * lines};
    umem_thread_clear();
    draw_passage(passage);
    prepare(passage);
    pass(passage);
    char const *what = check(passage);
    if (what) complain(passage, what);
    finish(passage);
  }
  return NULL;
}

static unsigned setting(char const *variable, unsigned otherwise) {
  return setting_is_on(variable) ? (unsigned)strtoul(getenv(variable), NULL, 10) : otherwise;
}

TEST_CASE_WITH(passages_are_as_the_model, set_up, tear_down) {
  static Line line[lines];
  unsigned cases = setting("UMEM_TEST_PASSAGES", setting_small() ? 60 : 420);
  unsigned first = setting("UMEM_TEST_FIRST", 0);
  unsigned const each = 10; /* with the same number of threads and chunks */
  begin_double();
  fake_cudart_machine()->late_pageable = true;
  for (int i = 0; i < lines; i++) open_line(&line[i], i);
  for (unsigned done = 0; done < cases; done += each) {
    pthread_t thread[lines];
    unsigned const round = (first + done) / each;
    assert_ok(umem_set_threads(1 + round % 5));
    assert_ok(umemCuda_set_staging(64 << 10, round % 4)); /* chunks; 0: enough for all */
    for (int i = 0; i < lines; i++) {
      line[i].first = first + done + (unsigned)i;
      line[i].count = each / lines;
      assert_int_equal(pthread_create(&thread[i], NULL, run_line, &line[i]), 0);
    }
    for (int i = 0; i < lines; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < lines; i++)
      if (*line[i].complaint) fail_msg("%s", line[i].complaint);
  }
  for (int i = 0; i < lines; i++) close_line(&line[i]);
  assert_ok(umemCuda_set_staging(0, 0));
  end_double();
}
