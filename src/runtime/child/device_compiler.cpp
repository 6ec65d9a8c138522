// The program of the process in which NVRTC runs (nvrtc_process.h): reads a request from descriptor 3 and writes the
// answer to descriptor 4. It stands whole in the library, which starts it.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "runtime/nvrtc_call.h"

int main() {
  prctl(PR_SET_NAME, "tw-nvrtc");
  // It ends with the thread that waits for it, and leaves no core file behind where NVRTC crashes.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  struct stat info {};
  if (fstat(3, &info) != 0) return 1;
  const size_t size = static_cast<size_t>(info.st_size);
  void* request = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, 3, 0);
  if (request == MAP_FAILED) return 1;
  tilewright::runtime::FieldWriter answer;
  tilewright::runtime::call_nvrtc(static_cast<const char*>(request), size, answer);
  for (size_t done = 0; done < answer.size();) {
    const ssize_t count = write(4, answer.data() + done, answer.size() - done);
    if (count <= 0) return 1;
    done += static_cast<size_t>(count);
  }
  _exit(0);  // NVRTC has nothing to tidy up
}
