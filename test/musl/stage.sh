# stage.sh - the C library and its tests with musl, by Debian's musl-gcc. Sourced by test/stages.sh, with $root, $build
# and $jobs set.
#
# CMocka is compiled with musl from the sources of the distribution, below $build/musl, and optimised: it compares long
# blocks byte by byte. Nothing runs on Alpine or another system of musl: its own compilers, and newer releases of musl,
# are not tried.

musl=$build/musl

# musl-gcc looks for headers of musl alone: those of the kernel, which umem includes, are linked into a folder.
link_kernel_headers() {
  mkdir -p "$1"
  ln -sfn /usr/include/linux "$1/linux"
  ln -sfn /usr/include/asm-generic "$1/asm-generic"
  ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" "$1/asm"
}

install_musl_cmocka() {
  [ ! -e "$musl/prefix/complete" ] || return 0
  local cmocka_source
  fetch_cmocka "$musl"
  cmake -S "$cmocka_source" -B "$musl/cmocka" -G Ninja -DCMAKE_C_COMPILER=musl-gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_INSTALL_PREFIX="$musl/prefix" \
    -DWITH_EXAMPLES=OFF
  cmake --build "$musl/cmocka" --parallel "$jobs"
  cmake --install "$musl/cmocka"
  touch "$musl/prefix/complete"
}

# Each line of the list is a test that is left out, then its reason.
without_musl() { sed -E '/^#|^$/d; s/ .*//' "$root/test/musl/left_out.txt" | paste -sd '|'; }

# What those that are not left out need: with musl not even all of the others link.
musl_targets() {
  ctest --test-dir "$musl/umem" -N --tests-regex '^unit\.' --exclude-regex "$(without_musl)" |
    sed -n 's/.*: unit\./unit_/p'
}

# Warnings are not errors: headers of musl have conversions that GCC warns of.
stage_musl() {
  local status=0
  mkdir -p "$musl"
  link_kernel_headers "$musl/headers"
  install_musl_cmocka
  PKG_CONFIG_LIBDIR=$musl/prefix/lib/pkgconfig cmake --preset gcc -B "$musl/umem" -DCMAKE_C_COMPILER=musl-gcc \
    -DCMAKE_C_FLAGS="-isystem $musl/headers" -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -DUMEM_CUDA=OFF -DUMEM_WERROR=OFF \
    -DUMEM_BUILD_TOOLS=OFF -DUMEM_BUILD_EXAMPLES=OFF
  local targets
  mapfile -t targets < <(musl_targets)
  cmake --build "$musl/umem" --parallel "$jobs" --target umem_static contract "${targets[@]}"
  small_tests
  run_tests "$musl/umem" ctest --tests-regex '^unit\.' --exclude-regex "$(without_musl)" || status=1
  python3 test/contract_single.py --without large "$musl/umem" "$jobs" || status=1
  return $status
}
