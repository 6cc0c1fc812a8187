/* error.cpp - failures become exceptions: the right one, catchable by each of its names. */
#include "places.h"

#include <umem/npy.hpp>

namespace {

struct Kind {
  umemStatusType status;
  void (*expect)(umemStatusType status, char const *message);
};

/* Throwing status must be catchable as Exception, as Standard, as umem::error and as
 * std::exception. */
template <class Exception, class Standard> void expect(umemStatusType status, char const *message) {
  static_assert(std::is_nothrow_copy_constructible_v<Exception>);
  static_assert(std::is_convertible_v<Exception *, umem::error *>);
  static_assert(std::is_convertible_v<Exception *, std::exception *>);
  try {
    umem::raise(status, message);
  } catch (Exception const &caught) {
    EXPECT_STREQ(caught.what(), message);
    EXPECT_EQ(caught.status(), status);
  }
  EXPECT_EQ(thrown_by<Standard>([&] { umem::raise(status, message); }), message);
  try {
    umem::raise(status, message);
  } catch (umem::error const &caught) {
    EXPECT_STREQ(caught.message(), message);
    EXPECT_STREQ(caught.what(), message);
    EXPECT_EQ(caught.status(), status);
  }
  try {
    umem::raise(status, message);
  } catch (std::exception const &caught) {
    EXPECT_STREQ(caught.what(), message);
    EXPECT_NE(dynamic_cast<umem::error const *>(&caught), nullptr);
  }
}

Kind const kinds[] = {
    {umemMemoryError, expect<umem::memory_error, std::bad_alloc>},
    {umemIndexError, expect<umem::index_error, std::out_of_range>},
    {umemValueError, expect<umem::value_error, std::invalid_argument>},
    {umemTypeError, expect<umem::type_error, std::invalid_argument>},
    {umemIOError, expect<umem::io_error, std::runtime_error>},
    {umemRuntimeError, expect<umem::runtime_error, std::runtime_error>},
    {umemNotImplementedError, expect<umem::not_implemented_error, std::runtime_error>},
    {umemNotSupportedError, expect<umem::not_supported_error, std::runtime_error>},
    {umemCancelledError, expect<umem::cancelled_error, std::runtime_error>},
    {umemAssertError, expect<umem::assert_error, std::runtime_error>},
};

TEST(Error, is_the_exception_of_its_status) {
  for (Kind const &kind : kinds) {
    SCOPED_TRACE(umem_get_status_name(kind.status));
    kind.expect(kind.status, "what has failed");
  }
}

/* Fails when a status is added to C without an exception of its own. */
TEST(Error, has_one_for_every_status) {
  int count = 0;
  while (std::strcmp(umem_get_status_name(static_cast<umemStatusType>(count)), "UnknownError"))
    count++;
  EXPECT_EQ(static_cast<std::size_t>(count), 1 + sizeof kinds / sizeof *kinds);
}

TEST(Error, shows_names_without_control_characters) {
  std::string const name = "no\x1b[2J\n\xc2\x9b\xc3\xa9";
  std::string const shown = "no\\x1b[2J\\x0a\\xc2\\x9b\xc3\xa9";
  EXPECT_EQ(thrown_by([&] { umem::detail::raise_text(umemIOError, "\"%s\"", name.c_str()); }),
            "\"" + shown + "\"");
  std::string const why =
      thrown_by<umem::io_error>([&] { umem::load_npy<double, 1>("/nonexistent/" + name); });
  expect_words(why, shown);
  EXPECT_EQ(why.find('\x1b'), std::string::npos);
}

TEST(Error, of_no_failure_is_a_contradiction_of_umem) {
  EXPECT_THROW(umem::raise(umemOK, "nothing"), umem::assert_error);
  EXPECT_THROW(umem::raise(static_cast<umemStatusType>(15), "unknown"), umem::runtime_error);
}

TEST(Error, is_made_of_any_message) {
  std::string text(2 * UMEM_MESSAGE_SIZE, 'x');
  umem::value_error error(text);
  EXPECT_EQ(error.what(), text.substr(0, UMEM_MESSAGE_SIZE - 1));
  EXPECT_EQ(umem::index_error("").what(), std::string());
}

TEST(Error, keeps_its_message_when_copied) {
  umem::io_error one("one"), two("two");
  two = one;
  EXPECT_STREQ(two.what(), "one");
  EXPECT_STREQ(umem::io_error(two).what(), "one");
}

TEST(Error, takes_the_place_of_the_record_of_the_thread) {
  EXPECT_EQ(thrown_by<umem::value_error>([] { umem::Host().allocate(8, 3); }),
            "umem_aligned_alloc: alignment 3 is not a power of two");
  EXPECT_EQ(umem_thread_status(), umemOK);
  EXPECT_STREQ(umem_thread_message(), "");
}

} // namespace
