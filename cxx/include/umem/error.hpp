/* umem/error.hpp - failures as exceptions.
 *
 * Every exception of umem is an umem::error, and also the standard exception with the same
 * meaning: programs catch either.
 *
 *     umem::memory_error         std::bad_alloc
 *     umem::index_error          std::out_of_range
 *     umem::value_error          std::invalid_argument
 *     umem::type_error           std::invalid_argument
 *     umem::io_error             std::runtime_error, as all that follow
 *     umem::runtime_error        umem::not_implemented_error, umem::not_supported_error
 *     umem::cancelled_error      umem::assert_error
 *
 * catch (std::exception const &) catches all of them, and so does catch (umem::error const &). */
#ifndef UMEM_ERROR_HPP
#define UMEM_ERROR_HPP

#include <cstdarg>

#if !defined(__cpp_exceptions) && !defined(__EXCEPTIONS)
#error "umem.hpp reports failures by exceptions: compile without -fno-exceptions, or use umem.h"
#endif

#include <umem/config.hpp>
#include <umem/status.h>

#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

/* Marks classes that are thrown through shared libraries, and functions that throw them. */
#define UMEM_EXCEPTION __attribute__((visibility("default")))

namespace umem {

/* The base of all exceptions of umem. It is no std::exception itself: each exception is exactly
 * one by its other base. Visible, so that a handler in one shared library catches exceptions of
 * another one, also with -fvisibility=hidden. */
class UMEM_EXCEPTION error {
public:
  error(error const &) noexcept = default;
  error &operator=(error const &) noexcept = default;
  virtual ~error() = default;

  /* The kind of failure, as the C functions return it. */
  umemStatusType status() const noexcept { return status_; }

  /* The function, its arguments and the cause. Valid as long as the exception. */
  char const *message() const noexcept { return text_; }
  char const *what() const noexcept { return text_; }

protected:
  error(umemStatusType status, char const *message) noexcept : status_(status) {
    std::size_t length = std::strlen(message);
    if (length >= sizeof text_) length = sizeof text_ - 1;
    std::memcpy(text_, message, length);
    text_[length] = 0;
  }

private:
  umemStatusType status_;
  char text_[UMEM_MESSAGE_SIZE]; /* not on the heap, which may be exhausted */
};

namespace detail {

/* An error that is also a Standard exception. Most standard libraries allocate nothing for its
 * empty text; if one does and fails, std::bad_alloc is thrown instead. */
template <class Standard> class UMEM_EXCEPTION standard_error : public error, public Standard {
public:
  char const *what() const noexcept override { return message(); }

protected:
  standard_error(umemStatusType status, char const *message)
      : error(status, message), Standard("") {}
};

/* Making one of these never fails. */
template <>
class UMEM_EXCEPTION standard_error<std::bad_alloc> : public error, public std::bad_alloc {
public:
  char const *what() const noexcept override { return message(); }

protected:
  standard_error(umemStatusType status, char const *message) noexcept : error(status, message) {}
};

} // namespace detail

/* name: the class; status: its umemStatusType; standard: its other base. */
#define UMEM_DEFINE_ERROR(name, type, standard)                                                    \
  class UMEM_EXCEPTION name : public detail::standard_error<standard> {                            \
  public:                                                                                          \
    explicit name(char const *message) : detail::standard_error<standard>(type, message) {}        \
    explicit name(std::string const &message) : name(message.c_str()) {}                           \
  }

UMEM_DEFINE_ERROR(memory_error, umemMemoryError, std::bad_alloc);
UMEM_DEFINE_ERROR(index_error, umemIndexError, std::out_of_range);
UMEM_DEFINE_ERROR(value_error, umemValueError, std::invalid_argument);
UMEM_DEFINE_ERROR(type_error, umemTypeError, std::invalid_argument);
UMEM_DEFINE_ERROR(io_error, umemIOError, std::runtime_error);
UMEM_DEFINE_ERROR(runtime_error, umemRuntimeError, std::runtime_error);
UMEM_DEFINE_ERROR(not_implemented_error, umemNotImplementedError, std::runtime_error);
UMEM_DEFINE_ERROR(not_supported_error, umemNotSupportedError, std::runtime_error);
UMEM_DEFINE_ERROR(cancelled_error, umemCancelledError, std::runtime_error);
UMEM_DEFINE_ERROR(assert_error, umemAssertError, std::runtime_error);

#undef UMEM_DEFINE_ERROR

/* A lock, or a guard that contradicts this access, keeps the array. */
class UMEM_EXCEPTION locked_error : public runtime_error {
public:
  using runtime_error::runtime_error;
};

/* The array is empty: it was moved from, or default-constructed. */
class UMEM_EXCEPTION moved_from_error : public value_error {
public:
  using value_error::value_error;
};

/* Throws the exception of status, which is not umemOK. */
[[noreturn]] void raise(umemStatusType status, char const *message);

namespace detail {

/* text with "\x1b" and the like for its control characters, which names of files may have. */
std::string escaped(char const *text);

/* Throws the exception of status with a text as of printf, escaped. A call compiles to few
 * instructions, which is why messages are not put together from std::string: the compiler would
 * spend more time on them than on the function. */
[[noreturn, gnu::format(printf, 2, 3)]] void raise_text(umemStatusType status, char const *format,
                                                        ...);

/* ---- exceptions of functions of the program that C code has called ----
 *
 * They cannot pass through C. The thread keeps one for the C++ call that fails because of it. */

struct Thrown {
  std::exception_ptr exception;
  std::uint64_t failures = 0; /* umem_thread_failures() when the function was called */
};

/* Whether the thread keeps one: a plain flag, since each allocation reads it. */
UMEM_EXCEPTION inline thread_local bool has_thrown = false;

UMEM_EXCEPTION inline Thrown &thrown() {
  static thread_local Thrown thrown;
  return thrown;
}

/* Call it while the exception is being handled. */
void keep_thrown(std::uint64_t failures) noexcept;

std::exception_ptr take_thrown() noexcept;

/* After a call that has succeeded: the caller of the function has found memory elsewhere. */
inline void forget_thrown() noexcept {
  if (has_thrown) take_thrown();
}

/* Throws it again if it has caused the last failure of the thread, which has status: that is the
 * first failure recorded after it. Drops an exception that an earlier call of C has left. */
void rethrow_thrown(umemStatusType status);

/* Throws the last failure of this thread, which a call that returned status has recorded. Clears
 * the status of the thread; that of the context stays. If a function of the program has thrown,
 * throws that exception instead. */
[[noreturn]] void raise_recorded(umemStatusType status);

/* Throws unless the call that returned status succeeded. */
inline void check_status(umemStatusType status) {
  if (status != umemOK) raise_recorded(status);
}

/* Throws if this thread has recorded a failure since before, an earlier umem_thread_failures():
 * for calls that return no status. */
inline void check_since(std::uint64_t before) {
  if (umem_thread_failures() != before) raise_recorded(umem_thread_status());
}

/* What a function of C returns that returns no status; throws if it has recorded a failure. */
template <class Result, class... Parameters, class... Args>
Result checked_call(Result (*function)(Parameters...), Args... args) {
  std::uint64_t const before = umem_thread_failures();
  Result const result = function(args...);
  check_since(before);
  return result;
}

/* value, as a function of C has filled it, whose last parameter it is; throws if that fails. */
template <class Value, class... Parameters, class... Args>
Value filled(Value value, umemStatusType (*function)(Parameters...), Args... args) {
  check_status(function(args..., &value));
  return value;
}

/* What a function of C returns that writes its status to its last parameter; throws if it fails. */
template <class Result, class... Parameters, class... Args>
Result status_call(Result (*function)(Parameters...), Args... args) {
  umemStatusType status = umemOK;
  if constexpr (std::is_void_v<Result>) {
    function(args..., &status);
    check_status(status);
  } else {
    Result const result = function(args..., &status);
    check_status(status);
    return result;
  }
}

} // namespace detail

} // namespace umem

#endif

#if !defined(UMEM_ERROR_FUNCTIONS) && (!defined(UMEM_COMPILED) || defined(UMEM_COMPILES))
#define UMEM_ERROR_FUNCTIONS

namespace umem {

UMEM_INLINE void raise(umemStatusType status, char const *message) {
  switch (status) {
  case umemMemoryError:
    throw memory_error(message);
  case umemIndexError:
    throw index_error(message);
  case umemValueError:
    throw value_error(message);
  case umemTypeError:
    throw type_error(message);
  case umemIOError:
    throw io_error(message);
  case umemNotImplementedError:
    throw not_implemented_error(message);
  case umemNotSupportedError:
    throw not_supported_error(message);
  case umemCancelledError:
    throw cancelled_error(message);
  case umemAssertError:
  case umemOK: /* a call must not reach this without a failure */
    throw assert_error(message);
  case umemRuntimeError:
  default:
    throw runtime_error(message);
  }
}

namespace detail {

UMEM_INLINE std::string escaped(char const *text) {
  std::string shown;
  bool is_second = false; /* of a control of UTF-8 in two bytes */
  for (; *text; text++) {
    auto const c = static_cast<unsigned char>(*text);
    bool const begins = c == 0xc2 && (static_cast<unsigned char>(text[1]) & 0xe0) == 0x80;
    char code[5];
    std::snprintf(code, sizeof code, "\\x%02x", c);
    shown +=
        c < 0x20 || c == 0x7f || begins || is_second ? std::string(code) : std::string(1, *text);
    is_second = begins;
  }
  return shown;
}

UMEM_INLINE void raise_text(umemStatusType status, char const *format, ...) {
  char text[UMEM_MESSAGE_SIZE];
  std::va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  umem::raise(status, escaped(text).c_str());
}

UMEM_INLINE void keep_thrown(std::uint64_t failures) noexcept {
  thrown() = {std::current_exception(), failures};
  has_thrown = true;
}

UMEM_INLINE std::exception_ptr take_thrown() noexcept {
  has_thrown = false;
  return std::exchange(thrown().exception, nullptr);
}

UMEM_INLINE void rethrow_thrown(umemStatusType status) {
  if (!has_thrown) return;
  bool consequence = status == umemMemoryError && umem_thread_failures() == thrown().failures + 1;
  std::exception_ptr exception = take_thrown();
  if (!consequence) return;
  umem_thread_clear();
  std::rethrow_exception(exception);
}

UMEM_INLINE void raise_recorded(umemStatusType status) {
  rethrow_thrown(status);
  char text[UMEM_MESSAGE_SIZE];
  std::strncpy(text, umem_thread_message(), sizeof text - 1);
  text[sizeof text - 1] = 0;
  umem_thread_clear();
  umem::raise(status, text);
}

} // namespace detail
} // namespace umem

#endif
