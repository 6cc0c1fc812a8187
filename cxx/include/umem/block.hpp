/* umem/block.hpp - arrays larger than memory, block by block: umem/blocks.h for loops of C++.
 *
 *     umem::Array<double, 2> u({rows, columns}, umem::File("u.bin", "r+"));
 *     umem::BlocksOptions options;
 *     options.budget = std::size_t(1) << 30;
 *     for (auto const &block : umem::blocks(u, gpu, options))
 *       total += umem::sum(block.place(), block.in());
 *
 * An array is cut along its first dimension. umem reads the next blocks, and writes those before,
 * while the loop works on one. A block is a pair of views of memory of the place. It is valid until
 * the loop goes on, which gives it back: then it is written, if there is a destination.
 *
 *     umem::blocks(array, place, options)                 reads: block.in() has elements T const
 *     umem::blocks(array, umem::write, place, options)    changes it: block.in() has elements T
 *     umem::blocks(from, to, place, options)              reads block.in(), writes block.out()
 *
 * If the body of the loop leaves by break or an exception, the block that it has is not written;
 * those before it are. Failures of reading and writing are thrown by the step to the next block
 * (++), with the block in the message. A failure after the body has left the loop is only recorded
 * on its context: call finish() to have it thrown.
 *
 * blocks.hpp has loops, reductions and stencils over blocks. umem.hpp includes neither.
 *
 * Threads: as umem/blocks.h. */
#ifndef UMEM_BLOCK_HPP
#define UMEM_BLOCK_HPP

#include <umem/range.hpp>

#include <functional>

namespace umem {

/* How an array passes. */
struct BlocksOptions {
  /* The most bytes that the blocks take on the place; 0: 64 MiB, or if rows is set, any number. */
  std::size_t budget = 0;
  /* Rows of a block, and blocks in memory at once; 0: umem chooses. */
  index_t rows = 0;
  index_t depth = 0;
  /* Rows before and after its own that block.in() holds, as ghost cells of dimension 0. */
  index_t ghosts = 0;
  /* What the ghost rows before the first and after the last row of the array hold: nothing that may
   * be read, or copies of these rows. */
  umemGhosts edges = umemGhostsLeftOut;
  /* Contexts in the memory of the place on which blocks are read and written:
   * umemBlocksOptions.queues. Without any, umem makes a CudaAsync for each block in memory where
   * the place is on a GPU. */
  std::vector<Context> queues = {};
  /* Called with the rows done and all rows, as that of umemBlocksOptions. If it returns false, the
   * loop ends with umem::cancelled_error; an exception that leaves it is thrown by the loop. */
  std::function<bool(std::uint64_t, std::uint64_t)> progress = {};
};

/* The block that the loop works on. In: T, or T const where the array is only read. Out: the
 * element type of another array of OutRank dimensions, or void. Copies are of the same block. */
template <class In, class Out, int Rank, int OutRank> class Block {
public:
  static constexpr bool has_out = !std::is_void_v<Out>;
  using out_view = View<std::conditional_t<has_out, Out, char>, OutRank>;

  Block(umemBlock const &block, View<In, Rank> const &in, out_view const &out,
        Extents<Rank> const &all, Place const &place) noexcept
      : block_(block), in_(in), out_(out), all_(all), place_(place) {}

  /* From 0. */
  index_t number() const noexcept { return static_cast<index_t>(block_.number); }

  /* Element (i, j, ...) of the views is element (first() + i, j, ...) of the array. */
  index_t first() const noexcept { return static_cast<index_t>(block_.first); }
  index_t rows() const noexcept { return static_cast<index_t>(block_.rows); }

  /* Where loops over the block run. */
  Place const &place() const noexcept { return place_; }

  /* The elements of the array; options.ghosts ghost cells in dimension 0. Those that the array does
   * not have (before its first and after its last row) must not be read, unless the edges are
   * clamped. */
  View<In, Rank> const &in() const noexcept { return in_; }
  View<In, Rank> const &operator*() const noexcept { return in_; }
  View<In, Rank> const *operator->() const noexcept { return &in_; }
  operator View<In, Rank>() const noexcept { return in_; }

  /* The elements of the destination, which the loop gives values: all of them. */
  out_view const &out() const noexcept {
    static_assert(has_out, "blocks have an out() where they go to another array");
    return out_;
  }

  /* Extents of the whole array. */
  Extents<Rank> const &array_extents() const noexcept { return all_; }

  /* The indices of this block's elements that are at least margin away from the ends of the array:
   * umem::interior for one block of it. May be empty. */
  Range<Rank> interior(index_t margin = 1) const noexcept {
    Range<Rank> range = detail::inside(all_, margin);
    range.begin.at[0] = std::max<index_t>(range.begin.at[0] - first(), 0);
    range.end.at[0] = std::min<index_t>(range.end.at[0] - first(), rows());
    return range;
  }

private:
  umemBlock block_;
  View<In, Rank> in_;
  out_view out_;
  Extents<Rank> all_;
  Place place_;
};

namespace detail {

/* The memory of a part that is read. */
template <class Type, int Rank> Location source_of(Part<Type, Rank> const &part) {
  PartMembers::memory(part).check_source();
  return PartMembers::memory(part).source(PartMembers::items(part));
}

/* Of one that is written: marks the side as the only current one. Rows that are not written keep
 * their values: it is the side that was. */
template <class Type, int Rank> Location destination_of(Part<Type, Rank> const &part) {
  return PartMembers::memory(part).destination(PartMembers::items(part), false);
}

/* What passes: any operand of a loop; views are of host memory. */
template <class Operand>
using source_part_t = Part<typename operand_t<Operand>::element_type const, rank_of<Operand>>;

/* The rows of a part at a location. Throws where the elements of a row have gaps between them. */
template <class Type, int Rank>
umemRows rows_of(Part<Type, Rank> const &part, Location const &location) {
  static_assert(Rank > 0, "blocks of an array without dimensions");
  Extents<Rank> const &extents = part.extents();
  index_t stride = 1;
  for (int k = Rank - 1; k > 0; k--) {
    if (extents.at[k] > 1 && part.strides().at[k] != stride)
      throw value_error("blocks of an array whose rows have gaps between their elements");
    stride *= extents.at[k];
  }
  auto item = static_cast<index_t>(sizeof(Type));
  return {location.context->c_context(), location.adr, static_cast<std::size_t>(stride * item),
          static_cast<std::ptrdiff_t>(part.strides().at[0] * item)};
}

/* The context that blocks are on, and where loops over them run. */
struct BlocksPlace {
  BlocksPlace(Context const &context_) : context(context_), place(context_) {}
  BlocksPlace(HostPlace host) : context(pointers()), place(host) {}

  Context context;
  Place place;
};

/* Streams, where the place is memory of a GPU and the program has named none: as many as umem keeps
 * blocks in memory if it chooses. */
inline std::vector<Context> queues_for(BlocksPlace const &where, BlocksOptions const &options) {
  std::vector<Context> queues = options.queues;
  if (!queues.empty() || !where.place.is_device()) return queues;
  index_t count = options.depth > 0 ? std::min<index_t>(options.depth, 16) : 5;
  while (static_cast<index_t>(queues.size()) < count) {
    CudaAsync queue(where.place.device().device);
    if (!queue.is_same_device(where.context)) break; /* managed memory */
    queues.push_back(std::move(queue));
  }
  return queues;
}

inline std::size_t count_of(index_t number, char const *what) {
  if (number < 0) throw value_error(std::string("blocks with a negative number of ") + what);
  return static_cast<std::size_t>(number);
}

/* The passage, and what it keeps alive: it stays where it is. */
class Passage {
public:
  Passage(BlocksPlace const &where, BlocksOptions const &options)
      : where_(where), queues_(queues_for(where, options)), progress_(options.progress) {
    device_pointer(where_.context, 0); /* throws where addresses are no pointers */
    for (Context const &queue : queues_) c_queues_.push_back(queue.c_context());
    options_.place = where_.context.c_context();
    options_.queues = c_queues_.data();
    options_.queue_count = c_queues_.size();
    options_.budget = options.budget;
    options_.rows = count_of(options.rows, "rows");
    options_.depth = count_of(options.depth, "blocks in memory");
    options_.before = options_.after = count_of(options.ghosts, "ghost rows");
    options_.ghosts = options.edges;
    if (progress_) call_.write(options_);
  }
  Passage(Passage const &) = delete;
  Passage &operator=(Passage const &) = delete;

  /* Records failures on the contexts, and prints a line if there is no failure hook. */
  ~Passage() {
    umemStatusType status = umemBlocks_end(&blocks_);
    bool lost = status != umemOK && status != umemCancelledError;
    if (lost && generation_ == umem_generation()) umem_report_end("umem::blocks");
  }

  void begin(umemRows const &source, umemRows const *destination, std::size_t count, bool apart) {
    options_.source = source;
    if (destination) options_.destination = *destination;
    options_.count = count;
    options_.apart = apart;
    check_status(umemBlocks_ctor(&blocks_, &options_));
    info_ = ask();
  }

  /* Whether there is a next block. */
  bool next() {
    if (!blocks_.impl) throw value_error("the blocks have passed: make new ones for another loop");
    if (umemBlocks_next(&blocks_, &block_)) return true;
    finish();
    return false;
  }

  void finish() {
    if (blocks_.impl) info_ = ask();
    umemStatusType status = umemBlocks_end(&blocks_);
    call_.rethrow();
    check_status(status);
  }

  void cancel() noexcept { umemBlocks_cancel(&blocks_); }

  umemBlocksInfo info() { return blocks_.impl ? ask() : info_; }
  umemBlock const &block() const noexcept { return block_; }
  BlocksPlace const &where() const noexcept { return where_; }
  index_t ghosts() const noexcept { return static_cast<index_t>(options_.before); }

  template <class Type> Type *pointer(address adr) const {
    return static_cast<Type *>(device_pointer(where_.context, adr));
  }

private:
  umemBlocksInfo ask() {
    return filled<umemBlocksInfo>(UMEM_BLOCKS_INFO_INIT, umemBlocks_info, &blocks_);
  }

  BlocksPlace where_;
  std::vector<Context> queues_;
  std::vector<void *> c_queues_;
  std::function<bool(std::uint64_t, std::uint64_t)> progress_;
  ProgressCall<decltype(progress_)> call_{progress_, nullptr};
  umemBlocksOptions options_ = UMEM_BLOCKS_OPTIONS_INIT;
  umemBlocks blocks_{};
  umemBlocksInfo info_ = UMEM_BLOCKS_INFO_INIT;
  umemBlock block_ = UMEM_BLOCK_INIT;
  unsigned generation_ = umem_generation();
};

} // namespace detail

/* The blocks of an array, each once and in their order: for one loop. Move-only. Iterators must not
 * outlive it. Meanwhile nothing else may write to the source or use the destination. */
template <class In, class Out, int Rank, int OutRank> class Blocks {
public:
  /* Of the array that the blocks are written to. */
  using out_element_type = std::conditional_t<std::is_void_v<Out>, std::remove_const_t<In>, Out>;
  using value_type = Block<In, Out, Rank, OutRank>;

  class Iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Block<In, Out, Rank, OutRank>;
    using difference_type = std::ptrdiff_t;
    using pointer = value_type const *;
    using reference = value_type const &;

    Iterator() = default;
    pointer operator->() const noexcept {
      return &*owner_->block_; // NOLINT(bugprone-unchecked-optional-access): an owner has a block
    }
    reference operator*() const noexcept { return *operator->(); }

    /* Gives the block back, and waits for the next one. */
    Iterator &operator++() {
      if (!owner_->advance()) owner_ = nullptr;
      return *this;
    }
    void operator++(int) { ++*this; }

    friend bool operator==(Iterator const &one, Iterator const &other) noexcept {
      return one.owner_ == other.owner_;
    }
    friend bool operator!=(Iterator const &one, Iterator const &other) noexcept {
      return !(one == other);
    }

  private:
    friend class Blocks;
    explicit Iterator(Blocks *owner) noexcept : owner_(owner) {}
    Blocks *owner_ = nullptr; /* null: the end */
  };

  /* The first block, or the end if there is none. Call it once. */
  Iterator begin() { return advance() ? Iterator(this) : Iterator(); }
  Iterator end() const noexcept { return Iterator(); }

  /* Waits until what was given back is written, and throws its failures. The block that the loop
   * has is not written. */
  void finish() {
    block_.reset();
    passage_->finish();
  }

  /* Ends the loop: its next step throws umem::cancelled_error, unless all blocks were given back.
   * Any thread may call this while the loop runs. */
  void cancel() noexcept { passage_->cancel(); }

  /* Rows of each block but the last, blocks in memory at once, bytes that they take on the place,
   * and how many blocks there are. */
  index_t rows() const { return static_cast<index_t>(passage_->info().rows); }
  index_t depth() const { return static_cast<index_t>(passage_->info().depth); }
  std::size_t nbytes() const { return passage_->info().nbytes; }
  index_t size() const { return static_cast<index_t>(passage_->info().blocks); }

  Extents<Rank> const &extents() const noexcept { return source_.extents(); }
  Place const &place() const noexcept { return passage_->where().place; }

  /* See umem::blocks. destination: null for none */
  Blocks(Part<std::remove_const_t<In> const, Rank> source,
         Part<out_element_type, OutRank> const *destination, detail::BlocksPlace const &place,
         BlocksOptions const &options)
      : source_(std::move(source)), passage_(std::make_unique<detail::Passage>(place, options)) {
    if (destination) destination_.emplace(*destination);
    if (destination_ && destination_->extents()[0] != source_.extents()[0])
      throw value_error("blocks of " + std::to_string(source_.extents()[0]) +
                        " rows to an array of " + std::to_string(destination_->extents()[0]));
    bool none = source_.size() == 0 || (destination_ && destination_->size() == 0);
    std::size_t count = none ? 0 : static_cast<std::size_t>(source_.extents()[0]);
    umemRows from = detail::rows_of(source_, detail::source_of(source_)), to = {};
    if (destination_) to = detail::rows_of(*destination_, detail::destination_of(*destination_));
    passage_->begin(from, destination_ ? &to : nullptr, count, !std::is_void_v<Out>);
  }

private:
  bool advance() {
    block_.reset();
    if (!passage_->next()) return false;
    umemBlock const &block = passage_->block();
    Extents<Rank> in = source_.extents(), ghosts;
    Extents<OutRank> out;
    in.at[0] = static_cast<index_t>(block.rows);
    ghosts.at[0] = passage_->ghosts();
    if (destination_) out = destination_->extents();
    out.at[0] = in.at[0];
    using OutView = typename value_type::out_view;
    block_.emplace(
        block, View<In, Rank>(passage_->template pointer<In>(block.adr), in, c_strides(in), ghosts),
        OutView(passage_->template pointer<typename OutView::element_type>(block.out), out),
        source_.extents(), passage_->where().place);
    return true;
  }

  Part<std::remove_const_t<In> const, Rank> source_;
  std::optional<Part<out_element_type, OutRank>> destination_;
  std::unique_ptr<detail::Passage> passage_;
  std::optional<value_type> block_;
};

/* Blocks of an array, which is only read. array: an Array, of which the side passes that is
 * current, a Part, a guard, or a View of host memory. place: a context (loops run as
 * umem::Place(context) says), or umem::on_host or on_host_threads: blocks in RAM. Begins to read at
 * once. Throws as umemBlocks_ctor fails; umem::value_error if the elements of a row have gaps, as
 * those of three dimensions with ghost cells in the last one; umem::not_supported_error where the
 * place has no pointers. */
template <class Operand>
auto blocks(Operand const &array, detail::BlocksPlace const &place,
            BlocksOptions const &options = {}) {
  using Source = detail::source_part_t<Operand>;
  using Result = Blocks<typename Source::element_type, void, Source::rank, Source::rank>;
  return Result(detail::as_part(array), nullptr, place, options);
}

/* Blocks for a loop that changes elements of the array in them. Ghost rows hold the old
 * values. */
template <class Operand>
auto blocks(Operand &&array, write_t, detail::BlocksPlace const &place,
            BlocksOptions const &options = {}) {
  auto part = detail::as_part(array);
  using Type = typename decltype(part)::element_type;
  static_assert(!std::is_const_v<Type>, "blocks: the elements cannot be written");
  using Result = Blocks<Type, void, decltype(part)::rank, decltype(part)::rank>;
  return Result(part, &part, place, options);
}

/* Blocks of an array, from which the loop makes those of another one with as many rows, which may
 * have other elements and another rank. to may be the array itself: the loop then reads old values
 * and writes new ones. */
template <class Operand, class Other,
          class = std::enable_if_t<!std::is_same_v<std::decay_t<Other>, write_t>>>
auto blocks(Operand const &from, Other &&to, detail::BlocksPlace const &place,
            BlocksOptions const &options = {}) {
  using Source = detail::source_part_t<Operand>;
  auto destination = detail::as_part(to);
  using OtherType = typename decltype(destination)::element_type;
  static_assert(!std::is_const_v<OtherType>,
                "blocks: the elements of the destination cannot be written");
  using Result =
      Blocks<typename Source::element_type, OtherType, Source::rank, decltype(destination)::rank>;
  return Result(detail::as_part(from), &destination, place, options);
}

} // namespace umem

#endif
