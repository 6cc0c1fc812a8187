/* transfer.cpp - copies that report what they do, and the ledger of all copies. */
#include "array.h"
#include "callbacks.h"
#include "module.h"

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

static Dict route_dict(umemRoute const &route) {
  std::vector<char> text(umemRoute_text(&route, nullptr, 0) + 1);
  umemRoute_text(&route, text.data(), text.size());
  nb::list legs;
  for (uint32_t i = 0; i < route.leg_count; i++) legs.append(leg_dict(route.legs[i]));
  Dict d;
  d["bytes"] = route.bytes;
  d["seconds"] = route.seconds;
  d["route"] = text.data();
  d["legs"] = legs;
  return d;
}

/* The bytes of both arrays, item by item. */
static void copy_items(umemArray *dst, umemArray *src, umemCopyOptions const &options,
                       umemStatusType *status) {
  size_t extents[UMEM_MAX_RANK];
  ptrdiff_t from[UMEM_MAX_RANK], to[UMEM_MAX_RANK];
  int rank = umemArray_rank(src);
  for (int k = 0; k < rank; k++) {
    extents[k] = static_cast<size_t>(umemArray_extent(src, k));
    from[k] = umemArray_stride(src, k);
    to[k] = umemArray_stride(dst, k);
  }
  umemLayout layout = {
      sizeof layout, umem_element_size(umemArray_type(src)), rank, extents, from, to};
  *status =
      umem_copy_strided_with(umemArray_context(src), umemArray_address(src), umemArray_context(dst),
                             umemArray_address(dst), &layout, &options);
}

static Dict copy(Array &dst, Array &src, nb::handle function, size_t step) {
  Hold hold_dst(dst, true), hold_src(src);
  umemArray *to = hold_dst.get(), *from = hold_src.get();
  Progress progress = {function.is_none() ? nullptr : function.ptr()};
  umemRoute route = UMEM_ROUTE_INIT;
  umemCopyOptions options = UMEM_COPY_OPTIONS_INIT;
  options.progress = Progress::step;
  options.user = &progress;
  options.step = step;
  options.route = &route;
  bool runs = umemArray_is_c_contiguous(to) && umemArray_is_c_contiguous(from);
  array_call(false, [&](umemStatusType *status) {
    umemArray_check_writeable_at(to, status, "the destination", "umem.copy", "Python", 0);
    umemArray_check_same_type_at(to, from, status, "the source", "the destination", "umem.copy",
                                 "Python", 0);
    umemArray_check_same_shape_at(to, from, status, "the source", "the destination", "umem.copy",
                                  "Python", 0);
    if (*status || umemArray_elements(to) == 0) return;
    if (runs)
      *status =
          umem_copy_to_with(umemArray_context(from), umemArray_address(from), umemArray_context(to),
                            umemArray_address(to), umemArray_nbytes(from), &options);
    else
      copy_items(to, from, options, status);
  });
  return route_dict(route);
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

void bind_transfers(nb::module_ &m) {
  m.def("_copy", copy, nb::arg("dst"), nb::arg("src"), nb::arg("progress").none(), nb::arg("step"));
  m.def("_ledger_read", read_ledger);
  m.def("_ledger_start", [] { unlocked([] { umem_ledger_start(); }); });
  m.def("_ledger_stop", umem_ledger_stop);
  m.def("_ledger_clear", umem_ledger_clear);
  m.def("_ledger_is_on", umem_ledger_is_on);
}
