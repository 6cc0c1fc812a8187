/* module.h - what each file adds to the module umem._core. */
#ifndef UMEM_PYTHON_MODULE_H
#define UMEM_PYTHON_MODULE_H

#include <nanobind/nanobind.h>

void bind_call(nanobind::module_ &m);
void bind_callbacks(nanobind::module_ &m);
void bind_places(nanobind::module_ &m);
void bind_arrays(nanobind::module_ &m);
void bind_transfers(nanobind::module_ &m);
void bind_elements(nanobind::module_ &m);
void bind_handles(nanobind::module_ &m);
void bind_npy(nanobind::module_ &m);
void bind_blocks(nanobind::module_ &m);
void bind_layers(nanobind::module_ &m);
void bind_trace(nanobind::module_ &m);
void bind_others(nanobind::module_ &m);
void bind_arrow(nanobind::module_ &m);
void bind_archives(nanobind::module_ &m);
void bind_mpi(nanobind::module_ &m);
void bind_extension(nanobind::module_ &m);

#endif
