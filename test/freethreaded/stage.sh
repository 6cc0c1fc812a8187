# stage.sh - the package and extensions of it in Python without a GIL, both with AddressSanitizer. Sourced by
# test/stages.sh, with $root and $build set.
#
# python3.14t or python3.13t of this machine; without one, Python 3.13 of the sources of Debian 13, which takes some
# minutes, once for each build folder. What is compiled here has the sanitizer, and Python and NumPy have it not.
#
#     UMEM_FREE_SANITIZER=thread test/run freethreaded    ThreadSanitizer, also in Python, which is built: half an hour

free_sanitizer=${UMEM_FREE_SANITIZER:-address}
freethreaded=$build/freethreaded free_python_options=() free_run=() free_left_out=
if [ "$free_sanitizer" = thread ]; then
  freethreaded=$build/freethreaded-tsan free_python_options=(--with-thread-sanitizer CC=clang CXX=clang++)
  free_run=(env CC=clang CXX=clang++ TSAN_OPTIONS=exitcode=0 setarch "$(uname -m)" --addr-no-randomize)
  free_left_out=" and not only_another_thread" # an import takes more than a second
fi

# Fetches the sources of a package of Debian 13 into a folder, from the server that this system uses.
fetch_source() {
  local package=$1 folder=$2 server options
  server=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' | head -n 1)
  [ -n "$server" ] || return
  mkdir -p "$folder"/{lists,archives}/partial
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $server trixie main" > "$folder/sources.list"
  options=(-o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$folder/lists"
    -o Dir::Cache::Archives="$folder/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  (cd "$folder" && apt-get "${options[@]}" update && apt-get "${options[@]}" source --download-only "$package")
}

build_free_python() {
  local folder=$freethreaded/source
  rm -rf "$folder" "$freethreaded/python"
  fetch_source python3.13 "$folder" || return
  (cd "$folder" && tar xf python3.13_*.orig.tar.xz && cd Python-3.13* &&
    "${free_run[@]}" ./configure --disable-gil --prefix="$freethreaded/python" --disable-test-modules \
      "${free_python_options[@]}" &&
    "${free_run[@]}" make --jobs "$jobs" && "${free_run[@]}" make install) || return
  rm -rf "$folder"
}

# Sets free_python to one without a GIL.
find_free_python() {
  [ "$free_sanitizer" = address ] && free_python=$(command -v python3.14t || command -v python3.13t) && return
  free_python=$freethreaded/python/bin/python3.13t
  [ -x "$free_python" ] || check "a Python without a GIL can be built" build_free_python
}

# The versions of the stage python; of hypothesis the newest that needs no compiler.
install_free_packages() {
  local packages
  readarray -t packages < <(grep -E '^(scikit-build-core|nanobind|pybind11|ninja|cmake|numpy|pytest|tqdm)==' \
    "$root/test/requirements-python.txt")
  [ -x "$freethreaded/venv/bin/python" ] || "${free_run[@]}" "$free_python" -m venv "$freethreaded/venv"
  "${free_run[@]}" "$freethreaded/venv/bin/python" -m pip install --disable-pip-version-check "${packages[@]}" &&
    "${free_run[@]}" "$freethreaded/venv/bin/python" -m pip install --disable-pip-version-check --only-binary :all: hypothesis
}

# The stub is made by an import, which needs the sanitizer in the interpreter: an empty one does.
install_free_package() {
  local python=$freethreaded/venv/bin/python
  touch "$freethreaded/empty.pyi"
  PATH=$freethreaded/venv/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs "${free_run[@]}" "$python" -m pip install --disable-pip-version-check \
    --no-build-isolation --no-deps --force-reinstall -C build-dir="$freethreaded/build" -C cmake.build-type=Debug \
    -C cmake.define.CMAKE_C_FLAGS_DEBUG="-O1 -g1" -C cmake.define.CMAKE_CXX_FLAGS_DEBUG="-O1 -g1" \
    -C cmake.define.UMEM_LOOPS_OPTIMISATION=-O1 -C cmake.define.UMEM_SANITIZE=$free_sanitizer \
    -C cmake.define.UMEM_PYTHON_STUB="$freethreaded/empty.pyi" .
}

build_free_extensions() {
  local python=$freethreaded/venv/bin/python package
  package=$("${free_run[@]}" "$python" -c 'import site; print(site.getsitepackages()[0])')/umem
  PATH=$freethreaded/venv/bin:$PATH CXXFLAGS="-fsanitize=$free_sanitizer -g1" "${free_run[@]}" cmake -S python/tests/extension \
    -B "$freethreaded/extensions" -Dumem_ROOT="$package/cmake" -DPython_EXECUTABLE="$python" -DCMAKE_BUILD_TYPE=Debug &&
    PATH=$freethreaded/venv/bin:$PATH "${free_run[@]}" cmake --build "$freethreaded/extensions" --parallel "$jobs"
}

# Python itself frees little at its end. Left out: tests that look at the memory of the process, which the sanitizer uses.
test_free_package() {
  local status=0 run=("${free_run[@]}" env "TSAN_OPTIONS=exitcode=0 log_path=$freethreaded/race")
  [ "$free_sanitizer" = thread ] || run=(env ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
    LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)")
  mkdir -p "$freethreaded/run"
  rm -f "$freethreaded"/race.*
  (cd "$freethreaded/run" && UMEM_TEST_EXTENSIONS=$freethreaded/extensions "${run[@]}" \
    "$freethreaded/venv/bin/python" -m pytest --verbose --no-header -p no:cacheprovider --rootdir "$root" \
    -k "not leak_nothing and not without_memory$free_left_out" "${free_tests[@]/#/$root/python/tests/test_}") > "$freethreaded/tests.log" 2>&1 || status=$?
  show_pytest "$freethreaded/tests.log"
  [ "$free_sanitizer" = address ] || check "there are no races of umem" has_no_race || status=1
  return $status
}

# Of NumPy and of nanobind's backend, which are not compiled here, the sanitizer does not know what orders them.
has_no_race() {
  ! cat "$freethreaded"/race.* 2> /dev/null | grep -E 'umem/_core|umem::|in_nanobind|in_pybind11'
}

# What threads share, and what other libraries hold.
free_tests=(threads.py extension.py exchange_table.py place_of.py life.py access.py)

stage_freethreaded() {
  if ! command -v python3.14t python3.13t > /dev/null && [ ! -e /usr/share/keyrings/debian-archive-keyring.gpg ]; then
    echo "skipped - Python without a GIL: there is no python3.13t, and no Debian that has its sources"
    return
  fi
  mkdir -p "$freethreaded"
  find_free_python
  check "pip installs what the tests need" install_free_packages
  check "pip installs the package, with AddressSanitizer" install_free_package
  check "the extensions compile, with AddressSanitizer" build_free_extensions
  test_free_package
}
