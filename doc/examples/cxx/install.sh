# The commands for programs in C++, after those of build in ../install/install.sh.

# [package]
cmake -S first -B first/build -DCMAKE_PREFIX_PATH="$HOME/opt/umem"
cmake --build first/build
# [/package]

# [pkg-config]
export PKG_CONFIG_PATH="$HOME/opt/umem/lib/pkgconfig"
c++ -std=c++17 -O2 first/first.cpp -o first/first $(pkg-config --cflags --libs umem) \
  -Wl,-rpath,"$HOME/opt/umem/lib"
# [/pkg-config]
