/* elements.cpp - copies between arrays and files of named arrays: those without gaps in one list,
 * the others, and compressed ones, a part at a time. */
#include "archive.hpp"
#include "inflate.hpp"
#include "json.hpp"

#include <umem/threads.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace umem_formats {

/* ---- progress ---- */

void Progress::begin(std::uint64_t total) {
  total_ = total;
  if (function_ && !function_(user_, 0, total) && total) cancel();
}

void Progress::cancel() const {
  fail(umemCancelledError, "cancelled after %llu of %llu bytes",
       static_cast<unsigned long long>(done_), static_cast<unsigned long long>(total_));
}

void Progress::add(std::uint64_t nbytes) {
  done_ += nbytes;
  if (!function_ || !nbytes || (done_ - reported_ < step_ && done_ < total_)) return;
  reported_ = done_;
  if (!function_(user_, done_, total_) && done_ < total_) cancel();
}

bool Progress::part(void *user, std::uint64_t done, std::uint64_t) {
  auto const &self = *static_cast<Progress const *>(user);
  return done == 0 || self.function_(self.user_, self.done_ + done, self.total_);
}

void Progress::copy(std::vector<umemCopyItem> const &items) {
  umemCopyManyOptions options = UMEM_COPY_MANY_OPTIONS_INIT;
  options.progress = function_ ? part : nullptr;
  options.user = this;
  options.step = step_;
  check(umem_copy_many(items.data(), items.size(), &options));
  for (umemCopyItem const &item : items) done_ += item.nbytes;
  reported_ = done_;
}

/* ---- parts ---- */

static bool has_capabilities(void *ctx, unsigned wanted) {
  return (static_cast<umemVirtual *>(ctx)->capabilities & wanted) == wanted;
}

void finish(void *ctx) {
  if (has_capabilities(ctx, umemOrdered)) check(umem_synchronize(ctx));
}

namespace {

constexpr std::size_t staged = std::size_t(1) << 20;   /* bytes that are inflated at a time */
constexpr std::size_t strided = std::size_t(64) << 20; /* that are rearranged */
constexpr std::size_t summed = std::size_t(16) << 20;  /* of which a thread makes a checksum */

/* Calls body with parts of an array of at most so many bytes, or one element, in C order, and with
 * the bytes before each. */
template <class Body>
void in_parts(umemArray *array, std::size_t most, std::uint64_t before, Body const &body) {
  std::uint64_t const nbytes = umemArray_nbytes(array);
  if (nbytes <= most || umemArray_rank(array) == 0) return body(array, before);
  std::int64_t const extent = umemArray_extent(array, 0);
  std::uint64_t const row = nbytes / static_cast<std::uint64_t>(extent);
  std::int64_t const rows = static_cast<std::int64_t>(most / row);
  for (std::int64_t i = 0; i < extent; i += rows ? rows : 1) {
    ArrayHandle const part(rows ? call(umemArray_slice, array, 0, i, std::min(rows, extent - i), 1)
                                : call(umemArray_select, array, 0, i));
    in_parts(part.get(), most, before + static_cast<std::uint64_t>(i) * row, body);
  }
}

/* The elements of an array in C order of the member. */
ArrayHandle in_order_of(Member const &member, umemArray *array) {
  return ArrayHandle(member.fortran_order ? call(umemArray_permute, array, nullptr)
                                          : umemArray_retain(array));
}

/* An array over bytes of a context, as a part of another one has. */
ArrayHandle alike(umemArray *part, void *ctx, std::uintptr_t adr) {
  return ArrayHandle(call(umemArray_borrow, ctx, adr, umemArray_type(part), umemArray_rank(part),
                          umemArray_shape(part), nullptr));
}

/* ---- from a file ---- */

void check_matching(umemArray *array, Member const &member) {
  if (!array) refuse("the array for %s is NULL", quoted(member.name).c_str());
  if (umemArray_type(array) != member.type)
    fail(umemTypeError, "%s has elements of another type than the array for it",
         quoted(member.name).c_str());
  int const rank = umemArray_rank(array);
  if (Shape(umemArray_shape(array), umemArray_shape(array) + rank) != member.shape)
    refuse("%s has another shape than the array for it", quoted(member.name).c_str());
  if (umemArray_is_read_only(array))
    fail(umemNotSupportedError, "the array for %s is read-only", quoted(member.name).c_str());
}

/* Runs body; what it refuses names the array. */
template <class Body> void of_member(Member const &member, Body const &body) {
  try {
    body();
  } catch (Failure &failure) {
    if (failure.type != umemCancelledError) failure.text.insert(0, quoted(member.name) + ": ");
    throw;
  }
}

/* The bytes of an element that change places together: a complex one has two numbers; 1 if they
 * have less. */
std::size_t number_bytes(umemElementType type) {
  bool const is_complex = umem_element_code(type) == umemCodeComplex;
  return std::max<std::size_t>(umem_element_bits(type) / (is_complex ? 16 : 8), 1);
}

void reverse_numbers(char *bytes, std::size_t nbytes, std::size_t each) {
  for (char *const end = bytes + nbytes; bytes < end; bytes += each)
    std::reverse(bytes, bytes + each);
}

/* Bytes of a member from its first element on. */
class Reader {
public:
  explicit Reader(Member const &member) : member_(member) {
    if (!member.is_compressed()) return;
    std::vector<char> header(static_cast<std::size_t>(member.packed->header_bytes));
    inflater_.emplace(*member.source, *member.packed);
    inflater_->read(header.data(), header.size());
  }
  void read(char *to, std::size_t count) {
    if (inflater_)
      inflater_->read(to, count);
    else
      member_.source->read(member_.offset + done_, to, count);
    done_ += count;
    if (member_.big_endian) reverse_numbers(to, count, number_bytes(member_.type));
  }
  void finish() {
    if (inflater_) inflater_->finish();
  }

private:
  Member const &member_;
  std::optional<Inflater> inflater_;
  std::uint64_t done_ = 0;
};

/* Copies what is not used in place into an array in its order, through a buffer. */
void unpack_into(Member const &member, umemArray *array, Progress &progress) {
  Host host;
  std::vector<char> bytes(static_cast<std::size_t>(
      std::min<std::uint64_t>(staged, std::max<std::uint64_t>(member.nbytes, 1))));
  auto const buffer = reinterpret_cast<std::uintptr_t>(bytes.data());
  Reader reader(member);
  if (member.nbytes > 0)
    in_parts(array, bytes.size(), 0, [&](umemArray *part, std::uint64_t) {
      reader.read(bytes.data(), umemArray_nbytes(part));
      call(umemArray_assign, part, alike(part, host.get(), buffer).get());
      finish(umemArray_context(part));
      progress.add(umemArray_nbytes(part));
    });
  reader.finish();
}

void copy_strided(Member const &member, umemArray *array, Progress &progress) {
  Source const &source = *member.source;
  in_parts(array, strided, 0, [&](umemArray *part, std::uint64_t before) {
    call(umemArray_assign, part,
         alike(part, source.ctx, source.begin + member.offset + before).get());
    progress.add(umemArray_nbytes(part));
  });
}

} // namespace

void copy_members(std::vector<Member const *> const &members, umemArray *const *arrays,
                  Progress &progress) {
  std::vector<umemCopyItem> items;
  std::vector<std::pair<Member const *, ArrayHandle>> others;
  std::uint64_t total = 0;
  others.reserve(members.size());
  for (std::size_t k = 0; k < members.size(); k++) {
    Member const &member = *members[k];
    check_matching(arrays[k], member);
    total += member.nbytes;
    ArrayHandle array = in_order_of(member, arrays[k]);
    bool const is_run = umemArray_is_c_contiguous(array.get()) && member.is_used_in_place();
    if (is_run && member.nbytes > 0)
      items.push_back({member.source->ctx, member.source->begin + member.offset,
                       umemArray_context(array.get()), umemArray_address(array.get()),
                       static_cast<std::size_t>(member.nbytes)});
    else if (member.nbytes > 0 || member.is_compressed())
      others.emplace_back(&member, std::move(array));
  }
  progress.begin(total);
  progress.copy(items);
  for (auto const &[member, array] : others)
    if (!member->is_used_in_place())
      of_member(*member, [&, &member = *member, &array = array] {
        unpack_into(member, array.get(), progress);
      });
    else
      copy_strided(*member, array.get(), progress);
}

/* ---- checksums ---- */

namespace {

/* Bytes that are read from one end to the other. */
struct Run {
  void *ctx;
  std::uintptr_t adr;
  std::uint64_t nbytes;
  bool has_checksum = true;
  std::size_t number = 1; /* bytes of a number that is turned on its way; 1: none is */
  void *to = nullptr;     /* where the bytes go; NULL: they are only read */
  std::uintptr_t to_adr = 0;
};

/* Passes a part of a run by this thread, and returns its checksum. */
std::uint32_t pass_here(Run const &run, std::uint64_t begin, std::uint64_t nbytes) {
  Host host;
  std::vector<char> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(staged, nbytes)));
  std::uint32_t sum = 0;
  for (std::uint64_t done = 0; done < nbytes; done += bytes.size()) {
    auto const count =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), nbytes - done));
    auto const buffer = reinterpret_cast<std::uintptr_t>(bytes.data());
    check(umem_copy_to(run.ctx, run.adr + begin + done, host.get(), buffer, count));
    finish(run.ctx);
    if (run.number > 1) reverse_numbers(bytes.data(), count, run.number);
    if (run.to) check(umem_copy_from(run.to, run.to_adr + begin + done, host.get(), buffer, count));
    if (run.has_checksum) sum = checksum_of(sum, bytes.data(), count);
  }
  return sum;
}

/* A part of the bytes, and what its thread has found. */
struct Piece {
  std::uint64_t begin, nbytes;
  std::uint32_t sum = 0;
  umemAttempt attempt = {}; /* with a failure that umem would have recorded for its thread */
  std::exception_ptr failure = nullptr; /* another one */
};

struct Pieces {
  Run const &run;
  std::vector<Piece> list;

  static void read(void *data, unsigned number) {
    auto &self = *static_cast<Pieces *>(data);
    Piece &piece = self.list[number];
    umemAttempt_begin(&piece.attempt);
    try {
      piece.sum = pass_here(self.run, piece.begin, piece.nbytes);
    } catch (...) {
      piece.failure = std::current_exception();
    }
    umemAttempt_end(&piece.attempt);
  }
};

/* Passes a run by several threads, and returns the checksum of what is before it and of the run. */
std::uint32_t pass(Run const &run, std::uint32_t before, Progress &progress) {
  std::size_t const most = has_capabilities(run.ctx, umemConcurrent) ? umem_get_threads() : 1;
  std::uint64_t const nbytes = run.nbytes, times = run.to && run.to != run.ctx ? 2 : 1;
  std::uint64_t const step = progress.step() ? std::max(progress.step(), staged) : most * summed,
                      each = std::clamp<std::uint64_t>(step / most, staged, summed);
  Pieces pieces = {run, {}};
  std::uint32_t sum = before;
  for (std::uint64_t done = 0; done < nbytes;) {
    pieces.list.clear();
    std::uint64_t const end = std::min(nbytes, done + step);
    for (std::uint64_t at = done; at < end && pieces.list.size() < most; at += each)
      pieces.list.push_back({at, std::min(each, end - at)});
    check(umem_parallel_for(static_cast<unsigned>(pieces.list.size()), Pieces::read, &pieces));
    for (Piece const &piece : pieces.list) {
      umemAttempt_record(&piece.attempt);
      if (piece.failure) std::rethrow_exception(piece.failure);
      if (run.has_checksum) sum = joined_checksums(sum, piece.sum, piece.nbytes);
      done += piece.nbytes;
      progress.add(times * piece.nbytes);
    }
  }
  return sum;
}

void check_member(Member const &member, Progress &progress) {
  Packed const &packed = *member.packed;
  Source const &source = *member.source;
  if (packed.compressed) {
    Inflater inflater(source, packed);
    std::vector<char> bytes(staged);
    for (std::uint64_t left = packed.size; left > 0;) {
      auto const count = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left));
      inflater.read(bytes.data(), count);
      progress.add(count);
      left -= count;
    }
    inflater.finish();
  } else if (pass({source.ctx, source.begin + packed.offset, packed.size}, 0, progress) !=
             packed.checksum) {
    refuse("its checksum (CRC-32) is wrong");
  }
}

} // namespace

void check_members(std::vector<Member const *> const &members, Progress &progress) {
  std::uint64_t total = 0;
  for (Member const *member : members)
    if (member->packed) total += member->packed->size;
  progress.begin(total);
  for (Member const *member : members)
    if (member->packed) of_member(*member, [&] { check_member(*member, progress); });
}

/* ---- to a file ---- */

namespace {

/* Whether the elements of a member must be seen on their way to a file. */
bool is_seen(NewMember const &member, bool has_checksums) { return has_checksums || member.turned; }

/* Whether they then are seen as they leave RAM: others are read in the file. */
bool is_seen_first(NewMember const &member, bool has_checksums) {
  return is_seen(member, has_checksums) && umemArray_is_c_contiguous(member.array) &&
         has_capabilities(umemArray_context(member.array), umemCpuReadable | umemConcurrent);
}

Run run_of(NewMember const &member, umemFile *file, std::uintptr_t base, bool has_checksums) {
  std::uintptr_t const adr = base + member.offset;
  Run run = {file, adr, umemArray_nbytes(member.array), has_checksums};
  bool const first = is_seen_first(member, has_checksums);
  if (member.turned) run.number = number_bytes(umemArray_type(member.array));
  if (run.number > 1 || first) run.to = file, run.to_adr = adr;
  if (first) run.ctx = umemArray_context(member.array), run.adr = umemArray_address(member.array);
  return run;
}

} // namespace

void write_elements(umemFile *file, std::uintptr_t base, std::vector<NewMember> &members,
                    bool has_checksums, Progress &progress) {
  std::vector<umemCopyItem> items;
  for (NewMember const &member : members)
    if (umemArray_elements(member.array) > 0 && umemArray_is_c_contiguous(member.array) &&
        !is_seen_first(member, has_checksums))
      items.push_back({umemArray_context(member.array), umemArray_address(member.array), file,
                       base + member.offset, umemArray_nbytes(member.array)});
  progress.copy(items);
  for (NewMember &member : members) {
    if (umemArray_elements(member.array) > 0 && !umemArray_is_c_contiguous(member.array))
      in_parts(member.array, strided, 0, [&](umemArray *part, std::uint64_t before) {
        call(umemArray_assign, alike(part, file, base + member.offset + before).get(), part);
        progress.add(umemArray_nbytes(part));
      });
    finish(umemArray_context(member.array));
  }
  for (NewMember &member : members)
    if (is_seen(member, has_checksums))
      member.checksum = pass(run_of(member, file, base, has_checksums), member.checksum, progress);
}

} // namespace umem_formats
