/* fault_short.c - transfers that move only a part, and calls that signals interrupt: all data is
 * identical and nobody learns of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "inject.h"
#include "scenarios.h"

/* Runs all scenarios on the place in *state with what arm arms. Returns how often it struck. */
static unsigned long run_all(Place const *place, char const *fault, void (*arm)(unsigned),
                             unsigned seed) {
  static Spans written;
  unsigned long struck = 0;
  for (size_t i = 0; i < scenario_count; i++) {
    Trial trial;
    written.count = 0;
    trial_prepare(&trial, place, scenarios[i].peer, &written);
    trial.fault = fault;
    trial.nth = seed;
    if (scenario_begin(&trial, &scenarios[i])) {
      arm(seed);
      scenario_run(&trial, &scenarios[i]);
      struck += inject_off();
      REQUIRE(&trial, trial.result == umemOK);
      REQUIRE(&trial, umem_is_ok(trial.ctx) && umem_thread_status() == umemOK);
    }
    umem_dtor(trial.ctx);
    trial_finish(&trial);
  }
  return struck;
}

static void arm_storm(unsigned seed) {
  (void)seed;
  inject_storm();
}

static void short_transfers(void **state) {
  Place const *place = *state;
  unsigned long struck = 0;
  for (unsigned seed = 1; seed <= 3; seed++)
    struck += run_all(place, "short transfers", inject_short, seed);
  if (place->kind == kindFile) assert_true(struck > 100);
}

static void interrupted_calls(void **state) {
  Place const *place = *state;
  unsigned long struck = run_all(place, "interrupted calls", arm_storm, 0);
  if (place->kind == kindFile) assert_true(struck > 100);
}

int main(void) {
  static char names[64][64];
  struct CMUnitTest tests[64];
  size_t count = 0;
  for (size_t i = 0; i < place_count; i++) {
    void *place = (void *)&places[i];
    snprintf(names[count], sizeof *names, "short transfers on %s", places[i].name);
    tests[count] = (struct CMUnitTest){names[count], short_transfers, NULL, NULL, place};
    count++;
    snprintf(names[count], sizeof *names, "interrupted calls on %s", places[i].name);
    tests[count] = (struct CMUnitTest){names[count], interrupted_calls, NULL, NULL, place};
    count++;
  }
  return _cmocka_run_group_tests("fault_short", tests, count, NULL, NULL);
}
