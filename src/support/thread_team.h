#pragma once

#include "support/function_ref.h"

namespace tilewright {

// Runs `body`, which begins OpenMP teams. A process that fork() made cannot begin one on the thread that it was forked
// on if that thread had one before: libgomp waits for the team's threads, which stayed in the parent (GCC bug 52303).
// There, `body` runs on a thread of its own, which is kept for the next one. What `body` throws is thrown here.
void run_team(function_ref<void()> body);

}  // namespace tilewright
