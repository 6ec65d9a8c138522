// The one sink of warnings.
#pragma once
#include <functional>

#include "support/diagnostic.h"

namespace tilewright {

using WarningSink = std::function<void(const Diagnostic&)>;

// Hands the finding, marked as a warning, to the sink. The default sink writes to stderr, each code and message once a
// process.
void warn(Diagnostic diagnostic);

// Replaces the sink and returns the one before; an empty function restores the default.
WarningSink replace_warning_sink(WarningSink sink);

}  // namespace tilewright
