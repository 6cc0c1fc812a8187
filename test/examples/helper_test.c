/* helper_test.c - the files of examples/helper.c and of the places that need one, and their
 * lack. */

#include "helper.h"
#include "places.h"
#include "temporary.h"
#include "cases.h"

static char folder[PATH_SIZE]; /* with a '/' at its end */

static void make_folder(void **state UNUSED) {
  assert_true(temporary_folder(folder, sizeof folder - 1));
  strcat(folder, "/");
}

/* Fails when a test has left something. */
static void remove_folder(void **state UNUSED) { assert_int_equal(rmdir(folder), 0); }

static bool exists(char const *name) { return !access(name, F_OK); }

TEST_CASE(test_names_differ) {
  char const *one = helper_create(folder);
  char const *other = helper_create(folder);
  assert_non_null(one);
  assert_non_null(other);
  assert_string_not_equal(one, other);
  assert_memory_equal(one, folder, strlen(folder));
  assert_true(exists(one) && exists(other));
  helper_remove(one);
  assert_true(!exists(one) && exists(other));
  helper_remove(other);
  assert_false(exists(other));
}

TEST_CASE(test_room_is_used_again) {
  for (int i = 0; i < 100; ++i) {
    char const *name = helper_create(folder);
    assert_non_null(name);
    helper_remove(name);
  }
}

TEST_CASE(test_renamed_files_stay) {
  char final_name[PATH_SIZE + 8];
  snprintf(final_name, sizeof final_name, "%sfinal", folder);
  char const *name = helper_create(folder);
  assert_false(helper_rename(name, "/nowhere/final"));
  assert_int_equal(errno, ENOENT);
  assert_true(exists(name));
  assert_true(helper_rename(name, final_name));
  assert_false(exists(name));
  assert_int_equal(unlink(final_name), 0);
}

TEST_CASE(test_failures) {
  static char long_prefix[PATH_SIZE];
  memset(long_prefix, 'x', sizeof long_prefix - 1);
  assert_null(helper_create("/nowhere/"));
  assert_int_equal(errno, ENOENT);
  assert_null(helper_create(long_prefix));
  assert_int_equal(errno, ENAMETOOLONG);

  char const *names[100];
  size_t count = 0;
  while (count < 100 && (names[count] = helper_create(folder))) ++count;
  assert_int_equal(errno, EMFILE);
  assert_in_range(count, 2, 99);
  while (count) helper_remove(names[--count]);
}

/* Where its file cannot be, a place says so; others do not mind. */
TEST_CASE(test_places_without_a_folder) {
  size_t failed = 0;
  for (size_t i = 0; i < place_count; ++i) {
    Storage storage;
    umemStatusType status = places[i].open(&storage, "/nowhere/");
    if (!strcmp(places[i].name, "named file") || !strcmp(places[i].name, "mapped file")) {
      ++failed;
      assert_int_equal(status, umemIOError);
      assert_string_equal(umem_get_message(&storage), "cannot create a file in \"/nowhere/\": No "
                                                      "such file or directory");
    } else {
      assert_true(status == umemOK || places[i].optional);
    }
    umem_dtor(&storage);
  }
  assert_int_equal(failed, 2);
}

/* The files have lost their names when the constructors return. */
TEST_CASE(test_places_leave_no_names) {
  for (size_t i = 0; i < place_count; ++i) {
    Storage storage;
    places[i].open(&storage, folder);
    assert_int_equal(rmdir(folder), 0); /* only an empty folder can be removed */
    assert_int_equal(mkdir(folder, 0700), 0);
    umem_dtor(&storage);
  }
}

int main(void) { return run_cases(make_folder, remove_folder); }
