# check.sh - how shell tests tell a result: a line "ok - NAME" or "not ok - NAME". Sourced by them.

# Runs a command as one check of this name.
check() {
  local name=$1
  shift
  if "$@"; then
    echo "ok - $name"
  else
    echo "not ok - $name (exit status $?)"
    return 1
  fi
}
