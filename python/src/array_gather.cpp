/* array_gather.cpp - elements that lists of indices choose: one call moves all of them. */
#include "array.h"

#include <algorithm>
#include <vector>

namespace {

enum : size_t { batch = 65536 }; /* items of one call: bounds the memory of the list */

/* Byte offsets of the same elements in the array and in the other one, in which they are dense. */
struct Offsets {
  int64_t chosen, dense;
};

/* A dimension that no list indexes, with the bytes from element to element on both sides. */
struct Dimension {
  int64_t extent;
  Offsets stride;
};

int64_t *numbers_of(umemArray *indices) {
  return reinterpret_cast<int64_t *>(umemArray_address(indices));
}

/* What is moved: at each pick a block of the dimensions that remain, in runs of bytes. */
class Selection {
  std::vector<Offsets> picks_;
  std::vector<Dimension> dimensions_;
  size_t run_;

  void add_picks(umemArray const *view, nb::tuple const &dims, nb::tuple const &lists,
                 umemArray const *other, int at) {
    Hold first(array_of(lists[0]));
    int rank = umemArray_rank(first.get());
    picks_.resize(static_cast<size_t>(umemArray_elements(first.get())));
    for (size_t i = 0; i < dims.size(); i++) {
      Hold list(array_of(lists[i]));
      int64_t stride = umemArray_stride(view, nb::cast<int>(dims[i]));
      int64_t const *numbers = numbers_of(list.get());
      for (size_t p = 0; p < picks_.size(); p++) picks_[p].chosen += numbers[p] * stride;
    }
    int64_t offset = 0, index[UMEM_MAX_RANK] = {};
    for (Offsets &pick : picks_) {
      pick.dense = offset;
      for (int k = rank - 1; k >= 0; k--) { /* the next element in C order */
        int64_t extent = umemArray_extent(first.get(), k), stride = umemArray_stride(other, at + k);
        offset += stride;
        if (++index[k] < extent) break;
        offset -= extent * stride;
        index[k] = 0;
      }
    }
    add_dimensions(view, dims, other, at, rank);
  }

  void add_dimensions(umemArray const *view, nb::tuple const &dims, umemArray const *other, int at,
                      int rank) {
    int to = at == 0 ? rank : 0;
    for (int k = 0; k < umemArray_rank(view); k++) {
      bool is_chosen = false;
      for (nb::handle dim : dims) is_chosen |= nb::cast<int>(dim) == k;
      if (is_chosen) continue;
      dimensions_.push_back(
          {umemArray_extent(view, k), {umemArray_stride(view, k), umemArray_stride(other, to)}});
      if (++to == at) to += rank;
    }
  }

  /* Dimensions whose elements follow one another on both sides become part of the run. */
  void join_dimensions() {
    while (!dimensions_.empty()) {
      Dimension last = dimensions_.back();
      int64_t run = static_cast<int64_t>(run_);
      if (last.extent != 1 && (last.stride.chosen != run || last.stride.dense != run)) return;
      run_ *= static_cast<size_t>(last.extent);
      dimensions_.pop_back();
    }
  }

public:
  Selection(umemArray const *view, nb::tuple const &dims, nb::tuple const &lists,
            umemArray const *other, int at)
      : run_(umem_element_size(umemArray_type(view))) {
    add_picks(view, dims, lists, other, at);
    join_dimensions();
  }

  /* Of picks of the same elements only the last remains: it is what an assignment leaves. */
  void drop_repeated() {
    std::stable_sort(picks_.begin(), picks_.end(),
                     [](Offsets const &a, Offsets const &b) { return a.chosen < b.chosen; });
    size_t kept = 0;
    for (size_t p = 0; p < picks_.size(); p++)
      if (p + 1 == picks_.size() || picks_[p].chosen != picks_[p + 1].chosen)
        picks_[kept++] = picks_[p];
    picks_.resize(kept);
  }

  /* Calls add(offsets, bytes) for each run. */
  template <class F> void each(F &&add) const {
    size_t blocks = 1;
    for (Dimension const &d : dimensions_) blocks *= static_cast<size_t>(d.extent);
    for (Offsets const &pick : picks_)
      for (size_t block = 0; block < blocks; block++) {
        Offsets at = pick;
        int64_t rest = static_cast<int64_t>(block);
        for (size_t k = dimensions_.size(); k-- > 0;) {
          int64_t index = rest % dimensions_[k].extent;
          rest /= dimensions_[k].extent;
          at.chosen += index * dimensions_[k].stride.chosen;
          at.dense += index * dimensions_[k].stride.dense;
        }
        if (!add(at, run_)) return;
      }
  }
};

/* The list of copies that umem carries out in one call. */
class CopyList {
  std::vector<umemCopyItem> items_;
  umemStatusType status_ = umemOK;

public:
  bool add(umemCopyItem const &item) {
    if (!items_.empty() && items_.back().src_adr + items_.back().nbytes == item.src_adr &&
        items_.back().dst_adr + items_.back().nbytes == item.dst_adr) {
      items_.back().nbytes += item.nbytes;
      return true;
    }
    if (items_.size() == batch) carry_out();
    items_.push_back(item);
    return status_ == umemOK;
  }
  umemStatusType carry_out() {
    if (status_ == umemOK) status_ = umem_copy_many(items_.data(), items_.size(), nullptr);
    items_.clear();
    return status_;
  }
};

} // namespace

/* Moves the elements of view that the lists choose in its dimensions dims to other, or from there.
 * The lists are int64, in RAM, all of one shape, and inside of view; other has that shape at
 * dimension at. */
static void move_chosen(Array &array, nb::tuple dims, nb::tuple lists, Array &dense, int at,
                        bool into) {
  Hold view(array, into), other(dense, !into);
  umemArray *to = into ? view.get() : other.get(), *from = into ? other.get() : view.get();
  if (umemArray_is_read_only(to)) raise(umemNotSupportedError, "the array is read-only");
  if (umemArray_elements(other.get()) == 0) return;
  Selection selection(view.get(), dims, lists, other.get(), at);
  if (into) selection.drop_repeated();
  void *src = umemArray_context(from), *dst = umemArray_context(to);
  uintptr_t src_adr = umemArray_address(from), dst_adr = umemArray_address(to);
  bool keeps_gil = is_short(view.context(), umemArray_nbytes(other.get())) &&
                   is_short(other.context(), umemArray_nbytes(other.get()));
  array_call(keeps_gil, [&](umemStatusType *status) {
    CopyList list;
    selection.each([&](Offsets const &offset, size_t nbytes) {
      int64_t src_at = into ? offset.dense : offset.chosen;
      int64_t dst_at = into ? offset.chosen : offset.dense;
      return list.add({src, src_adr + static_cast<uintptr_t>(src_at), dst,
                       dst_adr + static_cast<uintptr_t>(dst_at), nbytes});
    });
    *status = list.carry_out();
  });
}

/* Makes indices from the end of dimension dim, which are negative, indices from its begin. */
static void check_indices(Array &indices, int64_t extent, int dim) {
  Hold hold(indices, true);
  int64_t *numbers = numbers_of(hold.get());
  for (int64_t i = 0; i < umemArray_elements(hold.get()); i++) {
    if (numbers[i] < -extent || numbers[i] >= extent)
      raise(umemIndexError, "index %lld is outside of dimension %d with %lld elements",
            static_cast<long long>(numbers[i]), dim, static_cast<long long>(extent));
    if (numbers[i] < 0) numbers[i] += extent;
  }
}

/* The indices of the elements of a mask in RAM that are true: a list for each dimension. */
static nb::list find_true(Array &mask) {
  Hold hold(mask);
  auto const *flags = reinterpret_cast<unsigned char const *>(umemArray_address(hold.get()));
  int64_t elements = umemArray_elements(hold.get());
  int64_t count = elements - std::count(flags, flags + elements, 0);
  nb::list lists;
  int64_t unit = 1;
  for (int k = umemArray_rank(hold.get()) - 1; k >= 0; k--) {
    nb::object list = new_array(Shape(1, &count), umemInt64, default_host(), false);
    Hold made(array_of(list));
    int64_t extent = umemArray_extent(hold.get(), k), *next = numbers_of(made.get());
    for (int64_t i = 0; i < elements; i++)
      if (flags[i]) *next++ = i / unit % extent;
    unit *= extent;
    lists.insert(0, list);
  }
  return lists;
}

void bind_gather(nb::module_ &m) {
  m.def("_move_chosen", move_chosen, nb::arg("view"), nb::arg("dims"), nb::arg("lists"),
        nb::arg("dense"), nb::arg("at"), nb::arg("into"),
        nb::sig("def _move_chosen(view: Array, dims: tuple[int, ...], lists: tuple[Array, ...], "
                "dense: Array, at: int, into: bool) -> None"));
  m.def("_check_indices", check_indices, nb::arg("indices"), nb::arg("extent"), nb::arg("dim"));
  m.def("_find_true", find_true, nb::arg("mask"),
        nb::sig("def _find_true(mask: Array) -> list[ArrayType]"));
}
