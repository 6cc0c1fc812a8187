# cmocka.sh - CMocka's sources from the distribution, for stages that compile it with another compiler. Sourced by
# test/stages.sh.

# apt with lists and sources of its own: the sources of packages of the repository that CMocka comes from.
sources_apt() {
  apt-get -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt_folder/sources" \
    -o Dir::State::Lists="$apt_folder/lists" -o Dir::Cache="$apt_folder/cache" "$@"
}

# Sets up sources_apt, from the file in which this system names that repository.
describe_sources() {
  local index entry file
  index=$(apt-cache madison libcmocka-dev | sed -n '1s/^[^|]*|[^|]*| *//p')
  entry=$(apt-get indextargets --format '$(DESCRIPTION)|$(SOURCESENTRY)' 'Created-By: Packages' |
    awk -F '|' -v index_="$index" '$1 == index_ { print $2; exit }')
  file=${entry%:*}
  if [ ! -e "$file" ]; then
    echo "apt does not say which repository holds libcmocka-dev"
    return 1
  fi
  rm -rf "$apt_folder"
  mkdir -p "$apt_folder/sources" "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial"
  sed -E 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" > "$apt_folder/sources/${file##*/}"
}

# Sets cmocka_source to a folder with CMocka's sources, below the folder $1.
fetch_cmocka() {
  local archives apt_folder=$1/apt
  describe_sources
  sources_apt update
  (cd "$apt_folder" && sources_apt source --download-only --tar-only cmocka)
  archives=("$apt_folder"/cmocka_*.orig.tar.*z*)
  (cd "$apt_folder" && cmake -E tar xf "${archives[0]}")
  cmocka_source=$(find "$apt_folder" -maxdepth 1 -type d -name 'cmocka-*')
  [ -e "$cmocka_source/CMakeLists.txt" ]
}
