# What the commands of the README and of the page "Install and use" need on Debian and Ubuntu.
sudo apt-get install g++ make cmake pkg-config libcli11-dev nlohmann-json3-dev zlib1g-dev
