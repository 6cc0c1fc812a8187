/* short.c - transfers that move only a part, and calls that signals interrupt: all data is
 * identical, and no call fails. */
#include "fault/scenarios.h"

/* Runs all scenarios on the place in *state with what arm arms; those that would go through a
 * mapping, on a system without. Returns how often it struck. */
static unsigned long run_all(Place const *place, char const *fault, void (*arm)(unsigned),
                             unsigned seed) {
  unsigned long struck = 0;
  for (size_t i = 0; i < scenario_count; i++) {
    Trial trial;
    trial_prepare(&trial, place, scenarios[i].peer, NULL);
    trial.fault = fault;
    trial.nth = seed;
    if (scenario_begin(&trial, &scenarios[i])) {
      arm(seed);
      if (scenarios[i].needs & usesWindows) inject_lacking(callMap, ENODEV);
      scenario_run(&trial, &scenarios[i]);
      struck += inject_off();
      inject_lacking(callHeap, 0);
      REQUIRE(&trial, trial.result == umemOK);
      REQUIRE(&trial, umem_is_ok(trial.ctx) && umem_thread_status() == umemOK);
    }
    umem_dtor(trial.ctx);
    trial_finish(&trial);
  }
  return struck;
}

static void arm_storm(unsigned seed UNUSED) { inject_storm(); }

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

/* Opening, flushing and removing, on a system without files that have no name. */
TEST_CASE(interrupted_beginnings) {
  char path[256];
  umemFile file;
  umemMMap mapping;
  temporary_name(path, sizeof path);
  for (int i = 0; i < 8; i++) {
    inject_storm();
    inject_lacking(callNameless, EOPNOTSUPP);
    assert_int_equal(umemFile_ctor(&file, NULL, "w+"), umemOK);
    umem_dtor(&file);
    inject_lacking(callHeap, 0);
    assert_int_equal(umemMMap_ctor(&mapping, path, "w+"), umemOK);
    assert_int_not_equal(umem_alloc(&mapping, 10000), 0);
    assert_int_equal(umem_flush(&mapping), umemOK);
    umem_dtor(&mapping);
    assert_true(inject_off() > 3);
    inject_reset();
    assert_int_equal(unlink(path), 0);
  }
}

TEST_CASE(an_interrupted_question_is_asked_again) {
  CONTEXT(umemFile, file, NULL, "w+");
  inject_fail(callStat, 1, EINTR, false); /* fstatvfs */
  info_of(&file);
  assert_int_equal(inject_off(), 1);
}

/* A timer interrupts whatever takes longer than a short piece. */
static void reserve_in_pieces(void *unused UNUSED) {
  enum { size = (3 << 20) + 100 };
  umemFile file;
  struct stat st;
  char path[256];
  temporary_name(path, sizeof path);
  EXPECT(umemFile_ctor(&file, path, "w+") == umemOK);
  inject_longest_reserve(100000);
  uintptr_t first = umem_alloc(&file, 100), adr = umem_calloc(&file, 1, size);
  EXPECT(adr != umem_null(&file) && stat(path, &st) == 0);
  EXPECT(st.st_size >= size && st.st_blocks * 512 >= size);
  umem_free(&file, adr);
  EXPECT(umem_calloc(&file, 1, size) == adr); /* zeroed by the file system */
  umem_free(&file, adr);
  EXPECT(umem_trim(&file, 0) == umemOK && stat(path, &st) == 0 && st.st_blocks * 512 < size);
  umem_free(&file, first);
  umem_dtor(&file);
  umemHost host;
  umemLog log;
  umemLogOptions options = {.size = sizeof options, .filename = path};
  EXPECT(unlink(path) == 0 && umemHost_ctor(&host) == umemOK);
  EXPECT(umemLog_ctor(&log, &host, &options) == umemOK);
  DESTRUCT(&log, &host);
  inject_reset();
  EXPECT(unlink(path) == 0);
}

TEST_CASE(signals_do_not_keep_space_from_being_reserved) {
  child_run(reserve_in_pieces, NULL); /* killed when it does not end */
}

int main(void) {
  for (size_t i = 0; i < place_count; i++) {
    add_case(short_transfers, &places[i], "short transfers on %s", places[i].name);
    add_case(interrupted_calls, &places[i], "interrupted calls on %s", places[i].name);
  }
  return run_cases(NULL, NULL);
}
