/* cuda_enter.c - umemCuda_enter and umemCuda_leave: what is current between them, and afterwards.
 * On a double of the runtime. */
#include "cuda_help.h"

static int current_device(void) {
  int device = -1;
  ok(rt->get_device(&device));
  return device;
}

CUDA_TEST(a_gpu_is_current_between_the_two) {
  umemCudaEntry entry;
  expect_ok(umemCuda_enter(&entry, 1));
  assert_non_null(current_context());
  assert_int_equal(current_device(), 1);
  void *adr = NULL;
  ok(rt->malloc(&adr, 100));
  ok(rt->free(adr));
  expect_ok(umemCuda_leave(&entry));
  assert_null(current_context());
  assert_false(fake_cudart_had_context(0));
  expect_ok(umemCuda_leave(&entry)); /* once is enough */
}

CUDA_TEST(the_callers_gpu_comes_back) {
  fake_cudart_set_device(2);
  void *before = current_context();
  for (int device = 0; device < 3; device++) {
    umemCudaEntry outer, inner;
    expect_ok(umemCuda_enter(&outer, device));
    expect_ok(umemCuda_enter(&inner, 1));
    assert_int_equal(current_device(), 1);
    expect_ok(umemCuda_leave(&inner));
    assert_int_equal(current_device(), device);
    expect_ok(umemCuda_leave(&outer));
    assert_ptr_equal(current_context(), before);
  }
  forget_all(); /* the caller's GPU, which nothing gives back */
}

CUDA_TEST(the_current_gpu_has_a_name) {
  umemCudaEntry entry;
  expect_ok(umemCuda_enter(&entry, -1)); /* the first one, as nothing was chosen */
  assert_int_equal(current_device(), 0);
  expect_ok(umemCuda_leave(&entry));
  assert_null(current_context());
  fake_cudart_set_device(2);
  void *before = current_context();
  expect_ok(umemCuda_enter(&entry, -1));
  assert_ptr_equal(current_context(), before);
  expect_ok(umemCuda_leave(&entry));
  assert_ptr_equal(current_context(), before);
  assert_false(fake_cudart_had_context(1));
  forget_all();
}

CUDA_TEST(captures_of_the_program_forbid_nothing) {
  int const before = fake_cudart_capture_mode();
  for (int device = -1; device < 2; device++) {
    fake_cudart_set_device(0);
    umemCudaEntry entry;
    expect_ok(umemCuda_enter(&entry, device));
    assert_int_equal(fake_cudart_capture_mode(), 2);
    expect_ok(umemCuda_leave(&entry));
    assert_int_equal(fake_cudart_capture_mode(), before);
  }
  forget_all();
}

/* What each launch of the C++ headers pays: two calls to enter, one to leave. */
CUDA_TEST(where_the_gpu_is_current_it_is_cheap) {
  umemCudaEntry entry;
  fake_cudart_set_device(1);
  opened("cuda:1");
  for (int device = -1; device < 2; device += 2) {
    unsigned long const calls = fake_cudart_calls();
    expect_ok(umemCuda_enter(&entry, device));
    expect_ok(umemCuda_leave(&entry));
    assert_int_equal(fake_cudart_calls() - calls, 3);
  }
  close_opened();
  forget_all();
}

/* Returns NULL if all was right. */
static void *enter_often(void *unused) {
  bool right = true;
  for (int i = 0; i < 2000 && right; i++) {
    umemCuda ctx;
    umemCudaEntry entry;
    right = umemCuda_enter(&entry, 1) == umemOK && current_device() == 1;
    right = umemCuda_leave(&entry) == umemOK && right;
    if (i % 8) continue;
    right = umemCuda_ctor(&ctx, 1) == umemOK && right;
    umem_dtor(&ctx);
  }
  (void)unused;
  return right ? NULL : (void *)1;
}

/* Whoever is the last one ends the context, and the next one makes it anew. */
CUDA_TEST(threads_enter_and_leave) {
  enum { many = 4 };
  run_at_once(many, enter_often, NULL, 0);
  assert_int_equal(fake_cudart_live().primaries, 0);
}

CUDA_TEST(what_is_not_there_is_not_entered) {
  umemCudaEntry entry;
  expect_failure(umemCuda_enter(NULL, 0), umemValueError, "umemCuda_enter: the entry is NULL");
  expect_failure(umemCuda_leave(NULL), umemValueError, "umemCuda_leave: the entry is NULL");
  static int const none[] = {-2, 3, 64, INT32_MIN, INT32_MAX};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    memset(&entry, 0xff, sizeof entry);
    expect_failure(umemCuda_enter(&entry, none[i]), umemValueError, "there is no GPU");
    expect_ok(umemCuda_leave(&entry));
  }
  umemCudaRt_replace(NULL); /* CUDA's own, or none */
  if (!umemCudaRt_get())
    expect_failure(umemCuda_enter(&entry, -1), umemNotSupportedError, "was built without CUDA");
  umemCudaRt_replace(fake_cudart());
}

/* Every call of the runtime fails in turn, once and from then on. */
CUDA_TEST(failures_leave_all_as_it_was) {
  static struct {
    int device;
    bool has_current;
  } const cases[] = {{1, false}, {1, true}, {-1, false}, {-1, true}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool failed = true;
    for (unsigned long nth = 1; failed; nth++) {
      if (cases[i].has_current) fake_cudart_set_device(0);
      void *before = current_context();
      int const mode = fake_cudart_capture_mode();
      umemCudaEntry entry;
      unsigned long const calls = fake_cudart_calls();
      fake_cudart_fail(nth, umemCudaLaunchFailure);
      bool entered = umemCuda_enter(&entry, cases[i].device) == umemOK;
      umemCuda_leave(&entry);
      unsigned long const made = fake_cudart_calls() - calls;
      failed = made >= nth;
      fake_cudart_fail(0, 0);
      assert_ptr_equal(current_context(), before);
      assert_int_equal(fake_cudart_capture_mode(), mode);
      size_t const kept = fake_cudart_live().primaries;
      assert_true(kept == 0 || made == nth); /* giving it back has failed */
      assert_true(entered || umem_thread_status() != umemOK);
      umem_thread_clear();
      forget_all();
    }
  }
}

CUDA_TEST(a_child_of_fork_enters_nothing) {
  opened("cuda:0");
  IN_CHILD {
    umemCudaEntry entry;
    EXPECT(umemCuda_enter(&entry, 0) == umemNotSupportedError &&
           strstr(umem_thread_message(), "fork") && umemCuda_leave(&entry) == umemOK);
  }
}
