# The commands of "Another processor" on the page "Install and use". The folder umem holds the sources.

# [build]
cmake -S umem -B build-arm64 --toolchain "$PWD/arm64.cmake" -DCMAKE_BUILD_TYPE=Release
cmake --build build-arm64
cmake --install build-arm64 --prefix "$HOME/opt/umem-arm64"
# [/build]

# [package]
cmake -S with_package -B with_package/build-arm64 --toolchain "$PWD/arm64.cmake" \
  -DCMAKE_PREFIX_PATH="$HOME/opt/umem-arm64"
cmake --build with_package/build-arm64
# [/package]

# [run]
qemu-aarch64 -L /usr/aarch64-linux-gnu with_package/build-arm64/first
# [/run]
