/* cuda_scenarios.h - what is done with CUDA contexts while calls of the runtime fail. */
#pragma once

#include "fault/cuda/cuda_trial.h"

typedef enum ScenarioKind {
  scenarioPlain,
  scenarioConstructs, /* the context of the trial */
  scenarioDestructs,  /* that context */
  scenarioIsLong,     /* makes very many calls */
  scenarioHasOtherWay /* copies in another way, if there is no device memory for a block */
} ScenarioKind;

/* A scenario frees what it took, whatever failed. */
typedef struct Scenario {
  char const *name;
  void (*run)(Trial *trial);
  char const *peer; /* a row, or NULL */
  ScenarioKind kind;
} Scenario;

extern Scenario const cuda_scenarios[];
extern size_t const cuda_scenario_count;
