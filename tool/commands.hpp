/* commands.hpp - the commands of the program: each adds itself, its options and what it does to the
 * command line. */
#pragma once

#include "command.hpp"

namespace umem::tool {

/* What each runs throws Failure, or what the C++ layer throws, when it cannot do what is wanted. */
void add_info(Command const &program);
void add_bw(Command const &program);
void add_cp(Command const &program);
void add_trace(Command const &program);

} // namespace umem::tool
