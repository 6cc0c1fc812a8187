# stage.sh - the tests on ARM64, under qemu's user mode. Sourced by test/stages.sh, with $root, $build and $jobs
# set.
#
# CMocka and GoogleTest are compiled for ARM64 from the sources of the distribution, below $build/arm64: no
# foreign architecture is added to this system, and nothing of ARM64 is installed but the cross compilers.
#
# qemu runs the instructions of ARM64, its 128-bit long double and its unsigned char. It does not show what a
# weakly ordered memory shows: this machine orders more. ThreadSanitizer, in the stage tsan, judges that.

arm64=$build/arm64
arm64_toolchain=$root/test/arm64/toolchain.cmake

# Builds a library for ARM64 and installs it into $arm64/prefix: name, folder of its sources, options. Without
# optimisation, which for GoogleTest takes longer than its tests.
install_arm64() {
  local name=$1 source=$2
  shift 2
  cmake -S "$source" -B "$arm64/$name" -G Ninja --toolchain "$arm64_toolchain" \
    -DCMAKE_BUILD_TYPE=Debug -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_INSTALL_PREFIX="$arm64/prefix" "$@"
  cmake --build "$arm64/$name" --parallel "$jobs"
  cmake --install "$arm64/$name"
}

# What the tests need, once for each build folder.
install_arm64_libraries() {
  [ ! -e "$arm64/prefix/complete" ] || return 0
  local cmocka_source
  fetch_cmocka "$arm64"
  install_arm64 cmocka "$cmocka_source" -DWITH_EXAMPLES=OFF
  install_arm64 googletest /usr/src/googletest -DBUILD_GMOCK=OFF
  touch "$arm64/prefix/complete"
}

# Configures the build folder $1 of umem for ARM64, with further options.
configure_arm64() {
  local reserves=""
  ! qemu_reserves_slowly || reserves=-DUMEM_MMAP_ROOM=0x8000000
  PKG_CONFIG_LIBDIR=$arm64/prefix/lib/pkgconfig cmake --preset gcc -B "$@" \
    --toolchain "$arm64_toolchain" -DCMAKE_FIND_ROOT_PATH="$arm64/prefix" \
    -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    -DCMAKE_{C,CXX}_FLAGS_RELWITHDEBINFO=-O0 -DUMEM_LOOPS_OPTIMISATION=-O1 \
    -DCMAKE_C_FLAGS="$reserves" # without -g: nobody debugs these
}

# Before qemu 8 each range of 1 GiB that is reserved costs 0.1 s and 16 MB, which it does not free. umemMMap reserves 1 TiB
# for a context; builds for such a qemu reserve 128 MiB.
qemu_reserves_slowly() {
  local version
  version=$(qemu-aarch64 --version | sed -n '1s/.*version \([0-9]*\)\..*/\1/p')
  [ "$version" -lt 8 ]
}

# The tests that are left out, as a regular expression: each line of a list is one, then its reason.
left_out() {
  local lists=("$root/test/arm64/left_out.txt")
  ! qemu_reserves_slowly || lists+=("$root/test/arm64/left_out_before_qemu_8.txt")
  sed -E '/^#|^$/d; s/ .*//' "${lists[@]}" | paste -sd '|'
}

# ---- which CUDA a build takes ----

# A folder that CMake takes for a CUDA toolkit of this machine.
make_toolkit() {
  mkdir -p "$1/bin" "$1/include" "$1/lib64"
  printf '#!/bin/sh\necho "Cuda compilation tools, release 12.9, V12.9.86"\n' > "$1/bin/nvcc"
  chmod +x "$1/bin/nvcc"
  echo '#define CUDART_VERSION 12090' | tee "$1/include/cuda_runtime.h" > "$1/include/cuda_runtime_api.h"
  echo 'int cudaRuntimeGetVersion(int *version) { return *version = 0; }' > "$1/runtime.c"
  gcc -c "$1/runtime.c" -o "$1/runtime.o"
  gcc -shared "$1/runtime.o" -o "$1/lib64/libcudart.so"
  ar rc "$1/lib64/libcudart_static.a" "$1/runtime.o"
}

# Configures umem with that toolkit first on PATH and further options; what CMake prints must hold the words $1.
cuda_is_found() {
  local words=$1 folder=$arm64/which-cuda said
  shift
  rm -rf "$folder"
  said=$(env -u CUDAToolkit_ROOT -u CUDA_PATH PATH="$arm64/toolkit/bin:$PATH" cmake -S . -B "$folder" \
    -DUMEM_BUILD_EXAMPLES=OFF -DUMEM_BUILD_TOOLS=OFF "$@" 2>&1) || true
  tr -s '\n ' ' ' <<< "$said" | grep -F -- "$words" && return
  echo "$said"
  return 1
}

check_which_cuda() {
  local status=0 cross=(--toolchain "$arm64/compilers.cmake") named="-DCUDAToolkit_ROOT=$arm64/toolkit"
  grep -E '^set\(CMAKE_(SYSTEM|C_|CXX_)' "$arm64_toolchain" > "$arm64/compilers.cmake" # finds libraries anywhere
  make_toolkit "$arm64/toolkit"
  check "a build for this machine uses its CUDA toolkit" \
    cuda_is_found 'umem: with CUDA 12.9.86' || status=1
  check "a cross build leaves it out" \
    cuda_is_found 'umem: without CUDA (cross-compiling' "${cross[@]}" || status=1
  check "a cross build leaves out one of another architecture" \
    cuda_is_found 'does not link to programs for aarch64)' "${cross[@]}" "$named" || status=1
  check "a cross build that insists on CUDA says so" \
    cuda_is_found 'UMEM_CUDA=ON, but' "${cross[@]}" "$named" -DUMEM_CUDA=ON || status=1
  aarch64-linux-gnu-gcc -c "$arm64/toolkit/runtime.c" -o "$arm64/toolkit/runtime.o"
  aarch64-linux-gnu-gcc -shared "$arm64/toolkit/runtime.o" -o "$arm64/toolkit/lib64/libcudart.so"
  rm "$arm64/toolkit/lib64/libcudart_static.a"
  ar rc "$arm64/toolkit/lib64/libcudart_static.a" "$arm64/toolkit/runtime.o"
  check "a cross build uses one of its own architecture" \
    cuda_is_found 'umem: with CUDA 12.9.86' "${cross[@]}" "$named" || status=1
  return $status
}

# Of the C++ headers, what is about types of elements, layouts, files and exceptions: the rest does not depend on the
# processor, and compiling all of them takes longer than everything else of this stage.
arm64_cxx=(half indexer npy static thrown view)

stage_arm64() {
  local status=0 folders=(test/compat test/contract test/fault test/unit)
  ! qemu_reserves_slowly || folders=(test/compat test/contract test/unit)
  mkdir -p "$arm64"
  install_arm64_libraries
  check_which_cuda || status=1
  check "the commands of the page for another processor" \
    env CMAKE_BUILD_PARALLEL_LEVEL="$jobs" doc/examples/install/cross/check_cross "$arm64/cross" || status=1
  configure_arm64 "$arm64/umem" -DUMEM_TEST_CXX_ALL=OFF -DUMEM_TEST_PCH=ON
  cmake --build "$arm64/umem" --parallel "$jobs" --target \
    "${folders[@]/%//all}" "${arm64_cxx[@]/#/cxx_}"
  small_tests
  export UMEM_TEST_OPERATIONS=20000 UMEM_TEST_QEMU=1
  if qemu_reserves_slowly; then
    echo "skipped - contexts over umemMMap and what left_out_before_qemu_8.txt names: qemu is older than 8"
    export UMEM_TEST_WITHOUT=mmap
  fi
  run_tests "$arm64/umem" ctest --exclude-regex "$(left_out)" \
    --tests-regex "^(compat|fault|unit)\\.|^cxx\\.($(IFS='|' && echo "${arm64_cxx[*]}"))\$" || status=1
  # Large blocks are a matter of offsets of 64 bits, which this machine has too, and take half of the time.
  python3 test/contract_single.py --without large "$arm64/umem" "$jobs" || status=1
  return $status
}
