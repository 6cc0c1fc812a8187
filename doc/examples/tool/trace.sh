#!/bin/sh
# Traces of a program, my_program, which uses the default context of umem.
set -e

# [run]
# runs the program, and writes trace.json for https://ui.perfetto.dev
umem trace run -- my_program
# also keeps the log
umem trace run --log run.umem -o run.json -- my_program
# the program works on a pool this time
umem trace run --on pool+host: -- my_program
# [/run]

# [read]
umem trace summary run.umem
umem trace csv run.umem -o run.csv
umem trace replay run.umem --on pool+host:
# [/read]
