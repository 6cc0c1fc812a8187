pip install .
