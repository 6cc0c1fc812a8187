/* ends.cpp - what objects do at their end with memory that outlives them: in a child of fork, in
 * named files, and when they cannot write back. */
#include "child.hpp"

#include <umem/adaptors.hpp>
#include <umem/blocks.hpp>
#include <umem/c_array.hpp>
#include <umem/open.hpp>
#include <umem/pool.hpp>

#include <set>

#include "../temporary.h"

namespace {

using umem::Context;
using Doubles = umem::Array<double, 1>;

/* A path that no file has; the file goes with the object. */
class NewFile {
public:
  NewFile() { temporary_name(path_, sizeof path_); }
  ~NewFile() { std::remove(path_); }
  NewFile(NewFile const &) = delete;
  NewFile &operator=(NewFile const &) = delete;
  std::string path() const { return path_; }

private:
  char path_[512];
};

/* Contexts over memory that a child has together with its parent. */
std::vector<Context> shared_contexts(NewFile const &one, NewFile const &other) {
  std::vector<Context> all{
      umem::Shm(8 << 20),
      umem::Limit(umem::Shm(8 << 20), 4 << 20),
      umem::Track(umem::Shm(8 << 20)),
      umem::Pool(umem::Shm(8 << 20)),
      umem::Track(umem::Pool(umem::Shm(8 << 20))),
      umem::Debug(umem::Shm(8 << 20)),
      umem::MMap(one.path(), "w+"),
      umem::File(other.path(), "w+"),
      umem::Track(umem::File::scratch()),
  };
  return all;
}

/* Objects of all kinds that own blocks of a context. */
struct Owners {
  explicit Owners(Context const &context)
      : buffer(context, 1000), aligned(context, 1000, 256), vector(context, 100),
        scalar(context, 1.0), array({100}, context), ghosts({10, 10}, context),
        c_array(umemArray_create(context.c_context(), umemFloat64, 1, extents, nullptr, nullptr)) {
    if (context.is_cpu_accessible()) {
      elements = std::make_unique<Elements>(100, 1.0, umem::Allocator<double>(context));
      connection = std::make_unique<umem::Connection>(umem::File::scratch(), 0, 0, context);
    }
    buffer.set(1);
    array.host(umem::write)->operator()(5) = 5;
  }

  static constexpr std::int64_t extents[] = {100};
  using Elements = std::vector<double, umem::Allocator<double>>;
  umem::Buffer buffer, aligned;
  umem::Vector<double> vector;
  umem::Scalar<double> scalar;
  Doubles array;
  umem::Array<float, 2> ghosts;
  umem::CArray c_array;
  std::unique_ptr<Elements> elements;
  std::unique_ptr<umem::Connection> connection;
};

/* As `return` from main in a child: all objects end, and then the contexts. */
TEST(Fork, a_child_frees_nothing_of_its_parent) {
  NewFile one, other;
  std::vector<Context> contexts = shared_contexts(one, other);
  for (std::size_t k = 0; k < contexts.size(); k++) {
    SCOPED_TRACE(std::string(contexts[k].name()) + " number " + std::to_string(k));
    auto owners = std::make_unique<Owners>(contexts[k]);
    Context copy = contexts[k];
    Child const child = in_child([&] {
      owners.reset();
      { Owners own(contexts[k]); } /* what a child has made, it frees */
      copy = Context();
      contexts.clear();
      return 0;
    });
    EXPECT_TRUE(child.exits_with(0) && child.said.empty()) << child.status << child.said;
    umem::Buffer next(contexts[k], 1000);
    umem::Vector<double> numbers(contexts[k], 100);
    for (umem::address used : {owners->buffer.adr(), owners->aligned.adr(), owners->vector.adr(),
                               owners->scalar.adr()}) {
      EXPECT_NE(next.adr(), used);
      EXPECT_NE(numbers.adr(), used);
    }
    next.set(2);
    unsigned char byte = 0;
    owners->buffer.copy_to(&byte, 1, 999);
    EXPECT_EQ(byte, 1);
    std::uint64_t const before = umem_thread_failures();
    owners.reset();
    EXPECT_EQ(umem_thread_failures(), before);
  }
}

/* What a child has allocated or resized itself it frees, also in objects that its parent has
 * made. */
TEST(Fork, a_child_frees_what_it_has_put_into_objects_of_its_parent) {
  umem::Shm place(1 << 20);
  auto elements = std::make_unique<Owners::Elements>(100, 1.0, umem::Allocator<double>(place));
  auto const count = [&] {
    return umemShm_blocks(reinterpret_cast<umemShm *>(place.c_context()), nullptr, 0);
  };
  auto empty = std::make_unique<umem::Buffer>();
  auto buffer = std::make_unique<umem::Buffer>(place, 1000);
  Child const child = in_child([&] {
    *empty = umem::Buffer(place, 1000);
    if (count() != 3) return 1;
    empty.reset();
    if (count() != 2) return 2;
    elements.reset(); /* of the parent */
    if (count() != 2) return 3;
    buffer->resize(5000);
    buffer.reset();
    return count() == 1 ? 0 : 4;
  });
  EXPECT_TRUE(child.exits_with(0)) << child.status;
  static_cast<void>(buffer->release()); /* to resize it was a call */
}

/* The parent's file does not get what the parent may still change. */
TEST(Fork, a_child_does_not_write_back_for_its_parent) {
  NewFile file;
  umem::File place(file.path(), "w+");
  auto array = std::make_unique<Doubles>(Doubles::zeros({10}, place));
  array->host(umem::write)->operator()(3) = 1;
  umem::address const adr = array->adr();
  double found = -1;
  Child const child = in_child([&] {
    array.reset();
    umem::copy(place, adr + 24, &found, sizeof found);
    return found == 0 ? 0 : 1;
  });
  EXPECT_TRUE(child.exits_with(0)) << child.said;
  array.reset();
  umem::copy(place, adr + 24, &found, sizeof found);
  EXPECT_EQ(found, 1);
}

/* ---- named files ---- */

/* How many of five arrays, of which each ends before the next one begins, have places of their
 * own. */
template <class End> std::size_t different(Context const &place, End const &end) {
  std::set<umem::address> all;
  for (int k = 0; k < 5; k++) {
    Doubles array = Doubles::full({1000}, k, place);
    array.flush();
    all.insert(array.adr());
    end(array);
  }
  return all.size();
}

TEST(NamedFile, what_was_written_stays_when_its_array_ends) {
  auto const drop = [](Doubles &) {};
  auto const deallocate = [](Doubles &array) {
    array.deallocate();
    EXPECT_FALSE(array);
  };
  auto const resize = [](Doubles &array) { array.resize(10); };
  NewFile files[7];
  umemFileOptions reuse = UMEM_FILE_OPTIONS_INIT;
  reuse.reuse = umemReuseYes;
  EXPECT_EQ(different(umem::File(files[0].path(), "w+"), drop), 5U);
  EXPECT_EQ(different(umem::MMap(files[1].path(), "w+"), drop), 5U);
  EXPECT_EQ(different(umem::Limit(umem::File(files[2].path(), "w+"), 1 << 20), drop), 5U);
  EXPECT_EQ(different(umem::open("track+file:" + files[3].path() + "?mode=w+"), drop), 5U);
  EXPECT_EQ(different(umem::File(files[4].path(), "w+", reuse), drop), 1U);
  EXPECT_EQ(different(umem::open("mmap:" + files[5].path() + "?mode=w+&reuse=yes"), drop), 1U);
  EXPECT_EQ(different(umem::File::scratch(), drop), 1U);
  EXPECT_EQ(different(umem::Shm(1 << 20), drop), 1U);
  umem::File file(files[6].path(), "w+");
  EXPECT_EQ(different(file, deallocate), 1U);
  EXPECT_LE(different(file, resize), 6U);
}

TEST(NamedFile, deallocate_gives_bytes_free) {
  NewFile file;
  umem::File place(file.path(), "w+");
  umem::Buffer buffer(place, 1000);
  umem::address const adr = buffer.adr();
  buffer.deallocate();
  EXPECT_FALSE(buffer);
  umem::Vector<double> vector(place, 100);
  EXPECT_EQ(vector.adr(), adr);
  vector.deallocate();
  { umem::Buffer dropped(place, 1000); }
  EXPECT_NE(umem::Buffer(place, 1000).adr(), adr);
  Doubles array({10}, place);
  auto guard = array.host(umem::read);
  EXPECT_THROW(array.deallocate(), umem::locked_error);
  EXPECT_TRUE(array);
}

TEST(NamedFile, copies_are_in_ram) {
  NewFile file;
  umem::File place(file.path(), "w+");
  Doubles array = Doubles::full({100}, 7, place);
  array.flush();
  auto const length = place.info().capacity;
  Doubles copy = array, assigned, there({100}, place);
  assigned = array;
  there = array;
  EXPECT_TRUE(copy.context().is_cpu_accessible());
  EXPECT_FALSE(copy.context().can(umemShared) || assigned.context().can(umemShared));
  EXPECT_EQ(there.context(), place);
  EXPECT_EQ(copy.get(99), 7);
  EXPECT_EQ(place.info().capacity, length);
  Doubles on_shm({5}, umem::Shm(1 << 20));
  EXPECT_FALSE(Doubles(on_shm).context().can(umemShared));
  EXPECT_EQ(Doubles(on_shm, place).context(), place);
}

TEST(ReadOnlyPlace, copies_are_in_ram) {
  umem::Track place{umem::Host()};
  Doubles array = Doubles::full({100}, 7, place);
  place.c_context()->capabilities &= ~umemWritable; /* as behind a URL */
  Doubles copy = array;
  EXPECT_FALSE(copy.context() == place);
  EXPECT_EQ(copy.get(99), 7);
}

/* ---- losses ---- */

/* All later copies into the context fail, as on a disk that is full. */
void fill_disk(umem::Fault const &place) {
  umemFaultPlan plan = UMEM_FAULT_PLAN_INIT;
  plan.calls = umemFaultCopyFrom;
  plan.status = umemIOError;
  plan.share = 1;
  place.set_plan(plan);
}

/* That the child prints one line with these words, and nothing if there is a failure hook. */
template <class F>
void expect_one_line(F const &lose, int status, std::vector<char const *> const &words) {
  Child const child = in_child(lose),
              hooked = in_child([&] {
                umem_set_failure_hook([](void *, umemStatusType, char const *, void *) {}, nullptr);
                return lose();
              });
  EXPECT_TRUE(child.exits_with(status)) << child.status;
  for (char const *part : words) EXPECT_TRUE(child.says(part)) << child.said;
  EXPECT_EQ(std::count(child.said.begin(), child.said.end(), '\n'), 1) << child.said;
  EXPECT_TRUE(hooked.exits_with(status) && hooked.said.empty()) << hooked.said;
}

TEST(Loss, a_destructor_that_cannot_write_back_prints_one_line) {
  auto const lose = [] {
    NewFile file;
    umem::Fault place(umem::File(file.path(), "w+"));
    Doubles array = Doubles::zeros({10}, place);
    array.host(umem::write)->operator()(3) = 1;
    fill_disk(place);
    return 0;
  };
  expect_one_line(lose, 0, {"umem: umem::Array lost newer elements of its host side: "});
}

TEST(Loss, what_is_deallocated_is_not_written_back) {
  NewFile file;
  umem::Fault place(umem::File(file.path(), "w+"));
  Doubles array = Doubles::zeros({10}, place);
  array.host(umem::write)->operator()(3) = 1;
  fill_disk(place);
  std::uint64_t const before = umem_thread_failures();
  array.deallocate();
  EXPECT_EQ(umem_thread_failures(), before);
}

TEST(Loss, a_context_that_cannot_end_prints_one_line) {
  Child const child = in_child([] {
    umem::Track place{umem::Host()};
    static_cast<void>(place.allocate(100));
    return 0;
  });
  EXPECT_TRUE(child.says("umem: the end of a context: ")) << child.said;
  EXPECT_TRUE(child.says("not freed")) << child.said;
}

/* The loop ends with the second block. Because its ghost row is a row of the first, umem writes the
 * first one only after it has read the second: here at the end. */
TEST(Loss, blocks_that_cannot_be_written_at_their_end_print_one_line) {
  auto const lose = [] {
    umem::Fault place(umem::File::scratch());
    Doubles array = Doubles::zeros({40}, place);
    umem::BlocksOptions options;
    options.rows = 10;
    options.ghosts = 1;
    fill_disk(place);
    for (auto const &block : umem::blocks(array, umem::write, umem::on_host, options))
      if (block.number() == 1) break;
    return static_cast<int>(place.failures());
  };
  expect_one_line(lose, 1, {"umem: umem::blocks: ", "writing block 0 of 4 (rows 0 to 9)"});
}

/* A loop that nothing fails, or whose failure was thrown, ends without a word. */
TEST(Loss, blocks_that_are_written_or_have_thrown_print_nothing) {
  Child const child = in_child([] {
    umem::Fault place(umem::File::scratch());
    Doubles array = Doubles::zeros({40}, place);
    umem::BlocksOptions options;
    options.rows = 10;
    for (auto const &block : umem::blocks(array, umem::write, umem::on_host, options))
      if (block.number() == 1) break;
    umem::blocks(array, umem::write, umem::on_host, options).cancel();
    fill_disk(place);
    try {
      for (auto const &block : umem::blocks(array, umem::write, umem::on_host, options))
        block.in()(0) = 1;
    } catch (umem::io_error const &) {
      return 1;
    }
    return 0;
  });
  EXPECT_TRUE(child.exits_with(1) && child.said.empty()) << child.status << child.said;
}

} // namespace
