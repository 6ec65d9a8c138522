// A run of the fuzzer over many seeds: every group of seeds in a process of its own, so that a kernel that crashes or
// does not end is a finding like any other.
#pragma once
#include "driver/fuzz/check.h"

namespace tilewright::fuzz {

struct SessionOptions {
  uint64_t first = 0, last = 0;  // seeds, both included
  double seconds = 0;            // stop after; 0: when all seeds are done
  int jobs = 1;                  // processes at a time
  bool invalid = false;          // spoiled texts, which must be refused, instead of programs that run
  bool minimize = false;
  Engines engines = Engines::Both;
};

struct Found {
  uint64_t seed = 0;
  Finding finding;
  std::string text;  // the program, minimized if asked
};

struct Summary {
  int64_t programs = 0;
  int64_t refused = 0;  // of them: by the GPU's engine, by name
  double seconds = 0;
  std::vector<Found> found;  // in the order of their seeds
};

// `on_finding` sees each as it comes. Prints and warnings of the programs are dropped. Forks: not for a process that
// has used OpenMP, whose threads the children would wait for.
Summary run_session(const SessionOptions& options, function_ref<void(const Found&)> on_finding);

}  // namespace tilewright::fuzz
