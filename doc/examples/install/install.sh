# The commands of the page "Install and use". The folder umem holds the sources.

# [build]
cmake -S umem -B build -DUMEM_BUILD_EXAMPLES=OFF
cmake --build build --parallel "$(nproc)"
cmake --install build --prefix "$HOME/opt/umem"
# [/build]

# [package]
cmake -S with_package -B with_package/build -DCMAKE_PREFIX_PATH="$HOME/opt/umem"
cmake --build with_package/build
# [/package]

# [source]
cmake -S with_source -B with_source/build
cmake --build with_source/build
# [/source]

# [pkg-config]
export PKG_CONFIG_PATH="$HOME/opt/umem/lib/pkgconfig"
cc first.c -o first_shared $(pkg-config --cflags --libs umem) -Wl,-rpath,"$HOME/opt/umem/lib"
# [/pkg-config]

# [static]
cc first.c -o first_static $(pkg-config --cflags umem) "$HOME/opt/umem/lib/libumem.a" \
  $(pkg-config --variable=libs_private umem)
# [/static]
