// Examples on the CPU engine beside what people would use instead: OpenBLAS, PyTorch, a copy of the same bytes.
#include <cblas.h>
#include <omp.h>
#include <unistd.h>

#include "example.h"
#include "measure.h"
#include "runtime/cpu_kernel.h"
#include "torch_peer.h"

extern "C" void openblas_set_num_threads(int);

namespace bench {
namespace {

using examples::Case;
using tilewright::NDArray;

// One line of the table: ours and one peer, in turns.
struct Row {
  std::string program, shape, peer;
  double flops = 0, bytes = 0;
  std::function<double()> own, other, near = {};
};

std::string rate(const Row& row, double seconds) {
  return row.flops > 10 * row.bytes ? fmt::format("{:8.1f} GFLOP/s", row.flops / seconds * 1e-9)
                                    : fmt::format("{:8.1f} GB/s   ", row.bytes / seconds * 1e-9);
}

// In memory like that of our arrays.
NDArray floats(int64_t n, float value) {
  NDArray a = NDArray::empty({n}, tilewright::f32);
  std::fill_n(static_cast<float*>(a.data()), n, value);
  return a;
}

std::function<double()> openblas(int64_t m, int64_t n, int64_t k) {
  return [=, a = floats(m * k, 0.5F), b = floats(k * n, 0.25F), c = floats(m * n, 0)] {
    return seconds_of([&] {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(m), static_cast<int>(n),
                  static_cast<int>(k), 1, static_cast<const float*>(a.data()), static_cast<int>(k),
                  static_cast<const float*>(b.data()), static_cast<int>(n), 0, static_cast<float*>(c.data()),
                  static_cast<int>(n));
    });
  };
}

std::function<double()> copy_of(double bytes) {  // half read, half written
  const auto n = static_cast<size_t>(bytes / 8) + 1;
  return [=, from = floats(static_cast<int64_t>(n), 1), to = floats(static_cast<int64_t>(n), 0)] {
    return seconds_of([&] {
      const size_t parts = static_cast<size_t>(omp_get_max_threads()), share = (n + parts - 1) / parts;
#pragma omp parallel for schedule(static)
      for (size_t p = 0; p < parts; ++p) {
        const size_t begin = std::min(p * share, n), end = std::min(begin + share, n);
        std::memcpy(static_cast<float*>(to.data()) + begin, static_cast<const float*>(from.data()) + begin,
                    (end - begin) * sizeof(float));
      }
    });
  };
}

void replace_all(std::string& text, size_t from, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what, from); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

// The same text, of which every thread runs one block again and again, without stores around the caches: what is left
// of a kernel's time where memory costs nothing. Its results mean nothing.
tilewright::Executable near_memory(const tilewright::Executable& executable) {
  std::string text = executable.source();
  replace_all(text, 0, "#ifdef TW_STREAM", "#if 0");
  replace_all(text, text.rfind("int tw_entry("), "(call, block", "(call, omp_get_thread_num()");
  text += "\n";
  const std::string head = tilewright::runtime::kernel_text_head();
  text.insert(head.size(), "extern \"C\" int omp_get_thread_num();\n");
  return make_executable(
      executable.program().plan(),
      tilewright::runtime::build_cpu_kernel({executable.name(), text, tilewright::runtime::processor_features()}),
      "cpu", text);
}

// What PyTorch is asked to do in place of a case, if it has it.
std::string torch_command(const std::string& program, const Case& c) {
  std::vector<examples::LazyArray> arrays;
  for (const auto& a : c.arguments)
    if (const auto* array = std::get_if<examples::LazyArray>(&a)) arrays.push_back(*array);
  const std::string dtype = arrays[0].dtype().name();
  if (dtype == "float16") return "";  // 0.8 GFLOP/s: PyTorch has no float16 product for this processor
  if (program == "gemm_relu" || program == "gemm")
    return fmt::format("matmul {} {} {} {}", dtype, arrays[0].shape(0), arrays[1].shape(1), arrays[0].shape(1));
  const bool plain = c.shape.find("causal") == std::string::npos && arrays[0].shape(1) == arrays[1].shape(1);
  if (program == "flash_attention" && plain)
    return fmt::format("attention {} {} {} {} {}", dtype, arrays[0].shape(0), arrays[0].shape(1), arrays[0].shape(2),
                       arrays[0].shape(3));
  return "";
}

}  // namespace

nlohmann::json cpu(bool with_torch, int turns, const std::string& only) {
  openblas_set_num_threads(omp_get_max_threads());
  const std::string python = std::string(TILEWRIGHT_SOURCE_DIR) + "/.venv/bin/python";
  std::unique_ptr<TorchPeer> torch;
  if (with_torch && access(python.c_str(), X_OK) == 0) torch = std::make_unique<TorchPeer>(python);
  if (torch && !torch->ready()) torch.reset();
  fmt::print("cpu: {} cores, {} turns, {}\n", omp_get_max_threads(), turns, torch ? torch->version() : "without torch");
  fmt::print("{:<18}{:<36}{:>17}  {:>17}  {:>6}  {:>6}  {:>6}  {}\n", "program", "shape", "ours", "peer", "median",
             "best", "near", "peer");
  nlohmann::json rows = nlohmann::json::array();
  for (const examples::Example& e : examples::all_examples()) {
    if (std::string(e.name).find(only) == std::string::npos) continue;
    for (const Case& c : e.cases(examples::Size::Benchmark)) {
      const auto executable = tilewright::compile(c.program, {.engine = tilewright::Engine::Cpu});
      const std::vector<NDArray> arrays = examples::run_case(c, executable);
      const auto own = [&] { return seconds_of([&] { examples::call_case(c, executable, arrays); }); };
      std::vector<Row> list;
      if (c.peer.kind == examples::Peer::Kind::OpenBlasGemm)
        list.push_back(
            {e.name, c.shape, "OpenBLAS float32", c.flops, c.bytes, own, openblas(c.peer.m, c.peer.n, c.peer.k)});
      if (c.peer.kind == examples::Peer::Kind::Copy) {
        const auto near = [&, one = near_memory(executable)] {
          return seconds_of([&] { examples::call_case(c, one, arrays); });
        };
        list.push_back({e.name, c.shape, "copy", c.flops, c.bytes, own, copy_of(c.bytes), near});
      }
      if (const std::string command = torch_command(e.name, c); torch && !command.empty())
        list.push_back({e.name, c.shape, "torch " + command, c.flops, c.bytes, own,
                        [&torch, command] { return torch->seconds(command); }});
      for (const Row& row : list) {
        row.own(), row.other();
        const Contest r = contest(row.own, row.other, turns);
        double near = 0;
        for (int i = 0; row.near && i < turns; ++i) {
          const double seconds = row.near();
          near = i == 0 ? seconds : std::min(near, seconds);
        }
        fmt::print("{:<18}{:<36}{:>17}  {:>17}  {:>6.2f}  {:>6.2f}  {:>6}  {}\n", row.program, row.shape,
                   rate(row, r.own), rate(row, r.peer), r.peer / r.own, r.peer_best / r.own_best,
                   row.near ? fmt::format("{:.2f}", r.peer_best / near) : "", row.peer);
        std::fflush(stdout);
        rows.push_back({{"program", row.program},
                        {"shape", row.shape},
                        {"peer", row.peer},
                        {"own_seconds", r.own},
                        {"peer_seconds", r.peer},
                        {"own_best_seconds", r.own_best},
                        {"peer_best_seconds", r.peer_best},
                        {"ratio", r.peer / r.own},
                        {"ratio_best", r.peer_best / r.own_best},
                        {"flops", row.flops},
                        {"bytes", row.bytes}});
        if (row.near) rows.back()["near_best_seconds"] = near;
      }
    }
  }
  return rows;
}

}  // namespace bench
