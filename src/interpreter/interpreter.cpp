// Launches one after the other, their blocks in parallel where nobody can tell.
#include "interpreter/interpreter.h"

#include <omp.h>

#include <atomic>
#include <mutex>

#include "interpreter/scheduler.h"
#include "ir/number_statements.h"

namespace tilewright::interpreter {

namespace {

std::array<int64_t, 3> block_index(const LaunchCode& code, int64_t linear) {
  return {linear % code.grid[0], linear / code.grid[0] % code.grid[1], linear / code.grid[0] / code.grid[1]};
}

// One block at a time, again and again.
class BlockRunner {
 public:
  BlockRunner(const ProgramCode& program, const LaunchCode& code)
      : grid_{program, code, nullptr, {}, static_cast<int>(code.strands.size())}, block_(grid_) {
    grid_.scheduler = code.needs_strands ? static_cast<Scheduler*>(&turns_) : &lone_;
    for (const auto& set : code.strands) {
      strands_.push_back(std::make_unique<Strand>(block_, set));
      pointers_.push_back(strands_.back().get());
    }
  }
  void run(int64_t linear) {
    block_.reset(block_index(grid_.code, linear));
    if (grid_.code.needs_strands)
      turns_.run(pointers_);
    else
      strands_[0]->run();
  }

 private:
  Grid grid_;
  Block block_;
  LoneScheduler lone_;
  TurnScheduler turns_;
  std::vector<std::unique_ptr<Strand>> strands_;
  std::vector<Strand*> pointers_;
};

// All blocks at once: they wait for each other.
void run_cooperative(const ProgramCode& program, const LaunchCode& code, int64_t blocks) {
  TurnScheduler turns;
  Grid grid{program, code, &turns, {}, static_cast<int>(blocks * static_cast<int64_t>(code.strands.size()))};
  std::vector<std::unique_ptr<Block>> list;
  std::vector<std::unique_ptr<Strand>> strands;
  std::vector<Strand*> pointers;
  for (int64_t b = 0; b < blocks; ++b) {
    list.push_back(std::make_unique<Block>(grid));
    list.back()->reset(block_index(code, b));
    for (const auto& set : code.strands) {
      strands.push_back(std::make_unique<Strand>(*list.back(), set));
      pointers.push_back(strands.back().get());
    }
  }
  turns.run(pointers);
}

// The error that is reported is that of the first block, whatever the number of threads.
void run_parallel(const ProgramCode& program, const LaunchCode& code, int64_t blocks, int threads) {
  std::atomic<int64_t> next{0}, failed{blocks};
  std::exception_ptr error;
  std::mutex mutex;
#pragma omp parallel num_threads(threads)
  {
    std::unique_ptr<BlockRunner> runner;
    for (int64_t b; (b = next++) < failed.load();) {
      try {
        if (!runner) runner = std::make_unique<BlockRunner>(program, code);
        runner->run(b);
      } catch (...) {
        runner.reset();  // its strands stopped half-way
        std::lock_guard lock(mutex);
        if (b < failed.load()) failed = b, error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

void run_launch(const ProgramCode& program, const ir::Launch& launch) {
  std::unique_ptr<LaunchCode> code = prepare(program, launch);
  int64_t blocks = code->grid[0] * code->grid[1] * code->grid[2];
  if (blocks <= 0 || code->thread_count <= 0) return;
  if (code->grid_sync) return run_cooperative(program, *code, blocks);
  int threads = program.binding->threads > 0 ? program.binding->threads : omp_get_max_threads();
  threads = static_cast<int>(std::min<int64_t>(threads, blocks));
  if (!code->serial && threads > 1) return run_parallel(program, *code, blocks, threads);
  BlockRunner runner(program, *code);
  for (int64_t b = 0; b < blocks; ++b) runner.run(b);
}

}  // namespace

void interpret(const ir::TileProgram& given, const Binding& binding) {
  // Buffers know their launches by where they stand in the program: it is numbered as a whole.
  ir::TileProgram program = given;
  for (ir::Launch& launch : program.launches) ir::number_statements(launch);
  ProgramCode code = bind(program, binding);
  for (const ir::Launch& launch : program.launches) run_launch(code, launch);
}

}  // namespace tilewright::interpreter
