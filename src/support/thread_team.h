#pragma once

#include "support/function_ref.h"

namespace tilewright {

// As many threads as OpenMP would use: what this process told its library, if it is linked with one; else
// OMP_NUM_THREADS, else as many as there are processors that the process may run on.
int usual_threads();

// Calls `work` on this thread and, while it is at it, on up to wanted - 1 others: who takes parts of something until
// there are no more is done when this returns. The work throws nothing.
void share_work(int wanted, function_ref<void()> work);

// Calls body(thread, count) once on each of `count` threads, the caller's being thread 0: on `wanted`, or fewer where
// the system gives no more. The body throws nothing.
void run_threads(int wanted, function_ref<void(int thread, int count)> body);

// Runs `body`, which calls a kernel that begins OpenMP teams. A process that fork() made cannot begin one on the thread
// that it was forked on if that thread had one before: libgomp waits for the team's threads, which stayed in the parent
// (GCC bug 52303). There, `body` runs on a thread of its own, which is kept for the next one. What `body` throws is
// thrown here.
void run_team(function_ref<void()> body);

}  // namespace tilewright
