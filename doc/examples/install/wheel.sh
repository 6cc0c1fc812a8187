# Wheels for x86-64 and AArch64, in the folder of the sources, with the Python of PATH. test/wheel/stage.sh runs the same.
# [wheel]
sudo apt-get install debootstrap g++ g++-aarch64-linux-gnu
sudo python/wheel --make-root /tmp/debian-amd64 amd64
sudo python/wheel --make-root /tmp/debian-arm64 arm64
pip install -r test/requirements-python.txt -r test/requirements-wheel.txt
python/wheel wheels --root /tmp/debian-amd64
python/wheel wheels --root /tmp/debian-arm64 --for aarch64
pip install wheels/umem-*_$(uname -m).whl
# [/wheel]
