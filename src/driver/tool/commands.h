// The subcommands of the command line tool. Each gives the exit status; what is wrong with the user's program leaves as
// an Error and is shown by main().
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tilewright::tool {

inline constexpr int kOk = 0;
inline constexpr int kWrong = 1;  // the program is wrong, or results differ
inline constexpr int kUsage = 2;  // the command line is

// A mistake in the command line that only a subcommand can see.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CheckArguments {
  std::string file;
  std::vector<std::string> set;
  uint64_t seed = 1;
  bool json = false;
};
int check(const CheckArguments& options);

struct DoctorOptions {
  bool json = false;
};
int doctor(const DoctorOptions& options);

struct CompileArguments {
  std::string file;
  std::string engine = "cpu";
  std::string stage;  // none: compile it all and say what came out
  std::string arch = "sm_90a";
  std::string plan;  // a file of lines that plans are to have
  bool times = false;
  bool json = false;
};
int compile_file(const CompileArguments& options);

struct BuildArguments {
  std::string file;
  std::vector<std::string> arch;
  std::string out;   // a folder
  std::string name;  // of the function; none: the program's
};
int build(const BuildArguments& options);

struct OptArguments {
  std::string file;
  std::vector<std::string> passes;
  std::string until, arch = "sm_90a", cpu = "portable";
  bool list = false, locations = false, diff = false;
};
int opt(const OptArguments& options);

// A program and what it is called with.
struct CallArguments {
  std::string file;
  std::vector<std::string> set;     // name=value
  std::vector<std::string> inputs;  // name=file.npy
  uint64_t seed = 0;
};

struct RunArguments {
  CallArguments call;
  std::string engine;
  std::vector<std::string> outputs;  // name=file.npy
  int repeat = 1;
  double tolerance = -1;  // of --compare; negative: by dtype
  bool compare = false;
  bool json = false;
};
int run(const RunArguments& options);

struct ExplainArguments {
  std::string file;
  std::vector<std::string> set;
  std::string arch;  // a GPU; none: the CPU
  bool compile = true;
  bool json = false;
};
int explain(const ExplainArguments& options);

struct PlotArguments {
  std::string layout;  // its text, or
  std::string file;    // a program, of which
  std::string buffer;  // this buffer; none: all
  std::string arch = "sm_90a";
  std::string out;  // a folder; none: standard output
  int64_t limit = 32;
  bool svg = false;
};
int plot_layout(const PlotArguments& options);

struct FuzzArguments {
  std::string seeds;  // A..B
  int64_t seed = -1;
  double seconds = 0;
  int jobs = 2;
  bool invalid = false, minimize = false, quick = false, json = false;
  std::string engine;  // beside the interpreter; "interpreter": none
  std::string out;
};
int fuzz(const FuzzArguments& options);

struct SimulateArguments {
  CallArguments call;
  std::string arch = "sm_90a";
  std::string trace;  // a file for the timeline; none: it is not kept
  bool json = false;
};
int simulate(const SimulateArguments& options);

// The bytes of a file; "-": standard input. An Error if it cannot be read.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace tilewright::tool
