#!/usr/bin/env bash
# Builds umem and tests it on a GPU of this machine, which needs no network: nothing is installed.
#
#     test/run --gpu           all parts
#     test/run --gpu PART...   some: contract driver fault unit cxx examples kernel order memcheck
#     test/run --gpu captures  a part of order: captures of one thread beside allocations of another
#
# Needs the CUDA toolkit, gcc and g++, CMake, Ninja or make, Python 3, GoogleTest, found by CMake, and
# CMocka, found by pkg-config (PKG_CONFIG_PATH) or as include/cmocka.h and lib/libcmocka.so below a folder
# of CMAKE_PREFIX_PATH.
#
# Everything is built below build/test/gpu, or below $UMEM_TEST_BUILD/gpu. The summary goes to a file
# named for the GPU and the parts in bench/results, or in $UMEM_GPU_RESULTS. $UMEM_COMMIT tells the
# commit, if Git cannot or should not.
# Exit status 0: all parts passed. 1: one failed. 2: there is no GPU, or something is missing.
set -u

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${UMEM_TEST_BUILD:-$root/build/test}/gpu
results=${UMEM_GPU_RESULTS:-$root/bench/results}
source "$root/test/check.sh"
source "$root/test/cuda.sh"

all_parts=(contract driver fault unit cxx examples kernel order memcheck)
some_parts=(captures) # parts of others
# Seconds after which a part has hung.
declare -A limits=([build]=900 [contract]=900 [driver]=900 [fault]=600 [unit]=300 [cxx]=600 [examples]=300
  [kernel]=180 [order]=420 [captures]=180 [memcheck]=1200)

export UMEM_TEST_GPU=1 # the tests' CUDA contexts are of the real runtime
jobs=$(nproc)
[ "$jobs" -le 8 ] || jobs=8 # they share the GPU

# ---- the parts; each runs in a process of its own ----

part_build() {
  local generator=() tests=ON
  [ "$UMEM_GPU_TARGETS" = all ] || tests=OFF
  ! command -v ninja > /dev/null || generator=(-G Ninja)
  cmake -S "$root" -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DUMEM_CUDA=ON \
    -DUMEM_BUILD_TESTS=$tests -DUMEM_TEST_KERNELS=$tests -DCMAKE_C_COMPILER=gcc \
    -DCMAKE_CXX_COMPILER=g++ -DUMEM_TEST_PCH=ON -DUMEM_TEST_CXX_TOGETHER=ON \
    "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" &&
    cmake --build "$build" --parallel "$(nproc)" --target $UMEM_GPU_TARGETS
  check "builds" [ $? = 0 ]
}

# The tests of ctest that these options of it choose.
run_tests() {
  local xml=$build/$part.xml status=0
  rm -f "$xml"
  ctest --test-dir "$build" --parallel "$jobs" --no-tests=error --output-on-failure \
    --output-junit "$xml" --test-output-size-passed 10000000 --test-output-size-failed 10000000 \
    "$@" || status=$?
  python3 "$root/test/ctest_results.py" "$xml" || status=$?
  return $status
}

# A test of this row of the contract has passed.
has_run() { grep -q "OK \] .*: $1\$" "$build/$part.xml"; }

# Those that CUDA shows to the tests: CUDA_VISIBLE_DEVICES can hide some.
count_gpus() {
  if [ -n "${CUDA_VISIBLE_DEVICES-}" ]; then
    tr ',' '\n' <<< "$CUDA_VISIBLE_DEVICES" | wc -l
  else
    nvidia-smi -L | wc -l
  fi
}

# Rows that a machine lacks are left out: those of its GPUs must not be.
part_contract() {
  local status=0
  run_tests --label-regex '^contract$' || status=$?
  check "the contract ran on a GPU" has_run cuda || status=1
  [ "$(count_gpus)" = 1 ] || check "and on a second one" has_run cuda-1 || status=1
  return $status
}

# The same, by the functions of the driver alone, as in builds for UMEM_CUDA=DRIVER.
part_driver() {
  export UMEM_TEST_DRIVER=1
  part_contract
}

part_fault() { run_tests --tests-regex '^fault\.cuda'; }
part_unit() {
  local status=0
  run_tests --label-regex '^unit$' || status=$?
  check "two processes shared memory of a GPU" grep -q 'OK ] .*blocks_of_a_stream_pass' "$build/$part.xml" || status=1
  check "managed memory filled most of a GPU" grep -q 'OK ] .*a_real_gpu_has_room' "$build/$part.xml" || status=1
  return $status
}

# A test of the C++ headers of this row of the table of contexts has passed.
has_run_cxx() { grep -q "OK \] .*/$1 (" "$build/$part.xml"; }

# The C++ headers: the programs of the table of contexts, and where nvcc is, kernels.
part_cxx() {
  local status=0
  run_tests --label-regex '^cxx$' || status=$?
  check "the C++ headers ran on a GPU" has_run_cxx cuda || status=1
  if find_nvcc; then
    check "their kernels ran on a GPU" \
      grep -q '<testcase name="cxx.kernels_gpu".* status="run"' "$build/$part.xml" || status=1
  else
    echo "skipped - kernels of the C++ headers: there is no nvcc"
  fi
  return $status
}

# The stage example says that every byte was identical, and its table names the GPU.
stages() {
  "$@" > stage.out || return
  cat stage.out
  grep -q '^GPU ' stage.out && grep -q '^input .*GPU ' stage.out && ! grep '^left out: .*GPU' stage.out
}

# The example blocks ends well, and has run on the GPU.
on_gpu_too() {
  "$@" > on_gpu.out || return
  cat on_gpu.out
  grep -q '^Cuda: dot product' on_gpu.out
}

part_examples() {
  local folder
  folder=$(mktemp -d) && cd "$folder" || return
  local programs=$build/examples cell=$root/examples/data/cell.npy
  check "hello" "$programs/hello"
  check "persist write" "$programs/persist" write
  check "persist read" "$programs/persist" read
  check "connect" "$programs/connect"
  check "stage" stages "$programs/stage" "$cell" out.npy
  check "stage gives the array back" cmp "$cell" out.npy
  check "stage, in small pieces" stages "$programs/stage" "$cell" out.npy 100000
  check "stage, in small pieces, gives the array back" cmp "$cell" out.npy
  if [ -x "$programs/blocks_cuda" ]; then # where nvcc is
    check "blocks, on the GPU too" on_gpu_too "$programs/blocks_cuda" 256
  fi
  rm -rf "$folder"
  cd "$root" && run_tests --label-regex '^doc$' --exclude-regex 'install|readme' # the programs shown
}

part_kernel() {
  find_nvcc || {
    echo "skipped - kernels: there is no nvcc"
    return
  }
  check "compiles for this GPU" compile_program kernel "$build/kernel.o" -arch=native
  check "links the static library" "$nvcc" -arch=native "$build/kernel.o" "$build/c/libumem.a" \
    -o "$build/kernel_static"
  check "links the shared library" "$nvcc" -arch=native "$build/kernel.o" "$build/c/libumem.so" \
    -Xlinker "-rpath=$build/c" -o "$build/kernel_shared"
  check "compiles the program of faults" compile_program faults "$build/faults.o" -arch=native
  check "links it" "$nvcc" -arch=native "$build/faults.o" "$build/c/libumem.a" -o "$build/faults"
  check "faults of a real GPU are reported" "$build/faults"
  check "kernels on memory of umem, static library" "$build/kernel_static"
  check "kernels on memory of umem, shared library" "$build/kernel_shared"
  check "compiles for a default stream per thread" \
    compile_program kernel "$build/kernel_per_thread.o" -arch=native --default-stream per-thread
  check "links it" "$nvcc" -arch=native "$build/kernel_per_thread.o" "$build/c/libumem.a" \
    -o "$build/kernel_per_thread"
  check "kernels on memory of umem, default stream per thread" "$build/kernel_per_thread"
}

# Compiles and links test/gpu/order_$1.cu for the default stream $2.
build_order_program() {
  compile_order_program "$1" "$build/order_$1_$2.o" -arch=native --default-stream "$2" &&
    "$nvcc" -arch=native "$build/order_$1_$2.o" "$build/c/libumem.a" -lcuda -o "$build/order_$1_$2"
}

# Slow kernels in front of every kind of call: order_loops and order_device for both default streams, as they
# have the kernels of the C++ headers. Each program tells its results itself.
part_order() {
  find_nvcc || {
    echo "skipped - order: there is no nvcc"
    return
  }
  local program programs=(calls_legacy pairs_legacy peers_legacy captures_legacy exchange_legacy
    streams_legacy loops_legacy loops_per-thread device_legacy device_per-thread) builds=() status=0
  for program in "${programs[@]}"; do
    build_order_program "${program%_*}" "${program#*_}" > "$build/order_$program.out" 2>&1 &
    builds+=($!)
  done
  for program in "${!programs[@]}"; do
    check "order_${programs[program]} compiles" wait "${builds[program]}" || {
      cat "$build/order_${programs[program]}.out"
      status=1
    }
  done
  [ $status = 0 ] || return
  for program in "${programs[@]}"; do
    echo "-- order_$program, at $SECONDS s"
    check "order_$program runs to its end" ends timeout -k 10 120 "$build/order_$program" || status=1
  done
  echo "-- the end, at $SECONDS s"
  return $status
}

part_captures() {
  find_nvcc || {
    echo "skipped - captures: there is no nvcc"
    return
  }
  check "order_captures compiles" build_order_program captures legacy || return
  check "order_captures runs to its end" ends timeout -k 10 120 "$build/order_captures_legacy"
}

# The program came to its end: what it tests may have failed, and it has said so.
ends() {
  local result=0
  "$@" || result=$?
  [ $result -le 1 ] || return $result
}

# The rows of the contract's contexts of CUDA; those that end in -1 are of a second GPU.
cuda_rows() {
  local absent=-1
  [ "$(count_gpus)" = 1 ] || absent=none
  "$build/test/contract/contract" --help 2>&1 | sed -n 's/^rows://p' | grep -o "'cuda[^']*'" |
    tr -d "'" | grep -v -e "$absent\$"
}

# That calls fail on purpose is no error: only what kernels, copies and sets touch is.
memcheck() {
  timeout -k 10 240 "$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 99 "$@"
}

part_memcheck() {
  export UMEM_TEST_SMALL=1
  find_sanitizer || {
    echo "skipped - memcheck: there is no compute-sanitizer"
    return
  }
  local rows row status=0 said=$build/memcheck.out out=$build/memcheck.npy
  memcheck "$build/examples/stage" "$root/examples/data/cell.npy" "$out" > "$said" 2>&1 || status=$?
  cat "$said"
  if grep -qi 'device not supported' "$said"; then
    echo "skipped - memcheck: compute-sanitizer does not support this GPU here"
    return
  fi
  check "stage" [ $status = 0 ]
  check "stage gives the array back" cmp "$root/examples/data/cell.npy" "$out"
  [ ! -x "$build/kernel_static" ] || check "kernels on memory of umem" memcheck "$build/kernel_static"
  mapfile -t rows < <(cuda_rows)
  check "there are CUDA rows" [ ${#rows[@]} != 0 ]
  for row in "${rows[@]}"; do
    check "contract, $row" memcheck "$build/test/contract/contract" alone single "$row"
  done
}

if [ "${1-}" = --part ]; then
  part=$2
  cd "$root" || exit
  check_failed=0
  "part_$part" || check_failed=1
  exit $check_failed
fi

# ---- what is there ----

die() {
  echo "test/run --gpu: $*" >&2
  exit 2
}

parts=()
for argument; do
  case $argument in
    -h | --help) sed -n '2,/^set/{/^#/!d;s/^# \{0,1\}//;p}' "$0" && exit ;;
  esac
  [[ " ${all_parts[*]} ${some_parts[*]} " == *" $argument "* ]] ||
    die "no part '$argument'; there are: ${all_parts[*]} ${some_parts[*]}"
  parts+=("$argument")
done
suffix=
[ ${#parts[@]} = 0 ] || suffix=$(printf -- '-%s' "${parts[@]}") # a file of its own
[ ${#parts[@]} != 0 ] || parts=("${all_parts[@]}")
export UMEM_GPU_TARGETS=all # what the build makes
[[ "${parts[*]}" =~ ^((order|captures)( |$))+$ ]] && UMEM_GPU_TARGETS=umem_static

command -v nvidia-smi > /dev/null || die "no GPU here: there is no nvidia-smi, which the driver brings"
gpus=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1) && [[ $gpus == *,* ]] ||
  die "no GPU here: $(head -n 1 <<< "$gpus")"
missing=()
for program in cmake ctest gcc g++ python3; do
  command -v "$program" > /dev/null || missing+=("$program")
done
command -v ninja > /dev/null || command -v make > /dev/null || missing+=("ninja or make")
[ ${#missing[@]} = 0 ] || die "missing: ${missing[*]}"

logs=$build/logs
mkdir -p "$logs" "$results" || exit 2
build=$(cd "$build" && pwd) logs=$build/logs
export UMEM_TEST_BUILD=${build%/gpu}

# ---- running the parts ----

table=() problems=() notes=() total_passed=0 total_failed=0 started=$SECONDS
run_part() {
  local part=$1 log=$logs/$1.log begin=$SECONDS
  timeout -k 10 "${limits[$part]}" bash "$root/test/gpu.sh" --part "$part" < /dev/null > "$log" 2>&1
  local result=$?
  [ $result != 124 ] && [ $result != 137 ] ||
    echo "not ok - $part: stopped after ${limits[$part]} s" >> "$log"
  local passed failed skipped verdict=passed line
  passed=$(grep -c '^ok - ' "$log")
  failed=$(grep -c '^not ok - ' "$log")
  skipped=$(grep -c '^skipped - ' "$log")
  if [ "$failed" = 0 ] && { [ $result != 0 ] || [ "$((passed + skipped))" = 0 ]; }; then
    failed=1
    echo "not ok - $part as a whole: exit status $result, $passed tests passed" >> "$log"
  fi
  [ "$failed" = 0 ] || verdict=FAILED
  [ "$passed" != 0 ] || [ $verdict = FAILED ] || verdict=skipped
  line=$(printf '%-10s %-7s %4d s %6d passed %4d failed %4d skipped' \
    "$part" $verdict $((SECONDS - begin)) "$passed" "$failed" "$skipped")
  echo "$line"
  table+=("$line")
  total_passed=$((total_passed + passed)) total_failed=$((total_failed + failed))
  mapfile -t -O ${#problems[@]} problems < <(
    grep -E '^(not ok|skipped) - ' "$log" | head -n 40 | sed "s/^/$part: /"
  )
  mapfile -t -O ${#notes[@]} notes < <(sed -n "s/^note - /$part: /p" "$log")
  [ $verdict != FAILED ]
}

if run_part build; then
  for part in "${parts[@]}"; do run_part "$part"; done
else
  tail -n 30 "$logs/build.log"
fi

# ---- the summary ----

commit() {
  local commit=${UMEM_COMMIT-} changed
  [ -n "$commit" ] || commit=$(git -C "$root" rev-parse --short=12 HEAD 2> /dev/null) || commit=unknown
  if [ -n "${UMEM_COMMIT-}" ] || [ "$commit" = unknown ]; then
    echo "$commit"
    return
  fi
  changed=$(git -C "$root" status --porcelain c test examples cmake)
  echo "$commit${changed:+ and changes that are not committed}"
}

# "found X" in the lines that CMake printed.
toolkit() { sed -n 's/^-- umem: with CUDA \([^ ]*\).*/\1/p' "$logs/build.log"; }

first=$(head -n 1 <<< "$gpus")
count=$(wc -l <<< "$gpus")
model=$(tr '[:upper:]' '[:lower:]' <<< "${first%,*}" | sed 's/[^a-z0-9]\+/-/g;s/^-//;s/-$//')
[ "$count" = 1 ] || model+=-x$count
summary=$results/$model-tests$suffix.txt
{
  printf '%-23s %s\n' \
    "date:" "$(date -u '+%Y-%m-%d %H:%M UTC')" \
    "commit:" "$(commit)" \
    "GPU:" "$count x ${first%,*}" \
    "driver:" "${first##*, }" \
    "CUDA runtime:" "$(toolkit)" \
    "compiler:" "$(gcc --version | head -n 1)" \
    "kernel:" "$(uname -sr)" \
    "parts:" "${parts[*]}"
  echo
  printf '%s\n' "${table[@]}"
  echo "$total_passed passed, $total_failed failed in $((SECONDS - started)) s"
  [ ${#notes[@]} = 0 ] || printf '%s\n' '' "${notes[@]}"
  [ ${#problems[@]} = 0 ] || printf '%s\n' '' "${problems[@]}"
} > "$summary"
echo
cat "$summary"
echo
echo "This summary is $summary; logs are in $logs."
[ $total_failed = 0 ]
