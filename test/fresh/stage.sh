# stage.sh - what the README has a newcomer run, on fresh systems. Sourced by test/stages.sh, with $build set.

stage_fresh() {
  local status=0
  test/fresh/run --folder "$build/fresh" || status=$?
  [ $status = 2 ] || return $status
  check "this machine makes no fresh systems, and test/fresh/run says why" true
  echo "skipped - fresh systems"
}
