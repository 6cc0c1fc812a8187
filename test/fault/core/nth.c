/* nth.c - the n-th call into the system fails, for every n that a scenario reaches.
 *
 * Places x scenarios x calls x errors. A first run without faults counts the calls that a scenario
 * makes; then the n-th of each fails, for n = 1, 2, ... until a run ends without having met its
 * fault; once with that one call failing and once with all later ones too. After each: success with
 * all data checked, or a status that names the cause; the file whole; callNone left open or mapped;
 * and the same scenario succeeds on the same context once its status is cleared. */
#include "fault/scenarios.h"
#include "settings.h"

#define TYPE(type) (1u << (type))

enum {
  anyType = TYPE(umemMemoryError) | TYPE(umemIOError) | TYPE(umemRuntimeError),
  diskType = TYPE(umemIOError) | TYPE(umemMemoryError)
};

/* What the library owes the caller when a call fails. */
typedef enum Duty {
  dutyTell, /* a status: success would be wrong */
  dutyDo,   /* to do without */
  dutyEither
} Duty;

typedef struct Fault {
  InjectCall call;
  int error;
  Duty once, lasting; /* for one failing call; for all from the nth on */
  unsigned types;     /* of status that may be recorded */
  bool words;         /* the message has the system's words */
  InjectCall without; /* on a system that lacks this call, unless callNone */
} Fault;

enum { noWords = false, words = true };

static Fault const faults[] = {
    {callHeap, ENOMEM, dutyEither, dutyEither, TYPE(umemMemoryError), noWords, callNone},
    {callMap, ENOMEM, dutyEither, dutyEither, anyType, words, callNone},
    {callMap, EACCES, dutyEither, dutyEither, anyType, words, callNone},
    {callAdvise, EINVAL, dutyDo, dutyDo, 0, noWords, callNone},
    {callOpen, EMFILE, dutyEither, dutyEither, TYPE(umemIOError), words, callNone},
    {callOpen, EACCES, dutyEither, dutyEither, TYPE(umemIOError), words, callNone},
    {callOpen, EINTR, dutyDo, dutyEither, TYPE(umemIOError), words, callNone},
    {callTemporary, EACCES, dutyTell, dutyTell, TYPE(umemIOError), words, callOpen},
    {callUnlink, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callOpen},
    {callRead, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callRead, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callWrite, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callWrite, ENOSPC, dutyTell, dutyTell, diskType, words, callNone},
    {callWrite, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callRead, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callMap},
    {callWrite, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callMap},
    {callWrite, ENOSPC, dutyTell, dutyTell, diskType, words, callMap},
    {callPeek, EIO, dutyDo, dutyDo, 0, noWords, callNone},
    {callReserve, ENOSPC, dutyEither, dutyEither, diskType, words, callNone},
    {callReserve, EIO, dutyEither, dutyEither, diskType, words, callNone},
    {callReserve, EOPNOTSUPP, dutyDo, dutyDo, 0, noWords, callNone},
    {callReserve, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callLength, EIO, dutyTell, dutyTell, diskType, words, callNone},
    {callLength, EFBIG, dutyTell, dutyTell, diskType, words, callNone},
    {callLength, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callLength, EIO, dutyEither, dutyEither, diskType, words, callReserve},
    {callLength, ENOSPC, dutyEither, dutyEither, diskType, words, callReserve},
    {callWrite, ENOSPC, dutyTell, dutyTell, diskType, words, callReserve},
    {callDataSync, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callDataSync, ENOSPC, dutyTell, dutyTell, diskType, words, callNone},
    {callDataSync, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callSync, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callSync, EINTR, dutyDo, dutyDo, 0, noWords, callNone},
    {callMapSync, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callClose, EIO, dutyEither, dutyEither, TYPE(umemIOError), words, callNone},
    {callLock, EWOULDBLOCK, dutyTell, dutyTell, TYPE(umemIOError), noWords, callNone},
    {callLock, EOPNOTSUPP, dutyDo, dutyDo, 0, noWords, callNone},
    {callStat, EIO, dutyTell, dutyTell, TYPE(umemIOError), words, callNone},
    {callStat, EINTR, dutyEither, dutyEither, TYPE(umemIOError), words, callNone},
    {callSeek, EIO, dutyDo, dutyDo, 0, noWords, callNone},
    {callThread, EAGAIN, dutyDo, dutyDo, 0, noWords, callNone},
    {callEvent, EMFILE, dutyDo, dutyDo, 0, noWords, callNone},
};

static unsigned long reached[inject_call_count]; /* over all scenarios */

/* ---- one run ---- */

static bool names_cause(Fault const *fault, char const *message) {
  return !strncmp(message, "umem", 4) && (!fault->words || strstr(message, strerror(fault->error)));
}

/* The status must stand on the thread and on one of the contexts that took part. */
static void check_report(Trial *trial, Fault const *fault) {
  umemVirtual *const parts[] = {trial->ctx, &trial->host.super, trial->peer};
  REQUIRE(trial, fault->types & TYPE(trial->result));
  REQUIRE(trial, umem_thread_status() != umemOK);
  REQUIRE(trial, names_cause(fault, umem_thread_message()));
  bool reported = false;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (!parts[i] || umem_is_ok(parts[i])) continue;
    REQUIRE(trial, names_cause(fault, umem_get_message(parts[i])));
    reported = reported || umem_get_status(parts[i]) == umem_thread_status();
  }
  REQUIRE(trial, reported);
}

static void check_silent(Trial *trial) {
  REQUIRE(trial, umem_thread_status() == umemOK);
  REQUIRE(trial, umem_is_ok(trial->ctx) && umem_is_ok(&trial->host));
  REQUIRE(trial, !trial->peer || umem_is_ok(trial->peer));
}

static Duty duty_of(Scenario const *scenario, Fault const *fault, bool lasting) {
  bool last_close = fault->call == callClose && scenario->kind == scenarioDestructs;
  if (last_close) return dutyTell; /* only here is it known that all was written */
  if (scenario->needs & usesWindows && fault->call == callStat)
    return dutyEither; /* what a window would have needed, calls do without */
  return lasting ? fault->lasting : fault->once;
}

static void check_duty(Trial *trial, Fault const *fault, Duty duty) {
  if (trial->result == umemOK) {
    REQUIRE(trial, duty != dutyTell);
    check_silent(trial);
  } else {
    REQUIRE(trial, duty != dutyDo);
    check_report(trial, fault);
  }
}

static void clear(Trial *trial) {
  umem_clear_status(trial->ctx);
  umem_clear_status(&trial->host);
  if (trial->peer) umem_clear_status(trial->peer);
  umem_thread_clear();
  trial->result = umemOK;
  trial->failures = umem_thread_failures();
}

/* What is left by a constructor that failed answers, and can be destructed. */
static void check_unconstructed(Trial *trial) {
  REQUIRE(trial, trial_file_is_untouched(trial));
  REQUIRE(trial, umem_alloc(trial->ctx, 8) == umem_null(trial->ctx));
  REQUIRE(trial, umem_flush(trial->ctx) != umemOK);
  DESTRUCT(trial->ctx, trial->ctx);
}

/* Once more without faults: it must succeed, and the end too. */
static void run_again(Trial *trial, Scenario const *scenario) {
  bool constructed = scenario->kind == scenarioConstructs && trial->result == umemOK;
  if (scenario->kind == scenarioConstructs && !constructed) check_unconstructed(trial);
  clear(trial);
  if (scenario->kind == scenarioDestructs) scenario_begin(trial, scenario);
  if (!constructed) scenario_run(trial, scenario);
  REQUIRE(trial, trial->result == umemOK);
  check_silent(trial);
  if (scenario->kind == scenarioUses) REQUIRE(trial, trial_holds_nothing(trial));
  umem_dtor(trial->ctx);
  trial_settle(trial);
  REQUIRE(trial, trial->result == umemOK);
}

/* So that a long copy starts its helpers anew, on a machine with one processor too. */
static void forget_threads(void) {
  umem_set_threads(1);
  umem_set_threads(2);
}

/* Runs with this fault at the nth call. Whether the fault was met. */
static bool meets(Place const *place, Scenario const *scenario, Fault const *fault,
                  unsigned long nth, bool lasting, Spans *written) {
  char name[64];
  snprintf(name, sizeof name, "%s %s%s", inject_call_name(fault->call),
           lasting ? "from now on " : "", strerror(fault->error));
  Trial trial;
  trial_prepare(&trial, place, scenario->peer, written);
  trial.scenario = scenario->name;
  trial.fault = name;
  trial.nth = nth;
  trial.unsure = fault->call == callPeek || fault->call == callSeek;
  scenario_begin(&trial, scenario);
  forget_threads();
  if (fault->without != callNone) inject_lacking(fault->without, EOPNOTSUPP);
  inject_fail(fault->call, nth, fault->error, lasting);
  scenario_run(&trial, scenario);
  bool met = inject_off() > 0;
  inject_lacking(callHeap, 0);
  reached[fault->call] += met;
  if (met)
    check_duty(&trial, fault, duty_of(scenario, fault, lasting));
  else
    REQUIRE(&trial, trial.result == umemOK);
  run_again(&trial, scenario);
  trial_finish(&trial);
  return met;
}

/* ---- all of them ---- */

static bool watched; /* by the ledger: every copy reads clocks and notes its legs */

/* The call that fails after the nth one. A long copy makes many calls of a kind, of which only some
 * fail: 1, 2, 3, 4, 6, 8, 11, ... */
static unsigned long next_of(Scenario const *scenario, unsigned long nth) {
  return scenario->needs & needsLong ? nth + 1 + nth / 4 : nth + 1;
}

/* Where time is short, one call fails for n = 1, 2, 4, 6, ..., and all from the nth on for n = 1,
 * 3, 5, ... */
static unsigned long step_of(Scenario const *scenario, unsigned long nth, bool lasting) {
  unsigned long next = next_of(scenario, nth);
  return setting_small() && (lasting || nth > 1) ? next + 1 : next;
}

/* Only a scratch file can do without open; the fake's constructor is no part of the library; a
 * scenario that runs for long, and each with the ledger on or where time is short, meets the first
 * error of each call only. */
static bool is_spared(Place const *place, Scenario const *scenario, Fault const *fault) {
  if (fault->without == callOpen && !(place->scratch && scenario->kind == scenarioConstructs))
    return true;
  if (fault->without == callMap && !(scenario->needs & usesWindows)) return true;
  if (place->kind == kindFake && scenario->kind == scenarioConstructs) return true;
  if (scenario->needs & onlyHeap) return fault->call != callHeap;
  if (!watched && !setting_small() && !(scenario->needs & needsLong)) return false;
  return fault != faults && fault[-1].call == fault->call;
}

/* EINTR for ever is a loop, not a fault. */
static bool can_last(Scenario const *scenario, Fault const *fault) {
  return fault->error != EINTR && !(scenario->needs & needsLong);
}

static void sweep(Place const *place, Scenario const *scenario) {
  static Spans written;
  written.count = 0;
  Trial trial;
  trial_prepare(&trial, place, scenario->peer, &written);
  trial.scenario = scenario->name;
  trial.fault = "no fault";
  unsigned long made[inject_call_count] = {0};
  if (scenario_begin(&trial, scenario)) {
    forget_threads();
    inject_count();
    scenario_run(&trial, scenario);
    inject_off();
    REQUIRE(&trial, trial.result == umemOK);
    for (int i = 0; i < inject_call_count; i++) made[i] = inject_calls((InjectCall)i);
  }
  umem_dtor(trial.ctx);
  trial_finish(&trial);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    Fault const *fault = &faults[i];
    if (!made[fault->without != callNone ? fault->without : fault->call]) continue;
    if (is_spared(place, scenario, fault)) continue;
    unsigned long nth = 1;
    while (meets(place, scenario, fault, nth, false, &written)) nth = step_of(scenario, nth, false);
    if (!can_last(scenario, fault)) continue;
    nth = 1;
    while (meets(place, scenario, fault, nth, true, &written)) nth = step_of(scenario, nth, true);
  }
}

static void sweep_place(void **state) {
  Place const *place = *state;
  for (size_t i = 0; i < scenario_count; i++) sweep(place, &scenarios[i]);
}

/* A wrapper that the linker forgot would make all of the above pass for nothing. Only tmpfs needs
 * the peek. */
static void every_call_was_reached(void **state UNUSED) {
  reached[callLink] = reached[callNameless] = 1; /* those of logs: log.c */
  reached[callProtect] = reached[callRemap] = 1; /* those of pages: pages.c */
  for (int i = 0; i < inject_call_count; i++)
    if (!reached[i] && i != callPeek)
      fail_msg("no scenario reached %s", inject_call_name((InjectCall)i));
}

/* Some ten thousand small files: in memory, unless somebody wants them elsewhere. */
static void choose_folder(void) {
  if (!getenv("TMPDIR") && access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
}

/* Two places have the long copies, which take most of the time. */
static bool is_slow(Place const *place) {
  return !strcmp(place->name, "file w+, new") || !strcmp(place->name, "mmap w+");
}

/* Under ThreadSanitizer, where all of them would take minutes, one file stands for the others,
 * which use threads as it does. With the ledger on, the file alone copies at length, and none does
 * under a sanitizer. */
static bool takes_part(Place const *place) {
  bool is_file = !strcmp(place->name, "file w+, new");
  if (watched) return !is_slow(place) || (is_file && !UNDER_SANITIZER);
  return !UNDER_THREAD_SANITIZER || place->kind == kindHost || is_file;
}

int main(int argc, char **argv) {
  choose_folder();
  watched = argc > 1 && !strcmp(argv[1], "ledger");
  if (watched && umem_ledger_start() != umemOK) return 1;
  for (size_t i = 0; i < place_count; i++) {
    if (takes_part(&places[i]))
      add_case(sweep_place, &places[i], "%s", places[i].name);
    else
      print_message("left out: %s\n", places[i].name);
  }
  if (!UNDER_THREAD_SANITIZER && !watched)
    add_case(every_call_was_reached, NULL, "every call was reached");
  return run_cases(NULL, NULL);
}
