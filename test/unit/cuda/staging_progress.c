/* staging_progress.c - long copies through pinned chunks that report how far they are: nothing is
 * cut, the steps come in order, in the caller's thread and in no scope, and whatever ends the copy
 * leaves nothing behind. On a double of the runtime. */

#include "cuda/cuda_pinned.h"
#include "settings.h"

#include <unwind.h>

enum { from = umemStagingFrom, most = 9 * from + 4321 };

#include "pair_help.h"

/* ---- the three copies ---- */

typedef enum Way { fileToGpu, ramToGpu, gpuToRam, ways } Way;

/* What the program hears of its copy. */
typedef struct Heard {
  Way way;
  pthread_t caller;
  uint64_t step, last, cancel_at;
  void *before; /* the context that was current */
  bool unwinds, right;
  int calls;
} Heard;

static jmp_buf out;
static uintptr_t frame_of_test;

/* Leaves the frames of umem as an exception of C++ does, and goes on in the test. */
static _Unwind_Reason_Code stop_at_test(int version UNUSED, _Unwind_Action actions,
                                        _Unwind_Exception_Class type UNUSED,
                                        struct _Unwind_Exception *exception UNUSED,
                                        struct _Unwind_Context *context, void *argument UNUSED) {
  if ((uintptr_t)_Unwind_GetCFA(context) > frame_of_test || actions & _UA_END_OF_STACK)
    longjmp(out, 1);
  return _URC_NO_REASON;
}

static void unwind(void) {
  static struct _Unwind_Exception exception;
  memset(&exception, 0, sizeof exception);
  _Unwind_ForcedUnwind(&exception, stop_at_test, NULL);
}

/* The bytes [begin, end) of the destination are those of the source. */
static bool is_there(Way way, uint64_t begin, uint64_t end, unsigned seed) {
  if (way == gpuToRam) return !memcmp(back + begin, pattern + seed + begin, end - begin);
  return !memcmp((unsigned char *)fake_cudart_at(pair.far, most) + begin, pattern + seed + begin,
                 end - begin);
}

static bool hear(void *user, uint64_t done, uint64_t total) {
  Heard *heard = user;
  uint64_t next = heard->last + heard->step, due = next < total ? next : total;
  bool first = heard->calls++ == 0;
  heard->right = heard->right && pthread_equal(heard->caller, pthread_self()) &&
                 current_context() == heard->before && done == (first ? 0 : due) &&
                 is_there(heard->way, heard->last, done, 3);
  heard->last = done;
  if (heard->unwinds && done >= heard->cancel_at) unwind();
  return done < heard->cancel_at;
}

static Heard hears(Way way, uint64_t step) {
  return (Heard){.way = way,
                 .caller = pthread_self(),
                 .step = step,
                 .cancel_at = UINT64_MAX,
                 .before = current_context(),
                 .right = true};
}

/* Without heard, a plain copy. */
static umemStatusType copy(Way way, Heard *heard) {
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  void *near = way == fileToGpu ? (void *)&pair.store : (void *)&pair.host;
  uintptr_t at = way == fileToGpu  ? pair.near
                 : way == ramToGpu ? (uintptr_t)bytes
                                   : (uintptr_t)back;
  options.progress = heard ? hear : NULL;
  options.user = heard;
  options.step = heard ? heard->step : 0;
  if (way == gpuToRam) return umem_copy_to_with(&pair.gpu, pair.far, near, at, most, &options);
  return umem_copy_to_with(near, at, &pair.gpu, pair.far, most, &options);
}

/* The source has its bytes, the destination others. */
static void fill_both(Way way) {
  write_file(&pair, 0, most, 3);
  unsigned char *gpu = fake_cudart_at(pair.far, most);
  memset(back, 0xee, most);
  if (way == gpuToRam)
    memcpy(gpu, pattern + 3, most);
  else
    memset(gpu, 0xee, most);
}

static void expect_works_again(Way way) {
  FakeCudartLive before = fake_cudart_live();
  fill_both(way);
  expect_ok(copy(way, NULL));
  assert_true(is_there(way, 0, most, 3));
  assert_int_equal(fake_cudart_live().streams, before.streams);
}

/* ---- tests ---- */

LATE_PAIR_TEST(every_step_is_reported_in_order) {
  uint64_t const steps[] = {1 << 20, 1000003, 5 * from + 1};
  for (Way way = 0; way < ways; way++)
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
      Heard heard = hears(way, steps[i]);
      fill_both(way);
      expect_ok(copy(way, &heard));
      assert_true(heard.right && heard.last == most);
      assert_true(is_there(way, 0, most, 3));
    }
}

/* Whatever GPU it uses is current there, not that of the copy. */
LATE_PAIR_TEST(the_program_hears_of_it_with_its_own_gpu) {
  fake_cudart_set_device(1);
  for (Way way = 0; way < ways; way++) {
    Heard heard = hears(way, 1 << 20);
    fill_both(way);
    expect_ok(copy(way, &heard));
    assert_true(heard.right && current_context() == heard.before);
  }
  close_pair(&pair);
  forget_all(); /* the program's GPU, which nothing gives back */
}

static unsigned long transfers_of(Way way, Heard *heard) {
  unsigned long before = fake_cudart_calls_of("memcpy_async");
  fill_both(way);
  expect_ok(copy(way, heard));
  return fake_cudart_calls_of("memcpy_async") - before;
}

/* A plain copy has as many pieces. */
LATE_PAIR_TEST(the_copy_is_not_cut) {
  for (Way way = 0; way < ways; way++) {
    Heard heard = hears(way, 1 << 20);
    unsigned long plain = transfers_of(way, NULL), reported = transfers_of(way, &heard);
    assert_int_equal(plain, reported);
    assert_true(heard.right);
  }
}

LATE_PAIR_TEST(a_copy_may_be_cancelled_at_each_step) {
  for (Way way = 0; way < ways; way++)
    for (uint64_t at = 0; at < most; at += setting_small() ? 7 * from / 2 : from / 2) {
      Heard heard = hears(way, from / 2);
      heard.cancel_at = at;
      fill_both(way);
      assert_int_equal(copy(way, &heard), umemCancelledError);
      assert_true(heard.right && heard.last == at);
      FORGET(way == gpuToRam ? (void *)&pair.host : (void *)&pair.gpu);
    }
  for (Way way = 0; way < ways; way++) expect_works_again(way);
}

/* No scope, channel or chunk is left, and no thread copies any more. */
LATE_PAIR_TEST(an_exception_may_pass) {
  static Way volatile way;
  for (way = 0; way < ways; way++)
    for (uint64_t volatile at = from / 2; at < most; at += 3 * from) {
      static Heard heard;
      heard = hears(way, from / 2);
      heard.cancel_at = at;
      heard.unwinds = true;
      fill_both(way);
      frame_of_test = (uintptr_t)__builtin_frame_address(0);
      if (!setjmp(out)) {
        copy(way, &heard);
        fail_msg("the copy has returned");
      }
      assert_true(heard.right && heard.last == at);
      assert_ptr_equal(current_context(), heard.before);
      assert_int_equal(umem_thread_status(), umemOK);
      expect_works_again(way);
    }
}

LATE_PAIR_TEST(a_failure_ends_the_reports) {
  Heard heard = hears(fileToGpu, 1 << 20);
  fill_both(fileToGpu);
  assert_int_equal(truncate(pair.path, 4 * from + 5), 0);
  expect_cut(copy(fileToGpu, &heard));
  assert_true(heard.right && heard.last <= 4 * from);
  umem_free(&pair.store, pair.near);
  pair.near = umem_alloc(&pair.store, most);
  expect_works_again(fileToGpu);
}
