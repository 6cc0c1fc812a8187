/* scenarios.h - what a program does with a context, as steps that may each fail.
 *
 * A scenario frees what it took whatever failed, checks all data that a call claims to have moved,
 * and leaves the type of the first failure in trial->result. It does the same each time it runs. */
#pragma once

#include "trial.h"

/* What a scenario needs of a place, besides umemCapability, and what it is spared. */
enum {
  needsGrowth = 1 << 24, /* more room than the file had */
  needsLong = 1 << 25,   /* runs for long: on one place of a kind, with one error for each call */
  onlyHeap = 1 << 26,    /* many calls: faults of the heap alone */
  usesWindows = 1 << 27  /* copies items through a mapping if there is one, else by calls */
};

typedef enum ScenarioKind {
  scenarioUses,       /* a constructed context */
  scenarioConstructs, /* the constructor is what may fail */
  scenarioDestructs   /* the destructor is */
} ScenarioKind;

typedef struct Scenario {
  char const *name;
  char const *peer; /* a row of test/backends.c that takes part, or NULL */
  unsigned needs;
  ScenarioKind kind;
  void (*run)(Trial *trial); /* NULL to construct or destruct only */
} Scenario;

extern Scenario const scenarios[];
extern size_t const scenario_count;

/* Brings a prepared trial to where the scenario's own calls begin. False where the place has not
 * what the scenario needs. */
bool scenario_begin(Trial *trial, Scenario const *scenario);

/* The calls of the scenario, which may be made to fail. */
void scenario_run(Trial *trial, Scenario const *scenario);
