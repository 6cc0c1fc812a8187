/* ledger.cpp - umem/ledger.hpp: routes and the ledger. */
#include <umem/ledger.hpp>

#include "tests.hpp"

namespace {

TEST(Ledger, a_copy_returns_its_route) {
  umem::Host host;
  char from[] = "abc", to[4] = "";
  umemRoute route = umem::copy_with_route(host, reinterpret_cast<umem::address>(from), host,
                                          reinterpret_cast<umem::address>(to), sizeof from);
  EXPECT_EQ(umem::text(route), "host -> host");
  EXPECT_STREQ(to, "abc");
  EXPECT_THROW(umem::copy_with_route(host, 0, host, 0, 4), umem::error);
}

TEST(Ledger, is_on_while_an_object_lives) {
  umem::Host host;
  char from[] = "abc", to[4] = "";
  auto const copy = [&] {
    umem::copy(host, reinterpret_cast<umem::address>(from), host,
               reinterpret_cast<umem::address>(to), sizeof from);
  };
  {
    umem::Ledger ledger;
    copy();
    {
      umem::Ledger inner;
      copy();
    }
    copy();
  }
  copy();
  auto records = umem::Ledger::read();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].calls, 3u);
  EXPECT_EQ(records[0].bytes, 12u);
  EXPECT_THROW(umem::Ledger::print(-1), umem::error);
  umem::Ledger::clear();
  EXPECT_TRUE(umem::Ledger::read().empty());
}

} // namespace
