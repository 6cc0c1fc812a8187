#!/usr/bin/env python3
"""Makes cell.npy, which ships beside this script; cell.txt names its origin. Not needed to run
anything: it is here so that everybody can make the file again.

    python3 -m venv venv
    venv/bin/pip install numpy scikit-image==0.26.0
    venv/bin/python make_cell.py [OUTPUT.npy]
"""

import pathlib
import sys

import numpy
import skimage.data

output = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("cell.npy")
numpy.save(output, numpy.ascontiguousarray(skimage.data.cell()))
