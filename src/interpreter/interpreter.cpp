// Launches one after the other, their blocks in parallel where nobody can tell.
#include "interpreter/interpreter.h"

#include <atomic>
#include <chrono>
#include <mutex>

#include "interpreter/clusters.h"
#include "interpreter/scheduler.h"
#include "ir/number_statements.h"
#include "passes/warp_matrices.h"
#include "support/diagnostic.h"
#include "support/thread_team.h"

namespace tilewright::interpreter {

namespace {

std::array<int64_t, 3> block_index(const LaunchCode& code, int64_t linear) {
  return {linear % code.grid[0], linear / code.grid[0] % code.grid[1], linear / code.grid[0] / code.grid[1]};
}

// The blocks of a cluster at a time, again and again; of a launch without clusters each block is one.
class ClusterRunner {
 public:
  ClusterRunner(const ProgramCode& program, const LaunchCode& code, int64_t blocks)
      : grid_{program, code, nullptr, {}, static_cast<int>(blocks * static_cast<int64_t>(code.strands.size()))},
        in_turns_(code.needs_strands || blocks > 1) {
    grid_.scheduler = in_turns_ ? static_cast<Scheduler*>(&turns_) : &lone_;
    for (int64_t b = 0; b < blocks; ++b) {
      blocks_.push_back(std::make_unique<Block>(grid_));
      for (const auto& set : code.strands) {
        strands_.push_back(std::make_unique<Strand>(*blocks_.back(), set));
        pointers_.push_back(strands_.back().get());
      }
    }
    if (code.in_clusters) join(Clusters(code));
  }
  // The blocks of these numbers.
  void run(std::span<const int64_t> numbers) {
    for (size_t b = 0; b < blocks_.size(); ++b) blocks_[b]->reset(block_index(grid_.code, numbers[b]));
    for (Cluster& cluster : clusters_) cluster.sync = {}, cluster.copies.clear();
    if (in_turns_)
      turns_.run(pointers_);
    else
      strands_[0]->run();
  }

 private:
  // Its blocks come cluster by cluster.
  void join(const Clusters& of) {
    const auto size = static_cast<size_t>(of.size());
    clusters_.resize(blocks_.size() / size);
    for (size_t b = 0; b < blocks_.size(); ++b) {
      Cluster& cluster = clusters_[b / size];
      cluster.blocks.push_back(blocks_[b].get()), blocks_[b]->cluster = &cluster;
      cluster.strands += static_cast<int>(grid_.code.strands.size());
    }
  }

  Grid grid_;
  bool in_turns_;
  LoneScheduler lone_;
  TurnScheduler turns_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Cluster> clusters_;
  std::vector<std::unique_ptr<Strand>> strands_;
  std::vector<Strand*> pointers_;
};

// Which blocks run at the same time: those that wait for each other.
class Groups {
 public:
  Groups(const ProgramCode& program, const LaunchCode& code, int64_t blocks)
      : clusters_(code), in_clusters_(code.in_clusters), all_(code.grid_sync || code.together), blocks_(blocks) {
    if (in_clusters_ && !clusters_.fits())
      fail(Code::InterpreterRefuses, program.program->location(code.launch->location),
           fmt::format("a grid of {} blocks in clusters of {}", fmt::join(code.grid, " x "),
                       fmt::join(code.launch->cluster, " x ")),
           "a grid consists of whole clusters");
  }
  int64_t size() const { return all_ ? blocks_ : in_clusters_ ? clusters_.size() : 1; }
  int64_t count() const { return blocks_ / size(); }
  // The numbers of a group's blocks, cluster by cluster.
  std::vector<int64_t> blocks(int64_t group) const {
    std::vector<int64_t> out;
    const int64_t together = in_clusters_ ? clusters_.size() : 1;
    for (int64_t i = group * size(); i < (group + 1) * size(); ++i)
      out.push_back(in_clusters_ ? clusters_.block(i / together, i % together) : i);
    return out;
  }

 private:
  Clusters clusters_;
  bool in_clusters_, all_;
  int64_t blocks_;
};

// Little work is done before a thread has begun.
constexpr std::chrono::microseconds kAlone{50};

// The error that is reported is that of the first group, whatever the number of threads.
void run_parallel(const ProgramCode& program, const LaunchCode& code, const Groups& groups, int threads) {
  std::atomic<int64_t> next{0}, failed{groups.count()};
  std::exception_ptr error;
  std::mutex mutex;
  using Clock = std::chrono::steady_clock;
  const auto work_until = [&](Clock::time_point end) {
    std::unique_ptr<ClusterRunner> runner;
    for (int64_t g; Clock::now() < end && (g = next++) < failed.load();) {
      try {
        if (!runner) runner = std::make_unique<ClusterRunner>(program, code, groups.size());
        runner->run(groups.blocks(g));
      } catch (...) {
        runner.reset();  // its strands stopped half-way
        std::lock_guard lock(mutex);
        if (g < failed.load()) failed = g, error = std::current_exception();
      }
    }
  };
  work_until(Clock::now() + kAlone);
  if (next < failed) share_work(threads, [&] { work_until(Clock::time_point::max()); });
  if (error) std::rethrow_exception(error);
}

void run_launch(const ProgramCode& program, const ir::Launch& launch) {
  std::unique_ptr<LaunchCode> code = prepare(program, launch);
  int64_t blocks = code->grid[0] * code->grid[1] * code->grid[2];
  if (blocks <= 0 || code->thread_count <= 0) return;
  const Groups groups(program, *code, blocks);
  int threads = program.binding->threads > 0 ? program.binding->threads : usual_threads();
  threads = static_cast<int>(std::min<int64_t>(threads, groups.count()));
  if (!code->serial && threads > 1) return run_parallel(program, *code, groups, threads);
  ClusterRunner runner(program, *code, groups.size());
  for (int64_t g = 0; g < groups.count(); ++g) runner.run(groups.blocks(g));
}

}  // namespace

void interpret(const ir::TileProgram& given, const Binding& binding) {
  // Buffers know their launches by where they stand in the program: it is numbered as a whole.
  ir::TileProgram program = passes::spell_matrices(given);
  for (ir::Launch& launch : program.launches) ir::number_statements(launch);
  ProgramCode code = bind(program, binding);
  for (const ir::Launch& launch : program.launches) run_launch(code, launch);
}

}  // namespace tilewright::interpreter
