/* info.hpp - what umem info knows, as JSON; info.cpp prints it for people, too. */
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace umem::tool {

/* A context: "name", "opens", and either "reason" or what it is. Numbers that it does not know are null. */
nlohmann::ordered_json context_json(std::string const &name);

/* RAM, NUMA, pinned memory, direct I/O, GPUDirect, MPI of this machine and build. */
nlohmann::ordered_json machine_json();

/* All schemes of umem_open with their options. */
nlohmann::ordered_json schemes_json();

} // namespace umem::tool
