/* blocks.cpp - arrays larger than memory, block by block (umem/blocks.h). */
#include "array.h"
#include "callbacks.h"
#include "module.h"

#include <optional>

namespace {

/* The passage of an array. Arrays over its blocks share it, so that their memory lives as long as
 * they do. */
class Passage {
  std::atomic<long> users_{1};

public:
  umemBlocks blocks = {};
  Progress progress = {nullptr};
  std::optional<Hold> source, destination; /* their memory stays */
  std::optional<Use> place;

  void use() { users_.fetch_add(1, std::memory_order_relaxed); }
  static void drop(void *self) {
    Passage *passage = static_cast<Passage *>(self);
    if (passage->users_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    umemBlocks_end(&passage->blocks);
    delete passage; /* needs no GIL */
  }
};

/* The C++ part of a umem.Blocks. */
struct Blocks {
  Passage *passage = nullptr;
  nb::object source, destination, place, progress; /* kept alive */
  int rank = 0;
  int64_t shape[UMEM_MAX_RANK];  /* of a block, but for the rows */
  int64_t result[UMEM_MAX_RANK]; /* of its results */
  umemElementType type = 0, result_type = 0;
  nb::object array, out; /* of the block that the program has */
  bool is_busy = false;

  Blocks() = default;
  Blocks(Blocks const &) = delete;
  Blocks &operator=(Blocks const &) = delete;
  ~Blocks() { end(); }

  void end_block() {
    for (nb::object *part : {&array, &out}) {
      if (part->is_valid() && !part->is_none()) release_memory(array_of(*part));
      part->reset();
    }
  }
  void end() {
    Passage *ended = passage;
    passage = nullptr;
    if (array.is_valid()) end_block();
    if (!ended) return;
    Unlock unlock(true);
    Passage::drop(ended);
  }
};

umemRows rows_of(umemArray *handle) {
  if (umemArray_rank(handle) == 0) raise(umemValueError, "an array without dimensions has no rows");
  int64_t nbytes = static_cast<int64_t>(umem_element_size(umemArray_type(handle)));
  for (int k = umemArray_rank(handle) - 1; k > 0; k--) {
    if (umemArray_extent(handle, k) != 1 && umemArray_stride(handle, k) != nbytes)
      raise(umemValueError,
            "the elements of a row must follow one another: copy() makes such an array");
    nbytes *= umemArray_extent(handle, k);
  }
  return {umemArray_context(handle), umemArray_address(handle), static_cast<size_t>(nbytes),
          static_cast<ptrdiff_t>(umemArray_stride(handle, 0))};
}

void set_shape(umemArray *handle, int64_t *shape, umemElementType &type) {
  type = umemArray_type(handle);
  for (int k = 0; k < umemArray_rank(handle); k++) shape[k] = umemArray_extent(handle, k);
}

void init(Blocks *self, nb::object source, nb::object place, nb::object destination, size_t budget,
          size_t rows, size_t depth, size_t before, size_t after, bool clamped, bool apart,
          nb::object progress) {
  umemBlocksOptions options = UMEM_BLOCKS_OPTIONS_INIT;
  Passage *passage = new Passage;
  Blocks made;
  made.passage = passage; /* ends it if this fails */
  umemArray *from = passage->source.emplace(array_of(source)).get();
  options.source = rows_of(from);
  options.count = static_cast<size_t>(umemArray_extent(from, 0));
  made.rank = umemArray_rank(from);
  set_shape(from, made.shape, made.type);
  set_shape(from, made.result, made.result_type);
  if (!destination.is_none()) {
    umemArray *to = passage->destination.emplace(array_of(destination), true).get();
    options.destination = rows_of(to);
    if (umemArray_rank(to) != umemArray_rank(from) ||
        umemArray_extent(to, 0) != umemArray_extent(from, 0))
      raise(umemValueError, "the destination must have as many dimensions and rows as the source");
    if (umemArray_is_read_only(to)) raise(umemNotSupportedError, "the destination is read-only");
    set_shape(to, made.result, made.result_type);
    if (!apart && made.result_type != made.type &&
        options.destination.nbytes == options.source.nbytes)
      raise(umemTypeError, "the destination has elements of another type: results need apart=True");
  }
  Use where = place_of(place).open();
  options.place = where->ctx;
  options.budget = budget;
  options.rows = rows;
  options.depth = depth;
  options.before = before;
  options.after = after;
  options.ghosts = clamped ? umemGhostsClamped : umemGhostsLeftOut;
  options.apart = apart;
  passage->place.emplace(where);
  passage->progress.function = progress.is_none() ? nullptr : progress.ptr();
  options.progress = Progress::step;
  options.user = &passage->progress;
  unlocked([&] { umemBlocks_ctor(&passage->blocks, &options); });
  new (self) Blocks;
  std::swap(self->passage, made.passage);
  self->rank = made.rank;
  self->type = made.type;
  self->result_type = made.result_type;
  std::copy(made.shape, made.shape + made.rank, self->shape);
  std::copy(made.result, made.result + made.rank, self->result);
  self->source = source;
  self->destination = destination;
  self->place = place;
  self->progress = progress;
}

nb::object array_at(Blocks &self, uintptr_t adr, umemElementType type, int64_t const *form,
                    size_t rows) {
  Shape shape(self.rank, form);
  shape.extents[0] = static_cast<int64_t>(rows);
  Context *context = self.passage->place->get();
  umemArray *handle;
  Passage *passage = self.passage;
  array_call(true, [&](umemStatusType *status) {
    handle = umemArray_take(context->ctx, adr, type, shape.rank, shape.extents, nullptr,
                            Passage::drop, passage, status);
  });
  passage->use();
  Array &whole = array_of(form == self.shape ? self.source : self.destination);
  return with_name(wrap_array(handle, context, self.place), {type, nb::borrow(whole.named)});
}

void end_blocks(Blocks &self) {
  Call call;
  self.end();
  call.end();
}

/* (array with its ghost rows, results or the array, first row, rows, rows before, rows after,
 * number) */
nb::object next(Blocks &self) {
  umemBlock block = UMEM_BLOCK_INIT;
  if (!self.passage) throw nb::stop_iteration();
  if (self.is_busy) raise(umemRuntimeError, "another thread is waiting for a block");
  if (self.array.is_valid()) self.end_block();
  Passage *passage = self.passage;
  passage->use(); /* a progress function, or another thread, may end the blocks */
  self.is_busy = true;
  Call call;
  bool there;
  {
    Unlock unlock;
    there = umemBlocks_next(&passage->blocks, &block);
    Passage::drop(passage);
  }
  self.is_busy = false;
  if (!there) self.end();
  call.end();
  if (!self.passage) throw nb::stop_iteration();
  size_t held = block.before + block.rows + block.after;
  int64_t row = static_cast<int64_t>(umem_element_size(self.type));
  for (int k = 1; k < self.rank; k++) row *= self.shape[k];
  uintptr_t first = block.adr - block.before * static_cast<size_t>(row);
  self.array = array_at(self, first, self.type, self.shape, held);
  if (block.out == block.adr)
    self.out = nb::none();
  else
    self.out = array_at(self, block.out, self.result_type, self.result, block.rows);
  return nb::make_tuple(self.array, self.out, block.first, block.rows, block.before, block.after,
                        block.number);
}

Dict info(Blocks &self) {
  if (!self.passage) raise(umemValueError, "the blocks have ended");
  umemBlocksInfo info = UMEM_BLOCKS_INFO_INIT;
  unlocked([&] { umemBlocks_info(&self.passage->blocks, &info); });
  Dict d;
  d["rows"] = info.rows;
  d["blocks"] = info.blocks;
  d["depth"] = info.depth;
  d["nbytes"] = info.nbytes;
  d["done"] = info.done;
  return d;
}

} // namespace

void bind_blocks(nb::module_ &m) {
  nb::class_<Blocks>(m, "Blocks", "The passage of an array through a place: see umem.blocks.")
      .def("__init__", init, nb::arg("source"), nb::arg("place"), nb::arg("destination").none(),
           nb::arg("budget"), nb::arg("rows"), nb::arg("depth"), nb::arg("before"),
           nb::arg("after"), nb::arg("clamped"), nb::arg("apart"), nb::arg("progress").none())
      .def(
          "_next", next, nb::lock_self(),
          nb::sig("def _next(self) -> tuple[ArrayType, ArrayType | None, int, int, int, int, int]"))
      .def("close", end_blocks, nb::lock_self(),
           "Ends the passage: the block that the program has is not written, all before it are.\n\n"
           "Raises the failure of a write. While NumPy or another library uses memory of a block, "
           "the passage ends\n"
           "only when the last of them does.")
      .def_prop_ro(
          "info", info, nb::for_getter(nb::lock_self()),
          "rows of a block, number of blocks, depth, nbytes on the place, rows that are done.");
}
