#include "fake_cuda/host_threads.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>

#include "fake_cuda/fake_cuda.h"
#include "scalar/evaluate.h"
#include "support/coroutine.h"
#include "target/wgmma.h"

namespace tilewright::fake_cuda {
namespace {

// Who has come to a barrier, of how many times it was passed.
struct Meeting {
  unsigned come = 0, passed = 0, holds = 0, held = 0;
};

struct Exchange {
  unsigned come = 0, gone = 0, passed = 0;
  void* brought[32] = {};
};

struct Block {
  std::vector<unsigned char> memory;
  unsigned char* shared = nullptr;
  unsigned running = 0;  // threads that have not ended
  std::map<int, Meeting> barriers;
  std::map<std::pair<unsigned, unsigned>, Exchange> exchanges;  // by warp and lanes
};

struct Thread {
  HostThread words{};
  Block* block = nullptr;
  unsigned cluster = 0, warp = 0, cluster_passed = 0;
  std::unique_ptr<Coroutine> coroutine;
};

// What runs now; one launch at a time.
struct Running {
  const std::vector<EncodedMap>* maps = nullptr;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<Thread> threads;
  std::map<unsigned, Meeting> clusters;
  unsigned blocks_of_cluster = 1;
  Thread* now = nullptr;
  bool moved = false;  // somebody has gone on since
  std::string fault;
};
Running* g_running = nullptr;

unsigned threads_of(const Running& r) {
  const HostThread& t = r.now->words;
  return t.threads.x * t.threads.y * t.threads.z;
}

void turn() { g_running->now->coroutine->leave(); }

// Whoever waits looks himself: those that it waits for may have ended.
bool pass(Meeting& m, unsigned wanted) {
  if (m.come < wanted) return false;
  m.come = 0, ++m.passed, m.held = m.holds, m.holds = 0, g_running->moved = true;
  return true;
}
void arrive(int barrier, int threads) {
  Running& r = *g_running;
  Meeting& m = r.now->block->barriers[barrier];
  ++m.come, r.moved = true;
  if (threads > 0) pass(m, static_cast<unsigned>(threads));
}
void sync(int barrier, int threads) {
  Running& r = *g_running;
  Block& block = *r.now->block;
  Meeting& m = block.barriers[barrier];
  const unsigned before = m.passed;
  ++m.come, r.moved = true;
  while (m.passed == before && !pass(m, threads > 0 ? static_cast<unsigned>(threads) : block.running)) turn();
}
int count(int holds) {
  Meeting& m = g_running->now->block->barriers[0];
  m.holds += static_cast<unsigned>(holds);
  sync(0, 0);
  return static_cast<int>(m.held);
}
Exchange& exchange_of(unsigned lanes) { return g_running->now->block->exchanges[{g_running->now->warp, lanes}]; }
void* const* exchange(unsigned lanes, void* mine) {
  Running& r = *g_running;
  // Lanes that there are none of have nothing to bring.
  const unsigned left = threads_of(r) - r.now->warp * 32;
  const unsigned wanted = lanes & (left >= 32 ? ~0u : (1u << left) - 1);
  Exchange& e = exchange_of(lanes);
  const unsigned before = e.passed;
  e.brought[r.now->words.lane] = mine, e.come |= 1u << r.now->words.lane, r.moved = true;
  if (e.come == wanted) ++e.passed, e.gone = wanted, e.come = 0;
  while (e.passed == before) turn();
  return e.brought;
}
// What a lane has brought stands on its stack until all have read it.
void leave(unsigned lanes) {
  Exchange& e = exchange_of(lanes);
  const unsigned before = e.passed;
  e.gone &= ~(1u << g_running->now->words.lane), g_running->moved = true;
  while (e.gone && e.passed == before) turn();
}
void arrive_cluster() {
  Running& r = *g_running;
  Meeting& m = r.clusters[r.now->cluster];
  r.now->cluster_passed = m.passed;
  ++m.come, r.moved = true;
  pass(m, threads_of(r) * r.blocks_of_cluster);
}
void wait_cluster() {
  while (g_running->clusters[g_running->now->cluster].passed == g_running->now->cluster_passed) turn();
}
unsigned char* shared_of(unsigned rank) {
  for (const Thread& t : g_running->threads)
    if (t.cluster == g_running->now->cluster && t.words.rank == rank) return t.block->shared;
  return nullptr;
}
void fault(const char* what) {
  if (g_running->fault.empty()) g_running->fault = what;
}

// CUtensorMapDataType
constexpr int kBytesOf[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr int kSigned32 = 3, kSigned64 = 5, kFloat16 = 6, kFloat32 = 7, kBfloat16 = 9;

template <class T>
T joined(const char* how, T a, T b) {
  if (!std::strcmp(how, "min")) return std::min(a, b);
  if (!std::strcmp(how, "max")) return std::max(a, b);
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (!std::strcmp(how, "and")) return a & b;
    if (!std::strcmp(how, "or")) return a | b;
    if (!std::strcmp(how, "xor")) return a ^ b;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}
template <class T>
void join(const char* how, unsigned char* to, const unsigned char* from) {
  T a, b;
  std::memcpy(&a, to, sizeof a), std::memcpy(&b, from, sizeof b);
  a = joined(how, a, b);
  std::memcpy(to, &a, sizeof a);
}
void join_short(DType type, const char* how, unsigned char* to, const unsigned char* from) {
  float a = 0, b = 0;
  load_lanes(type, to, {}, 1, &a), load_lanes(type, from, {}, 1, &b);
  a = joined(how, a, b);
  store_lanes(type, to, {}, 1, &a);
}
bool join_element(const char* how, int type, unsigned char* to, const unsigned char* from) {
  switch (type) {
    case 2: return join<uint32_t>(how, to, from), true;
    case kSigned32: return join<int32_t>(how, to, from), true;
    case 4: return join<uint64_t>(how, to, from), true;
    case kSigned64: return join<int64_t>(how, to, from), true;
    case kFloat32: return join<float>(how, to, from), true;
    case kFloat16: return join_short(f16, how, to, from), true;
    case kBfloat16: return join_short(bf16, how, to, from), true;
    default: return false;
  }
}

unsigned box(const char* how, void* shared, const void* words, const int* at, unsigned rank) {
  uint64_t number = 0;
  std::memcpy(&number, words, sizeof number);
  if (number == 0 || number > g_running->maps->size()) return fault("TMA without a map"), 0;
  const EncodedMap& map = (*g_running->maps)[number - 1];
  if (map.box.size() != rank) return fault("TMA with a map of another rank"), 0;
  const unsigned bytes = static_cast<unsigned>(kBytesOf[map.type]);
  const bool loads = !std::strcmp(how, "load");
  unsigned elements = 1;
  for (unsigned n : map.box) elements *= n;
  const auto base = static_cast<uint64_t>(static_cast<unsigned char*>(shared) - g_running->now->block->shared);
  if (base % 128 != 0) fault("TMA to shared memory that is not at a multiple of 128 bytes");
  for (unsigned i = 0; i < elements; ++i) {
    uint64_t place = map.address;
    bool inside = true;
    for (unsigned d = 0, rest = i; d < rank; rest /= map.box[d], ++d) {
      const int64_t x = int64_t{at[d]} + rest % map.box[d];
      inside = inside && x >= 0 && static_cast<uint64_t>(x) < map.dims[d];
      place += static_cast<uint64_t>(x) * (d == 0 ? bytes : map.strides[d - 1]);
    }
    uint64_t offset = base + uint64_t{i} * bytes;
    const unsigned bits = static_cast<unsigned>(map.swizzle);  // 1: 32 bytes, 2: 64, 3: 128
    if (bits > 0) offset ^= (offset >> 7 & ((1u << bits) - 1)) << 4;
    unsigned char* on_chip = static_cast<unsigned char*>(shared) + (offset - base);
    auto* in_tensor = reinterpret_cast<unsigned char*>(place);
    if (loads && inside)
      std::memcpy(on_chip, in_tensor, bytes);
    else if (loads)
      std::memset(on_chip, 0, bytes);
    else if (inside && !std::strcmp(how, "store"))
      std::memcpy(in_tensor, on_chip, bytes);
    else if (inside && !join_element(how, map.type, in_tensor, on_chip))
      return fault("TMA cannot join this type here"), 0;
  }
  return elements * bytes;
}

// wgmma (PTX ISA 9.7.15), done at once: each warp has 16 rows of A and of the result.

struct Operand {
  DType type;
  uint64_t descriptor = 0;
  bool transposed = false;
  void* const* words = nullptr;  // in registers, by lane: as mma has them
};

float element(const Operand& m, int64_t row, int64_t k) {
  const int64_t bytes = m.type.storage_bits() / 8;
  uint64_t bits = 0;
  if (m.words) {
    const int64_t word = k * bytes / 4;
    const auto* words = static_cast<const uint32_t*>(m.words[row % 8 * 4 + word % 4]);
    bits = words[word / 4 * 2 + row % 16 / 8] >> k * bytes % 4 * 8;
  } else {
    const auto field = [&](int from) { return static_cast<int64_t>(m.descriptor >> from & 0x3fff) * 16; };
    const int64_t swizzle = 4 - static_cast<int64_t>(m.descriptor >> 62), width = int64_t{16} << swizzle;
    const int64_t along = (m.transposed ? row : k) * bytes, other = m.transposed ? k : row;
    auto at = static_cast<uint64_t>(field(0) + along % width + (m.transposed ? along / width * field(16) : 0) +
                                    other % 8 * width + other / 8 * field(32));
    at ^= (at >> 7 & ((uint64_t{1} << swizzle) - 1)) << 4;
    std::memcpy(&bits, g_running->now->words.shared + at, static_cast<size_t>(bytes));
  }
  if (m.type.is_int()) {
    const auto byte = static_cast<uint8_t>(bits);
    return static_cast<float>(m.type.is_signed() ? static_cast<int8_t>(byte) : byte);
  }
  if (m.type == tf32) bits &= ~uint64_t{0x1fff};
  float value = 0;
  load_lanes(m.type == tf32 ? f32 : m.type, reinterpret_cast<const std::byte*>(&bits), {}, 1, &value);
  return value;
}

void wgmma(const char* name, void* c, void* const* a_words, unsigned long long a, unsigned long long b,
           bool accumulate) {
  std::string instruction = name + std::strlen("tw_wgmma_");
  const auto has = [&](const char* word) {
    const size_t at = instruction.find(word);
    if (at != std::string::npos) instruction.erase(at, std::strlen(word));
    return at != std::string::npos;
  };
  has("_r");
  const bool ta = has("_ta"), tb = has("_tb");
  std::replace(instruction.begin(), instruction.end(), '_', '.');
  const auto shape = target::wgmma_named(instruction);
  if (!shape) return fault(name);
  const target::WgmmaInstruction& row = *shape->row;
  const Operand of_a{row.a, a, ta, a_words}, of_b{row.b, b, tb, nullptr};
  const int64_t lane = g_running->now->words.lane, warp = g_running->now->warp % 4, n = shape->n, k = row.k();
  // Those rows of A and columns of B that a lane's elements meet.
  std::vector<float> rows, columns;
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < k; ++i) rows.push_back(element(of_a, (a_words ? 0 : warp * 16) + lane / 4 + half * 8, i));
  for (int64_t j = 0; j < n / 4; ++j)
    for (int64_t i = 0; i < k; ++i) columns.push_back(element(of_b, j / 2 * 8 + lane % 4 * 2 + j % 2, i));
  for (int64_t x = 0; x < n / 2; ++x) {
    double sum = 0;
    const float *p = &rows[static_cast<size_t>(x / 2 % 2 * k)],
                *q = &columns[static_cast<size_t>((x / 4 * 2 + x % 2) * k)];
    for (int64_t i = 0; i < k; ++i) sum += double{p[i]} * q[i];
    if (row.c.is_int()) {
      auto& to = static_cast<uint32_t*>(c)[x];
      to = (accumulate ? to : 0) + static_cast<uint32_t>(static_cast<int64_t>(sum));
    } else {
      auto& to = static_cast<float*>(c)[x];
      to = static_cast<float>((accumulate ? to : 0.0f) + sum);
    }
  }
}

constexpr HostCalls kCalls = {turn,           arrive,       sync,      count, exchange, leave,
                              arrive_cluster, wait_cluster, shared_of, box,   wgmma,    fault};

void add_block(Running& r, const HostKernel& kernel, const HostLaunch& launch, uint64_t number, void** parameters) {
  const auto digit = [](uint64_t& rest, uint64_t of) {
    return static_cast<unsigned>(std::exchange(rest, rest / of) % of);
  };
  unsigned in_grid[3], rank = 0, cluster = 0;
  for (size_t d = 0; d < 3; ++d) in_grid[d] = digit(number, launch.grid[d]);
  for (size_t d = 3; d-- > 0;) {
    rank = rank * launch.cluster[d] + in_grid[d] % launch.cluster[d];
    cluster = cluster * (launch.grid[d] / launch.cluster[d]) + in_grid[d] / launch.cluster[d];
  }
  auto block = std::make_unique<Block>();
  block->memory.resize(launch.shared_bytes + 2048);
  const auto begin = reinterpret_cast<uintptr_t>(block->memory.data());
  block->shared = block->memory.data() + (-begin & 1023);
  block->running = launch.block[0] * launch.block[1] * launch.block[2];
  for (unsigned t = 0; t < block->running; ++t) {
    Thread thread;
    uint64_t rest = t;
    HostThread& w = thread.words;
    w.thread.x = digit(rest, launch.block[0]), w.thread.y = digit(rest, launch.block[1]),
    w.thread.z = static_cast<unsigned>(rest);
    w.block = {in_grid[0], in_grid[1], in_grid[2]};
    w.threads = {launch.block[0], launch.block[1], launch.block[2]},
    w.blocks = {launch.grid[0], launch.grid[1], launch.grid[2]};
    w.lane = t % 32, w.rank = rank, w.shared = block->shared, w.shared_bytes = launch.shared_bytes;
    thread.block = block.get(), thread.cluster = cluster, thread.warp = t / 32;
    thread.coroutine = std::make_unique<Coroutine>([&kernel, parameters] {
      kernel.run(parameters);
      --g_running->now->block->running, g_running->moved = true;
    });
    r.threads.push_back(std::move(thread));
  }
  r.blocks.push_back(std::move(block));
}

// Until all threads have ended, or none of them goes on.
void run_all(Running& r, const HostKernel& kernel) {
  constexpr int kIdleTurns = 20000;  // of all threads: those that watch memory go on without saying so
  for (int idle = 0; idle < kIdleTurns;) {
    bool any = false;
    r.moved = false;
    for (Thread& t : r.threads) {
      if (t.coroutine->done()) continue;
      any = true, r.now = &t, *kernel.thread = &t.words;
      t.coroutine->resume();
    }
    if (!any) return;
    idle = r.moved ? 0 : idle + 1;
  }
  fault("threads wait for what never comes");
}

}  // namespace

HostKernel host_kernel(void* module, const std::string& function) {
  HostKernel out;
  const auto find = [&](const std::string& name) { return dlsym(module, name.c_str()); };
  auto* calls = static_cast<const HostCalls**>(find("tw_calls"));
  out.run = reinterpret_cast<void (*)(void**)>(find("tw_call_" + function));
  out.thread = static_cast<HostThread**>(find("tw_thread"));
  if (!calls || !out.run || !out.thread) return {};
  *calls = &kCalls;
  return out;
}

std::string run_on_host(const HostKernel& kernel, const HostLaunch& launch, void** parameters,
                        const std::vector<EncodedMap>& maps) {
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const auto& c = launch.cluster;
  std::vector<std::vector<uint64_t>> together;  // of one cluster, or all
  std::map<uint64_t, size_t> group;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t x = i % launch.grid[0], y = i / launch.grid[0] % launch.grid[1],
                   z = i / launch.grid[0] / launch.grid[1];
    const uint64_t cluster =
        launch.cooperative ? 0 : ((z / c[2]) * launch.grid[1] + y / c[1]) * launch.grid[0] + x / c[0];
    const auto [at, added] = group.try_emplace(cluster, together.size());
    if (added) together.emplace_back();
    together[at->second].push_back(i);
  }
  std::string fault;
  for (const std::vector<uint64_t>& numbers : together) {
    Running running;
    running.maps = &maps, running.blocks_of_cluster = c[0] * c[1] * c[2];
    g_running = &running;
    for (uint64_t number : numbers) add_block(running, kernel, launch, number, parameters);
    run_all(running, kernel);
    g_running = nullptr;
    if (fault.empty()) fault = running.fault;
    if (!fault.empty()) break;
  }
  return fault;
}

}  // namespace tilewright::fake_cuda
