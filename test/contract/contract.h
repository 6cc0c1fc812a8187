/* contract.h - what the tests of the contract share.
 *
 * A test takes the contexts of one row of backends.h, of two, or none, and is run on all rows, on
 * all ordered pairs, or once. Contexts are opened freshly for each run and closed after it. At the
 * end of each run the contexts and the thread must be without a failure (those that a test provokes
 * it takes away with expect_failure), and where a context counts its blocks none may be left. */
#pragma once

#include "backends.h"
#include "cases.h"
#include "settings.h"

/* ---- declaring tests ---- */

typedef struct Place {
  umemVirtual *ctx;
  Backend const *row;
} Place;

typedef struct ContractTest {
  char const *name;
  /* one of the three */
  void (*single)(Place const *place, umemVirtual *ctx);
  void (*pair)(Place const *src, Place const *dst);
  void (*once)(void);
  /* rows without these are left out */
  unsigned capabilities, traits;
} ContractTest;

/* Whether the context can be written after a flush. */
static inline bool lasts(Place const *place) { return !(place->row->traits & backendMade); }

/* A test of one context: SINGLE(name) { ... } has place, and ctx, which is place->ctx. With _IF, of
 * those that have the capability; with _WITH, of those whose row has the trait. */
#define SINGLE(function) SINGLE_FOR(function, 0, 0)
#define SINGLE_IF(function, capability) SINGLE_FOR(function, capability, 0)
#define SINGLE_WITH(function, trait) SINGLE_FOR(function, 0, trait)
#define SINGLE_FOR(function, capability, trait)                                                    \
  CONTRACT_TEST(function, single, (Place const *place UNUSED, umemVirtual *ctx UNUSED),            \
                capability, trait)

/* Of two, named src and dst. */
#define PAIR(function) PAIR_FOR(function, 0, 0)
#define PAIR_IF(function, capability) PAIR_FOR(function, capability, 0)
#define PAIR_WITH(function, trait) PAIR_FOR(function, 0, trait)
#define PAIR_FOR(function, capability, trait)                                                      \
  CONTRACT_TEST(function, pair, (Place const *src, Place const *dst), capability, trait)

/* Of none. */
#define ONCE(function) CONTRACT_TEST(function, once, (void), 0, 0)

#define CONTRACT_TEST(function, kind, parameters, capability, trait)                               \
  static void function parameters;                                                                 \
  __attribute__((constructor)) static void add_##function(void) {                                  \
    contract_add((ContractTest){                                                                   \
        .name = #function, .kind = function, .capabilities = capability, .traits = trait});        \
  }                                                                                                \
  static void function parameters

/* The tests of the file that includes this, in its order. */
enum { contractMost = 40 };
static ContractTest contract_tests[contractMost];
static size_t contract_count;

static inline void contract_add(ContractTest test) {
  if (contract_count == contractMost) abort();
  contract_tests[contract_count++] = test;
}

typedef struct ContractSuite {
  char const *name;
  ContractTest const *tests;
  size_t const *count;
} ContractSuite;

/* Stands once in a file of tests: SUITE(copy) makes copy_suite of them. */
#define SUITE(suite) ContractSuite const suite##_suite = {#suite, contract_tests, &contract_count};

extern ContractSuite const life_suite, refusal_suite, memory_suite, aligned_suite, realloc_suite,
    set_suite, copy_suite, safe_suite, strided_suite, connect_suite, sync_suite, status_suite,
    order_suite, threads_suite, large_suite, access_suite, virtual_suite, progress_suite,
    many_suite, route_suite, pages_suite, find_suite, transfer_suite;

/* ---- sizes ---- */

/* Whether a case is to be short: UMEM_TEST_SMALL is set, because the environment is slow (a
 * sanitizer, valgrind), or the case is one of the many pairs that only repeat what others do in
 * full length. */
bool test_is_small(void);
void test_make_small(bool small);

/* What stands for 4 MiB; 64 KiB where the environment is slow. */
size_t test_large_size(void);

/* 0 ends: 1, odd ones, pages +- 1, test_large_size() +- 1. */
size_t const *test_sizes(void);

/* ---- bytes ---- */

/* Prepare and release what the helpers need. False without memory. */
bool support_open(void);
void support_close(void);

/* Bytes that look random, differ from seed to seed, and have no period; at most
 * 4 * test_large_size() of them. */
void fill_bytes(void *bytes, size_t nbytes, uint64_t seed);

/* n freshly allocated bytes of seed; the caller frees them. */
unsigned char *new_bytes(size_t n, uint64_t seed);

/* A plain host for everybody, constructed before the first test. */
extern umemHost test_host;

/* Moves bytes between the test and a context, and waits until they are there. */
void put(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t nbytes);
void get(umemVirtual *ctx, uintptr_t adr, void *bytes, size_t nbytes);

/* Whether, and that, the nbytes at adr are those at bytes. */
bool holds(umemVirtual *ctx, uintptr_t adr, void const *bytes, size_t nbytes);
#define assert_holds(ctx, adr, bytes, nbytes) assert_true(holds((ctx), (adr), (bytes), (nbytes)))

/* Whether, and that, they are those of seed. */
bool is_filled(umemVirtual *ctx, uintptr_t adr, size_t nbytes, uint64_t seed);
#define assert_filled(ctx, adr, nbytes, seed) assert_true(is_filled((ctx), (adr), (nbytes), (seed)))

/* ---- blocks ---- */

/* A block that must come to be. */
uintptr_t new_block(umemVirtual *ctx, size_t nbytes);
/* A block that holds the bytes of seed. */
uintptr_t new_filled_block(umemVirtual *ctx, size_t nbytes, uint64_t seed);
/* Such blocks that are freed when the test has come to its end. */
uintptr_t own_block(umemVirtual *ctx, size_t nbytes);
uintptr_t own_filled_block(umemVirtual *ctx, size_t nbytes, uint64_t seed);
void free_own_blocks(void);
void forget_own_blocks(void);

/* Waits for both. */
void settle(umemVirtual *src, umemVirtual *dst);

/* What the row counts, or zeros. */
BackendRecords records_of(Place const *place);

/* ---- failures ---- */

/* That the last call recorded a failure of type on ctx (NULL: on none) and the thread; clears
 * both. */
void expect_failure(umemVirtual *ctx, umemStatusType type);

/* Likewise for a call that has returned status, or adr. */
void expect_status(umemVirtual *ctx, umemStatusType status, umemStatusType type);
void expect_no_block(umemVirtual *ctx, uintptr_t adr, umemStatusType type);

/* As expect_failure, when the type is one that the contract leaves open. Returns it. */
umemStatusType expect_some_failure(umemVirtual *ctx);

/* That a call has returned a block of ctx; otherwise prints what umem says. */
#define assert_block(ctx, adr) assert_message((adr) != umem_null(ctx))
