/* array_gather.cpp - elements that lists of indices choose.
 *
 * In RAM a loop moves them. Elsewhere they are a list of copies, which one call moves. */
#include "array.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

namespace {

enum : size_t { batch = 65536 }; /* items of one call: bounds the memory of the list */

/* Indices along a dimension of a view, in RAM. */
struct Indices {
  int dim;
  int64_t const *numbers;
};

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

/* An index from the begin of dimension dim for one that may count from the end. */
int64_t find_index(int64_t number, int64_t extent, int dim) {
  int64_t index = number < 0 ? number + extent : number;
  if (index < 0 || index >= extent)
    raise(umemIndexError, "index %lld is outside of dimension %d with %lld elements",
          static_cast<long long>(number), dim, static_cast<long long>(extent));
  return index;
}

/* What is moved: at each pick a block of the dimensions that remain, in runs of bytes. */
class Selection {
  std::vector<Offsets> picks_;
  std::vector<Dimension> dimensions_;
  size_t run_;

  void add_indices(umemArray const *view, Indices const &list) {
    int64_t extent = umemArray_extent(view, list.dim), stride = umemArray_stride(view, list.dim);
    for (size_t p = 0; p < picks_.size(); p++)
      picks_[p].chosen += find_index(list.numbers[p], extent, list.dim) * stride;
  }

  /* shape: of the lists, whose dimensions the other array has from at on. */
  void add_dense(Shape const &shape, umemArray const *other, int at) {
    int last = shape.rank - 1;
    int64_t row = last < 0 ? 1 : shape.extents[last];
    int64_t stride = last < 0 ? 0 : umemArray_stride(other, at + last);
    for (size_t p = 0, first = 0; p < picks_.size(); first++) {
      int64_t offset = 0, rest = static_cast<int64_t>(first);
      for (int k = last - 1; k >= 0; rest /= shape.extents[k--])
        offset += rest % shape.extents[k] * umemArray_stride(other, at + k);
      for (int64_t i = 0; i < row; i++, offset += stride) picks_[p++].dense = offset;
    }
  }

  void add_dimensions(umemArray const *view, std::vector<Indices> const &lists,
                      umemArray const *other, int at, int rank) {
    int to = at == 0 ? rank : 0;
    for (int k = 0; k < umemArray_rank(view); k++) {
      if (std::any_of(lists.begin(), lists.end(), [k](Indices const &one) { return one.dim == k; }))
        continue;
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
  Selection(umemArray const *view, std::vector<Indices> const &lists, Shape const &shape,
            umemArray const *other, int at)
      : run_(umem_element_size(umemArray_type(view))) {
    size_t count = 1;
    for (int k = 0; k < shape.rank; k++) count *= static_cast<size_t>(shape.extents[k]);
    picks_.resize(count);
    for (Indices const &one : lists) add_indices(view, one);
    add_dense(shape, other, at);
    add_dimensions(view, lists, other, at, shape.rank);
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

  size_t run() const { return run_; }
  size_t blocks() const {
    size_t blocks = 1;
    for (Dimension const &d : dimensions_) blocks *= static_cast<size_t>(d.extent);
    return blocks;
  }
  size_t runs() const { return picks_.size() * blocks(); }

  /* Calls add(offsets) for each run, until one returns false. */
  template <class F> void each(F &&add) const {
    size_t const blocks = this->blocks();
    for (size_t p = 0; p < picks_.size(); p++)
      for (size_t block = 0; block < blocks; block++)
        if (!add(dimensions_.empty() ? picks_[p] : offsets_of(picks_[p], block))) return;
  }

private:
  Offsets offsets_of(Offsets at, size_t block) const {
    int64_t rest = static_cast<int64_t>(block);
    for (size_t k = dimensions_.size(); k-- > 0;) {
      int64_t index = rest % dimensions_[k].extent;
      rest /= dimensions_[k].extent;
      at.chosen += index * dimensions_[k].stride.chosen;
      at.dense += index * dimensions_[k].stride.dense;
    }
    return at;
  }
};

/* The list of copies that umem carries out in one call. */
class CopyList {
  size_t room_, count_ = 0;
  std::unique_ptr<umemCopyItem[]> items_;
  umemCopyItem const first_;
  umemStatusType status_ = umemOK;

public:
  /* For so many runs, each of run bytes. */
  CopyList(umemArray *from, umemArray *to, size_t runs, size_t run)
      : room_(std::min<size_t>(runs, batch)),
        items_(new umemCopyItem[room_]), first_{umemArray_context(from), umemArray_address(from),
                                                umemArray_context(to), umemArray_address(to), run} {
  }
  /* A run at offsets from the first elements. Returns false after a failure. */
  bool add(int64_t from, int64_t to) {
    uintptr_t src_adr = first_.src_adr + static_cast<uintptr_t>(from);
    uintptr_t dst_adr = first_.dst_adr + static_cast<uintptr_t>(to);
    if (count_) {
      umemCopyItem &last = items_[count_ - 1];
      if (last.src_adr + last.nbytes == src_adr && last.dst_adr + last.nbytes == dst_adr) {
        last.nbytes += first_.nbytes;
        return true;
      }
    }
    if (count_ == room_) carry_out();
    umemCopyItem &item = items_[count_++];
    item.src = first_.src; /* one by one: the compiler must not collect them in a vector first */
    item.src_adr = src_adr;
    item.dst = first_.dst;
    item.dst_adr = dst_adr;
    item.nbytes = first_.nbytes;
    return status_ == umemOK;
  }
  umemStatusType carry_out() {
    if (status_ == umemOK) status_ = umem_copy_many(items_.get(), count_, nullptr);
    count_ = 0;
    return status_;
  }
};

/* ---- in RAM ---- */

void copy_run(char *to, char const *from, size_t nbytes) {
  switch (nbytes) { /* of these the compiler makes single instructions */
  case 1:
    *to = *from;
    break;
  case 2:
    memcpy(to, from, 2);
    break;
  case 4:
    memcpy(to, from, 4);
    break;
  case 8:
    memcpy(to, from, 8);
    break;
  case 16:
    memcpy(to, from, 16);
    break;
  default:
    memcpy(to, from, nbytes);
  }
}

void move_in_ram(Selection const &selection, umemArray *view, umemArray *other, bool into) {
  char *chosen = reinterpret_cast<char *>(umemArray_address(view));
  char *dense = reinterpret_cast<char *>(umemArray_address(other));
  selection.each([&](Offsets const &at) {
    char *one = chosen + at.chosen, *two = dense + at.dense;
    copy_run(into ? one : two, into ? two : one, selection.run());
    return true;
  });
}

/* The addresses from the first byte of an array to the last one. */
struct Reach {
  uintptr_t first, last;

  explicit Reach(umemArray const *array)
      : first(umemArray_address(array)),
        last(first + umem_element_size(umemArray_type(array)) - 1) {
    for (int k = 0; k < umemArray_rank(array); k++) {
      int64_t way = umemArray_stride(array, k) * (umemArray_extent(array, k) - 1);
      (way < 0 ? first : last) += static_cast<uintptr_t>(way);
    }
  }
};

/* Whether a loop moves the elements: both sides are RAM, and share no bytes. A ledger counts copies
 * of umem alone. */
bool is_in_ram(Hold const &view, Hold const &other) {
  if (!view.context()->quick || !other.context()->quick || umem_ledger_is_on()) return false;
  Reach one(view.get()), two(other.get());
  return one.last < two.first || two.last < one.first;
}

/* ---- anywhere ---- */

umemStatusType move_as_list(Selection const &selection, umemArray *view, umemArray *other,
                            bool into) {
  CopyList list(into ? other : view, into ? view : other, selection.runs(), selection.run());
  selection.each([&](Offsets const &at) {
    return into ? list.add(at.dense, at.chosen) : list.add(at.chosen, at.dense);
  });
  return list.carry_out();
}

/* Moves the elements of array that the lists choose to dense, or from there. shape: of the lists,
 * whose dimensions dense has from at on. */
void move_elements(Array &array, std::vector<Indices> const &lists, Shape const &shape,
                   Array &dense, int at, bool into) {
  Hold view(array, into), other(dense, !into);
  if (umemArray_is_read_only(into ? view.get() : other.get()))
    raise(umemNotSupportedError, "the array is read-only");
  Selection selection(view.get(), lists, shape, other.get(), at);
  size_t nbytes = umemArray_nbytes(other.get());
  if (!nbytes) return;
  bool in_ram = is_in_ram(view, other);
  if (into && !in_ram) selection.drop_repeated();
  array_call(is_short(view.context(), nbytes) && is_short(other.context(), nbytes),
             [&](umemStatusType *status) {
               if (in_ram)
                 move_in_ram(selection, view.get(), other.get(), into);
               else
                 *status = move_as_list(selection, view.get(), other.get(), into);
             });
}

/* ---- keys of one array, without Python in between ---- */

/* The places of the flags that are true. */
std::vector<int64_t> find_flags(unsigned char const *flags, int64_t count) {
  std::vector<int64_t> found(static_cast<size_t>(count - std::count(flags, flags + count, 0)));
  int64_t *next = found.data();
  for (int64_t i = 0, eight = 0; i < count; i++) {
    if (i + 8 <= count && (memcpy(&eight, flags + i, 8), !eight)) {
      i += 7;
      continue;
    }
    if (flags[i]) *next++ = i;
  }
  return found;
}

/* The indices of a key that is an array of integers of NumPy or umem, or a mask in RAM of one
 * dimension that has so many elements. */
class Rows {
  nb::object array_;
  std::optional<Hold> hold_;
  std::vector<int64_t> found_;

  static bool is_dense(Hold const &hold) {
    return hold.context()->quick && umemArray_is_c_contiguous(hold.get());
  }

  void read_mask(int64_t extent) {
    Hold flags(array_of(array_));
    if (umemArray_rank(flags.get()) != 1 || umemArray_elements(flags.get()) != extent) return;
    if (!is_dense(flags)) return;
    found_ = find_flags(reinterpret_cast<unsigned char *>(umemArray_address(flags.get())), extent);
    int64_t count = static_cast<int64_t>(found_.size());
    shape = Shape(1, &count);
    numbers = found_.data();
  }

  void read_numbers(umemElementType type) {
    if (type != umemInt64 || !is_dense(Hold(array_of(array_))))
      array_ = copy_array(array_of(array_), default_host(), umemInt64);
    umemArray *indices = hold_.emplace(array_of(array_)).get();
    shape = Shape(umemArray_rank(indices), umemArray_shape(indices));
    numbers = numbers_of(indices);
  }

public:
  Shape shape;
  int64_t const *numbers = nullptr; /* NULL: the key is none of these, or has no elements */

  Rows(nb::handle key, int64_t extent) : array_(share_numpy(key)), shape(0, nullptr) {
    if (!array_.is_valid() && find_array(key)) array_ = nb::borrow(key);
    if (!array_.is_valid() || is_stored(element_of(array_of(array_)))) return;
    umemElementType type = element_of(array_of(array_)).type;
    unsigned code = umem_element_code(type);
    if (type == umemBool)
      read_mask(extent);
    else if ((code == umemCodeInt || code == umemCodeUInt) && umem_element_lanes(type) == 1)
      read_numbers(type);
  }
};

/* The shape of array, in which that of the indices replaces dimension dim; of rank 0 if it has too
 * many dimensions. */
Shape shape_with(Array &array, int dim, Shape const &rows) {
  Hold hold(array);
  int rank = umemArray_rank(hold.get()), all = rank - 1 + rows.rank;
  int64_t const *extents = umemArray_shape(hold.get());
  Shape shape(0, nullptr);
  if (all > UMEM_MAX_RANK) return shape;
  std::copy_n(extents, dim, shape.extents);
  std::copy_n(rows.extents, rows.rank, shape.extents + dim);
  std::copy(extents + dim + 1, extents + rank, shape.extents + dim + rows.rank);
  shape.rank = all;
  return shape;
}

/* The elements of array that such a key chooses in dimension dim, in out, or if that is None in a
 * new array. Not valid for other keys, and where out does not fit. */
nb::object take(Array &array, nb::handle key, int dim, nb::handle out) {
  int64_t extent;
  {
    Hold hold(array);
    if (dim >= umemArray_rank(hold.get())) return {};
    extent = umemArray_extent(hold.get(), dim);
  }
  Rows rows(key, extent);
  Shape shape = rows.numbers ? shape_with(array, dim, rows.shape) : Shape(0, nullptr);
  if (!shape.rank) return {};
  ElementType type = element_of(array);
  if (!out.is_none()) {
    ElementType given = element_of(array_of(out));
    Hold hold(array_of(out));
    if (type.named.is_valid() || given.named.is_valid() || given.type != type.type ||
        !std::equal(shape.extents, shape.extents + shape.rank, umemArray_shape(hold.get()),
                    umemArray_shape(hold.get()) + umemArray_rank(hold.get())))
      return {};
  }
  nb::object dense = out.is_none()
                         ? new_array(shape, type, place_of_result(array, nb::none()), false)
                         : nb::borrow(out);
  move_elements(array, {{dim, rows.numbers}}, rows.shape, array_of(dense), dim, false);
  return dense;
}

} // namespace

nb::object read_rows(Array &array, nb::handle key) { return take(array, key, 0, nb::none()); }

bool write_rows(Array &array, nb::handle key, nb::handle value) {
  int64_t extent;
  {
    Hold hold(array);
    if (!umemArray_rank(hold.get())) return false;
    extent = umemArray_extent(hold.get(), 0);
  }
  Rows rows(key, extent);
  Shape shape = rows.numbers ? shape_with(array, 0, rows.shape) : Shape(0, nullptr);
  if (!shape.rank) return false;
  nb::object dense = new_array(shape, element_of(array), default_host(), false);
  if (PyObject_SetItem(dense.ptr(), Py_Ellipsis, value.ptr()) < 0) throw nb::python_error();
  move_elements(array, {{0, rows.numbers}}, rows.shape, array_of(dense), 0, true);
  return true;
}

/* ---- keys of several parts: see umem/_indices.py ---- */

/* Moves the elements of view that the lists choose in its dimensions dims to dense, or from there.
 * The lists are int64, in RAM and in C order, all of one shape, which dense has at dimension at. */
static void move_chosen(Array &view, nb::tuple dims, nb::tuple lists, Array &dense, int at,
                        bool into) {
  std::vector<Indices> given;
  std::deque<Hold> holds;
  for (size_t i = 0; i < lists.size(); i++)
    given.push_back(
        {nb::cast<int>(dims[i]), numbers_of(holds.emplace_back(array_of(lists[i])).get())});
  umemArray *first = holds.front().get();
  move_elements(view, given, Shape(umemArray_rank(first), umemArray_shape(first)), dense, at, into);
}

static void check_indices(Array &indices, int64_t extent, int dim) {
  Hold hold(indices);
  int64_t const *numbers = numbers_of(hold.get());
  for (int64_t i = 0; i < umemArray_elements(hold.get()); i++) find_index(numbers[i], extent, dim);
}

/* The indices of the elements of a mask in RAM that are true: a list for each dimension. */
static nb::list find_true(Array &mask) {
  Hold hold(mask);
  auto const *flags = reinterpret_cast<unsigned char const *>(umemArray_address(hold.get()));
  std::vector<int64_t> found = find_flags(flags, umemArray_elements(hold.get()));
  int64_t const count = static_cast<int64_t>(found.size());
  nb::list lists;
  for (int k = umemArray_rank(hold.get()) - 1; k >= 0; k--) {
    nb::object list = new_array(Shape(1, &count), umemInt64, default_host(), false);
    Hold made(array_of(list));
    int64_t extent = umemArray_extent(hold.get(), k), *next = numbers_of(made.get());
    for (int64_t &place : found) {
      *next++ = place % extent;
      place /= extent;
    }
    lists.insert(0, list);
  }
  return lists;
}

void bind_gather(nb::module_ &m) {
  m.def("_move_chosen", move_chosen, nb::arg("view"), nb::arg("dims"), nb::arg("lists"),
        nb::arg("dense"), nb::arg("at"), nb::arg("into"),
        nb::sig("def _move_chosen(view: Array, dims: tuple[int, ...], lists: tuple[Array, ...], "
                "dense: Array, at: int, into: bool) -> None"));
  m.def(
      "_take",
      [](Array &array, nb::handle indices, int axis, nb::handle out) {
        nb::object taken = take(array, indices, axis, out);
        return taken.is_valid() ? taken : nb::none();
      },
      nb::arg("array"), nb::arg("indices"), nb::arg("axis"), nb::arg("out").none(),
      nb::sig("def _take(array: Array, indices: object, axis: int, out: Array | None) -> "
              "ArrayType | None"));
  m.def("_check_indices", check_indices, nb::arg("indices"), nb::arg("extent"), nb::arg("dim"));
  m.def("_find_true", find_true, nb::arg("mask"),
        nb::sig("def _find_true(mask: Array) -> list[ArrayType]"));
}
