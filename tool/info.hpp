/* info.hpp - what umem info knows, as JSON; info.cpp prints it for people, too. */
#pragma once

#include "json.hpp"

#include <string>

namespace umem::tool {

/* A context: "name", "opens", and either "reason" or what it is. Numbers that it does not know are
 * null. */
Json context_json(std::string const &name);

/* RAM, NUMA, pinned memory, direct I/O, GPUDirect, MPI of this machine and build. */
Json machine_json();

/* All schemes of umem_open with their options. */
Json schemes_json();

} // namespace umem::tool
