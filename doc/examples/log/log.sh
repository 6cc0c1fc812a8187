#!/bin/sh
# What can be made of run.umem, a log.
set -e

# [trace]
# what it holds
umem-trace run.umem
# for https://ui.perfetto.dev and chrome://tracing
umem-trace run.umem --chrome run.json
# with arrows that follow the data
umem-trace run.umem --chrome run.json --flows
# in the columns of RMM's logs
umem-trace run.umem --csv run.csv
# of one context only: any of these
umem-trace run.umem --csv run.csv --context 2
# runs it again, and tells time and peak
umem-trace run.umem --replay --on pool+host:
# [/trace]
