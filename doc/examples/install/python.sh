# The package for Python 3.11 or later, in a virtual environment. Run it in the folder of the sources.
sudo apt-get install g++ python3-dev python3-venv nlohmann-json3-dev zlib1g-dev
python3 -m venv "$HOME/umem-python"
"$HOME/umem-python/bin/pip" install .
