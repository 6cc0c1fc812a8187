/* call.h - calls of umem from Python: the GIL, and failures as exceptions. */
#ifndef UMEM_PYTHON_CALL_H
#define UMEM_PYTHON_CALL_H

#include <atomic>
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <string>
#include <unistd.h>
#include <umem.h>

namespace nb = nanobind;

/* What questions return. */
using Dict = nb::typed<nb::dict, nb::str, nb::any>;
using DictList = nb::typed<nb::list, Dict>;

/* Raises the failure that this thread has recorded last, or the exception of a callback that ended
 * the call. */
[[noreturn]] void raise_failure();

/* Raises a failure of the binding itself, as the exception that stands for type. */
[[noreturn]] void raise(umemStatusType type, char const *format, ...) UMEM_PRINTF(2, 3);

/* Sets the exception that stands for type. Needs the GIL. */
void set_exception(umemStatusType type, char const *message);

/* Keeps the exception that a callback has raised until the call that ran it returns. Needs the GIL,
 * and an exception that is set. An exception that is kept already stays. */
void keep_exception() noexcept;

/* Whether a callback of this thread has raised. */
bool has_exception() noexcept;

/* In its life, calls of this thread that wait for a server end once `ended` is true: this thread
 * works for a call of another one, which has failed. */
class EndsWith {
  std::atomic<bool> const *before_;

public:
  explicit EndsWith(std::atomic<bool> const &ended) noexcept;
  ~EndsWith();
  EndsWith(EndsWith const &) = delete;
  EndsWith &operator=(EndsWith const &) = delete;
};

/* The lock of the module's own tables: which arrays a place has, what an array and a place stand
 * for, locks of arrays, callbacks. In builds with the GIL this does nothing, as the GIL is the
 * lock. Nothing that runs Python, or waits, is called under it. */
extern nb::ft_mutex tables;
using TablesLock = nb::ft_lock_guard;

/* Runs what waits for the GIL: Python, or a call for the GIL itself. While the interpreter ends,
 * Python before 3.14 ends other threads there, which no frame of C++ survives; later versions let
 * them wait for the end of the process. So does this. */
template <class F> decltype(auto) in_python(F &&run) {
  try {
    return run();
  } catch (abi::__forced_unwind &) {
    for (;;) pause();
  }
}

/* What a function of Python returns. */
template <class... Arguments> nb::object call_python(nb::handle function, Arguments &&...given) {
  return in_python([&] { return function(std::forward<Arguments>(given)...); });
}

/* Gives the GIL up, if needed. */
class Unlock {
  PyThreadState *state_;

public:
  explicit Unlock(bool needed = true) : state_(needed ? PyEval_SaveThread() : nullptr) {}
  ~Unlock() {
    if (state_) in_python([this] { PyEval_RestoreThread(state_); });
  }
  Unlock(Unlock const &) = delete;
  Unlock &operator=(Unlock const &) = delete;
};

/* Takes the GIL in any thread, also one that has it. */
class Gil {
  PyGILState_STATE state_ = PyGILState_UNLOCKED;

public:
  Gil() {
    in_python([this] { state_ = PyGILState_Ensure(); });
  }
  ~Gil() { PyGILState_Release(state_); }
  Gil(Gil const &) = delete;
  Gil &operator=(Gil const &) = delete;
};

/* The failures of the calls of umem in its life: end() raises if there was one. */
class Call {
  uint64_t before_ = umem_thread_failures();

public:
  bool failed() const { return umem_thread_failures() != before_ || has_exception(); }
  void end() const {
    if (failed()) raise_failure();
  }
};

/* Runs what may block without the GIL, and raises its failure. */
template <class F> auto unlocked(F &&function) {
  Call call;
  if constexpr (std::is_void_v<decltype(function())>) {
    {
      Unlock unlock;
      function();
    }
    call.end();
  } else {
    auto result = [&] {
      Unlock unlock;
      return function();
    }();
    call.end();
    return result;
  }
}

/* Reports a failure where no exception can be raised: sys.unraisablehook gets it. Needs the GIL. */
void report_failure(char const *where) noexcept;

/* What a message calls an object of the wrong kind: its class, or the class that it is. */
std::string type_text(nb::handle object);

/* A Python object as int64_t, as operator.index does. what names it in the exception; beyond: that
 * of a number that does not fit; other: that of an object that is no integer. */
int64_t to_index(nb::handle object, char const *what, umemStatusType beyond = umemValueError,
                 umemStatusType other = umemTypeError);

#endif
