g++ -std=c++17 -O2 -shared -fPIC -o laplace_sweep.so laplace_sweep.cpp $(pkg-config --cflags --libs umem) \
  -Wl,-rpath,"$(pkg-config --variable=libdir umem)"
