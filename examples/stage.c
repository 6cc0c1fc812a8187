/* stage.c - copies an array to every place of this machine, and back.
 *
 *     stage INPUT.npy [OUTPUT.npy [PIECE]]
 *
 * The array goes from the input file to each place, from each place to each place, and from the
 * last one to the output file (staged.npy if none is named). Every byte is checked after every hop.
 * Arrays larger than PIECE bytes (by default 16 MiB) go piece by piece, so that any array fits into
 * any place.
 *
 * Exit code: 0 when every byte was right and the output is written; 1 when a transfer failed or a
 * byte was wrong, and then there is no output; 2 when the input is not an array that the program
 * can read, or the output cannot be written.
 *
 * Only places.c names the places, by their constructors. This file names only the input, the
 * output and the memory of the program. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hop.h"
#include "npy.h"
#include "output.h"
#include "places.h"
#include "report.h"

enum { IDENTICAL = 0, FAILED = 1, BAD_INPUT = 2 };

enum { PIECE = 16 << 20 };

/* A place in use. Pieces are copied to one block and from another, so that the program can also
 * copy from a place to itself. */
typedef struct Stop {
  char const *name;
  Storage storage;
  Block departure;
  Block arrival;
} Stop;

typedef struct Tour {
  char const *input_path;
  umemFile input;
  Npy npy;
  Output output;
  uintptr_t output_adr;

  umemHost ram;            /* for the tables of this program */
  unsigned char *original; /* the current piece, as in the input */
  size_t piece;            /* bytes, at most */
  Stop *stops;
  size_t stop_count;
  Route *routes; /* into each stop, from each to each in rows, out of the last one */
  size_t route_count;
  size_t hops_done;  /* of all pieces on all routes */
  LeftOut *left_out; /* optional places that this machine lacks */
  size_t left_out_count;
  bool incomplete; /* a place that every machine has is missing */
} Tour;

static Route *route_in(Tour *tour, size_t to) { return &tour->routes[to]; }

static Route *route_between(Tour *tour, size_t from, size_t to) {
  return &tour->routes[(from + 1) * tour->stop_count + to];
}

static Route *route_out(Tour *tour) { return &tour->routes[tour->route_count - 1]; }

/* ---- the files ---- */

static bool open_input(Tour *tour) {
  char why[NPY_WHY_SIZE];
  umemInfo info = UMEM_INFO_INIT;
  if (umemFile_ctor(&tour->input, tour->input_path, "r") != umemOK ||
      umem_get_info(&tour->input, &info) != umemOK) {
    report_problem("%s", umem_get_message(&tour->input));
    return false;
  }
  if (!npy_read(&tour->npy, &tour->input, info.capacity, why)) {
    report_problem("%s: %s", tour->input_path, why);
    return false;
  }
  return true;
}

/* Makes room for the array, and copies the bytes before it. */
static bool begin_output(Tour *tour) {
  Npy const *npy = &tour->npy;
  umemFile *file = &tour->output.file;
  tour->output_adr = umem_alloc(file, npy->data_offset + npy->data_size);
  if (tour->output_adr != umem_null(file) &&
      umem_copy_to(&tour->input, 0, file, tour->output_adr, npy->data_offset) == umemOK)
    return true;
  report_problem("cannot write \"%s\": %s", tour->output.given, umem_thread_message());
  return false;
}

/* ---- the places ---- */

static void free_blocks(Stop *stop) {
  umem_free(stop->departure.ctx, stop->departure.adr);
  umem_free(stop->arrival.ctx, stop->arrival.adr);
}

/* On failure the storage has the reason. */
static bool open_stop(Stop *stop, Place const *place, char const *prefix, size_t piece) {
  void *ctx = &stop->storage;
  stop->name = place->name;
  if (place->open(&stop->storage, prefix) != umemOK) return false;
  stop->departure = (Block){ctx, umem_alloc(ctx, piece)};
  stop->arrival = (Block){ctx, umem_alloc(ctx, piece)};
  if (umem_is_ok(ctx)) return true;
  free_blocks(stop);
  return false;
}

/* The message without the function in front, which differs from place to place. */
static char const *words_of(char const *message) {
  size_t length = strcspn(message, ": ");
  return strncmp(message + length, ": ", 2) ? message : message + length + 2;
}

static void leave_out(Tour *tour, Place const *place, char const *message) {
  if (place->optional) {
    LeftOut *left_out = &tour->left_out[tour->left_out_count++];
    left_out->name = place->name;
    snprintf(left_out->why, sizeof left_out->why, "%s", words_of(message));
  } else {
    report_problem("%s: %s", place->name, message);
    tour->incomplete = true;
  }
}

static bool open_stops(Tour *tour) {
  tour->left_out = (LeftOut *)umem_calloc(&tour->ram, place_count, sizeof(LeftOut));
  tour->stops = (Stop *)umem_calloc(&tour->ram, place_count, sizeof(Stop));
  tour->original = (unsigned char *)umem_alloc(&tour->ram, tour->piece);
  if (!umem_is_ok(&tour->ram)) return false;
  for (size_t i = 0; i < place_count; ++i) {
    Stop *stop = &tour->stops[tour->stop_count];
    if (open_stop(stop, &places[i], tour->output.folder, tour->piece)) {
      ++tour->stop_count;
      continue;
    }
    leave_out(tour, &places[i], umem_get_message(&stop->storage));
    umem_dtor(&stop->storage);
    memset(stop, 0, sizeof *stop);
  }
  return tour->stop_count > 0;
}

static bool make_routes(Tour *tour) {
  size_t n = tour->stop_count;
  tour->route_count = n + n * n + 1;
  tour->routes = (Route *)umem_calloc(&tour->ram, tour->route_count, sizeof(Route));
  if (!umem_is_ok(&tour->ram)) return false;
  for (size_t i = 0; i < n; ++i) {
    *route_in(tour, i) = (Route){.from = "input", .to = tour->stops[i].name};
    for (size_t j = 0; j < n; ++j)
      *route_between(tour, i, j) = (Route){.from = tour->stops[i].name, .to = tour->stops[j].name};
  }
  *route_out(tour) = (Route){.from = tour->stops[n - 1].name, .to = "output"};
  return true;
}

/* ---- the tour ---- */

/* An empty array is one piece of no bytes. */
static size_t piece_count(Tour const *tour) {
  return tour->npy.data_size ? (tour->npy.data_size - 1) / tour->piece + 1 : 1;
}

/* A piece of the array. */
typedef struct Piece {
  size_t offset;
  size_t size;
} Piece;

/* The current hop. */
typedef struct Step {
  Route const *route;
  size_t hops_done, hops;
} Step;

enum { PARTS = 1000 }; /* of a hop, for the progress */

/* As umemCopyOptions.progress. Leaves out the begin and the end of a copy, because printing
 * would count in its time. */
static bool show_step(void *user, uint64_t done, uint64_t total) {
  Step const *step = user;
  if (done && done < total) {
    uint64_t part = (uint64_t)((double)done / (double)total * (double)PARTS);
    report_progress(step->route->from, step->route->to, step->hops_done * PARTS + part,
                    step->hops * PARTS);
  }
  return true;
}

/* One hop of a piece, or none if its route has failed before. */
static bool travel(Tour *tour, Piece piece, Route *route, Block from, Block to) {
  char why[HOP_WHY_SIZE];
  Step step = {route, tour->hops_done++, tour->route_count * piece_count(tour)};
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = show_step;
  options.user = &step;
  report_progress(route->from, route->to, step.hops_done, step.hops);
  if (route->failed) return false;
  if (hop(route, from, to, tour->original, piece.size, &options, why)) return true;
  report_problem("%s -> %s: %s", route->from, route->to, why);
  return false;
}

/* From stop number i to every stop. */
static void travel_from(Tour *tour, Piece piece, size_t i, bool arrived) {
  for (size_t j = 0; j < tour->stop_count; ++j) {
    Route *route = route_between(tour, i, j);
    if (!arrived) route->failed = true;
    travel(tour, piece, route, tour->stops[i].departure, tour->stops[j].arrival);
  }
}

static bool travel_piece(Tour *tour, Piece piece) {
  Block input = {&tour->input, tour->npy.data_offset + piece.offset};
  Block output = {&tour->output.file, tour->output_adr + tour->npy.data_offset + piece.offset};
  if (umem_copy_to(input.ctx, input.adr, &tour->ram, (uintptr_t)tour->original, piece.size) !=
      umemOK) {
    report_problem("%s", umem_thread_message());
    return false;
  }
  for (size_t i = 0; i < tour->stop_count; ++i)
    travel_from(tour, piece, i,
                travel(tour, piece, route_in(tour, i), input, tour->stops[i].departure));
  travel(tour, piece, route_out(tour), tour->stops[tour->stop_count - 1].arrival, output);
  return true;
}

static bool travel_all(Tour *tour) {
  size_t count = piece_count(tour);
  for (size_t i = 0; i < count; ++i) {
    size_t offset = i * tour->piece;
    size_t rest = tour->npy.data_size - offset;
    if (!travel_piece(tour, (Piece){offset, rest < tour->piece ? rest : tour->piece})) return false;
  }
  return true;
}

/* Whether all bytes were right in all places. */
static bool run(Tour *tour) {
  if (!open_stops(tour) || !make_routes(tour)) {
    report_problem("%s", umem_thread_message());
    return false;
  }
  bool complete = travel_all(tour) && !tour->incomplete;
  size_t bad = report_table(tour->routes, tour->route_count, tour->npy.data_size);
  report_left_out(tour->left_out, tour->left_out_count);
  if (bad) report_problem("%zu of %zu routes failed", bad, tour->route_count);
  return complete && !bad;
}

static int stage(Tour *tour) {
  umemHost_ctor(&tour->ram);
  if (tour->piece > tour->npy.data_size) tour->piece = tour->npy.data_size;
  report_array(tour->input_path, &tour->npy);

  bool ok = output_close(&tour->output, begin_output(tour) && run(tour));
  if (ok)
    printf("%zu routes, every byte identical; the array is in \"%s\"\n", tour->route_count,
           tour->output.given);

  for (size_t i = 0; i < tour->stop_count; ++i) {
    free_blocks(&tour->stops[i]);
    umem_dtor(&tour->stops[i].storage);
  }
  umem_free(&tour->ram, (uintptr_t)tour->routes);
  umem_free(&tour->ram, (uintptr_t)tour->stops);
  umem_free(&tour->ram, (uintptr_t)tour->left_out);
  umem_free(&tour->ram, (uintptr_t)tour->original);
  umem_dtor(&tour->ram);
  return ok ? IDENTICAL : FAILED;
}

/* ---- the command line ---- */

static bool parse_size(char const *text, size_t *size) {
  char *end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  *size = (size_t)value;
  return *text >= '1' && *text <= '9' && !*end && !errno && value <= PTRDIFF_MAX;
}

int main(int argc, char **argv) {
  static Tour tour = {.piece = PIECE};
  if (argc < 2 || argc > 4 || (argc == 4 && !parse_size(argv[3], &tour.piece))) {
    fputs("usage: stage INPUT.npy [OUTPUT.npy [PIECE]], PIECE in bytes\n", stderr);
    return BAD_INPUT;
  }
  tour.input_path = argv[1];

  if (!output_find(&tour.output, argc > 2 ? argv[2] : "staged.npy")) return BAD_INPUT;
  int code = open_input(&tour) && output_open(&tour.output) ? stage(&tour) : BAD_INPUT;
  umem_dtor(&tour.input);
  return code;
}
