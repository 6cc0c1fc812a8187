/* scheme.c - umem/scheme.h: schemes that a program adds. */
#include "open_help.h"

enum { size_option, shift_option };
static umemOption const fake_place = {.name = "slot", .kind = umemNumberOption, .required = true};
static umemOption const fake_options[] = {
    [size_option] = {.name = "size", .kind = umemSizeOption, .required = true},
    [shift_option] = {.name = "shift", .kind = umemWordOption, .words = "none some all"},
};
static umemOptionValue seen_place, seen_options[2];
static void *seen_user;

CONSTRUCTOR(open_fake) {
  assert_null(upstream);
  seen_place = *place;
  memcpy(seen_options, options, sizeof seen_options);
  seen_user = user;
  if (place->number == 3) return umemRuntimeError; /* records nothing */
  if (place->number == 4) return umemOK;           /* constructs nothing */
  return fake_ctor(ctx);
}

static umemScheme const fake_scheme = {SCHEME_OF("test-fake", Fake, open_fake),
                                       .place = &fake_place, .options = fake_options,
                                       .option_count = 2, .user = &failures};

CONSTRUCTOR(open_wrapped) { return wrapped_ctor(ctx, upstream); }

static umemScheme const wrapped_scheme = {SCHEME_OF("test-wrapped", Wrapped, open_wrapped),
                                          .decorates = true};

TEST(a_program_adds_schemes) {
  size_t count = 0;
  while (umem_scheme(count)) count++;
  assert_ok(umem_register_scheme(&fake_scheme));
  assert_ok(umem_register_scheme(&wrapped_scheme));
  assert_ptr_equal(umem_scheme(count), &fake_scheme);
  assert_ptr_equal(umem_scheme(count + 1), &wrapped_scheme);
  assert_null(umem_scheme(count + 2));

  void *ctx = umem_open("stats+test-wrapped+test-fake:7?size=2K&shift=some");
  use(ctx);
  assert_int_equal(seen_place.number, 7);
  assert_int_equal(seen_options[size_option].number, 2048);
  assert_int_equal(seen_options[shift_option].number, 1);
  assert_ptr_equal(seen_user, &failures);
  assert_ok(umem_close(ctx));

  expect_none(
      umem_open("test-fake:?size=1"), umemValueError,
      "umem_open: the slot of \"test-fake:\" is missing: right would be a whole number from "
      "0 to 18446744073709551615");
  expect_none(umem_open("test-fake:3?size=1"), umemRuntimeError,
              "umem_open: the scheme \"test-fake\" has constructed nothing");
  expect_none(umem_open("test-fake:4?size=1"), umemValueError, "");
  expect_none(umem_open("nothing:"), umemValueError, ", test-fake, test-wrapped");
}

TEST(wrong_schemes_are_refused) {
  static umemOption const twice[] = {{.name = "a"}, {.name = "b"}, {.name = "a"}};
  static umemOption const odd[] = {{.name = "A"}}, unknown[] = {{.name = "a", .kind = 9}};
  static umemOption const url[] = {{.name = "a", .kind = umemUrlOption}};
  static umemOption const wordless[] = {{.name = "a", .kind = umemWordsOption}};
  static umemOption const many[] = {
      {.name = "a",
       .kind = umemWordsOption,
       .words = "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 "
                "0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4"}};
  static umemOption const nameless = {.kind = umemTextOption};
/* All but one thing of each is right. */
#define SCHEME(text, bytes, over, where, table, count, make)                                       \
  {                                                                                                \
    .size = sizeof(umemScheme), .name = text, .context_size = bytes, .decorates = over,            \
    .place = where, .options = table, .option_count = count, .construct = make                     \
  }
#define NAMED(name) SCHEME(name, sizeof(Fake), false, NULL, NULL, 0, open_fake)
#define PLACED(decorates, place)                                                                   \
  SCHEME("test-good", sizeof(Fake), decorates, place, NULL, 0, open_fake)
#define WITH(options, count)                                                                       \
  SCHEME("test-good", sizeof(Fake), false, NULL, options, count, open_fake)
  static struct {
    umemScheme scheme;
    char const *words;
  } const bad[] = {
      {{.size = 7}, "the size in the umemScheme is 7"},
      {{.size = 8}, "its name is not"},
      {NAMED(NULL), "\"NULL\" cannot be right: its name is not"},
      {NAMED(""), "its name is not"},
      {NAMED("Test"), "its name is not"},
      {NAMED("-test"), "its name is not"},
      {NAMED("te st"), "its name is not"},
      {NAMED("a-name-as-long-as-a-name-may-bes"), "its name is not"}, /* 32 */
      {NAMED("host"), "there is a scheme \"host\" already"},
      {NAMED("test-fake"), "there is a scheme \"test-fake\" already"},
      {SCHEME("test-good", sizeof(umemVirtual) - 1, false, NULL, NULL, 0, open_fake),
       "context_size"},
      {SCHEME("test-good", sizeof(Fake), false, NULL, NULL, 0, NULL), "it has no construct"},
      {PLACED(true, &fake_place), "has no place"},
      {PLACED(false, &nameless), "its place has no name"},
      {PLACED(false, unknown), "an option or its place is of no known kind"},
      {PLACED(false, wordless), "an option or its place has no words"},
      {WITH(fake_options, 17), "too many options"},
      {WITH(NULL, 1), "its options are NULL"},
      {WITH(twice, 3), "two options have one name"},
      {WITH(odd, 1), "the name of an option is malformed"},
      {WITH(unknown, 1), "an option or its place is of no known kind"},
      {WITH(url, 1), "which only a place can be"},
      {WITH(wordless, 1), "an option or its place has no words"},
      {WITH(many, 1), "or its place has no words, or too many"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(umem_register_scheme(&bad[i].scheme), umemValueError);
    if (!strstr(umem_thread_message(), bad[i].words))
      fail_msg("\"%s\" instead of \"%s\"", umem_thread_message(), bad[i].words);
  }
  assert_int_equal(umem_register_scheme(NULL), umemValueError);
  static umemScheme const huge = SCHEME("test-huge", SIZE_MAX, false, NULL, NULL, 0, open_fake);
  assert_ok(umem_register_scheme(&huge));
  expect_none(umem_open("test-huge:"), umemMemoryError, "");
}

TEST(the_longest_name_is_taken) {
  static umemScheme const longest = {SCHEME_OF("a-name-as-long-as-a-name-may-be", Fake, open_fake)};
  assert_ok(umem_register_scheme(&longest));
  use_and_close(umem_open("a-name-as-long-as-a-name-may-be:"));
}

/* Of a program that knew no user and help: umem does not read behind its scheme. */
TEST(schemes_may_be_older) {
  static umemScheme older = NAMED("test-older");
  older.size = offsetof(umemScheme, user);
  older.help = "not there";
  size_t count = 0;
  while (umem_scheme(count)) count++;
  assert_ok(umem_register_scheme(&older));
  umemScheme const *known = umem_scheme(count);
  assert_string_equal(known->name, "test-older");
  assert_true(known->size == sizeof(umemScheme) && known->construct == open_fake && !known->help);
}

/* ---- threads ---- */

enum { rounds = 300, names = 20 };
static char scheme_names[names][20];
static umemScheme raced[names];
static int won; /* atomic */

/* All register the same schemes, and open and close meanwhile. */
static void *open_and_register(void *number) {
  for (size_t i = 0; i < rounds; i++) {
    void *ctx = umem_open(i % 2 ? "pool+limit+host:?limit=1M" : "stats+cuda:1");
    if (!ctx || !umem_is_ok(ctx)) abort();
    umem_free(ctx, umem_alloc(ctx, 100));
    if (umem_close(ctx) != umemOK) abort();
    umemAttempt attempt;
    umemAttempt_begin(&attempt);
    if (i < names && umem_register_scheme(&raced[i]) == umemOK)
      __atomic_fetch_add(&won, 1, __ATOMIC_RELAXED);
    umemAttempt_end(&attempt);
    for (size_t k = 0; umem_scheme(k); k++)
      if (!umem_scheme(k)->construct) abort();
  }
  return number;
}

TEST(threads_open_and_register) {
  for (size_t i = 0; i < names; i++) {
    snprintf(scheme_names[i], sizeof scheme_names[i], "test-raced-%zu", i);
    raced[i] = (umemScheme){SCHEME_OF(scheme_names[i], Fake, open_fake)};
  }
  in_threads(open_and_register);
  assert_int_equal(won, names);
}
