/* bw.cpp - umem bw. */
#include "commands.hpp"

#include <CLI/CLI.hpp>

namespace umem::tool {

void add_bw(CLI::App &) {}

} // namespace umem::tool
