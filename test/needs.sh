# needs.sh - finds out what a machine lacks, and installs it. Sourced by test/run.
#
# A need is a name that has() can test for and package_of() knows the Debian and Ubuntu package of.

has() {
  case $1 in
    cmocka | benchmark | gtest) pkg-config --exists "$1" ;;
    libcurl) python3 -c 'import ctypes; ctypes.CDLL("libcurl.so.4")' ;;
    venv) python3 -c 'import ensurepip, venv' ;;
    python-headers) [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ;;
    clang-runtime)
      local program
      program=$(mktemp) &&
        clang -fsanitize=address,undefined -x c -o "$program" - <<< 'int main(void) { return 0; }' &&
        clang -fsanitize=thread -x c -o "$program" - <<< 'int main(void) { return 0; }'
      local result=$?
      rm -f "$program"
      return $result
      ;;
    libc++)
      local linked
      linked=$(mktemp) &&
        clang++ -stdlib=libc++ -x c++ -o "$linked" - \
          <<< $'#include <string>\nint main() { return std::string().size() != 0; }'
      local status=$?
      rm -f "$linked"
      return $status
      ;;
    python-libs) has_header zlib.h && has_header ffi.h && has_header openssl/ssl.h ;; # to build Python with pip
    arm64-gcc) aarch64-linux-gnu-gcc -x c -o /dev/null - <<< $'#include <stdio.h>\nint main(void) { return 0; }' ;;
    arm64-g++) aarch64-linux-gnu-g++ -x c++ -o /dev/null - <<< $'#include <string>\nint main() { return 0; }' ;;
    gtest-source) [ -e /usr/src/googletest/CMakeLists.txt ] ;;
    cli11) has_header CLI/CLI.hpp ;;
    nlohmann-json) has_header nlohmann/json.hpp ;;
    zlib) has_header zlib.h ;;
    liburing) has_header liburing.h ;;
    eigen) has_header Eigen/Core -I/usr/include/eigen3 ;;
    xtensor) has_header xtensor/xadapt.hpp || has_header xtensor/containers/xadapt.hpp ;;
    kokkos) has_header Kokkos_Core.hpp || has_header Kokkos_Core.hpp -I/usr/include/trilinos ;;
    cblas) has_header cblas.h ;;
    debian-tools) command -v dh && command -v lintian ;;
    browser) command -v chromium && command -v chromedriver ;;
    mpich | openmpi) command -v "mpicc.$1" && command -v "mpirun.$1" ;;
    valgrind) valgrind --error-exitcode=1 true ;; # also fails without the symbols of libc
    *) command -v "$1" ;;
  esac > /dev/null 2>&1
}

# Whether the C++ compiler finds a header; options.
has_header() { echo "#include <$1>" | g++ -x c++ -std=c++17 -M "${@:2}" -; }

# Of kokkos there are two packages: newer systems have the first.
package_of() {
  case $1 in
    cli11) echo libcli11-dev ;;
    nlohmann-json) echo nlohmann-json3-dev ;;
    zlib) echo zlib1g-dev ;;
    liburing) echo liburing-dev ;;
    eigen) echo libeigen3-dev ;;
    xtensor) echo libxtensor-dev ;;
    kokkos) if is_known libkokkos-dev; then echo libkokkos-dev; else echo libtrilinos-kokkos-dev; fi ;;
    cblas) echo libopenblas-dev ;;
    abidiff) echo abigail-tools ;;
    debian-tools) echo debhelper lintian ;;
    browser) echo chromium-driver ;; # brings Chromium along
    musl-gcc) echo musl-tools ;;
    mpich) echo mpich libmpich-dev ;;
    openmpi) echo openmpi-bin libopenmpi-dev ;;
    ip) echo iproute2 ;;
    ninja) echo ninja-build ;;
    cmocka) echo libcmocka-dev ;;
    benchmark) echo libbenchmark-dev ;;
    gtest) echo libgtest-dev ;;
    libcurl) echo libcurl4 ;; # since Debian 13 a name of libcurl4t64
    venv) echo python3 python3-venv ;;
    python-headers) echo python3-dev ;;
    python-libs) echo zlib1g-dev libffi-dev libssl-dev ;;
    llvm-symbolizer) echo llvm ;;
    clang-runtime) echo "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev" ;;
    libc++) echo libc++-dev libc++abi-dev ;;
    arm64-gcc) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    arm64-g++) echo g++-aarch64-linux-gnu ;;
    qemu-aarch64) echo qemu-user ;;
    gtest-source) echo googletest ;;
    valgrind) echo valgrind libc6-dbg ;;
    *) echo "$1" ;;
  esac
}

# Sets missing to those of the given needs that this machine lacks, each once.
find_missing() {
  local need
  missing=()
  for need; do
    [[ " ${missing[*]} " == *" $need "* ]] || has "$need" || missing+=("$need")
  done
}

# Sets as_root to what must stand before a command that root runs; fails when there is no way.
find_root() {
  as_root=()
  [ "$(id -u)" = 0 ] && return
  command -v sudo > /dev/null || return
  as_root=(sudo)
  [ -t 0 ] && return # it may ask for a password
  as_root=(sudo -n)
  sudo -n true 2> /dev/null
}

# Installs what is missing of the given needs. Its output goes to the file $1.
install_needs() {
  local log=$1 packages need
  shift
  find_missing "$@"
  [ ${#missing[@]} = 0 ] && return

  # Which package holds Clang's runtime depends on the Clang there is: that comes second.
  local first=() second=()
  for need in "${missing[@]}"; do
    if [ "$need" = clang-runtime ]; then second+=("$need"); else first+=("$need"); fi
  done
  [ ${#first[@]} = 0 ] || install_packages "$log" "${first[@]}" || return
  find_missing "${second[@]}"
  [ ${#missing[@]} = 0 ] || install_packages "$log" "${missing[@]}" || return

  find_missing "$@"
  [ ${#missing[@]} = 0 ] && return
  echo "Still missing after the installation: ${missing[*]} (see $log)"
  return 1
}

# Whether the system has these packages.
is_known() { apt-cache show "$@" > /dev/null 2>&1; }

# Installs what is missing of the given needs if the system has it and lets this user do so; says what is left out.
install_wanted() {
  local log=$1 need found=() packages
  shift
  find_missing "$@"
  [ ${#missing[@]} = 0 ] && return
  for need in "${missing[@]}"; do
    read -ra packages <<< "$(package_of "$need")"
    if command -v apt-get > /dev/null && find_root && is_known "${packages[@]}"; then found+=("$need"); fi
  done
  [ ${#found[@]} = 0 ] || install_packages "$log" "${found[@]}" || true
  find_missing "$@"
  [ ${#missing[@]} = 0 ] || echo "Not here, and not installed: ${missing[*]}. The tests that use them are skipped."
}

install_packages() {
  local log=$1 packages=() names need name
  shift
  for need; do
    read -ra names <<< "$(package_of "$need")"
    for name in "${names[@]}"; do
      [[ " ${packages[*]} " == *" $name "* ]] || packages+=("$name")
    done
  done
  if ! command -v apt-get > /dev/null; then
    echo "Missing: $*. This is no Debian or Ubuntu: install what its packages ${packages[*]} hold."
    return 1
  fi
  if ! find_root; then
    echo "Missing: $*. Not root, and sudo does not work without a password. Install them with"
    echo "    apt-get install --no-install-recommends ${packages[*]}"
    return 1
  fi
  echo "Installing with apt-get: ${packages[*]}"
  {
    "${as_root[@]}" apt-get update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "${packages[@]}"
  } < /dev/null >> "$log" 2>&1 && return
  echo "apt-get failed; the end of $log:"
  tail -n 15 "$log"
  return 1
}

# Makes the virtual environment $2 hold what the file $3 asks for. Its output goes to the file $1.
install_python() {
  local log=$1 folder=$2 requirements=$3
  cmp -s "$requirements" "$folder/installed" && return
  echo "Installing from PyPI into $folder: $(grep -v '^#' "$requirements" | tr '\n' ' ')"
  {
    rm -rf "$folder" && python3 -m venv "$folder" &&
      "$folder/bin/python" -m pip install --disable-pip-version-check -r "$requirements" &&
      cp "$requirements" "$folder/installed"
  } < /dev/null >> "$log" 2>&1 && return
  echo "pip failed; the end of $log:"
  tail -n 15 "$log"
  return 1
}

# Sets nginx to the program: that of the system, or one unpacked below the folder $1.
find_nginx() {
  nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx) && return
  nginx=$1/usr/sbin/nginx
  [ ! -x "$nginx" ] || return 0
  mkdir -p "$1" && (cd "$1" && apt-get download nginx && dpkg-deb -x nginx_*.deb .) && [ -x "$nginx" ]
}
