/* layer.c - umem_find_layer, and the table of kinds that it looks into. */
#include "open_help.h"
#include "open/open.h"

/* That no layer of this kind is found, for this reason. */
static void expect_missing(void *ctx, char const *kind, char const *message) {
  assert_null(umem_find_layer(ctx, kind));
  assert_int_equal(umem_thread_status(), umemValueError);
  assert_string_equal(umem_thread_message(), message);
  if (ctx) assert_int_equal(umem_get_status(ctx), umemValueError);
  if (ctx) umem_clear_status(ctx);
  umem_thread_clear();
}

/* ---- the table ---- */

TEST(each_kind_is_whole) {
  assert_true(umem_kind_count >= 19);
  for (size_t i = 0; i < umem_kind_count; i++) {
    umemKind const *kind = umem_kinds[i];
    assert_int_equal(kind->scheme.size, sizeof(umemScheme));
    assert_non_null(kind->scheme.vtbl);
    assert_non_null(kind->scheme.help);
    assert_true(kind->scheme.context_size >= sizeof(umemVirtual));
    assert_true(kind->options_size <= sizeof(umemKindOptions));
    assert_true(!kind->options_type || (kind->defaults && kind->options_size));
    assert_ptr_equal(umem_find_kind(kind->scheme.name), kind);
    for (size_t k = 0; k < i; k++)
      assert_ptr_not_equal(umem_kinds[k]->scheme.vtbl, kind->scheme.vtbl);
  }
}

/* Options of a kind go to a member that they fill. */
TEST(each_option_has_room) {
  for (size_t i = 0; i < umem_kind_count; i++)
    for (size_t k = 0; k < umem_kinds[i]->scheme.option_count; k++) {
      umemOption const *option = &umem_kinds[i]->scheme.options[k];
      size_t at = option->reserved[0], width = option->reserved[1];
      assert_true(!width || width == 4 || width == 8);
      assert_true(at + width <= umem_kinds[i]->options_size);
      bool wide = option->kind == umemTextOption || option->kind == umemPathOption ||
                  option->kind == umemShareOption;
      assert_true(!width || !wide || width == 8);
    }
}

/* ---- finding ---- */

TEST(the_outermost_is_found) {
  umemVirtual *ctx = umem_open("stats+limit+pool+stats+host:?limit=1M");
  umemVirtual *limit = umem_get_upstream(ctx), *pool = umem_get_upstream(limit);
  umemVirtual *inner = umem_get_upstream(pool), *host = umem_get_upstream(inner);
  assert_ptr_equal(umem_find_layer(ctx, "stats"), ctx);
  assert_ptr_equal(umem_find_layer(limit, "stats"), inner);
  assert_ptr_equal(umem_find_layer(ctx, "limit"), limit);
  assert_ptr_equal(umem_find_layer(ctx, "pool"), pool);
  assert_ptr_equal(umem_find_layer(ctx, "host"), host);
  assert_ptr_equal(umem_find_layer(host, "host"), host);
  assert_int_equal(umem_thread_status(), umemOK);
  expect_missing(inner, "pool", "umem_find_layer: there is no \"pool\" in this stack: Stats, Host");
  assert_ok(umem_close(ctx));
}

/* Each context of the library is found by its name, whoever has constructed it. */
TEST(each_scheme_is_found) {
  umemScheme const *scheme;
  CONTEXT(umemCudaManaged, managed, 0, 0);
  for (size_t i = 0; (scheme = umem_scheme(i)); i++) {
    union {
      max_align_t aligned;
      char bytes[1024];
      umemVirtual super;
    } any = {.bytes = {0}};
    /* Those of a URL need a server: unit/url/url.c. */
    if (scheme->place && scheme->place->kind == umemUrlOption) continue;
    umemOptionValue place = {.given = false}, given[UMEM_SCHEME_OPTIONS] = {{.given = false}};
    for (size_t k = 0; k < scheme->option_count; k++)
      if (scheme->options[k].required || !strcmp(scheme->options[k].name, "size"))
        given[k] = (umemOptionValue){.given = true, .text = scratch, .number = 1 << 20};
    assert_ok(
        scheme->construct(&any, scheme->decorates ? &managed : NULL, &place, given, scheme->user));
    assert_ptr_equal(umem_find_layer(&any, scheme->name), &any);
    umem_dtor(&any);
  }
}

RETRY_CALLBACK(give_up) { return false; }

TEST(those_that_no_name_makes_are_found) {
  CONTEXT(umemHost, host);
  CONTEXT(umemRetry, retry, &host, give_up, NULL);
  CONTEXT(umemPool, pool, &retry, NULL);
  CONTEXT(umemPoolOn, view, &pool, &host);
  CONTEXT(umemBinning, binning, &pool, NULL, 0);
  assert_ptr_equal(umem_find_layer(&binning, "binning"), &binning);
  assert_ptr_equal(umem_find_layer(&binning, "retry"), &retry);
  assert_ptr_equal(umem_find_layer(&view, "pool-on"), &view);
  expect_missing(&view, "pool", /* it stands on its queue */
                 "umem_find_layer: there is no \"pool\" in this stack: PoolOn, Host");
}

TEST(unknown_kinds_are_refused) {
  SCOPED(umem_dtor) umemHost host;
  char known[UMEM_MESSAGE_SIZE];
  umemNames names = {"", 0};
  umemNames_add_kinds(&names);
  assert_non_null(strstr(names.text, "host, file, "));
  assert_non_null(strstr(names.text, "retry"));
  assert_ok(umemHost_ctor(&host));
  char const *const wrong[] = {"", "stat", "Host", "host:", NULL};
  for (size_t i = 0; i < 5; i++) {
    snprintf(known, sizeof known, "umem_find_layer: \"%s\" is no kind of context; there are %s",
             wrong[i] ? wrong[i] : "NULL", names.text);
    expect_missing(&host, wrong[i], known);
  }
}

TEST(what_is_not_constructed_has_no_layers) {
  umemHost host;
  memset(&host, 0, sizeof host);
  expect_missing(NULL, "host", "umem_find_layer: the context is NULL");
  expect_missing(&host, "host",
                 "umem_find_layer: the context is not constructed: zeroed or destructed");
  assert_ok(umemHost_ctor(&host));
  CONTEXT(umemStats, stats, &host);
  umem_dtor(&host);
  assert_ptr_equal(umem_find_layer(&stats, "stats"), &stats); /* goes no further */
  expect_missing(&stats, "limit",
                 "umem_find_layer: the context is not constructed: zeroed or destructed");
}

/* ---- kinds of programs ---- */

CONSTRUCTOR(open_fake) { return fake_ctor(ctx); }

TEST(kinds_of_programs_are_found) {
  SCOPED(umem_dtor) Fake fake;
  assert_ok(fake_ctor(&fake));
  static umemScheme with = {SCHEME_OF("test-found", Fake, open_fake)},
                    without = {SCHEME_OF("test-hidden", Fake, open_fake)};
  without.size = offsetof(umemScheme, vtbl); /* of an older program */
  with.vtbl = without.vtbl = fake.super.vptr;
  assert_ok(umem_register_scheme(&with));
  assert_ok(umem_register_scheme(&without));
  umemVirtual *ctx = umem_open("stats+test-found:");
  assert_non_null(ctx);
  assert_ptr_equal(umem_find_layer(ctx, "test-found"), umem_get_upstream(ctx));
  assert_ptr_equal(umem_find_layer(&fake, "test-found"), &fake);
  expect_missing(ctx, "test-hidden",
                 "umem_find_layer: the scheme \"test-hidden\" names no method table by which to "
                 "find its contexts");
  assert_ok(umem_close(ctx));
}
