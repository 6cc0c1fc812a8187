# Builds for ARM64 Linux with the cross compilers of Debian and Ubuntu; tests run under qemu's user mode.
#
#     cmake --toolchain test/arm64/toolchain.cmake ...
#
# CMAKE_FIND_ROOT_PATH names folders with further libraries for ARM64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

find_program(UMEM_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(UMEM_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${UMEM_QEMU};-L;/usr/aarch64-linux-gnu")
endif()

# Programs are this machine's; what is linked and included is not.
list(APPEND CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
