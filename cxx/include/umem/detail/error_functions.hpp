/* umem/detail/error_functions.hpp - what error.hpp declares. */
#ifndef UMEM_DETAIL_ERROR_FUNCTIONS_HPP
#define UMEM_DETAIL_ERROR_FUNCTIONS_HPP

#include <umem/error.hpp>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>

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
  raise(status, escaped(text).c_str());
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
  raise(status, text);
}

} // namespace detail
} // namespace umem

#endif
