/* umem/mpi_blocks.hpp - an array that is divided into blocks over the ranks of a communicator.
 *
 *     umem::mpi::Blocks<double, 2> u(MPI_COMM_WORLD, {1000, 1000}, {{1, 1}}); // a block a rank
 *     umem::fill(u.array(), 0.0);     // an umem::Array<double, 2> with ghost cells
 *     u.exchange();                   // ghost cells from the neighbours
 *     double largest = u.max();       // of all blocks
 *     u.save_npy("u.npy");            // each rank writes its part
 *
 * All functions that say so are collective: all ranks of the communicator call them, in the same
 * order. If one throws in one rank alone, the others may wait for it. */
#ifndef UMEM_MPI_BLOCKS_HPP
#define UMEM_MPI_BLOCKS_HPP

#include <umem/array.hpp>
#include <umem/copy.hpp>
#include <umem/decomposition.hpp>
#include <umem/exchange.hpp>
#include <umem/functional.hpp>
#include <umem/mpi.hpp>
#include <umem/npy.hpp>
#include <umem/reduce.hpp>

#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace umem {
namespace mpi {

namespace detail {

/* A duplicate of a communicator, whose messages meet no others. */
class OwnComm {
public:
  explicit OwnComm(MPI_Comm comm) {
    check_mpi(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &ranks);
  }
  OwnComm(OwnComm const &) = delete;
  OwnComm &operator=(OwnComm const &) = delete;
  ~OwnComm() {
    int ended = 0;
    if (MPI_Finalized(&ended) == MPI_SUCCESS && !ended) MPI_Comm_free(&comm_);
  }

  operator MPI_Comm() const noexcept { return comm_; }

  int rank = 0, ranks = 1;

private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/* A datatype of MPI that is freed. */
class OwnType {
public:
  OwnType() = default;
  OwnType(OwnType const &) = delete;
  OwnType &operator=(OwnType const &) = delete;
  ~OwnType() {
    int ended = 0;
    if (type_ != MPI_DATATYPE_NULL && MPI_Finalized(&ended) == MPI_SUCCESS && !ended)
      MPI_Type_free(&type_);
  }
  operator MPI_Datatype() const noexcept { return type_; }
  MPI_Datatype *to_make() noexcept { return &type_; }

private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/* So many bytes as one item of MPI, which counts in int. */
class ItemType : public OwnType {
public:
  explicit ItemType(std::size_t size) {
    check_mpi(MPI_Type_contiguous(static_cast<int>(size), MPI_BYTE, to_make()),
              "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(to_make()), "MPI_Type_commit");
  }
};

/* Waits, and lets other processes run: some MPIs do not, and become slow with more ranks than
 * processors. */
inline void wait(MPI_Request &request, char const *what) {
  int done = 0;
  for (int polls = 0; !done; polls++) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (!done && polls > 100) std::this_thread::yield();
  }
}

/* MPI describes a part of an array by numbers of type int. */
template <int Rank> void check_savable(Extents<Rank> const &extents) {
  for (int k = 0; k < Rank && extents.product() != 0; k++)
    if (extents[k] > std::numeric_limits<int>::max())
      umem::detail::raise_text(umemValueError,
                               "save_npy: dimension %d of the array has %td elements, but MPI "
                               "writes parts of arrays with "
                               "at most %d along each dimension",
                               k, extents[k], std::numeric_limits<int>::max());
}

inline int count_of(index_t n) {
  if (n > std::numeric_limits<int>::max())
    umem::detail::raise_text(umemValueError, "%td elements in one message of MPI", n);
  return static_cast<int>(n);
}

/* How many blocks along each dimension: as MPI_Dims_create has it, the longest dimension with the
 * most. */
template <int Rank> Extents<Rank> blocks_along(int ranks, Extents<Rank> const &extents) {
  int dims[Rank] = {};
  check_mpi(MPI_Dims_create(ranks, Rank, dims), "MPI_Dims_create"); /* falling */
  Extents<Rank> result;
  bool taken[Rank] = {};
  for (int n = 0; n < Rank; n++) {
    int longest = -1;
    for (int k = 0; k < Rank; k++)
      if (!taken[k] && (longest < 0 || extents[k] > extents[longest])) longest = k;
    taken[longest] = true;
    result.at[longest] = dims[n];
  }
  return result;
}

/* An operation of umem (functional.hpp) on numbers of type Result, as MPI calls it. */
template <class Result, class Op> void apply(void *in, void *inout, int *count, MPI_Datatype *) {
  Result const *from = static_cast<Result const *>(in);
  Result *to = static_cast<Result *>(inout);
  for (int i = 0; i < *count; i++) to[i] = static_cast<Result>(Op()(to[i], from[i]));
}

template <class Result, class Op> Result reduce_all(MPI_Comm comm, Result const &own) {
  static_assert(std::is_trivially_copyable_v<Result>);
  ItemType type(sizeof(Result));
  MPI_Op op;
  Result all = own;
  check_mpi(MPI_Op_create(apply<Result, Op>, 1, &op), "MPI_Op_create");
  MPI_Request request = MPI_REQUEST_NULL;
  int error = MPI_Iallreduce(&own, &all, 1, type, op, comm, &request);
  MPI_Op_free(&op); /* MPI keeps it until the reduction is done */
  check_mpi(error, "MPI_Iallreduce");
  wait(request, "MPI_Iallreduce");
  return all;
}

/* What one rank sends to another one, or receives from it, in one message. */
template <class Type, int Rank> struct Message {
  int rank;
  std::vector<Range<Rank>> cells; /* in this order; indices of the block */
  index_t count = 0;              /* elements */
  std::unique_ptr<Type[]> elements;

  void add(Range<Rank> const &range) {
    index_t n = 1;
    for (int k = 0; k < Rank; k++) n *= range.end.at[k] - range.begin.at[k];
    cells.push_back(range);
    count += n;
  }

  /* Copies between the cells of a block and the elements. */
  template <bool out> void move(Part<Type, Rank> const &block) {
    Type *at = elements.get();
    for (Range<Rank> const &range : cells) {
      Part<Type, Rank> const part = umem::detail::cells_of(block, range);
      Part<Type, Rank> const packed(umem::detail::pointers(), reinterpret_cast<address>(at),
                                    part.extents());
      if constexpr (out)
        copy(Part<Type const, Rank>(part), packed);
      else
        copy(Part<Type const, Rank>(packed), part);
      at += part.size();
    }
  }
};

/* The messages of one exchange of ghost cells. */
template <class Type, int Rank> struct Exchange {
  std::vector<Message<Type, Rank>> sent, received;

  Exchange(Decomposition<Rank> const &grid, int own, Ghosts<Rank> const &ghosts) {
    for (GhostCopy<Rank> const &one : grid.ghost_copies(own, ghosts))
      find(received, one.from).add(one.target);
    for (index_t other = 0; other < grid.size(); other++)
      for (GhostCopy<Rank> const &one : grid.ghost_copies(other, ghosts))
        if (one.from == own) find(sent, other).add(one.source);
    for (auto *messages : {&sent, &received})
      for (Message<Type, Rank> &message : *messages)
        message.elements.reset(new Type[static_cast<std::size_t>(count_of(message.count))]);
  }

  void run(MPI_Comm comm, MPI_Datatype type, Part<Type, Rank> const &block) {
    std::vector<MPI_Request> requests;
    requests.reserve(sent.size() + received.size());
    /* First what may throw: no message is under way then. */
    for (Message<Type, Rank> &message : sent) message.template move<true>(block);
    for (Message<Type, Rank> &message : received)
      begin(requests, MPI_Irecv(message.elements.get(), count_of(message.count), type, message.rank,
                                0, comm, &next(requests)));
    for (Message<Type, Rank> &message : sent)
      begin(requests, MPI_Isend(message.elements.get(), count_of(message.count), type, message.rank,
                                0, comm, &next(requests)));
    for (MPI_Request &request : requests) wait(request, "MPI_Isend or MPI_Irecv");
    for (Message<Type, Rank> &message : received) message.template move<false>(block);
  }

private:
  static Message<Type, Rank> &find(std::vector<Message<Type, Rank>> &messages, index_t rank) {
    for (Message<Type, Rank> &message : messages)
      if (message.rank == rank) return message;
    messages.push_back({static_cast<int>(rank), {}, 0, nullptr});
    return messages.back();
  }
  static MPI_Request &next(std::vector<MPI_Request> &requests) {
    requests.push_back(MPI_REQUEST_NULL);
    return requests.back();
  }
  static void begin(std::vector<MPI_Request> const &, int error) {
    check_mpi(error, "MPI_Isend or MPI_Irecv");
  }
};

/* What became of a step that all ranks have done. */
struct Outcome {
  int first_failed;           /* the lowest rank in which it threw; the number of ranks: none */
  std::exception_ptr failure; /* of this rank */
};

/* Does step, and then agrees with all ranks whether all have done it. Collective, also where step
 * throws. */
template <class Function> Outcome do_in_all(OwnComm const &comm, Function const &step) {
  Outcome outcome{comm.ranks, nullptr};
  try {
    step();
  } catch (...) {
    outcome.failure = std::current_exception();
  }
  int const mine = outcome.failure ? comm.rank : comm.ranks;
  MPI_Request request = MPI_REQUEST_NULL;
  int const error =
      MPI_Iallreduce(&mine, &outcome.first_failed, 1, MPI_INT, MPI_MIN, comm, &request);
  if (!outcome.failure) check_mpi(error, "MPI_Iallreduce");
  if (error == MPI_SUCCESS) wait(request, "MPI_Iallreduce");
  return outcome;
}

/* One file that all ranks write. It gets its name when it is complete; until then it is a draft
 * beside it. Each rank opens the draft by itself, so that MPI waits for no other rank where this
 * one fails; after each step all ranks agree whether all have done it. If not, all throw, and there
 * is no draft. */
class SharedFile {
public:
  /* Creates the draft. Collective. */
  SharedFile(OwnComm const &comm, std::string const &path) : comm_(comm), path_(path) {
    agree([&] {
      if (comm.rank != 0) return;
      new_.emplace(umem::File::replace(path));
      draft_ = new_->draft();
    });
    agree([&] {
      tell_draft();
      open();
    });
  }
  SharedFile(SharedFile const &) = delete;
  SharedFile &operator=(SharedFile const &) = delete;
  ~SharedFile() {
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
  }

  /* All ranks write what they have to, which is what write does, and the draft becomes the file.
   * Collective. */
  template <class Function> void complete(Function const &write) {
    agree([&] {
      write();
      check_mpi(MPI_File_sync(file_), "MPI_File_sync");
      check_mpi(MPI_File_close(&file_), "MPI_File_close");
    });
    agree([&] {
      if (new_) new_->commit();
    });
  }

  void write_header(std::string const &header) {
    write_items(header.data(), static_cast<int>(header.size()), MPI_BYTE);
  }

  /* Writes count items of this rank, which are at the places of filetype behind the header. */
  void write(std::size_t header, void const *items, index_t count, std::size_t size,
             MPI_Datatype item, MPI_Datatype filetype) {
    check_mpi(MPI_File_set_view(file_, static_cast<MPI_Offset>(header), item, filetype, "native",
                                MPI_INFO_NULL),
              "MPI_File_set_view");
    index_t const most = static_cast<index_t>((std::size_t(1) << 30) / size) + 1;
    for (index_t done = 0, n; done < count; done += n) {
      n = count - done < most ? count - done : most;
      write_items(static_cast<char const *>(items) + done * index_t(size), count_of(n), item);
    }
  }

private:
  /* Its name has a random number, which rank 0 alone knows. */
  void tell_draft() {
    std::array<char, 4096> name = {};
    draft_.copy(name.data(), name.size() - 1);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, comm_, &request),
              "MPI_Ibcast");
    wait(request, "MPI_Ibcast");
    draft_ = name.data();
  }

  void open() {
    check_mpi(MPI_File_open(MPI_COMM_SELF, draft_.c_str(), MPI_MODE_WRONLY, MPI_INFO_NULL, &file_),
              ("cannot open \"" + draft_ + "\"").c_str());
  }

  void write_items(void const *items, int count, MPI_Datatype item) {
    MPI_Status status;
    int written = 0;
    check_mpi(MPI_File_write(file_, items, count, item, &status), "MPI_File_write");
    check_mpi(MPI_Get_count(&status, item, &written), "MPI_Get_count");
    if (written != count)
      umem::detail::raise_text(umemIOError, "cannot write \"%s\": MPI wrote %d of %d items",
                               draft_.c_str(), written, count);
  }

  /* Does step. If it throws in any rank, all ranks throw, and the draft is removed. */
  template <class Function> void agree(Function const &step) {
    Outcome const outcome = do_in_all(comm_, step);
    if (outcome.first_failed == comm_.ranks) return;
    if (file_ != MPI_FILE_NULL) MPI_File_close(&file_);
    new_.reset();
    if (outcome.failure) std::rethrow_exception(outcome.failure);
    umem::detail::raise_text(umemIOError, "cannot write \"%s\": rank %d failed, which knows why",
                             path_.c_str(), outcome.first_failed);
  }

  OwnComm const &comm_;
  std::string path_, draft_;
  std::optional<umem::File> new_; /* in rank 0 */
  MPI_File file_ = MPI_FILE_NULL;
};

} // namespace detail

template <class Type, int Rank> class Blocks {
  static_assert(std::is_trivially_copyable_v<Type>, "Blocks: messages copy bytes");
  static_assert(!std::is_same_v<Type, long double>,
                "Blocks: a long double has bytes without a meaning");

public:
  /* One block for each rank, as nearly square as MPI_Dims_create makes them, on context.
   * Collective. wraps: not 0 where the array is periodic. If the block of a rank cannot be made
   * (umem::memory_error there), all ranks throw (umem::runtime_error in the others). */
  Blocks(MPI_Comm comm, Extents<Rank> const &extents, Ghosts<Rank> const &ghosts = {},
         umem::Context context = umem::detail::pointers(), Extents<Rank> const &wraps = {})
      : Blocks(std::make_shared<detail::OwnComm>(comm), extents, ghosts, std::move(context),
               wraps) {}

  /* The blocks of grid, of which rank n has the n-th. Collective. Throws umem::value_error if there
   * are not as many blocks as ranks, and as above. */
  Blocks(MPI_Comm comm, Decomposition<Rank> grid, Ghosts<Rank> const &ghosts = {},
         umem::Context context = umem::detail::pointers())
      : Blocks(std::make_shared<detail::OwnComm>(comm), std::move(grid), ghosts,
               std::move(context)) {}

  /* ---- what is where ---- */

  Decomposition<Rank> const &decomposition() const noexcept { return grid_; }

  /* Of the whole array. */
  Extents<Rank> extents() const noexcept { return grid_.extents(); }

  int rank() const noexcept { return comm_->rank; }
  int ranks() const noexcept { return comm_->ranks; }

  /* The indices in the whole array that this rank has. */
  Range<Rank> box() const { return grid_.box(rank()); }

  /* Those of a range of the whole array that this rank has, as indices of its block. */
  Range<Rank> own(Range<Rank> range) const {
    Range<Rank> const mine = box();
    for (int k = 0; k < Rank; k++) {
      index_t const begin = mine.begin.at[k], end = mine.end.at[k];
      auto within = [=](index_t i) { return (i < begin ? begin : i > end ? end : i) - begin; };
      range.begin.at[k] = within(range.begin.at[k]);
      range.end.at[k] = within(range.end.at[k]);
    }
    return range;
  }

  /* The block of this rank; index 0 is its first element. */
  Array<Type, Rank> &array() noexcept { return array_; }
  Array<Type, Rank> const &array() const noexcept { return array_; }

  /* ---- all ranks ---- */

  /* Copies to the ghost cells of all blocks the elements of their neighbours, at edges and corners
   * too, and around the array where it is periodic. Ghost cells outside of the array keep their
   * values. Collective, but a rank waits for its neighbours only. */
  void exchange() { exchange_->run(*comm_, *type_, array_.part()); }

  /* Applies op to the values of all ranks. Collective. Op: of functional.hpp, or another
   * commutative function object of a type that has a default constructor. */
  template <class Op, class Result> Result reduce(Result const &own_value, Op) const {
    return detail::reduce_all<Result, Op>(*comm_, own_value);
  }

  /* The sum of all elements; the largest and the smallest one, NaN if there is a NaN. Collective.
   * The last digits of a sum of floating-point numbers depend on the number of ranks: each rank
   * adds its block first. max and min throw umem::value_error in all ranks if there is no
   * element. */
  auto sum() const {
    auto const own_sum = umem::sum(array_);
    return reduce(own_sum, umem::plus());
  }
  Type max() const {
    return extreme("max", umem::maximum(), lowest(), [&] { return umem::max(array_); });
  }
  Type min() const {
    return extreme("min", umem::minimum(), highest(), [&] { return umem::min(array_); });
  }

  /* Writes the whole array, without ghost cells, to one .npy file in C order. Each rank writes its
   * block; when all have, the file replaces the one at path, and has its permissions and its owner
   * as umem::File::replace. All ranks see the same folder, and belong to one user. Collective. The
   * file is first named ".umem-..." in the folder of path, with a random number; only its owner can
   * open it then. Throws umem::value_error in all ranks, before a file is made, if a dimension has
   * more than 2147483647 elements: MPI cannot describe the blocks of such an array. If a rank
   * fails, all throw (umem::io_error where another rank failed), the draft is removed, and the file
   * at path stays as it was. */
  void save_npy(std::string const &path) const {
    detail::check_savable(extents());
    std::string const header =
        umem::detail::make_npy_header(umem::detail::npy_type<Type>(), Shape(extents()), false);
    detail::SharedFile file(*comm_, path);
    file.complete([&] {
      if (rank() == 0) file.write_header(header);
      if (array_.size()) write_block(file, header.size());
    });
  }

private:
  Blocks(std::shared_ptr<detail::OwnComm> comm, Extents<Rank> const &extents,
         Ghosts<Rank> const &ghosts, umem::Context context, Extents<Rank> const &wraps)
      : Blocks(comm,
               Decomposition<Rank>(extents, detail::blocks_along(comm->ranks, extents), wraps),
               ghosts, std::move(context)) {}

  Blocks(std::shared_ptr<detail::OwnComm> comm, Decomposition<Rank> grid,
         Ghosts<Rank> const &ghosts, umem::Context context)
      : comm_(std::move(comm)), grid_(std::move(grid)) {
    if (grid_.size() != comm_->ranks)
      umem::detail::raise_text(umemValueError, "%td blocks for %d ranks", grid_.size(),
                               comm_->ranks);
    detail::Outcome const outcome = detail::do_in_all(*comm_, [&] {
      type_ = std::make_shared<detail::ItemType>(sizeof(Type));
      ArrayOptions<Rank> options;
      options.ghosts = ghosts;
      array_ = Array<Type, Rank>(grid_.extents(rank()), std::move(context), options);
      exchange_ = std::make_unique<detail::Exchange<Type, Rank>>(grid_, rank(), ghosts);
    });
    if (outcome.failure) std::rethrow_exception(outcome.failure);
    if (outcome.first_failed < comm_->ranks)
      umem::detail::raise_text(umemRuntimeError, "Blocks: rank %d has no block, and knows why",
                               outcome.first_failed);
  }

  static Type lowest() {
    using Limits = std::numeric_limits<Type>;
    return Limits::has_infinity ? static_cast<Type>(-Limits::infinity()) : Limits::lowest();
  }
  static Type highest() {
    using Limits = std::numeric_limits<Type>;
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }

  /* Ranks without elements join with the value that changes nothing. */
  template <class Op, class Function>
  Type extreme(char const *name, Op op, Type const &neutral, Function const &own_extreme) const {
    if (extents().product() == 0)
      umem::detail::raise_text(umemValueError, "%s of no elements", name);
    return reduce(array_.size() ? static_cast<Type>(own_extreme()) : neutral, op);
  }

  /* Writes the elements of this rank, of which there are some, to their places in the file. */
  void write_block(detail::SharedFile &file, std::size_t header) const {
    std::unique_ptr<Type[]> packed(new Type[static_cast<std::size_t>(array_.size())]());
    copy(Part<Type const, Rank>(array_.part()),
         Part<Type, Rank>(umem::detail::pointers(), reinterpret_cast<address>(packed.get()),
                          array_.extents()));
    int all[Rank], here[Rank], first[Rank];
    Range<Rank> const mine = box();
    for (int k = 0; k < Rank; k++) {
      all[k] = detail::count_of(extents()[k]);
      first[k] = detail::count_of(mine.begin.at[k]);
      here[k] = detail::count_of(mine.end.at[k] - mine.begin.at[k]);
    }
    detail::OwnType places;
    detail::check_mpi(
        MPI_Type_create_subarray(Rank, all, here, first, MPI_ORDER_C, *type_, places.to_make()),
        "MPI_Type_create_subarray");
    detail::check_mpi(MPI_Type_commit(places.to_make()), "MPI_Type_commit");
    file.write(header, packed.get(), array_.size(), sizeof(Type), *type_, places);
  }

  std::shared_ptr<detail::OwnComm> comm_;
  Decomposition<Rank> grid_;
  std::shared_ptr<detail::ItemType> type_;
  Array<Type, Rank> array_;
  std::unique_ptr<detail::Exchange<Type, Rank>> exchange_;
};

} // namespace mpi
} // namespace umem

#endif
