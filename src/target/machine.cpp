#include "target/machine.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "target/gpu.h"
#include "target/unit_rates.h"

namespace tilewright::target {
namespace {

constexpr MachineField kFields[] = {
    {"multiprocessors", &Machine::multiprocessors, ""},
    {"clock", &Machine::clock, "a microsecond"},
    {"multiply_adds", &Machine::multiply_adds, "a clock, 16-bit operands"},
    {"of_warps", &Machine::of_warps, "of multiply_adds, by mma.sync"},
    {"multiply_adds_64", &Machine::multiply_adds_64, "a clock, float64"},
    {"plain", &Machine::plain, "operations a clock"},
    {"special", &Machine::special, "a clock"},
    {"conversions", &Machine::conversions, "a clock"},
    {"shared_bytes", &Machine::shared_bytes, "a clock"},
    {"l2_bytes", &Machine::l2_bytes, "a clock"},
    {"result_bytes", &Machine::result_bytes, "a clock"},
    {"memory_bytes", &Machine::memory_bytes, "a microsecond"},
    {"launch", &Machine::launch, "microseconds"},
};

// Clocks and memories of machines that were not measured: those of their data sheets, of which an H200 reaches
// kOfSheetClock and kOfSheetMemory. Rates a clock: the white papers of A100, Ada, H100 and Blackwell, and the table of
// arithmetic throughput in the CUDA guide; of L2 caches, which no sheet has, that of an H200 by the share of their
// size.
constexpr double kMeasuredMemory = 4.2e6;  // a microsecond, of an H200's 4.8e6 (measured: `copies` in gpu.json)
constexpr double kOfSheetMemory = kMeasuredMemory / 4.8e6, kOfSheetClock = kClock / 1980;
constexpr double kMeasuredLaunch = 2.2;  // microseconds (measured: `launch` in gpu.json)

const std::array kMachines = {
    Machine{"H200", "sm_90a", "fitted to measurements", 132, kClock, kMultiplyAdds, kOfWarps, kMultiplyAdds64, kPlain,
            kSpecial, kConversions, kSharedBytes, kL2Bytes, kResultBytes, kMeasuredMemory, kMeasuredLaunch},
    Machine{"H100", "sm_90a", "an H200's, with the memory measured", 132, kClock, kMultiplyAdds, kOfWarps,
            kMultiplyAdds64, kPlain, kSpecial, kConversions, kSharedBytes, kL2Bytes, kResultBytes, 3.0e6,
            kMeasuredLaunch},
    Machine{"A100", "sm_80", "the data sheet, not measured", 108, 1410 * kOfSheetClock, 1024, 1, 64, 64, 16, 16, 128,
            40, 64, 2.039e6 * kOfSheetMemory, kMeasuredLaunch},
    Machine{"L40S", "sm_89", "the data sheet, not measured", 142, 2520 * kOfSheetClock, 512, 1, 2, 128, 16, 16, 128, 32,
            64, 0.864e6 * kOfSheetMemory, kMeasuredLaunch},
    Machine{"B200", "sm_90a", "on paper: the data sheet, with plans for sm_90a", 148, 1850 * kOfSheetClock, 4096, 0.25,
            64, 128, 16, 64, 128, kL2Bytes, kResultBytes, 8.0e6 * kOfSheetMemory, kMeasuredLaunch},
};

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::span<const MachineField> machine_fields() { return kFields; }
std::span<const Machine> machines() { return kMachines; }

const Machine* machine_named(std::string_view name) {
  const auto found = std::ranges::find_if(kMachines, [&](const Machine& m) { return same(m.name, name); });
  return found == kMachines.end() ? nullptr : &*found;
}

const Machine* machine_of(std::string_view arch) {
  const GpuTarget* target = GpuTarget::named(arch);
  return target ? machine_named(target->machine) : nullptr;
}

const Machine* machine_of(int arch) { return machine_of(GpuTarget::of(arch).name); }

}  // namespace tilewright::target
