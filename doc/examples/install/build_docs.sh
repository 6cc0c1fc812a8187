# Builds the documentation, in the folder of the sources; Doxygen, Python and its module venv are installed.
python3 -m venv build/venv
build/venv/bin/pip install -r test/requirements.txt
PATH="$PWD/build/venv/bin:$PATH" doc/build build/html
