# Builds the documentation. Run it in the folder of the sources. It needs Doxygen, Python and its module venv.
python3 -m venv build/venv
build/venv/bin/pip install -r test/requirements.txt
PATH="$PWD/build/venv/bin:$PATH" doc/build build/html
