/* umem/array_error.hpp - the exceptions that only arrays throw. */
#ifndef UMEM_ARRAY_ERROR_HPP
#define UMEM_ARRAY_ERROR_HPP

#include <umem/error.hpp>

#include <string>

namespace umem {

/* A lock, or a guard that contradicts this access, keeps the array. */
class UMEM_EXCEPTION locked_error : public runtime_error {
public:
  explicit locked_error(char const *message) : runtime_error(message) {}
  explicit locked_error(std::string const &message) : runtime_error(message) {}
};

/* The array is empty: it was moved from, or default-constructed. */
class UMEM_EXCEPTION moved_from_error : public value_error {
public:
  explicit moved_from_error(char const *message) : value_error(message) {}
  explicit moved_from_error(std::string const &message) : value_error(message) {}
};

} // namespace umem

#endif
