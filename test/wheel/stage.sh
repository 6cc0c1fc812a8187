# stage.sh - wheels of the Python package for x86-64 and AArch64, and their tests where there is no compiler. Sourced by
# test/stages.sh, with $root and $build set.
#
# The Python of the stage python builds the wheels. The tests run in an environment into which pip has installed the wheel
# of this machine, with nothing but this environment in PATH; and with the Python of Debian 12 for ARM64 under qemu.

wheel=$build/wheel

# Unpacks a system of Debian into a folder: architecture, name of the system, packages; once for each build folder.
unpack_system() {
  local folder=$wheel/$2-$1 package
  [ ! -e "$folder/complete" ] || return 0
  rm -rf "$folder"
  debootstrap --foreign --arch="$1" --variant=minbase --include="$3" "$2" "$folder"
  for package in "$folder"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$folder"; done
  touch "$folder/complete"
}

make_wheel_root() {
  [ ! -e "$wheel/root-$1/complete" ] || return 0
  rm -rf "$wheel/root-$1"
  python/wheel --make-root "$wheel/root-$1" "$1"
  touch "$wheel/root-$1/complete"
}

make_wheels() {
  rm -rf "$wheel/made"
  PATH=$package_python/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs python/wheel "$wheel/made" --root "$wheel/root-amd64" &&
    PATH=$package_python/bin:$PATH CMAKE_BUILD_PARALLEL_LEVEL=$jobs python/wheel "$wheel/made" --root "$wheel/root-arm64" \
      --for aarch64
}

# Installs what the tests need, and the wheel: nothing of it may have to be compiled.
install_fresh() {
  rm -rf "$wheel/fresh"
  python3 -m venv "$wheel/fresh"
  "$wheel/fresh/bin/python" -m pip install --disable-pip-version-check --only-binary :all: \
    "$wheel"/made/umem-*_x86_64.whl pytest hypothesis
}

# Runs a test file by a Python without a compiler, and shows the results: the command that runs pytest, then its words.
test_wheel() {
  local name=$1 status=0
  shift
  mkdir -p "$wheel/run"
  (cd "$wheel/run" && env -i HOME="$wheel/run" PYTHONDONTWRITEBYTECODE=1 "$@" --verbose --no-header -p no:cacheprovider \
    --rootdir "$root") > "$wheel/$name.log" 2>&1 || status=$?
  show_pytest "$wheel/$name.log" | sed -E "s/^([a-z ]+ - )/\1$name: /"
  return $status
}

test_fresh() {
  local tests=("$root"/python/tests/test_*.py)
  test_wheel x86_64 PATH="$wheel/fresh/bin" python -m pytest "${tests[@]}"
}

# For Python of Debian 12 on ARM64: pip chooses the wheels as it would there.
install_arm64_wheel() {
  rm -rf "$wheel/packages"
  "$package_python/bin/python" -m pip install --disable-pip-version-check --only-binary :all: --target "$wheel/packages" \
    --python-version 3.11 --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_17_aarch64 "$wheel"/made/umem-*_aarch64.whl pytest hypothesis
}

# Tests that start no other process, which qemu's user mode would run as programs of this machine. Before qemu 8 a mapped
# file takes minutes and 16 GB, and nothing is mapped: see qemu_reserves_slowly.
test_arm64_wheel() {
  local system=$wheel/bookworm-arm64 without=()
  local files=("$root"/python/tests/test_{array,indices,values,compare}.py)
  if qemu_reserves_slowly; then
    without=(-k "not mmap and not mapped and not hints")
  else
    files+=("$root"/python/tests/test_{npy,numpy_names}.py)
  fi
  test_wheel aarch64 PATH=/nowhere PYTHONPATH="$wheel/packages" UMEM_TEST_QEMU=1 "$(command -v qemu-aarch64)" -L "$system" \
    "$system/usr/bin/python3.11" -m pytest "${without[@]}" "${files[@]}"
}

stage_wheel() {
  if [ ! -x "$package_python/bin/python" ]; then
    echo "skipped - the wheels of the Python package: they need Python 3.11, and this machine has an older one"
    return
  elif [ "$(uname -m)" != x86_64 ] || [ "$(id -u)" != 0 ] || ! has debootstrap; then
    echo "skipped - the wheels of the Python package: they need root, debootstrap and an x86-64 machine"
    return
  fi
  local status=0
  mkdir -p "$wheel"
  "$package_python/bin/python" -m pip install --disable-pip-version-check -r "$root/test/requirements-wheel.txt"
  make_wheel_root amd64
  make_wheel_root arm64
  unpack_system arm64 bookworm python3,libstdc++6
  check "python/wheel makes wheels for x86-64 and AArch64" make_wheels
  check "pip installs the wheel, its packages and the tests, and compiles nothing" install_fresh
  test_fresh || status=1
  check "pip installs the wheel for AArch64" install_arm64_wheel
  test_arm64_wheel || status=1
  return $status
}
