/* transfer.cpp - copies that report what they do, and the ledger of all copies. */
#include "array.h"
#include "callbacks.h"
#include "module.h"

#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

static std::string name_of(umemRoutePlace const &place) {
  return place.ordinal < 0 ? place.kind
                           : std::string(place.kind) + ":" + std::to_string(place.ordinal);
}

static Dict leg_dict(umemRouteLeg const &leg) {
  Dict d;
  d["src"] = name_of(leg.src);
  d["dst"] = name_of(leg.dst);
  d["way"] = leg.way;
  d["bytes"] = leg.bytes;
  d["seconds"] = leg.seconds;
  d["workers"] = leg.workers;
  d["calls"] = leg.calls;
  return d;
}

/* What a copy did: its objects of Python are made when the program looks at it. */
struct Route {
  uint64_t bytes = 0;
  double seconds = 0;
  std::unique_ptr<umemRoute> watched; /* none: a short copy by one memcpy, or of no bytes */

  Dict dict() const {
    umemRoute route = UMEM_ROUTE_INIT;
    if (!watched && bytes) {
      route.leg_count = 1;
      umemRoutePlace const host = {"host", -1, 0};
      route.legs[0] = {host, host, "memcpy", bytes, seconds, 1, 1, {0, 0}};
    }
    return dict(watched ? *watched : route);
  }

private:
  Dict dict(umemRoute const &route) const {
    std::vector<char> text(umemRoute_text(&route, nullptr, 0) + 1);
    umemRoute_text(&route, text.data(), text.size());
    nb::list legs;
    for (uint32_t i = 0; i < route.leg_count; i++) legs.append(leg_dict(route.legs[i]));
    Dict d;
    d["bytes"] = bytes;
    d["seconds"] = seconds;
    d["route"] = text.data();
    d["legs"] = legs;
    return d;
  }
};

static Route new_route(std::unique_ptr<umemRoute> &&route) {
  return {route->bytes, route->seconds, std::move(route)};
}

/* Which bytes of two arrays belong together. */
struct Items {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t from[UMEM_MAX_RANK], to[UMEM_MAX_RANK];
  umemLayout layout;

  Items(umemArray *dst, umemArray *src)
      : layout{sizeof layout,
               umem_element_size(umemArray_type(src)),
               umemArray_rank(src),
               extents,
               from,
               to} {
    for (int k = 0; k < layout.rank; k++) {
      extents[k] = static_cast<size_t>(umemArray_extent(src, k));
      from[k] = umemArray_stride(src, k);
      to[k] = umemArray_stride(dst, k);
    }
  }
};

/* Whether there are bytes to copy, and they can be. */
static bool check_copy(umemArray *to, umemArray *from, char const *function,
                       umemStatusType *status) {
  umemArray_check_writeable_at(to, status, "the destination", function, nullptr, 0);
  umemArray_check_same_type_at(to, from, status, "the source", "the destination", function, nullptr,
                               0);
  umemArray_check_same_shape_at(to, from, status, "the source", "the destination", function,
                                nullptr, 0);
  return !*status && umemArray_elements(to) != 0;
}

static bool are_runs(umemArray *to, umemArray *from) {
  return umemArray_is_c_contiguous(to) && umemArray_is_c_contiguous(from);
}

/* A short copy from RAM to RAM: nothing waits, and there is one route. False, and nothing is done,
 * for another one, or a wrong one. */
static bool copy_short(Array &dst, Array &src, Route &route) {
  Look look_dst(dst, true), look_src(src);
  umemArray *to = look_dst.get(), *from = look_src.get();
  size_t nbytes = umemArray_nbytes(from);
  if (!nbytes || !is_short(look_dst.context(), nbytes) || !is_short(look_src.context(), nbytes) ||
      umemArray_is_read_only(to) || umemArray_type(to) != umemArray_type(from) ||
      !umemArray_is_same_shape(to, from) || !are_runs(to, from))
    return false;
  auto begin = std::chrono::steady_clock::now();
  Call call;
  umem_copy_to(umemArray_context(from), umemArray_address(from), umemArray_context(to),
               umemArray_address(to), nbytes);
  call.end();
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  route.bytes = nbytes;
  route.seconds = taken.count();
  return true;
}

static Route copy(Array &dst, Array &src, nb::handle function, size_t step) {
  Route short_one;
  if (function.is_none() && copy_short(dst, src, short_one)) return short_one;
  Hold hold_dst(dst, true), hold_src(src);
  umemArray *to = hold_dst.get(), *from = hold_src.get();
  Progress progress = {function.is_none() ? nullptr : function.ptr()};
  std::unique_ptr<umemRoute> route(new umemRoute UMEM_ROUTE_INIT);
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = Progress::step;
  options.user = &progress;
  options.step = step;
  options.route = route.get();
  void *src_ctx = umemArray_context(from), *dst_ctx = umemArray_context(to);
  uintptr_t src_adr = umemArray_address(from), dst_adr = umemArray_address(to);
  array_call(false, [&](umemStatusType *status) {
    if (!check_copy(to, from, "umem.copy", status)) return;
    Items items(to, from);
    if (are_runs(to, from))
      *status =
          umem_copy_to_with(src_ctx, src_adr, dst_ctx, dst_adr, umemArray_nbytes(from), &options);
    else
      *status = umem_copy_strided_with(src_ctx, src_adr, dst_ctx, dst_adr, &items.layout, &options);
  });
  return new_route(std::move(route));
}

/* ---- lists ---- */

namespace {

/* One pair of arrays of a list. */
struct Pair {
  Hold dst, src;
  Pair(Array &to, Array &from) : dst(to, true), src(from) {}
};

/* The runs of both arrays from dimension k on. umem_copy_many joins those that are neighbours. */
void list_runs(umemArray *to, umemArray *from, int k, uintptr_t to_adr, uintptr_t from_adr,
               std::vector<umemCopyItem> &items) {
  size_t run = umem_element_size(umemArray_type(from));
  int rank = umemArray_rank(from);
  bool dense = true;
  for (int i = rank - 1; i >= k && dense; i--) {
    int64_t extent = umemArray_extent(from, i), stride = static_cast<int64_t>(run);
    dense =
        extent == 1 || (umemArray_stride(from, i) == stride && umemArray_stride(to, i) == stride);
    run *= static_cast<size_t>(extent);
  }
  if (dense) {
    items.push_back({umemArray_context(from), from_adr, umemArray_context(to), to_adr, run});
    return;
  }
  for (int64_t i = 0; i < umemArray_extent(from, k); i++)
    list_runs(to, from, k + 1, to_adr + static_cast<uintptr_t>(umemArray_stride(to, k) * i),
              from_adr + static_cast<uintptr_t>(umemArray_stride(from, k) * i), items);
}

/* The arrays of a list, held. */
struct Pairs : std::deque<Pair> {
  void add(nb::list pairs) {
    for (nb::handle pair : pairs) {
      nb::tuple both = nb::cast<nb::tuple>(pair);
      emplace_back(array_of(both[0]), array_of(both[1]));
    }
  }

  /* Stops at the first pair that cannot be copied, with a status. */
  std::vector<umemCopyItem> items(char const *function, umemStatusType *status) {
    std::vector<umemCopyItem> items;
    for (Pair &pair : *this) {
      umemArray *to = pair.dst.get(), *from = pair.src.get();
      if (check_copy(to, from, function, status))
        list_runs(to, from, 0, umemArray_address(to), umemArray_address(from), items);
      if (*status) break;
    }
    return items;
  }
};

} // namespace

static Route copy_many(nb::list pairs, nb::handle function, size_t step) {
  Pairs held;
  held.add(pairs);
  std::unique_ptr<umemRoute> route(new umemRoute UMEM_ROUTE_INIT);
  Progress progress = {function.is_none() ? nullptr : function.ptr()};
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  options.route = route.get();
  options.progress = Progress::step;
  options.user = &progress;
  options.step = step;
  array_call(false, [&](umemStatusType *status) {
    std::vector<umemCopyItem> items = held.items("umem.copy_many", status);
    if (!*status) *status = umem_copy_many(items.data(), items.size(), &options);
  });
  return new_route(std::move(route));
}

/* ---- transfers ---- */

namespace {

/* The C++ part of a umem.Transfer. */
struct Transfer {
  umemTransfer *handle = nullptr; /* NULL: there was nothing to copy */
  std::optional<Hold> dst, src;   /* their memory stays until the transfer has ended */
  Pairs pairs;                    /* of a list */
  bool is_left = false;           /* a signal has ended a wait */

  Transfer() = default;
  Transfer(Transfer const &) = delete;
  Transfer &operator=(Transfer const &) = delete;
  ~Transfer() {
    uint64_t before = umem_thread_failures();
    if (is_left) umemTransfer_cancel(handle);
    while (!wait_step(step)) look_for_signals();
    umemTransfer_release(handle);
    if (umem_thread_failures() != before && !is_left) report_failure("umem.Transfer");
  }

  /* Whether it has ended, after at most so many seconds. */
  bool wait_step(double seconds) {
    if (umemTransfer_poll(handle)) return true;
    Unlock unlock;
    return umemTransfer_wait_for(handle, static_cast<uint64_t>(seconds * 1e9));
  }

  /* Ctrl-C cancels what nothing refers to any more. It is raised when Python goes on. */
  void look_for_signals() {
    nb::error_scope raised; /* the object may go because of an exception */
    if (PyErr_CheckSignals() == 0) return;
    is_left = true;
    umemTransfer_cancel(handle);
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
      PyErr_SetInterrupt();
    else
      PyErr_WriteUnraisable(nullptr);
    PyErr_Clear();
  }

  static constexpr double step = 0.05; /* from look to look */
};

} // namespace

static void start_many(Transfer *self, nb::list pairs) {
  new (self) Transfer;
  try {
    self->pairs.add(pairs);
    array_call(false, [&](umemStatusType *status) {
      std::vector<umemCopyItem> items = self->pairs.items("umem.start_many", status);
      if (!*status) *status = umem_start_many(items.data(), items.size(), nullptr, &self->handle);
    });
  } catch (...) {
    self->~Transfer();
    throw;
  }
}

static void start(Transfer *self, Array &dst, Array &src) {
  new (self) Transfer;
  try {
    umemArray *to = self->dst.emplace(dst, true).get(), *from = self->src.emplace(src).get();
    void *src_ctx = umemArray_context(from), *dst_ctx = umemArray_context(to);
    uintptr_t src_adr = umemArray_address(from), dst_adr = umemArray_address(to);
    bool keeps_gil = is_short(self->dst->context(), umemArray_nbytes(to)) &&
                     is_short(self->src->context(), umemArray_nbytes(to));
    array_call(keeps_gil, [&](umemStatusType *status) {
      if (!check_copy(to, from, "umem.start", status)) return;
      Items items(to, from);
      if (are_runs(to, from))
        *status = umem_start(src_ctx, src_adr, dst_ctx, dst_adr, umemArray_nbytes(from), nullptr,
                             &self->handle);
      else
        *status = umem_start_strided(src_ctx, src_adr, dst_ctx, dst_adr, &items.layout, nullptr,
                                     &self->handle);
    });
  } catch (...) {
    self->~Transfer();
    throw;
  }
}

/* In steps, between which Ctrl-C is looked for. */
static bool wait(Transfer &self, nb::handle timeout) {
  double rest = timeout.is_none() ? HUGE_VAL : PyFloat_AsDouble(timeout.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  bool ended = umemTransfer_poll(self.handle);
  while (!ended && rest > 0) {
    double seconds = rest < Transfer::step ? rest : Transfer::step;
    ended = self.wait_step(seconds);
    rest -= seconds;
    if (PyErr_CheckSignals() == 0) continue;
    self.is_left = true;
    throw nb::python_error();
  }
  if (!ended || !self.handle) return ended;
  Call call;
  umemTransfer_wait(self.handle);
  call.end();
  return true;
}

static nb::typed<nb::tuple, int, int> progress(Transfer &self) {
  uint64_t done = 0, total = 0;
  if (self.handle) umemTransfer_progress(self.handle, &done, &total);
  return nb::make_tuple(done, total);
}

static int descriptor(Transfer &self) {
  if (!self.handle) raise(umemValueError, "a transfer of no bytes has no descriptor");
  return unlocked([&] { return umemTransfer_descriptor(self.handle); });
}

/* ---- the ledger ---- */

static DictList read_ledger() {
  std::vector<umemLedgerRecord> records(UMEM_LEDGER_RECORDS + 1,
                                        umemLedgerRecord UMEM_LEDGER_RECORD_INIT);
  size_t count = records.size();
  unlocked([&] { umem_ledger_read(records.data(), &count); });
  DictList list;
  for (size_t i = 0; i < count && i < records.size(); i++) {
    Dict d;
    d["src"] = name_of(records[i].src);
    d["dst"] = name_of(records[i].dst);
    d["route"] = records[i].route;
    d["calls"] = records[i].calls;
    d["failed"] = records[i].failed;
    d["bytes"] = records[i].bytes;
    d["seconds"] = records[i].seconds;
    list.append(d);
  }
  return list;
}

/* A mapping as dict is one (umem/transfer.py registers it). Its methods are those of the dict that
 * it becomes. */
static void bind_route(nb::module_ &m) {
  nb::class_<Route> type(
      m, "Route", nb::sig("class Route(collections.abc.Mapping[str, typing.Any])"),
      "What a copy did, as a mapping: bytes, seconds, route as a text, and legs, "
      "a list of\ndicts with src, dst, way, bytes, seconds, workers, calls. "
      "dict(route) is a dict.");
  type.def(
          "__getitem__",
          [](Route &r, nb::handle key) { return nb::object(r.dict().attr("__getitem__")(key)); },
          nb::sig("def __getitem__(self, key: str, /) -> typing.Any"))
      .def(
          "__iter__", [](Route &r) { return nb::iter(r.dict()); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[str]"))
      .def("__len__", [](Route &) { return 4; })
      .def(
          "__contains__",
          [](Route &r, nb::handle key) {
            return nb::cast<bool>(r.dict().attr("__contains__")(key));
          },
          nb::sig("def __contains__(self, key: object, /) -> bool"))
      .def(
          "__eq__",
          [](Route &r, nb::handle other) {
            nb::object own = r.dict(), with = nb::borrow(other);
            Route *route;
            if (nb::try_cast(other, route)) with = route->dict();
            return own.equal(with);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](Route &r) { return nb::repr(r.dict()); })
      .def(
          "keys", [](Route &r) { return r.dict().attr("keys")(); },
          nb::sig("def keys(self) -> collections.abc.KeysView[str]"))
      .def(
          "values", [](Route &r) { return r.dict().attr("values")(); },
          nb::sig("def values(self) -> collections.abc.ValuesView[typing.Any]"))
      .def(
          "items", [](Route &r) { return r.dict().attr("items")(); },
          nb::sig("def items(self) -> collections.abc.ItemsView[str, typing.Any]"))
      .def(
          "get",
          [](Route &r, nb::handle key, nb::handle otherwise) {
            return r.dict().attr("get")(key, otherwise);
          },
          nb::arg("key"), nb::arg("default").none() = nb::none(),
          nb::sig("def get(self, key: str, default: object = None) -> typing.Any"));
}

/* ---- umem.copy ---- */

static PyObject *copy_others; /* function of (dst, src, progress, step), of any objects */

/* As a function of C, without what nanobind adds to a call. */
static PyObject *copy_function(PyObject *, PyObject *const *values, Py_ssize_t count,
                               PyObject *names) {
  static PyObject *const no_step = PyLong_FromLong(0);
  static char const *const parameters[] = {"dst", "src", "progress", "step"};
  return raised([&] {
    PyObject *given[] = {nullptr, nullptr, Py_None, no_step};
    if (!read_arguments(parameters, 2, values, count, names, given) || !given[0] || !given[1])
      raise(umemTypeError, "umem.copy expects (dst, src, *, progress=None, step=0)");
    if (given[2] == Py_None && given[3] == no_step) {
      Array *dst = find_array(given[0]), *src = find_array(given[1]);
      Route route;
      if (dst && src && copy_short(*dst, *src, route)) return nb::cast(std::move(route));
    }
    return nb::object(call_python(copy_others, nb::handle(given[0]), nb::handle(given[1]),
                                  nb::handle(given[2]), nb::handle(given[3])));
  });
}

static void bind_copy(nb::module_ &m) {
  static PyMethodDef function = {
      "copy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(copy_function)),
      METH_FASTCALL | METH_KEYWORDS,
      "copy($module, dst, src, *, progress=None, step=0)\n--\n\n"
      "Copies all elements of src to dst, of the same type and shape, on any two places.\n\n"
      "Ctrl-C ends a long copy: the bytes that progress was last called with are there, the others "
      "as before.\n\n"
      "Parameters\n"
      "----------\n"
      "dst, src : Array, or what umem.asarray takes\n"
      "    Their memory may overlap: src is then read before dst is written. dst is memory that "
      "can "
      "be written, such as an\n"
      "    array of NumPy.\n"
      "progress : callable or object with update and total, optional\n"
      "    `progress(done, total)` in bytes, from 0 to total; False cancels the copy. Or a bar of "
      "tqdm.\n"
      "step : int or str, optional\n"
      "    Bytes from call to call. Default: 64 MiB. Arrays with gaps are copied in one step.\n\n"
      "Returns\n"
      "-------\n"
      "Route\n"
      "    A mapping: bytes, seconds, route as a text, and the legs of the route with src, dst, "
      "way, "
      "bytes, seconds, workers,\n"
      "    calls. It is made when it is read; dict(route) is a dict.\n\n"
      "Raises\n"
      "------\n"
      "umem.CancelledError\n"
      "    progress has returned False. What it raises itself arrives as it is."};
  nb::object module_name = nb::str("umem");
  m.attr("copy") = nb::steal(PyCFunction_NewEx(&function, m.ptr(), module_name.ptr()));
  m.def("_set_copy", [](nb::object others) { copy_others = others.release().ptr(); });
}

void bind_transfers(nb::module_ &m) {
  bind_route(m);
  bind_copy(m);
  nb::class_<Transfer>(m, "Transfer", "A copy that goes on: see umem.start.")
      .def("__init__", start, nb::arg("dst"), nb::arg("src"))
      .def("__init__", start_many, nb::arg("pairs"),
           nb::sig(
               "def __init__(self, pairs: collections.abc.Sequence[tuple[Array, Array]]) -> None"))
      .def("wait", wait, nb::arg("timeout").none() = nb::none(),
           nb::sig("def wait(self, timeout: float | None = None) -> bool"),
           "Waits until the copy has ended, or for at most timeout seconds. Whether it has "
           "ended.\n\n"
           "Raises the failure of the copy; umem.CancelledError if it was cancelled before its "
           "last byte.\n"
           "After Ctrl-C the copy goes on, until nothing refers to the object.")
      .def(
          "cancel", [](Transfer &self) { umemTransfer_cancel(self.handle); },
          "Ends the copy after what a thread is copying now. Does not wait for that. progress "
          "says what is done.")
      .def("fileno", descriptor,
           "A descriptor that select and epoll show as readable when the copy has ended. Do not "
           "close it.")
      .def_prop_ro(
          "done", [](Transfer &self) { return umemTransfer_poll(self.handle); },
          "Whether the copy has ended, also if it has failed. Does not wait.")
      .def_prop_ro("progress", progress,
                   "(bytes that are copied, bytes in all). The first ones are copied first; of a "
                   "list, any.");
  m.def("_copy", copy, nb::arg("dst"), nb::arg("src"), nb::arg("progress").none(), nb::arg("step"));
  m.def("_copy_many", copy_many, nb::arg("pairs"), nb::arg("progress").none(), nb::arg("step"),
        nb::sig("def _copy_many(pairs: collections.abc.Sequence[tuple[Array, Array]], "
                "progress: typing.Any, step: int) -> Route"));
  m.def("_ledger_read", read_ledger);
  m.def("_ledger_start", [] { unlocked([] { umem_ledger_start(); }); });
  m.def("_ledger_stop", umem_ledger_stop);
  m.def("_ledger_clear", umem_ledger_clear);
  m.def("_ledger_is_on", umem_ledger_is_on);
}
