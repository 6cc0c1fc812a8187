/* array_reduce.cpp - reductions of all elements of an array of plain numbers, without the GIL.
 *
 * Threads of umem read pieces that fit into the cache of a processor, and reduce each by the loops
 * of the C++ headers. A piece has a fixed number of elements, and the results of pieces are joined
 * in their order: so the number of threads changes no bit of the result. */
#include "array.h"

#include <umem/detail/monoids.hpp>

#include <cfenv>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>

namespace {

using umem::index_t;
using umem::detail::host_reduce_block;
using umem::detail::host_reduce_row;
using umem::detail::InLine;

/* After this time Python looks for signals. */
constexpr std::chrono::milliseconds round_time{50};

/* ---- what a piece gives ---- */

/* Integers wrap as those of NumPy, or are added in double; so is float. */
template <class Type, class Result> struct Sum {
  using Part = Result;
  static Part of(Type const *x, index_t n, index_t) {
    umem::plus op;
    return host_reduce_row<Result>(op, 0, n, InLine<Result, Type>{x});
  }
  static nb::object joined(std::vector<Part> const &parts) {
    Result const sum = Sum<Result, Result>::of(parts.data(), static_cast<index_t>(parts.size()), 0);
    if constexpr (std::is_integral_v<Result> && std::is_signed_v<Type>)
      return nb::cast(static_cast<int64_t>(sum));
    else
      return nb::cast(sum + Result(0)); /* -0.0 is 0.0 */
  }
};

template <class Type> struct Count {
  using Part = int64_t;
  static Part of(Type const *x, index_t n, index_t) {
    umem::plus op;
    auto const is_set = [x](index_t i) { return static_cast<int64_t>(!(x[i] == Type())); };
    return host_reduce_row<int64_t>(op, 0, n, is_set);
  }
  static nb::object joined(std::vector<Part> const &parts) {
    int64_t count = 0;
    for (int64_t part : parts) count += part;
    return nb::cast(count);
  }
};

/* Whether an element is set, or one is not: the pieces end when it is known. */
template <class Type, bool set> struct Has {
  static bool of(Type const *x, index_t n, index_t) {
    return Count<Type>::of(x, n, 0) != (set ? 0 : n);
  }
};

/* NaN, if there is one. */
template <class Type, class Op> struct Extreme {
  using Part = Type;
  static Part of(Type const *x, index_t n, index_t) {
    Op op;
    return host_reduce_row<Type>(op, 0, n, InLine<Type>{x});
  }
  static nb::object joined(std::vector<Part> const &parts) {
    return nb::cast(of(parts.data(), static_cast<index_t>(parts.size()), 0));
  }
};

/* The number of the first NaN, else of the first of the extremes. */
template <class Type, bool largest_value> struct Position {
  using Part = umem::detail::Located<Type>;
  using Op = umem::detail::FirstExtreme<largest_value>;
  static Part of(Type const *x, index_t n, index_t first) {
    umem::detail::FindExtreme<largest_value> find;
    umem::detail::Partial<Part> best;
    Op op;
    for (index_t i = 0; i < n; i += umem::detail::reduce_block) {
      index_t const count = std::min(n - i, umem::detail::reduce_block);
      Part const found = find(count, InLine<Type>{x + i}, first + i, index_t(1), best);
      best = umem::detail::combine(op, best, {found, true});
    }
    return best.value;
  }
  static nb::object joined(std::vector<Part> const &parts) {
    Part best = parts[0];
    for (Part const &part : parts) best = Op()(best, part);
    return nb::cast(best.number);
  }
};

/* The sum of the squares of the distances from the mean. Its parts are joined by the formula of
 * Chan, Golub and LeVeque (1979). */
template <class Type> struct Spread {
  struct Part {
    double count, mean, squares;
  };
  static Part of(Type const *x, index_t n, index_t) {
    umem::plus op;
    double const count = static_cast<double>(n);
    double const mean = Sum<Type, double>::of(x, n, 0) / count;
    auto const square = [x, mean](index_t i) {
      double const away = static_cast<double>(x[i]) - mean;
      return away * away;
    };
    return {count, mean, host_reduce_row<double>(op, 0, n, square)};
  }
  static nb::object joined(std::vector<Part> const &parts) {
    Part all = parts[0];
    for (size_t i = 1; i < parts.size(); i++) {
      double const count = all.count + parts[i].count, away = parts[i].mean - all.mean;
      all.mean += away * (parts[i].count / count);
      all.squares += parts[i].squares + away * away * (all.count * parts[i].count / count);
      all.count = count;
    }
    return nb::cast(all.squares);
  }
};

/* ---- the pieces ---- */

/* What the threads share. */
class Pieces {
  using Clock = std::chrono::steady_clock;

  void *context_, *ram_;
  uintptr_t address_;
  size_t itemsize_, elements_, step_;
  bool is_ram_; /* where the elements are is where they are read */
  unsigned threads_;
  std::atomic<size_t> next_{0};
  std::atomic<int> raised_{0}; /* exceptions of floating-point numbers */
  std::atomic<bool> failed_{false};
  std::mutex lock_; /* of these: */
  std::condition_variable left_;
  std::exception_ptr error_;
  index_t helpers_ = 0;  /* other threads that do pieces */
  bool is_open_ = false; /* they may begin */
  Clock::time_point end_of_round_;

  static bool can_share(Context const *context) {
    return context->can(umemConcurrent) || context->can(umemCpuReadable);
  }

  void fail() {
    Gil gil;
    std::lock_guard<std::mutex> guard(lock_);
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }

  /* The elements of a piece, in memory. */
  void *read(size_t first, size_t count, void *buffer) const {
    uintptr_t const from = address_ + first * itemsize_;
    if (is_ram_) return reinterpret_cast<void *>(from);
    Call call;
    umem_copy_to(context_, from, ram_, reinterpret_cast<uintptr_t>(buffer), count * itemsize_);
    if (call.failed()) {
      Gil gil;
      raise_failure();
    }
    return buffer;
  }

  /* Pieces that no other thread does; at least one, so that a busy machine makes progress, too. */
  template <class Each> void run(Each const &each) {
    EndsWith ends_with(failed_);
    try {
      std::unique_ptr<char[]> buffer(is_ram_ ? nullptr : new char[step_ * itemsize_]);
      do {
        size_t const piece = next_.fetch_add(1);
        if (piece >= count()) return;
        size_t const first = piece * step_, n = std::min(step_, elements_ - first);
        void *const x = read(first, n, buffer.get());
        std::feclearexcept(FE_OVERFLOW | FE_INVALID);
        each(piece, x, static_cast<index_t>(n), static_cast<index_t>(first));
        raised_ |= std::fetestexcept(FE_OVERFLOW | FE_INVALID);
      } while (!failed_ && Clock::now() < end_of_round_);
    } catch (...) {
      fail();
    }
  }

  template <class Each> void help(Each const &each) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (!is_open_) return;
      helpers_++;
    }
    run(each);
    std::lock_guard<std::mutex> guard(lock_);
    helpers_--;
    left_.notify_all();
  }

  /* A helper may wait for a server, and only this thread is asked for signals. */
  void wait_for_helpers() {
    std::unique_lock<std::mutex> guard(lock_);
    while (!left_.wait_for(guard, round_time, [this] { return !helpers_; })) {
      guard.unlock();
      look_for_signals();
      guard.lock();
    }
    is_open_ = false;
  }

  void look_for_signals() {
    try {
      Gil gil;
      if (PyErr_CheckSignals()) throw nb::python_error();
    } catch (...) {
      fail();
    }
  }

public:
  Pieces(Hold const &array, size_t step)
      : context_(umemArray_context(array.get())), ram_(place_of(default_host()).context->ctx),
        address_(umemArray_address(array.get())),
        itemsize_(umem_element_size(umemArray_type(array.get()))),
        elements_(static_cast<size_t>(umemArray_elements(array.get()))), step_(step),
        is_ram_(array.context()->can(umemCpuReadable)),
        threads_(can_share(array.context()) ? umem_get_parallel_threads() : 1) {}

  size_t count() const { return elements_ / step_ + (elements_ % step_ != 0); }

  /* Calls each(number, elements, how many, number of the first one) for all pieces, in several
   * threads. Raises the failure of one, and what a signal raises. */
  template <class Each> void for_each(Each const &each) {
    auto const threads = static_cast<index_t>(std::min<size_t>(threads_, count()));
    while (next_ < count() && !failed_) {
      end_of_round_ = Clock::now() + round_time;
      is_open_ = true;
      {
        Unlock unlock;
        umem::detail::on_threads(threads, [&](index_t number) {
          if (number) return help(each);
          run(each);
          wait_for_helpers();
        });
      }
      if (PyErr_CheckSignals()) throw nb::python_error();
    }
    if (error_) std::rethrow_exception(error_);
  }

  /* No thread begins another piece. */
  void end() { next_ = count(); }
  int raised() const { return raised_; }
};

/* The result, and which exceptions of floating-point numbers there were. */
template <class Kind, class Type> nb::tuple reduce(Hold const &array, size_t bytes) {
  Pieces pieces(array, std::max<size_t>(bytes / sizeof(Type), 1));
  std::vector<typename Kind::Part> parts(pieces.count());
  pieces.for_each([&](size_t number, void const *x, index_t n, index_t first) {
    parts[number] = Kind::of(static_cast<Type const *>(x), n, first);
  });
  std::feclearexcept(FE_OVERFLOW | FE_INVALID);
  nb::object result = Kind::joined(parts);
  int const raised = pieces.raised() | std::fetestexcept(FE_OVERFLOW | FE_INVALID);
  return nb::make_tuple(result, (raised & FE_OVERFLOW) != 0, (raised & FE_INVALID) != 0);
}

/* Whether there is a piece with Kind. */
template <class Kind, class Type> nb::tuple find(Hold const &array, size_t bytes, bool result) {
  Pieces pieces(array, std::max<size_t>(bytes / sizeof(Type), 1));
  std::atomic<bool> found{false};
  pieces.for_each([&](size_t, void const *x, index_t n, index_t first) {
    if (!Kind::of(static_cast<Type const *>(x), n, first)) return;
    found = true;
    pieces.end();
  });
  return nb::make_tuple(found == result, false, false);
}

template <class Type>
nb::object reduce_numbers(Hold const &array, std::string const &name, bool in_double,
                          size_t bytes) {
  using Whole = std::conditional_t<std::is_integral_v<Type>, uint64_t, double>;
  if (name == "sum" && in_double) return reduce<Sum<Type, double>, Type>(array, bytes);
  if (name == "sum") return reduce<Sum<Type, Whole>, Type>(array, bytes);
  if (name == "count_nonzero") return reduce<Count<Type>, Type>(array, bytes);
  if (name == "any") return find<Has<Type, true>, Type>(array, bytes, true);
  if (name == "all") return find<Has<Type, false>, Type>(array, bytes, false);
  if (name == "min") return reduce<Extreme<Type, umem::minimum>, Type>(array, bytes);
  if (name == "max") return reduce<Extreme<Type, umem::maximum>, Type>(array, bytes);
  if (name == "argmin") return reduce<Position<Type, false>, Type>(array, bytes);
  if (name == "argmax") return reduce<Position<Type, true>, Type>(array, bytes);
  return reduce<Spread<Type>, Type>(array, bytes);
}

nb::object reduce_all(nb::handle object, std::string const &name, bool in_double, size_t bytes) {
  Array &array = array_of(object);
  Hold hold(array);
  umemArray *const handle = hold.get();
  Context const *const context = hold.context();
  /* A device that shares the memory may still write it; NumPy's way waits for it. */
  bool const is_plain = !array.named && umemArray_is_c_contiguous(handle) &&
                        umemArray_elements(handle) > 0 && !context->can(umemOrdered) &&
                        !context->can(umemDeviceShared) &&
                        umemArray_address(handle) % umem_element_size(umemArray_type(handle)) == 0;
  if (!is_plain) return nb::none();
  switch (umemArray_type(handle)) {
  case umemBool: /* of any byte but 0 and 1, too: these compare and compute with its value */
    if (name == "argmin" || name == "argmax" || name == "std") return nb::none();
    return reduce_numbers<uint8_t>(hold, name, in_double, bytes);
  case umemUInt8:
    return reduce_numbers<uint8_t>(hold, name, in_double, bytes);
  case umemInt8:
    return reduce_numbers<int8_t>(hold, name, in_double, bytes);
  case umemInt16:
    return reduce_numbers<int16_t>(hold, name, in_double, bytes);
  case umemUInt16:
    return reduce_numbers<uint16_t>(hold, name, in_double, bytes);
  case umemInt32:
    return reduce_numbers<int32_t>(hold, name, in_double, bytes);
  case umemUInt32:
    return reduce_numbers<uint32_t>(hold, name, in_double, bytes);
  case umemInt64:
    return reduce_numbers<int64_t>(hold, name, in_double, bytes);
  case umemUInt64:
    return reduce_numbers<uint64_t>(hold, name, in_double, bytes);
  case umemFloat32:
    return reduce_numbers<float>(hold, name, in_double, bytes);
  case umemFloat64:
    return reduce_numbers<double>(hold, name, in_double, bytes);
  default:
    return nb::none();
  }
}

} // namespace

void bind_reductions(nb::module_ &m) {
  m.def("_reduce", reduce_all, nb::arg("array"), nb::arg("name"), nb::arg("in_double"),
        nb::arg("bytes"),
        nb::sig("def _reduce(array: ArrayType, name: str, in_double: bool, bytes: int) -> "
                "tuple[typing.Any, bool, bool] | None"));
}
