// The scalar texts compiled into the library: what a generated kernel embeds is what the interpreter runs.
#pragma once

namespace tilewright::scalar {

// In this order: each text builds on the ones before it.
// clang-format off
#include "scalar/types.text.h"
#include "scalar/integer.text.h"
#include "scalar/convert.text.h"
#include "scalar/float.text.h"
#include "scalar/directed.text.h"
#include "scalar/library.text.h"
#include "scalar/math.text.h"
// clang-format on

}  // namespace tilewright::scalar
