/* name.c - open/name.h: names taken apart, and what is said of those that are wrong. */

#include "cases.h"
#include "settings.h"
#include "name_help.h"

/* ---- good names ---- */

static struct {
  char const *name, *parts;
} const good[] = {
    {"host:", "host"},
    {"pool+host:", "pool host"},
    {"stats+pool+limit+host:?limit=1", "stats pool limit(limit=1) host"},
    {"file:", "file"},
    {"file:scratch.bin?mode=w+", "file:scratch.bin(mode=3)"},
    {"mmap:/a/b c+d:e.bin?mode=r", "mmap:/a/b c+d:e.bin(mode=0)"},
    {"file:a%3Fb%26c%25d%2fe?mode=a%2B", "file:a?b&c%d/e(mode=5)"},
    {"file:%FF%01", "file:\xFF\x01"},
    {"cuda:", "cuda"},
    {"cuda:0", "cuda:0"},
    {"cuda:2147483647", "cuda:2147483647"},
    {"cuda-host:?flags=write-combined", "cuda-host(flags=1)"},
    {"cuda-managed:1?flags=prefetch,read-mostly", "cuda-managed:1(flags=10)"},
    {"cuda-managed:0?oversubscribe=yes", "cuda-managed:0(oversubscribe=1)"},
    {"cuda-async:0?stream=new", "cuda-async:0(stream=0)"},
    {"cuda-async:0?stream=legacy&keep=0", "cuda-async:0(stream=1 keep=0)"},
    {"pool+cuda:0?max=8G", "pool(max=8589934592) cuda:0"},
    {"pool+cuda-async:0?pool.max=8G&cuda-async.max=9K",
     "pool(max=8589934592) cuda-async:0(max=9216)"},
    {"pool+host:?initial=1T&growth=2M&max=0", "pool(initial=1099511627776 growth=2097152 max=0) "
                                              "host"},
    {"pool+host:?max=16777215T", "pool(max=18446742974197923840) host"},
    {"pool+host:?max=18446744073709551615", "pool(max=18446744073709551615) host"},
    {"pool+host:?max=%31K", "pool(max=1024) host"},
    {"limit+limit+host:?limit.2.limit=1K&limit.1.limit=2K",
     "limit(limit=2048) limit(limit=1024) host"},
    {"fault+host:?share=0.25&nth=3&times=18446744073709551615",
     "fault(nth=3 times=18446744073709551615 share=0.250000) host"},
    {"fault+host:?share=1&calls=all,copy-to&status=IOError",
     "fault(calls=16448 status=2 share=1.000000) host"},
    {"fault+host:?share=0.000", "fault(share=0.000000) host"},
    {"stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+"
     "host:",
     "stats stats stats stats stats stats stats stats stats stats stats stats stats stats stats "
     "host"},
};

TEST_CASE(good_names_have_their_parts) {
  char parts[512];
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    if (!umemName_parse(&name, good[i].name))
      fail_msg("%s: %s", good[i].name, umem_thread_message());
    describe(parts, sizeof parts);
    assert_string_equal(parts, good[i].parts);
  }
}

/* ---- bad names ---- */

/* More kinds follow, in the order of their list. */
#define SCHEMES "there are host, "

static struct {
  char const *name, *message; /* one that ends in "..." goes on */
} const bad[] = {
    {NULL, "the name is NULL"},
    {"", "\"\" has no \":\", which ends the schemes, as in \"host:\" and \"pool+cuda:0\""},
    {"pool+host", "\"pool+host\" has no \":\", which ends the schemes, as in \"host:\" and "
                  "\"pool+cuda:0\""},
    {":", "a scheme is empty: right would be one before each \"+\" and before \":\", as in "
          "\"pool+host:\""},
    {"+host:", "a scheme is empty: right would be one before each \"+\" and before \":\", as in "
               "\"pool+host:\""},
    {"pool+:", "a scheme is empty: ..."},
    {"pool++host:", "a scheme is empty: ..."},
    {"pool+hosst:", "\"hosst\" is no scheme; " SCHEMES "..."},
    {"Host:", "\"Host\" is no scheme; " SCHEMES "..."},
    {"pool +host:", "\"pool \" is no scheme; " SCHEMES "..."},
    {"host?max=1:", "\"host?max=1\" is no scheme; " SCHEMES "..."},
    {"po%6fl+host:", "\"po%6fl\" is no scheme; " SCHEMES "..."},
    {"retry+host:", "\"retry\" is no scheme, only umemRetry_ctor makes it; " SCHEMES "..."},
    {"binning+host:", "\"binning\" is no scheme, only umemBinning_ctor makes it; " SCHEMES "..."},
    {"pool:", "\"pool\" goes over another context: right would be \"pool+host:\""},
    {"host+pool:", "\"host\" goes over no other context: only the last scheme before \":\" can be "
                   "it..."},
    {"host+host:", "\"host\" goes over no other context: only the last scheme before \":\" can be "
                   "it"},
    {"stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+stats+"
     "stats+host:",
     "there are more than 16 layers"},
    {"host:x", "\"host:\" takes nothing after \":\", but there is \"x\""},
    {"cuda-host:0", "\"cuda-host:\" takes nothing after \":\", but there is \"0\""},
    {"cuda:a", "the device of \"cuda:\" is \"a\": right would be the number of a device, from 0"},
    {"cuda:-1", "the device of \"cuda:\" is \"-1\": right would be the number of a device, from 0"},
    {"cuda:+1", "the device of \"cuda:\" is \"+1\": right would be the number of a device, from 0"},
    {"cuda:0x1", "the device of \"cuda:\" is \"0x1\": right would be ..."},
    {"cuda:1K", "the device of \"cuda:\" is \"1K\": right would be ..."},
    {"cuda:2147483648", "the device of \"cuda:\" is \"2147483648\": right would be ..."},
    {"file:a%", "the path of \"file:\" has \"%\": after \"%\" stand two hexadecimal digits, not "
                "both 0; the character itself is \"%25\""},
    {"file:%4", "the path of \"file:\" has \"%4\": after \"%\" stand two ..."},
    {"file:%4gh", "the path of \"file:\" has \"%4g\": after \"%\" stand two ..."},
    {"file:%00", "the path of \"file:\" has \"%00\": after \"%\" stand two ..."},
    {"host:?", "an option is empty: right would be KEY=VALUE after \"?\" and each \"&\""},
    {"pool+host:?max=1&", "an option is empty: right would be KEY=VALUE after \"?\" and each "
                          "\"&\""},
    {"pool+host:?&max=1", "an option is empty: ..."},
    {"cuda:?max=1", "there is no option \"max\": these layers have none"},
    {"stats+cuda:?stats.max=1", "there is no option \"stats.max\": these layers have none"},
    {"pool+host:?maxx=1",
     "there is no option \"maxx\"; these layers have pool.initial, "
     "pool.growth, pool.max, pool.memory, pool.spare, host.nodes, host.policy, host.pages"},
    {"pool+host:?host.max=1", "there is no option \"host.max\"; these layers have pool.initial, "
                              "..."},
    {"pool+host:?limit.max=1", "there is no option \"limit.max\"; these layers have ..."},
    {"pool+host:?pool.2.max=1", "there is no option \"pool.2.max\"; these layers have ..."},
    {"pool+host:?pool.01.max=1", "there is no option \"pool.01.max\"; these layers have ..."},
    {"pool+host:?.max=1", "there is no option \".max\"; these layers have ..."},
    {"pool+host:?=1", "there is no option \"\"; these layers have ..."},
    {"pool+host:?%6dax=1", "there is no option \"%6dax\"; these layers have ..."},
    {"pool+cuda-async:0?max=8G",
     "the option \"max\" could be any of pool.max, cuda-async.max: name one"},
    {"limit+limit+host:?limit.limit=1",
     "the option \"limit.limit\" could be any of limit.1.limit, limit.2.limit: name one"},
    {"limit+limit+host:?limit.1.limit=1", "the option \"limit.2.limit\" is missing: right would be "
                                          "bytes: digits, then K, M, G or T (of 1024) or nothing, "
                                          "as in 8G; or 1% to 100%"},
    {"limit+host:", "the option \"limit.limit\" is missing: right would be bytes: digits, ..."},
    {"pool+host:?max", "the option \"max\" has no value: right would be \"=\" and bytes: digits, "
                       "then K, M, G or T (of 1024) or nothing, as in 8G; or 1% to 100%"},
    {"pool+host:?max=1&pool.max=1", "the option \"pool.max\" is given twice"},
    {"pool+host:?max=1&max=2", "the option \"max\" is given twice"},
    {"pool+host:?max=", "the option \"max\" is \"\": right would be bytes: ..."},
    {"pool+host:?max=8Q", "the option \"max\" is \"8Q\": right would be bytes: digits, then K, M, "
                          "G or T (of 1024) or nothing, as in 8G; or 1% to 100%"},
    {"pool+host:?max=8g", "the option \"max\" is \"8g\": ..."},
    {"pool+host:?max=8GB", "the option \"max\" is \"8GB\": ..."},
    {"pool+host:?max=G", "the option \"max\" is \"G\": ..."},
    {"pool+host:?max=1.5G", "the option \"max\" is \"1.5G\": ..."},
    {"pool+host:?max=-1", "the option \"max\" is \"-1\": ..."},
    {"pool+host:?max= 1", "the option \"max\" is \" 1\": ..."},
    {"pool+host:?max=16777216T",
     "the option \"max\" is \"16777216T\": that is more bytes than this "
     "machine can address"},
    {"pool+host:?max=18446744073709551616",
     "the option \"max\" is \"18446744073709551616\": that is more bytes than this machine can "
     "address"},
    {"pool+host:?max=18446744073709551616TT",
     "the option \"max\" is \"18446744073709551616TT\": right would be bytes: digits, ..."},
    {"pool+host:?max=1=2", "the option \"max\" is \"1=2\": ..."},
    {"file:x?mode=q", "the option \"mode\" is \"q\": right would be one of r, r+, w, w+, a, a+"},
    {"file:x?mode=", "the option \"mode\" is \"\": right would be one of r, r+, w, w+, a, a+"},
    {"file:x?mode=r w", "the option \"mode\" is \"r w\": right would be one of r, r+, w, w+, a, "
                        "a+"},
    {"file:x?mode=w%2", "the option \"mode\" has \"%2\": ..."},
    {"cuda-managed:0?flags=prefetch,,read-mostly",
     "the option \"flags\" is \"prefetch,,read-mostly\": right would be some of these, joined by "
     "\",\": prefer-device, read-mostly, accessed-by-device, prefetch"},
    {"cuda-managed:0?flags=prefetch read-mostly", "the option \"flags\" is ..."},
    {"fault+host:?share=1.1", "the option \"share\" is \"1.1\": right would be a number from 0 to "
                              "1, as in 0.25"},
    {"fault+host:?share=.5", "the option \"share\" is \".5\": right would be ..."},
    {"fault+host:?share=0.", "the option \"share\" is \"0.\": right would be ..."},
    {"fault+host:?share=1e-1", "the option \"share\" is \"1e-1\": right would be ..."},
    {"fault+host:?share=nan", "the option \"share\" is \"nan\": right would be ..."},
    {"fault+host:?nth=18446744073709551616",
     "the option \"nth\" is \"18446744073709551616\": right would be a whole number from 0 to "
     "18446744073709551615"},
    {"fault+host:?nth=1K", "the option \"nth\" is \"1K\": right would be a whole number ..."},
};

static void expect_message(char const *of, char const *expected) {
  char const *message = umem_thread_message();
  size_t length = strlen(expected);
  bool open_end = length > 3 && !strcmp(expected + length - 3, "...");
  assert_int_equal(umem_thread_status(), umemValueError);
  if (open_end ? strncmp(message, expected, length - 3) : strcmp(message, expected))
    fail_msg("%s:\n     got %s\nexpected %s", of ? of : "NULL", message, expected);
}

TEST_CASE(bad_names_are_told_what_is_wrong) {
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    umem_thread_clear();
    uint64_t failures = umem_thread_failures();
    if (umemName_parse(&name, bad[i].name)) fail_msg("%s: passed", bad[i].name);
    assert_int_equal(umem_thread_failures(), failures + 1);
    expect_message(bad[i].name, bad[i].message);
  }
}

TEST_CASE(long_names) {
  static char text[UMEM_NAME_SIZE + 1];
  memset(text, 'x', UMEM_NAME_SIZE - 1);
  memcpy(text, "file:", 5);
  assert_true(umemName_parse(&name, text));
  assert_int_equal(strlen(name.layers[0].place.text), UMEM_NAME_SIZE - 6);
  text[UMEM_NAME_SIZE - 1] = 'x';
  assert_false(umemName_parse(&name, text));
  expect_message("long", "the name is longer than 8191 bytes");
  text[UMEM_NAME_SIZE - 1] = 0;
  for (size_t colon = 0; colon < 300; colon++) { /* whatever is shown of it is cut */
    memset(text, 'x', 400);
    text[colon] = ':';
    text[colon + 7] = '?';
    text[colon + 290] = '=';
    assert_false(umemName_parse(&name, text));
  }
}

/* ---- names at random ---- */

/* Whatever is done to good names: an answer, one failure at most, and only values that are
 * right. */
TEST_CASE(mutated_names) {
  size_t const rounds = setting_small() ? 20000 : 200000;
  size_t passed = 0;
  uint64_t random = 20261121;
  for (size_t i = 0; i < rounds; i++) {
    char text[600];
    snprintf(text, sizeof text, "%s", good[below(&random, sizeof good / sizeof *good)].name);
    for (size_t k = below(&random, 4); k; k--) mutate(&random, text, sizeof text);
    passed += check(text);
  }
  assert_in_range(passed, rounds / 4, rounds - rounds / 4); /* both kinds came up */
}
