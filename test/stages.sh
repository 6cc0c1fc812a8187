# stages.sh - what test/run runs. Sourced by it, with $root, $build and $python set; $logs and $jobs are set before a
# stage runs.
#
# A stage is a function stage_NAME that runs in the root of the tree. It fails by its exit status, and
# reports each check by a line "ok - NAME", "not ok - NAME" or "skipped - NAME: REASON". A stage of which nothing is left
# but the latter is skipped itself, and test/run prints the reasons. Stages run side by side, but for those that use the
# same build folder.
#
# What runs where:
# - gcc: all programs of C, on all pairs of contexts; the tests and examples of the C++ headers with few types of
#   elements and without bounds checks, one group of loops optimised; each header alone; what nvcc compiles, for one
#   virtual GPU. Of the benchmarks, whether they compile: bench builds and runs them.
# - asan: all programs of C on a sample of the pairs, without the sweep of faults with the ledger; the examples, the
#   program umem and the fuzzers with few inputs; fuzz: with many. This is also where Clang's warnings of all of this are
#   errors. asan_cxx: the programs of the C++ headers that are about memory, not optimised, with few types of elements,
#   loops with one and three ranks.
# - tsan: of test/unit and test/fault the programs that use threads, and those suites of the contract in which threads
#   meet, and of others each context by itself. tsan_cxx: the programs of the C++ headers that use threads.
# - clang: the contract on a sample of the pairs, as users build it: optimised, without sanitizers; what Clang says of
#   the C++ headers, with all types of elements; their machine code; programs with libc++. Clang's other programs run
#   in asan alone.
# - arm64: the contract, each context by itself; the other programs of C, but for those that its lists leave out; of the
#   C++ headers what arm64_cxx names.
# - musl: the library in C and its tests with musl, by Debian's musl-gcc.
# - install: umem as the documentation has users build it, but not optimised, with one example; examples builds all of C and
#   C++ over the library of the stage asan, and runs them. packages: Debian's, and the recipes of others. fresh: the
#   README's commands on fresh systems.
# - cuda: a build without CUDA, of a tree to which the guide for writers of contexts adds a kind, and of the build of gcc
#   what is about CUDA; the examples and the tests on GPUs as nvcc reads them.
# - python: the package as pip installs it from the tree, not optimised, and its tests; with the double of CUDA's driver
#   those that take a place, for places of GPUs, too.
# - url: places behind a URL and in buckets, by the Python package, over nginx, moto's S3, and a proxy that misbehaves; all on
#   127.0.0.1.
# - libraries: the tests of the package that need dask, h5py, zarr, xarray, pandas, pyarrow, JAX, matplotlib, ml_dtypes or
#   pyright, with these. wheel: wheels for x86-64 and AArch64, and their tests without a compiler. freethreaded: the package
#   and extensions in Python without a GIL, with AddressSanitizer.
# - mpi: the component for MPI with MPICH, over the library of the stage gcc. mpis: with Open MPI; a part of the tests
#   with the ABI of MPI 5; with Clang's sanitizers and MPICH; as a package, too. Some ranks are on emulated hosts.
# - nvcc: what it says of the C++ headers. docs: the pages; browser: whether they fit into one, and its search.
# - tidy, cppcheck: programs in C++ as one unit, as most of the time goes to headers; tidy the files of the program umem
#   by themselves.

source "$root/test/check.sh"
source "$root/test/cuda.sh"
source "$root/test/cmocka.sh"
source "$root/test/arm64/stage.sh"
source "$root/test/musl/stage.sh"
source "$root/test/fresh/stage.sh"
source "$root/test/wheel/stage.sh"
source "$root/test/freethreaded/stage.sh"

# What each change must pass, in 25 minutes on two processors: every test once as users build it, those of C again with
# sanitizers, and each thing that users do. The longest first; python and docs, most of which uses one processor, while
# gcc uses the other; mpi as soon as it may begin. The short ones fill what is left. Of the quick ones the longest is the
# last: it alone uses all processors to its end.
all_stages=(gcc asan python docs mpi tsan install examples cuda url symbols includes format)
quick_stages=(symbols includes format short)
# Those, and the same tests again on other processors, compilers, MPIs and systems, and what analyses the sources.
nightly_stages=(fresh gcc asan asan_cxx fuzz mpi tsan tsan_cxx mpis arm64 musl install clang docs browser bench tidy valgrind packages
  examples nvcc cppcheck cuda python url libraries wheel freethreaded symbols includes format)

# Stages that share a folder below $build run one after the other, in the order above.
declare -A stage_folder=([gcc]=gcc [short]=gcc [valgrind]=gcc [cuda]=gcc [symbols]=gcc [mpi]=gcc [mpis]=gcc [nvcc]=gcc
  [python]=package [url]=package
  [asan]=asan [asan_cxx]=asan [fuzz]=asan [examples]=asan [tsan]=tsan [tsan_cxx]=tsan [docs]=doc [browser]=doc)

declare -A stage_needs=(
  [short]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [gcc]="gcc g++ lld cmake make ninja pkg-config cmocka cli11 nlohmann-json zlib libcurl gtest python3 python zsh"
  [clang]="clang libc++ g++ cmake make ninja pkg-config cmocka cli11 nlohmann-json zlib libcurl gtest python3"
  [asan]="clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib libcurl gtest python3"
  [asan_cxx]="clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [fuzz]="clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [tsan]="clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib libcurl gtest python3"
  [tsan_cxx]="clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [valgrind]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3 valgrind"
  [format]="python"
  [includes]="python3"
  [fresh]="python3"
  [symbols]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [cuda]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python"
  [mpi]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3 mpich"
  [mpis]="gcc clang clang-runtime g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3 mpich openmpi python-package mpi-abi"
  [arm64]="gcc cmake ninja pkg-config python3 arm64-gcc arm64-g++ qemu-aarch64 gtest-source cmocka"
  [musl]="gcc g++ cmake ninja pkg-config gtest python3 musl-gcc"
  [tidy]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3 clang-tidy"
  [cppcheck]="cppcheck"
  [docs]="doxygen python"
  [browser]="doxygen python"
  [nvcc]="gcc g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python3"
  [examples]="gcc make clang clang-runtime lld llvm-symbolizer g++ cmake ninja pkg-config cmocka cli11 nlohmann-json zlib gtest python"
  [install]="gcc g++ cmake make pkg-config cli11 nlohmann-json zlib"
  [packages]="gcc g++ cmake make pkg-config cli11 nlohmann-json zlib"
  [python]="gcc g++ cmake nlohmann-json zlib python-package"
  [url]="gcc g++ cmake nlohmann-json zlib openssl libcurl python-package python-servers"
  [libraries]="gcc g++ nlohmann-json zlib python-libraries"
  [wheel]="gcc g++ nlohmann-json zlib python-package arm64-gcc arm64-g++ qemu-aarch64"
  [freethreaded]="gcc g++ make python-libs"
  [bench]="gcc g++ cmake ninja pkg-config benchmark python3"
)

# What a stage uses where a system has it: test/run installs what it can. Without it tests are skipped by name.
declare -A stage_wants=(
  [gcc]="benchmark liburing eigen xtensor kokkos cblas gdb"
  [browser]="browser"
  [mpi]="ip"
  [mpis]="ip"
  [install]="abidiff"
  [packages]="debian-tools"
  [fresh]="debootstrap"
  [wheel]="debootstrap"
)

# $jobs: how many processes a stage may run at a time; test/run sets it.
export PYTHONDONTWRITEBYTECODE=1

# What the programs of each preset are, an option a line. GCC collects no garbage below 2 GB: a twentieth of its time.
declare -A preset_options=(
  [gcc]="-DUMEM_TEST_FEW_TYPES=ON
    -DUMEM_TEST_PCH=ON
    -DUMEM_TEST_CXX_TOGETHER=ON
    -DUMEM_TEST_C_OPTIONS=-O0
    -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 -DNDEBUG --param=ggc-min-heapsize=2000000
    -DCMAKE_CUDA_ARCHITECTURES=80-virtual
    -DCMAKE_CUDA_FLAGS_RELWITHDEBINFO=-O0"
  [clang]="-DUMEM_TEST_CXX_PROGRAMS=NONE
    -DUMEM_TEST_C_OPTIONS=-O1
    -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -g1"
  [asan]="-DUMEM_TEST_CXX_PROGRAMS=MEMORY
    -DUMEM_TEST_PCH=ON
    -DUMEM_TEST_CXX_TOGETHER=ON
    -DUMEM_BUILD_EXAMPLES=ON
    -DUMEM_TEST_C_OPTIONS=-O0
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0"
  [tsan]="-DUMEM_TEST_CXX_PROGRAMS=THREADS
    -DUMEM_TEST_PCH=ON
    -DUMEM_TEST_CXX_TOGETHER=ON
    -DUMEM_TEST_C_OPTIONS=-O0
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0"
)

# Configures a preset of CMakePresets.json below $build, in each run once: what has changed since, CMake sees when it
# builds.
configure_preset() {
  local preset=$1 configured=$logs/$1.configured options=()
  [ ! -e "$configured" ] || return 0
  readarray -t options < <(sed 's/^ *//; /^$/d' <<< "${preset_options[$preset]-}")
  # Its NumPy exchanges arrays with umem.
  [ ! -x "$python/bin/python" ] || options+=("-DPython3_EXECUTABLE=$python/bin/python")
  # LLVM's linker takes half of the time; the sanitizers' presets look for it themselves.
  if [ "$preset" = gcc ] && has ld.lld; then options+=(-DUMEM_TEST_LINKER=lld); fi
  cmake --preset "$preset" -B "$build/$preset" -DUMEM_BUILD_EXAMPLES=OFF "${options[@]}"
  touch "$configured"
}

# Builds a preset, or of that only some targets.
build_preset() {
  local preset=$1 targets=()
  shift
  [ $# = 0 ] || targets=(--target "$@")
  configure_preset "$preset"
  cmake --build "$build/$preset" --parallel "$jobs" "${targets[@]}"
}

# Runs the tests of the build folder $1 with the words after it, which end in ctest and its options.
run_tests() {
  local folder=$1 results=$1/results.xml status=0
  shift
  rm -f "$results"
  "$@" --test-dir "$folder" --parallel "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 || status=$?
  python3 test/ctest_results.py "$results" || status=$?
  return $status
}

# GCC's programs run in full length. All others repeat less: it is their second time, and sanitizers and
# valgrind make everything several times slower.
small_tests() { export UMEM_TEST_SMALL=1 UMEM_TEST_OPERATIONS=100000; }

only_nvcc='^cxx\.(refused\.nvcc|nvcc\.)' # what nvcc says of headers
stage_gcc() {
  local status=0
  python3 test/ctest_results_test.py
  check "the benchmarks compile" benchmarks_compile || status=1
  build_preset gcc
  touch "$logs/gcc.began"
  run_tests "$build/gcc" ctest --exclude-regex "$only_nvcc" || status=1
  check "tests leave no files behind" nothing_is_left "$logs/gcc.began" || status=1
  return $status
}

# Whether no test that began after this file has left files, folders or shared memory: their names have the number of the
# process, which has ended (test/temporary.h). Stages that run beside this one use the same folders.
nothing_is_left() {
  local left process status=0
  for left in {/dev/shm,"${TMPDIR:-/tmp}"}/umem-test-*; do
    process=${left##*/umem-test-}
    [ "$left" -nt "$1" ] && [ ! -e "/proc/${process%%-*}" ] || continue
    echo "left by this stage, or by one that runs beside it: $left"
    status=1
  done
  return $status
}

# GCC reads each file of the benchmarks and writes no code: half of a minute of one processor. Those that include headers
# of other heaps, of kvikIO and of nanobind are left out.
benchmarks_compile() {
  local folder=$build/bench-syntax files without=(-name 'heap_*' -o -name kvikio.cpp -o -name 'extension*.cpp')
  local options=(-std=c++17 -Wall -Wextra -Wconversion -Wshadow -Werror -D_GNU_SOURCE -Itest {-Ic,-Icxx}/include
    -DUMEM_BENCH_TRACES='""')
  if find_nvcc; then
    options+=(-DUMEM_BENCH_CUDA=1 -idirafter "${nvcc%/bin/*}/include")
  else
    echo "skipped - whether the benchmarks of GPUs compile: there is no nvcc"
    without+=(-o -name '*gpu_*' -o -name '*cuda*' -o -name by_hand_pipeline.cpp -o -name bare_copies.cpp)
  fi
  if ! has liburing; then
    echo "skipped - whether the benchmark of io_uring compiles: there is no liburing"
    without+=(-o -name by_hand_uring.cpp)
  fi
  if ! has benchmark; then
    echo "skipped - whether the benchmarks of single calls compile: there is no Google Benchmark"
    without+=(-o -name 'micro*')
  fi
  mkdir -p "$folder"
  printf '#include "%s"\n' "$root"/bench/{place,sizes}.h > "$folder/headers.h"
  g++ "${options[@]}" -x c++-header "$folder/headers.h" -o "$folder/headers.h.gch" || return
  readarray -t files < <(find bench -name '*.cpp' -not \( "${without[@]}" \))
  printf '%s\0' "${files[@]}" |
    xargs -0 -n 1 -P "$jobs" g++ "${options[@]}" -fsyntax-only -include "$folder/headers.h"
}

stage_nvcc() {
  if ! find_nvcc; then
    echo "skipped - what nvcc says of the headers: there is no nvcc"
    return
  fi
  configure_preset gcc
  run_tests "$build/gcc" ctest --tests-regex "$only_nvcc"
}

# Of what GCC's programs test, what most changes would break: the library in C, on a sample of the pairs, and some
# programs of the C++ headers, all of which C++17 reads. Without what takes seconds: sweeps in which each call fails in
# turn, copies of long files, and the program umem.
short_cxx=(array_guard context npy_save open view)
short_leaves_out='^fault\.(blocks_cuda|cancel_points|cuda_nth|direct|gds_nth|log|nth|nth_ledger|shm_words|space)$'
short_leaves_out+='|^unit\.(debug_sound|file_direct|gds|gds_refusal|log_trace|pool_pages_fail|pool_random|staging.*)$'
stage_short() {
  small_tests
  build_preset gcc test/{compat,contract,fault,unit}/all "${short_cxx[@]/#/cxx_}"
  run_tests "$build/gcc" ctest --exclude-regex "$short_leaves_out" \
    --tests-regex "^(compat|fault|unit)\\.|^contract|^cxx\\.($(IFS='|' && echo "${short_cxx[*]}")|together\\.c\\+\\+17)\$"
}

# The stage asan runs Clang's other programs, which it compiles with the same warnings.
stage_clang() {
  small_tests
  build_preset clang contract test/cxx/all
  run_tests "$build/clang" ctest --tests-regex '^contract|^cxx\.'
}

set_up_asan() {
  small_tests
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
  export UBSAN_OPTIONS=print_stacktrace=1
  export UMEM_TEST_CASES=50000
}

stage_asan() {
  set_up_asan
  build_preset asan {c,formats,tool,doc,examples}/all test/{compat,contract,examples,exchange,fault,formats,fuzz,raw,tool,unit}/all
  # With the ledger on, the sweep of faults uses the same memory as without.
  run_tests "$build/asan" ctest --label-exclude '^(cxx|fuzz_long)$' --exclude-regex '^fault\.nth_ledger$'
}

stage_asan_cxx() {
  set_up_asan
  build_preset asan test/cxx/all
  run_tests "$build/asan" ctest --label-regex '^cxx$'
}

stage_fuzz() {
  set_up_asan
  build_preset asan test/fuzz/all
  run_tests "$build/asan" ctest --label-regex '^fuzz_long$'
}

# The programs of test/unit and test/fault whose sources, or the headers beside them, start threads or let the library
# start them: their names behind unit_ and fault_.
programs_of_threads() {
  local starts='pthread_create|start_thread|\b(begin_)?in_threads?\b|run_at_once|check_threads|worker_count'
  starts+='|(adaptor|open|parallel|staging)_help\.h'
  local others='fault_(beside|cuda_nth|nth)' # of few threads and of many runs, which the stage asan has
  others+='|fault_cancel_points'             # hooks what sanitizers hook
  others+='|unit_(cuda_driver|cufile_rt)'    # replace dlsym, which sanitizers need themselves
  grep -rlE --include='*.c' "$starts" test/unit test/fault/core test/fault/cuda test/fault/stores |
    sed -E 's|^test/(unit\|fault)/.*/(.*)\.c$|\1_\2|; s|^(unit_default_end)$|\1_static|' |
    grep -vxE "$others" | sort
}

# Older ThreadSanitizers do not find room in an address space that newer kernels have shuffled.
unshuffled=()
set_up_tsan() {
  small_tests
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  unshuffled=(setarch "$(uname -m)" --addr-no-randomize)
  "${unshuffled[@]}" true || unshuffled=()
}

stage_tsan() {
  set_up_tsan
  local programs
  readarray -t programs < <(programs_of_threads)
  build_preset tsan contract "${programs[@]}"
  local names=("${programs[@]/#fault_/fault\\.}")
  names=("${names[@]/#unit_/unit\\.}")
  # The suites of the contract in which threads meet: those of the test, or the library's in long copies.
  names+=('contract\.(large|order|pages|progress|sync|threads|transfer)')
  run_tests "$build/tsan" "${unshuffled[@]}" ctest --tests-regex "^($(IFS='|' && echo "${names[*]}"))\$"
  # Short copies are made by the calling thread, whatever the pair.
  local suite
  for suite in connect copy set strided; do
    check "contract.$suite, each context by itself" \
      "${unshuffled[@]}" "$build/tsan/test/contract/contract" single "$suite*"
  done
}

stage_tsan_cxx() {
  set_up_tsan
  build_preset tsan test/cxx/all
  run_tests "$build/tsan" "${unshuffled[@]}" ctest --label-regex '^cxx$'
}

stage_valgrind() {
  build_preset gcc contract
  small_tests
  # A wrong access, a use of undefined bytes or a leak fails the suite.
  # Large blocks are long copies of the same loops.
  python3 test/contract_single.py --without large "$build/gcc" "$jobs" valgrind --quiet --error-exitcode=99 \
    --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --suppressions=test/valgrind.supp
}

stage_format() { "$python/bin/python" test/style/format.py "$python/bin/clang-format"; }

stage_includes() {
  python3 test/style/include_rules.py
  python3 test/style/include_rules_test.py
  python3 test/style/version.py
  python3 test/style/facts.py
  check "the mistakes of test/mutation can be made" python3 test/mutation/run.py --check
  python3 test/style/python_functions.py
  python3 test/style/house.py
  python3 test/style/house_growth.py
  python3 test/style/changelog.py
  python3 test/style/words.py
  check "words.py finds refused words, and its budget only falls" python3 test/style/words_test.py
  check "house.py counts, and its budget only falls" python3 test/style/house_test.py
  check "house_growth.py counts what features add" python3 test/style/house_growth_test.py
  python3 test/style/results.py
  check "a second result of a benchmark is refused" python3 test/style/results_test.py
  check "the table of tested platforms is one, and its program works" python3 test/style/platforms_test.py
}

stage_symbols() {
  build_preset gcc umem_static umem_shared house_traces
  python3 test/style/house.py --traces "$build/gcc/test/house/house_traces"
  python3 test/style/exported_symbols.py "$build/gcc/c"
  python3 test/style/cuda_symbols.py "$build/gcc/c/libumem.a"
  python3 test/style/long_copies.py "$build/gcc/c/libumem.a"
  python3 test/style/cuda_symbols_test.py
  python3 test/style/room_symbols.py "$build/gcc/c"
  python3 test/style/room_symbols_test.py
}

# With a driver that finds no GPU, test/run --gpu says so in one line.
gpu_tests_need_a_gpu() {
  local folder=$build/no-gpu said status=0
  mkdir -p "$folder"
  printf '#!/bin/sh\necho "No devices were found"\nexit 6\n' > "$folder/nvidia-smi"
  chmod +x "$folder/nvidia-smi"
  said=$(PATH=$folder:$PATH test/run --gpu 2>&1) || status=$?
  echo "$said"
  [ $status = 2 ] && [ "$said" = "test/run --gpu: no GPU here: No devices were found" ]
}

# The stage example of a build without CUDA gives that as the reason why it leaves GPUs out.
example_tells_of_no_cuda() {
  (cd "$without_cuda" && examples/stage "$root/examples/data/cell.npy") | tr -s '\n ' ' ' |
    grep 'left out: .*GPU.* was built without CUDA'
}

# The build of the stage gcc is one with CUDA, as the toolkit is there. Its library, and again with an option that
# programs may be compiled with, which changes nothing in it.
build_with_cuda() {
  local folder=$build/gcc
  build_preset gcc umem_static umem_shared
  check "the library builds with CUDA" grep -q 'umem: with CUDA' <(cmake "$folder")
  python3 test/style/exported_symbols.py "$folder/c"
  python3 test/style/cuda_symbols.py "$folder/c/libumem.a" with
  check "cuda/cuda_rt.c compiles with a default stream per thread" compile_per_thread "$folder"
  python3 test/style/cuda_symbols.py "$folder/per-thread/libumem.a" with
}

# A copy of the library of the build $1 in which cuda/cuda_rt.c, the only file that includes CUDA's headers, is
# compiled with that option.
compile_per_thread() {
  local folder=$1/per-thread command
  mkdir -p "$folder"
  command=$(ninja -C "$1" -t commands c/CMakeFiles/umem_objects.dir/src/cuda/cuda_rt.c.o | tail -n 1 |
    sed 's| -o [^ ]* | -DCUDA_API_PER_THREAD_DEFAULT_STREAM -o per-thread/cuda_rt.c.o |')
  [[ $command == *-DCUDA_API_PER_THREAD_DEFAULT_STREAM* ]] && (cd "$1" && sh -c "$command") &&
    cp "$1/c/libumem.a" "$folder" && ar r "$folder/libumem.a" "$folder/cuda_rt.c.o"
}

# Both kinds of build are proven, the one without CUDA also where the toolkit is.
stage_cuda() {
  local without_cuda=$build/guide/build
  test/guide/run "$build/guide"
  cmake --build "$without_cuda" --parallel "$jobs" --target stage
  python3 test/style/cuda_symbols.py "$without_cuda/c/libumem.a" without
  run_tests "$without_cuda" ctest --tests-regex '^contract\.refusal$'
  check "examples say that the build is without CUDA" example_tells_of_no_cuda
  check "test/run --gpu says that there is no GPU" gpu_tests_need_a_gpu
  python3 test/cuda_versions.py "$build/cuda-versions" "$python/bin/python"

  if ! find_nvcc; then
    echo "skipped - a build with CUDA: there is no nvcc"
    return
  fi
  build_with_cuda
  nvcc_compiles_programs "$build/gcc"
}

# What users and the tests on GPUs compile with nvcc, below the folder $1.
nvcc_compiles_programs() {
  local architecture kernel=$1/kernel
  for architecture in sm_80 sm_90; do
    check "nvcc compiles kernels on memory of umem for $architecture" \
      compile_program kernel "$kernel.o" -arch=$architecture
  done
  check "they link" "$nvcc" "$kernel.o" "$1/c/libumem.a" -o "$kernel"
  check "nvcc compiles them for a default stream per thread" \
    compile_program kernel "$kernel.o" -arch=sm_90 --default-stream per-thread
  check "nvcc compiles the program of faults" compile_program faults "$1/faults.o" -arch=sm_90
  # That they compile is the question, not into what: headers and the host's part take most of the time.
  python3 test/style/cxx_units.py "$1/headers.cpp" "$1/programs.cu" test/gpu/order_*.cu examples/*.cpp \
    doc/examples/cxx/{own_kernel,raw_cuda,streams,with_cublas,with_thrust}.cu
  check "nvcc compiles the programs of the tests on GPUs, the examples, and what only a GPU runs in the documentation" \
    compile_with_nvcc "$1/programs.cu" "$1/programs.o" -I"$root"/{cxx/include,c/src,test/gpu,examples} -arch=sm_90 \
    --default-stream per-thread -Xcompiler -fsyntax-only,-Wno-return-type \
    -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE= \
    -diag-suppress=940 # main may end without return, but in no namespace
}

# Several MPIs can be installed at a time: Debian's commands end in their names. build_mpi MPI FOLDER OPTION...
build_mpi() {
  local mpi=$1 folder=$2 compiler starter
  if [ "$mpi" = abi ]; then
    compiler=$mpi_abi/bin/mpicc_abi starter=$mpi_abi/bin/mpiexec
  else
    compiler=$(command -v "mpicc.$mpi") starter=$(command -v "mpirun.$mpi")
  fi
  cmake -S mpi -B "$folder" -G Ninja -Dumem_DIR="$build/gcc/c" -DUMEM_BUILD_TESTS=ON -DUMEM_WERROR=ON \
    -DMPI_C_COMPILER="$compiler" -DMPIEXEC_EXECUTABLE="$starter" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -g1" \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -DNDEBUG" "${@:3}"
}

# The component and its tests alone have the sanitizers, not MPI and umem. MPI leaks by itself. Clang compiles the
# sanitizers' code in a third of GCC's time.
test_mpi_with_sanitizers() {
  local folder=$build/mpi-sanitized
  build_mpi mpich "$folder" -DUMEM_SANITIZE=address,undefined -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ &&
    cmake --build "$folder" --parallel "$jobs" --target mpi_ranks mpi_model mpi_faults mpi_units mpi_neighbours \
      mpi_blocks &&
    ASAN_OPTIONS=detect_leaks=0 jobs=1 run_tests "$folder" \
      ctest --tests-regex '\.(units|faults|neighbours|blocks\.3|model.*|ranks\.(2|single|allocate|create))$'
}

# Programs of MPI's ABI, by the MPICH that has it. They must need libmpi_abi and no other library of an MPI.
test_mpi_abi() {
  local folder=$build/mpi-abi
  if [ ! -x "$mpi_abi/bin/mpicc_abi" ]; then
    echo "skipped - the ABI of MPI 5: PyPI has no MPICH 5 for this system"
    return
  fi
  build_mpi abi "$folder" &&
    cmake --build "$folder" --parallel "$jobs" --target mpi_ranks mpi_model mpi_faults mpi_units mpi_neighbours \
      mpi_contract &&
    jobs=1 run_tests "$folder" \
      ctest --tests-regex '\.(units|neighbours|model\.allocate|ranks\.(2|allocate|create)|contract\.allocate|hosts\.[^b].*)$' &&
    check "the component needs the library of MPI's ABI alone" needs_abi_alone "$folder/libumem-mpi.so"
}

needs_abi_alone() { [ "$(readelf -d "$1" | grep -o 'libmpi[a-z_]*\.so[.0-9]*')" = libmpi_abi.so.1 ]; }

# The component and all its tests with one MPI. Ranks use all processors, so the tests run one after the other.
test_mpi() {
  build_mpi "$1" "$build/mpi-$1" &&
    cmake --build "$build/mpi-$1" --parallel "$jobs" &&
    jobs=1 run_tests "$build/mpi-$1" ctest
}

build_for_mpi() { build_preset gcc umem_static umem_shared umem_program_texts contract_suites; }

stage_mpi() {
  small_tests
  build_for_mpi
  test_mpi mpich
}

stage_mpis() {
  local status=0
  small_tests
  build_for_mpi
  test_mpi openmpi || status=1
  test_mpi_abi || status=1
  test_mpi_with_sanitizers || status=1
  build_preset gcc umem_formats_static umem_formats_shared # the package has them, too
  build_mpi mpich "$build/mpi-mpich"
  cmake --build "$build/mpi-mpich" --parallel "$jobs" # as in the stage mpi, which may not have run
  check "programs find the component in the package" mpi/test/install/run "$build" || status=1
  if [ -x "$package_python/bin/python" ]; then
    check "the Python package with Open MPI and mpi4py" \
      mpi/test/python/run "$build/mpi-python" "$package_python/bin/python" openmpi || status=1
  fi
  return $status
}

stage_tidy() {
  # How each file is compiled; nothing is built. The option for TLS descriptors is one of GCC.
  cmake --preset gcc -B "$build/tidy" -DUMEM_CUDA_PROGRAMS=OFF -DUMEM_HAS_TLS_DESCRIPTORS=OFF \
    -DUMEM_TOOL_TOGETHER=OFF
  mkdir -p "$build/tidy/units"
  python3 test/style/tidy.py "$build/tidy" "$build/tidy/units" "$jobs"
}

# The C++ headers are one unit, the programs in C++ another, and the benchmarks a third. The tests of the C++ headers are
# left out: cppcheck does not know the macros of GoogleTest.
stage_cppcheck() {
  local units=$build/cppcheck in_c programs
  mkdir -p "$units"
  readarray -t in_c < <(find c/src test examples doc -name '*.c')
  readarray -t programs < <(find test examples doc -name '*.cpp' -not -path 'test/cxx/*')
  python3 test/style/cxx_units.py "$units/headers.cpp" "$units/programs.cpp" "${programs[@]}"
  python3 test/style/cxx_units.py "$units/headers.cpp" "$units/bench.cpp" bench/*.cpp
  check "cppcheck finds nothing" \
    cppcheck --quiet --std=c11 --std=c++17 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=uninitdata --suppress=normalCheckLevelMaxBranches --error-exitcode=1 -j "$jobs" \
    --suppressions-list=test/style/cppcheck.supp \
    -D_GNU_SOURCE -D__cpp_exceptions -Ic/include -Icxx/include -Ic/src -Itest -Idoc/examples/your-own \
    "${in_c[@]}" "$units"/{headers,programs,bench}.cpp
}

stage_docs() {
  PATH=$python/bin:$PATH
  check "the tables of parameters have what the comments and the words say" python3 test/style/parameters_test.py
  check "what quick_build.py replaces is what it knows" python3 test/style/quick_build_test.py
  check "the check of links finds defects" python3 test/style/check_html_test.py
  check "the documentation builds without warnings" build_docs
}

# In each run once.
build_docs() {
  [ -e "$logs/doc.configured" ] || doc/build "$build/doc" && touch "$logs/doc.configured"
}

stage_browser() {
  PATH=$python/bin:$PATH
  check "the documentation builds without warnings" build_docs
  if ! has browser; then
    echo "skipped - the pages in a browser: there is no Chromium with its driver"
    return
  fi
  check "the check of pages finds defects" "$python/bin/python" test/style/check_browser_test.py
  check "the pages fit into a browser, wide and narrow, light and dark" "$python/bin/python" doc/check_browser.py "$build/doc"
}

# The programs of nvcc do not run here: the stage cuda compiles them.
stage_examples() {
  build_preset asan examples/all
  UMEM_PYTHON=$python/bin/python test/examples/run.py "$build/asan/examples" 2>&1
}

# What the README has users install is what this stage needs; g++ brings gcc along.
readme_installs_needs() {
  local need
  for need in ${stage_needs[install]#gcc}; do
    grep -F 'apt-get install ' doc/examples/install/packages.sh | grep -qF -- " $(package_of "$need")" || return
  done
}

stage_install() {
  local status=0
  check "the packages of the README suffice" readme_installs_needs || status=1
  CMAKE_BUILD_PARALLEL_LEVEL=$jobs test/install/run "$build/install" || status=1
  if has abidiff; then
    # test/install/run has built this one, with -g and without CUDA.
    test/abi/check.py "$build/install/spaced out/build/_deps/umem-build/c/libumem.so" || status=1
  else
    echo "skipped - the interface of version 0.1.0: there is no abidiff"
  fi
  return $status
}

stage_packages() {
  local status=0
  python3 test/install/recipes.py "$build/recipes" || status=1
  if has debian-tools; then
    check "Debian's packages build, their tests pass, and lintian finds nothing" \
      env DEB_BUILD_OPTIONS="noopt parallel=$jobs" packaging/debian_package "$build/debian" --source-option=-z1 || status=1
  else
    echo "skipped - Debian's packages: there is no debhelper or lintian"
  fi
  return $status
}

# The driver's double as the library that umem looks for.
build_driver_double() {
  gcc -std=gnu11 -O1 -shared -fPIC -fvisibility=hidden -D_GNU_SOURCE -DFAKE_DRIVER -Itest -Ic/include -Ic/src \
    test/fake/{cudriver,doubles,store,cufile}.c test/fake/cudart*.c -Wl,-soname,libcuda.so.1 -lpthread -o "$1"
}

# In each run once, as the stages that test it share the folder of its build.
install_tested_package() {
  [ -e "$logs/package.configured" ] || install_package "$package_python" "$build/python-build" &&
    touch "$logs/package.configured"
}

# For the Python of the environment $1. The build folder $2 remains for the next time.
install_package() {
  local environment=$1 options=(-C build-dir="$2" -C cmake.build-type=Debug
    -C cmake.define.UMEM_LOOPS_OPTIMISATION=-O1 -C cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0 -C cmake.define.UMEM_WERROR=ON)
  PATH=$environment/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs \
    "$environment/bin/python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps \
    --force-reinstall "${options[@]}" .
}

# The oldest NumPy that pyproject.toml allows. There is none for Python 3.13 and later.
test_oldest_numpy() {
  local folder=$build/python-oldest-numpy version
  version=$(sed -n 's/.*"nanobind-backend[^"]*", "numpy>=\([0-9.]*\)".*/\1/p' "$root/pyproject.toml")
  [ -n "$version" ] && "$package_python/bin/python" -m pip install --disable-pip-version-check --only-binary :all: \
    --no-deps --upgrade --target "$folder" "numpy==$version.*" || return
  (cd "$build/python-driver" && PYTHONPATH=$folder "$package_python/bin/python" -c "
import numpy
assert numpy.__version__.startswith('$version.'), numpy.__version__" &&
    PYTHONPATH=$folder "$package_python/bin/python" -m pytest --quiet -p no:cacheprovider --rootdir "$root" \
      "$root"/python/tests/test_{access,exchange,numpy_names}.py)
}

stage_python() {
  if [ ! -x "$package_python/bin/python" ]; then
    echo "skipped - the Python package: it needs Python 3.11, and this machine has an older one"
    return
  fi
  local status=0
  check "pip installs the package from the tree" install_tested_package
  mkdir -p "$build/python-driver"
  build_driver_double "$build/python-driver/libcuda.so.1"
  (cd "$build/python-driver" && UMEM_TEST_DRIVER_DOUBLE=$build/python-driver/libcuda.so.1 \
    UMEM_TEST_LIBRARY=$build/python-build/c/libumem.a \
    "$package_python/bin/python" -m pytest --verbose --no-header -p no:cacheprovider --rootdir "$root" \
    "$root/python/tests") > "$build/python-driver/tests.log" 2>&1 || status=$?
  show_pytest "$build/python-driver/tests.log"
  if "$package_python/bin/python" -c 'import sys; sys.exit(sys.version_info >= (3, 13))'; then
    check "the oldest NumPy that the package allows passes its tests" test_oldest_numpy || status=1
  fi
  check "the benchmark of the package runs" "$package_python/bin/python" bench/python_rows.py --once || status=1
  return $status
}

# The servers run without root, and end with the tests. Debian's package of nginx starts a server: where it is not installed,
# its files are enough.
stage_url() {
  if [ ! -x "$package_python/bin/python" ]; then
    echo "skipped - places behind a URL: the Python package needs Python 3.11, and this machine has an older one"
    return
  fi
  if ! find_nginx "$build/url-nginx"; then
    echo "skipped - places behind a URL: there is no nginx, and its package cannot be fetched"
    return
  fi
  local folder=$build/url status=0
  check "pip installs the package from the tree" install_tested_package
  mkdir -p "$folder"
  (cd "$folder" && UMEM_TEST_NGINX=$nginx UMEM_TEST_MOTO=$servers_python/bin/python \
    UMEM_TEST_LIBRARY=$build/python-build/c/libumem.a \
    "$package_python/bin/python" -m pytest --verbose --no-header -p no:cacheprovider --rootdir "$root" "$root/test/url") \
    > "$folder/tests.log" 2>&1 || status=$?
  show_pytest "$folder/tests.log"
  return $status
}

# What pytest --verbose has written to the file $1, a line a test.
show_pytest() {
  sed -E 's|^(\S*/)?([^/ ]+\.py::.*) PASSED +\[ *[0-9]+%\]$|ok - \2|
    s|^(\S*/)?([^/ ]+\.py::.*) (FAILED\|ERROR) +\[ *[0-9]+%\]$|not ok - \2|
    s|^(\S*/)?([^/ ]+\.py::.*) SKIPPED.*|skipped - \2|' "$1"
}

stage_libraries() {
  if [ ! -x "$libraries_python/bin/python" ]; then
    echo "skipped - the libraries of Python: they need Python 3.11, and this machine has an older one"
    return
  fi
  local folder=$build/python-libraries-run status=0
  check "pip installs the package beside them" install_package "$libraries_python" "$build/python-libraries-build"
  mkdir -p "$folder"
  (cd "$folder" && UMEM_TEST_LARGE=1 "$libraries_python/bin/python" -m pytest --verbose --no-header -p no:cacheprovider \
    --rootdir "$root" "$root"/python/tests/test_{libraries,exchange,formats,npz,values,types}.py) > "$folder/tests.log" 2>&1 || status=$?
  show_pytest "$folder/tests.log"
  check "the benchmark of extensions runs" "$libraries_python/bin/python" bench/extension_calls.py "$folder/extension" --once ||
    status=1
  return $status
}

# One short round of everything, with the command that a user runs; with warnings as errors. How fast it is does not
# matter here, and -O0 compiles in half of the time.
stage_bench() {
  rm -f "$build"/bench/*.json
  cmake -S . -B "$build/bench" -G Ninja -DUMEM_WERROR=ON -DUMEM_TEST_PCH=ON -DUMEM_CUDA_PROGRAMS=OFF \
    -DCMAKE_{C,CXX}_FLAGS_RELEASE="-O0 -DNDEBUG" -DUMEM_LOOPS_OPTIMISATION=-O0
  UMEM_BENCH_BUILD=$build/bench bench/run once
  python3 test/bench_results.py "$build/bench/calls.json" "$build/bench/ratios.json"
}
