/* commands.hpp - the commands of the program: each adds itself, its options and what it does to the command line. */
#pragma once

namespace CLI {
class App;
}

namespace umem::tool {

/* The callback that each gives to its subcommand runs the command. It throws Failure, or what the C++ layer throws,
 * when it cannot do what is wanted. */
void add_info(CLI::App &app);
void add_bw(CLI::App &app);
void add_cp(CLI::App &app);
void add_trace(CLI::App &app);

} // namespace umem::tool
