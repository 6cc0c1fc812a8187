# stage.sh - what the README has a newcomer run, on fresh systems. Sourced by test/stages.sh, with $build set.

stage_fresh() { test/fresh/run --folder "$build/fresh"; }
