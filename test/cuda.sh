# cuda.sh - finding the tools of the CUDA toolkit and using them. Sourced by those that do.

# Sets $1 to the path of the program $2, on PATH or in one of the other folders.
find_program() {
  local folder
  printf -v "$1" %s "$(command -v "$2")"
  [ -z "${!1}" ] || return 0
  for folder in "${@:3}"; do
    [ -x "$folder/$2" ] || continue
    printf -v "$1" %s "$folder/$2"
    return 0
  done
  return 1
}

# The folder of the toolkit where it is not on PATH, as CMake looks for it.
toolkit_folders=("${CUDAToolkit_ROOT:-/usr/local/cuda}" "${CUDA_HOME:-/usr/local/cuda}" /usr/local/cuda)

# Sets nvcc; fails where there is none of CUDA 12.2 or later.
find_nvcc() {
  find_program nvcc nvcc "${toolkit_folders[@]/%//bin}" || return
  local release
  release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  [ "$(printf '%s\n' 12.2 "$release" | sort -V | head -n 1)" = 12.2 ]
}

# Sets sanitizer, NVIDIA's compute-sanitizer; fails where there is none.
find_sanitizer() {
  find_program sanitizer compute-sanitizer "${toolkit_folders[@]/%//bin}" \
    "${toolkit_folders[@]/%//compute-sanitizer}"
}

# Compiles a user's program with nvcc, which must have no complaint: object, further options.
compile_with_nvcc() {
  local source=$1 object=$2
  shift 2
  "$nvcc" -std=c++17 -O2 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror \
    -I"$root/c/include" "$@" -c "$source" -o "$object"
}

# The programs of test/compile: kernel or faults, object, further options.
compile_program() { compile_with_nvcc "$root/test/compile/$1.cu" "${@:2}"; }

# The programs of the part `order` of the GPU tests: calls, pairs, ...; object, further options.
compile_order_program() {
  compile_with_nvcc "$root/test/gpu/order_$1.cu" "$2" -I"$root/cxx/include" -I"$root/c/src" "${@:3}"
}
