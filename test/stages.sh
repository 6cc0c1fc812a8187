# stages.sh - what test/run runs. Sourced by it, with $root, $build and $python set.
#
# A stage is a function stage_NAME that runs in the root of the tree. It fails by its exit status, and
# tells each check by a line "ok - NAME" or "not ok - NAME".

all_stages=(gcc clang asan tsan valgrind format includes symbols tidy cppcheck docs examples install bench)
quick_stages=(gcc format includes symbols)

declare -A stage_needs=(
  [gcc]="gcc g++ cmake make ninja pkg-config cmocka python3"
  [clang]="clang g++ cmake make ninja pkg-config cmocka python3"
  [asan]="clang clang-runtime llvm-symbolizer g++ cmake ninja pkg-config cmocka python3"
  [tsan]="clang clang-runtime llvm-symbolizer g++ cmake ninja pkg-config cmocka python3"
  [valgrind]="gcc g++ cmake ninja pkg-config cmocka python3 valgrind"
  [format]="python"
  [includes]="python3"
  [symbols]="gcc g++ cmake ninja pkg-config cmocka python3"
  [tidy]="gcc g++ cmake ninja pkg-config cmocka python3 clang-tidy"
  [cppcheck]="cppcheck"
  [docs]="doxygen python"
  [examples]="gcc g++ cmake make python"
  [install]="gcc g++ cmake make pkg-config"
  [bench]="gcc g++ cmake ninja pkg-config benchmark python3"
)

jobs=$(nproc)
export PYTHONDONTWRITEBYTECODE=1

# Runs a command as one check of this name.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "ok - $name"
  else
    echo "not ok - $name (exit status $?)"
    return 1
  fi
}

# Builds a preset of CMakePresets.json below $build.
build_preset() {
  local preset=$1
  shift
  cmake --preset "$preset" -B "$build/$preset" "$@"
  cmake --build "$build/$preset" --parallel "$jobs"
}

# Builds a preset and runs all of its tests, with the words after it put before the command.
build_and_test() {
  build_preset "$1"
  local results=$build/$1/results.xml status=0
  rm -f "$results"
  "${@:2}" ctest --test-dir "$build/$1" --parallel "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" \
    --test-output-size-passed 10000000 --test-output-size-failed 10000000 || status=$?
  python3 test/ctest_results.py "$results" || status=$?
  return $status
}

stage_gcc() { build_and_test gcc; }

stage_clang() { build_and_test clang; }

# Sanitizers and valgrind make everything several times slower: fewer and smaller repetitions then.
small_tests() { export UMEM_TEST_SMALL=1 UMEM_TEST_OPERATIONS=100000; }

stage_asan() {
  small_tests
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1
  export UBSAN_OPTIONS=print_stacktrace=1
  build_and_test asan
}

stage_tsan() {
  small_tests
  export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
  # Older ThreadSanitizers do not find room in an address space that newer kernels have shuffled.
  local unshuffled=(setarch "$(uname -m)" --addr-no-randomize)
  "${unshuffled[@]}" true || unshuffled=()
  build_and_test tsan "${unshuffled[@]}"
}

stage_valgrind() {
  build_preset gcc
  small_tests
  python3 test/under_valgrind.py "$build/gcc" "$jobs"
}

stage_format() { "$python/bin/python" test/style/format.py "$python/bin/clang-format"; }

stage_includes() {
  python3 test/style/include_rules.py
  python3 test/style/include_rules_test.py
}

stage_symbols() {
  build_preset gcc
  python3 test/style/exported_symbols.py "$build/gcc/c"
}

stage_tidy() {
  build_preset gcc
  python3 test/style/tidy.py "$build/gcc" "$jobs"
}

stage_cppcheck() {
  check "cppcheck finds nothing" \
    cppcheck --quiet --std=c11 --std=c++17 --enable=warning,performance,portability --inline-suppr \
    --suppress=missingIncludeSystem --suppress=uninitdata --error-exitcode=1 -j "$jobs" \
    -D_GNU_SOURCE -Ic/include -Ic/src -Itest -Idoc/examples c/src test bench examples doc
}

stage_docs() {
  PATH=$python/bin:$PATH
  check "the documentation builds without warnings" doc/build "$build/doc"
}

stage_examples() {
  UMEM_TEST_BUILD=$build UMEM_PYTHON=$python/bin/python test/examples/run 2>&1 |
    sed -E 's/^(.*) \.\.\. ok$/ok - \1/; s/^(.*) \.\.\. (FAIL|ERROR)$/not ok - \1/'
}

stage_install() { test/install/run "$build/install"; }

# One short round of everything, as a user runs it; also with warnings as errors.
stage_bench() {
  rm -f "$build"/bench/*.json
  cmake -S . -B "$build/bench" -G Ninja -DUMEM_WERROR=ON
  UMEM_BENCH_BUILD=$build/bench UMEM_BENCH_SIZES=64,64K bench/run quick
  python3 test/bench_results.py "$build/bench/calls.json" "$build/bench/ratios.json"
}
