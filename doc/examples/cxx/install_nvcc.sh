# The same with nvcc, which needs -Xlinker before options of the linker.

# [nvcc]
export PKG_CONFIG_PATH="$HOME/opt/umem/lib/pkgconfig"
nvcc -std=c++17 -O2 from_cuda.cu -o from_cuda $(pkg-config --cflags --libs umem) \
  -Xlinker -rpath,"$HOME/opt/umem/lib"
# [/nvcc]
