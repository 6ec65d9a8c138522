// Devices as models of time see them: what their units do in a clock. Data; no kernel's text depends on it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::target {

struct Machine {
  std::string name;   // "H200"
  std::string arch;   // whose plans are priced: "sm_90a"
  std::string basis;  // where the numbers come from
  double multiprocessors = 0;
  double clock = 0;             // a microsecond, under products
  double multiply_adds = 0;     // a clock and multiprocessor, of 16-bit operands by the widest matrix instruction
  double of_warps = 0;          // of that, by mma.sync
  double multiply_adds_64 = 0;  // of float64
  double plain = 0;             // operations a clock, multiply-adds too
  double special = 0;           // exponentials and the like
  double conversions = 0;       // between types
  double shared_bytes = 0;      // of shared memory a clock and multiprocessor
  double l2_bytes = 0;          // from the L2 cache a clock and multiprocessor, all at a time
  double result_bytes = 0;      // of results that leave, likewise
  double memory_bytes = 0;      // of the device's memory a microsecond, as copies reach it
  double launch = 0;            // microseconds of a launch among others
};

// The numbers of a machine by name, in the order in which they are listed.
struct MachineField {
  std::string_view name;
  double Machine::*value;
  std::string_view unit;
};
std::span<const MachineField> machine_fields();

std::span<const Machine> machines();
// The one by which plans for an architecture are priced: "sm_90a" is an H200. Null: we do not know the architecture.
const Machine* machine_of(std::string_view arch);
const Machine* machine_of(int arch);
// By its name, whatever the case of its letters. Null: there is none.
const Machine* machine_named(std::string_view name);

}  // namespace tilewright::target
