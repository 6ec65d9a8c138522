// Precompiled once for the tests.
#pragma once
#include <gtest/gtest.h>

#include "precompiled.h"
