#!/bin/sh
# What umem-trace can do with run.umem, a log.
set -e

# [trace]
# prints a summary
umem-trace run.umem
# writes a file for https://ui.perfetto.dev and chrome://tracing
umem-trace run.umem --chrome run.json
# the same with arrows that follow the data
umem-trace run.umem --chrome run.json --flows
# writes the columns of RMM's logs
umem-trace run.umem --csv run.csv
# any of these for one context only
umem-trace run.umem --csv run.csv --context 2
# repeats the calls, and prints time and peak
umem-trace run.umem --replay --on pool+host:
# [/trace]
