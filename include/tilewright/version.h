// The version, for #if; CMake and the Python package take it from here. What runs says tw_version() (c_api.h).
#pragma once

#define TILEWRIGHT_VERSION_MAJOR 0
#define TILEWRIGHT_VERSION_MINOR 1
#define TILEWRIGHT_VERSION_PATCH 0
#define TILEWRIGHT_VERSION "0.1.0"
