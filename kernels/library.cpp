// Kernels by name: options that are text, and the options that suit a shape.
#include <algorithm>
#include <charconv>
#include <functional>
#include <mutex>
#include <thread>

#include "matmul_on_cpu.h"
#include "refusal.h"
#include "tilewright/cost.h"
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {
namespace {

[[noreturn]] void refuse_family(const std::string& family) {
  refuse("there is no kernel '" + family + "'",
         "there are matmul, rows, reduce, transpose, attention, attention_backward, decode_attention, combine, pad, "
         "elementwise");
}

// Reads the options of a family, each once. What is left at the end has no meaning there.
class Reader {
 public:
  Reader(std::string family, Options given) : family_(std::move(family)), given_(std::move(given)) {}
  ~Reader() noexcept(false) {
    if (!given_.empty() && std::uncaught_exceptions() == 0)
      refuse("'" + family_ + "' has no option '" + given_.begin()->first + "'", "tilewright/kernels.h lists them");
  }
  Reader(const Reader&) = delete;

  void read(const char* name, DType& to) {
    if (const std::string* text = find(name)) {
      const std::optional<DType> type = parse_dtype(*text);
      if (!type) wrong(name, *text, "a dtype, as \"bfloat16\"");
      to = *type;
    }
    done(name);
  }
  void read(const char* name, bool& to) {
    if (const std::string* text = find(name)) {
      if (*text != "true" && *text != "false") wrong(name, *text, "true or false");
      to = *text == "true";
    }
    done(name);
  }
  void read(const char* name, std::string& to) {
    if (const std::string* text = find(name)) to = *text;
    done(name);
  }
  void read(const char* name, int64_t& to) {
    if (const std::string* text = find(name)) to = number(name, *text, *text);
    done(name);
  }
  // 128x256x64x3x256x1
  void read(const char* name, std::initializer_list<int64_t*> to, const char* what) {
    if (const std::string* text = find(name)) {
      std::string_view rest = *text;
      for (int64_t* field : to) {
        const size_t end = std::min(rest.find('x'), rest.size());
        *field = number(name, rest.substr(0, end), *text);
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      if (!rest.empty()) wrong(name, *text, what);
    }
    done(name);
  }
  void read(const char* name, MatmulTile& t) {
    read(name, {&t.m, &t.n, &t.k, &t.stages, &t.threads, &t.split, &t.pairs},
         "m x n x k x stages x threads x split x pairs, as 128x256x64x3x256x1x0");
  }
  void read(const char* name, AttentionTile& t) {
    read(name, {&t.m, &t.n, &t.stages, &t.threads}, "m x n x stages x threads, as 128x128x2x256");
  }
  template <class E>
  void read(const char* name, E& to, std::initializer_list<std::pair<const char*, E>> words) {
    if (const std::string* text = find(name)) {
      std::string all;
      const std::pair<const char*, E>* found = nullptr;
      for (const auto& word : words) {
        all += (all.empty() ? "" : ", ") + std::string(word.first);
        if (*text == word.first) found = &word;
      }
      if (!found) wrong(name, *text, "one of: " + all);
      to = found->second;
    }
    done(name);
  }

 private:
  const std::string* find(const char* name) const {
    const auto at = given_.find(name);
    return at == given_.end() ? nullptr : &at->second;
  }
  void done(const char* name) { given_.erase(name); }
  [[noreturn]] void wrong(const char* name, const std::string& text, const std::string& what) const {
    refuse("option '" + std::string(name) + "' of '" + family_ + "' is '" + text + "'", "it is " + what);
  }
  int64_t number(const char* name, std::string_view digits, const std::string& text) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > (1 << 30))
      wrong(name, text, "a number that is not negative");
    return value;
  }

  std::string family_;
  Options given_;
};

MatmulOptions matmul_options(const Options& given) {
  MatmulOptions o;
  Reader r("matmul", given);
  r.read("a", o.a), r.read("b", o.b), r.read("result", o.result);
  r.read("transpose_a", o.transpose_a), r.read("transpose_b", o.transpose_b), r.read("batched", o.batched);
  r.read("bias", o.bias), r.read("residual", o.residual), r.read("tf32", o.tf32);
  r.read("activation", o.activation,
         {{"none", Activation::None},
          {"relu", Activation::Relu},
          {"gelu", Activation::Gelu},
          {"gelu_tanh", Activation::GeluTanh},
          {"silu", Activation::Silu}});
  r.read("scales", o.scales,
         {{"none", Scales::None}, {"one", Scales::One}, {"rows", Scales::Rows}, {"blocks", Scales::Blocks}});
  r.read("fast_sum", o.fast_sum), r.read("transpose_scale_a", o.transpose_scale_a);
  r.read("tile", o.tile);
  if (o.scales != Scales::None && o.batched) refuse("scales of a batch", "multiply its matrices one by one");
  if (o.transpose_scale_a && (o.scales == Scales::None || o.scales == Scales::One))
    refuse("transpose_scale_a without scales of rows", "leave it out");
  if (o.fast_sum && o.scales != Scales::One) refuse("fast_sum without one scale of each operand", "leave it out");
  return o;
}

RowOptions row_options(const Options& given) {
  RowOptions o;
  Reader r("rows", given);
  r.read("function", o.function,
         {{"softmax", RowFunction::Softmax},
          {"log_softmax", RowFunction::LogSoftmax},
          {"rms_norm", RowFunction::RmsNorm},
          {"layer_norm", RowFunction::LayerNorm},
          {"softmax_backward", RowFunction::SoftmaxBackward}});
  r.read("x", o.x), r.read("result", o.result), r.read("weight", o.weight), r.read("bias", o.bias);
  r.read("columns", o.columns), r.read("parts", o.parts), r.read("rows", o.rows), r.read("tile", o.tile),
      r.read("threads", o.threads);
  return o;
}

ReduceOptions reduce_options(const Options& given) {
  ReduceOptions o;
  Reader r("reduce", given);
  r.read("reduction", o.reduction,
         {{"sum", Reduction::Sum},
          {"mean", Reduction::Mean},
          {"max", Reduction::Max},
          {"min", Reduction::Min},
          {"prod", Reduction::Prod},
          {"l1_norm", Reduction::L1Norm},
          {"l2_norm", Reduction::L2Norm},
          {"inf_norm", Reduction::InfNorm},
          {"any", Reduction::Any},
          {"all", Reduction::All},
          {"count_nonzero", Reduction::CountNonzero},
          {"var", Reduction::Variance},
          {"std", Reduction::Deviation},
          {"logsumexp", Reduction::LogSumExp}});
  r.read("x", o.x), r.read("result", o.result), r.read("last", o.last), r.read("split", o.split);
  r.read("mapped", o.mapped);
  r.read("rows", o.rows), r.read("tile", o.tile), r.read("columns", o.columns), r.read("threads", o.threads);
  return o;
}

TransposeOptions transpose_options(const Options& given) {
  TransposeOptions o;
  Reader r("transpose", given);
  r.read("x", o.x), r.read("tile", o.tile), r.read("threads", o.threads), r.read("whole", o.whole);
  return o;
}

PadOptions pad_options(const Options& given) {
  PadOptions o;
  Reader r("pad", given);
  r.read("x", o.x), r.read("rows", o.rows), r.read("tile", o.tile), r.read("threads", o.threads);
  return o;
}

ElementwiseOptions elementwise_options(const Options& given) {
  ElementwiseOptions o;
  Reader r("elementwise", given);
  r.read("function", o.function), r.read("operands", o.operands), r.read("x", o.x), r.read("result", o.result);
  r.read("gated", o.gated), r.read("backward", o.backward);
  r.read("rows", o.rows), r.read("columns", o.columns), r.read("threads", o.threads);
  return o;
}

AttentionOptions attention_options(const std::string& family, const Options& given) {
  AttentionOptions o;
  Reader r(family, given);
  r.read("dtype", o.dtype), r.read("dim", o.dim), r.read("value_dim", o.value_dim), r.read("group", o.group);
  r.read("heads_first", o.heads_first), r.read("packed", o.packed), r.read("causal", o.causal);
  r.read("left", o.left), r.read("right", o.right), r.read("tile", o.tile);
  family == "attention" ? r.read("sink", o.sink) : r.read("dlse", o.dlse);
  return o;
}

DecodeOptions decode_options(const Options& given) {
  DecodeOptions o;
  Reader r("decode_attention", given);
  r.read("dtype", o.dtype), r.read("result", o.result), r.read("dim", o.dim), r.read("value_dim", o.value_dim);
  r.read("group", o.group), r.read("page", o.page), r.read("lengths", o.lengths), r.read("left", o.left);
  r.read("sink", o.sink), r.read("tile", o.tile);
  return o;
}

CombineOptions combine_options(const Options& given) {
  CombineOptions o;
  Reader r("combine", given);
  r.read("result", o.result), r.read("dim", o.dim), r.read("rows", o.rows);
  return o;
}

int64_t value_of(const std::map<std::string, int64_t>& shape, const char* name) {
  const auto at = shape.find(name);
  if (at == shape.end()) refuse("the shape has no '" + std::string(name) + "'", "give the extents that the family has");
  return at->second;
}

std::string tile_text(std::initializer_list<int64_t> extents) {
  std::string out;
  for (const int64_t extent : extents) out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}
std::string tile_text(const MatmulTile& t) { return tile_text({t.m, t.n, t.k, t.stages, t.threads, t.split, t.pairs}); }
std::string tile_text(const AttentionTile& t) { return tile_text({t.m, t.n, t.stages, t.threads}); }

int64_t power_of_two_from(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

constexpr int64_t kMultiprocessors = 132;  // of an H200

MatmulTile cpu_tile(const MatmulOptions& o, const std::map<std::string, int64_t>& shape) {
  if (o.scales != Scales::None) return {64, 64, 128, 1, 128};  // a step's sums stay near, too
  const auto batch = shape.find("batch");
  const MatmulShape all = {value_of(shape, "M"), value_of(shape, "N"), value_of(shape, "K"),
                           batch == shape.end() ? 1 : batch->second};
  const int64_t cores = std::max<int64_t>(1, std::thread::hardware_concurrency());
  return std::ranges::min(matmul_tiles_on_cpu(o, all), {},
                          [&](const MatmulTile& t) { return matmul_cycles_on_cpu(o, t, all, cores); });
}

// Kept for good: the programs with each tile of each kind of call that somebody asked about.
const CostModel& model_of(const std::string& family, const Options& options, const std::string& arch,
                          const std::function<Program()>& program) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, Options, std::string>, CostModel> models;
  const std::lock_guard lock(mutex);
  const std::tuple key(family, options, arch);
  const auto found = models.find(key);
  if (found != models.end()) return found->second;
  return models.try_emplace(key, program(), arch).first->second;
}

// Prices that differ by less tell tiles apart no more; tiles of several parts apart from those of fewer (fitted to half
// of the shapes of bench/results/2026-11-30-library-tiles.json: the choice loses 0.8% to the best measured tile, in the
// other half 1.2%, where it loses 1.7% with 1.01).
constexpr double kAlike = 1.01, kWorthParts = 1.03;

// On a GPU the tile that its model finds the fastest, of those that it finds alike the one of fewest `parts` and of
// most `breadth`; `program` makes the program of one. On the CPU the first.
template <class Tile>
Choice fastest(const std::string& family, Options given, const std::vector<Tile>& tiles, const std::string& arch,
               const std::map<std::string, int64_t>& shape, const std::function<Program(const Tile&)>& program,
               const std::string& help, const std::function<int64_t(const Tile&)>& breadth = {},
               const std::function<int64_t(const Tile&)>& parts = {}) {
  struct Priced {
    double us;
    int64_t breadth, parts;
    std::string text;
  };
  std::vector<Priced> priced;
  Choice best;
  for (const Tile& t : tiles) {
    const std::string text = given["tile"] = tile_text(t);
    if (arch.empty()) {
      best.options["tile"] = text;
      return best;
    }
    std::optional<double> us;
    try {
      us = model_of(family, given, arch, [&] { return program(t); }).microseconds(shape);
    } catch (const CompileError&) {
      continue;  // does not fit
    }
    if (!us) refuse("the shape of a call is not whole", help);
    priced.push_back({best.considered[text] = *us, breadth ? breadth(t) : 0, parts ? parts(t) : 1, text});
  }
  if (priced.empty()) refuse("no tile of '" + family + "' fits on " + arch, "the library is made for sm_90a");
  const double near = kWorthParts * std::ranges::min(priced, {}, &Priced::us).us;
  int64_t fewest = INT64_MAX;
  for (const Priced& p : priced)
    if (p.us <= near) fewest = std::min(fewest, p.parts);
  std::erase_if(priced, [&](const Priced& p) { return p.parts > fewest; });
  const auto least = std::ranges::min(priced, {}, &Priced::us).us;
  const Priced* taken = nullptr;
  for (const Priced& p : priced)
    if (p.us <= least * kAlike &&
        (!taken || p.breadth > taken->breadth || (p.breadth == taken->breadth && p.us < taken->us)))
      taken = &p;
  best.microseconds = taken->us;
  best.options["tile"] = taken->text;
  return best;
}

// Large tiles of operands whose rows are no whole lines, as pairs too, which share the larger operand: their speed is
// that of the second level cache.
void add_pairs(std::vector<MatmulTile>& tiles, const MatmulOptions& o, const std::map<std::string, int64_t>& shape) {
  constexpr int64_t kLineBits = 1024, kSmallest = 128 * 128;
  const int64_t m = value_of(shape, "M"), n = value_of(shape, "N"), k = value_of(shape, "K");
  const bool whole = (o.transpose_a ? m : k) * o.a.storage_bits() % kLineBits == 0 &&
                     (o.transpose_b ? k : n) * o.b.storage_bits() % kLineBits == 0;
  for (size_t i = 0, count = whole ? 0 : tiles.size(); i < count; ++i) {
    MatmulTile t = tiles[i];
    t.pairs = t.m > t.n ? 1 : 2;
    const int64_t neighbours = t.pairs == 1 ? tilewright::ceildiv(n, t.n) : tilewright::ceildiv(m, t.m);
    if (t.split == 1 && t.m * t.n >= kSmallest && neighbours > 1) tiles.push_back(t);
  }
}

Choice choose_matmul(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  MatmulOptions o = matmul_options(given);
  const auto program = [&](const MatmulTile& t) { return o.tile = t, matmul(o); };
  const auto batch = shape.find("batch");
  std::vector<MatmulTile> tiles = arch.empty() ? std::vector{cpu_tile(o, shape)}
                                               : matmul_tiles(o, value_of(shape, "M"), value_of(shape, "N"),
                                                              batch == shape.end() ? 1 : batch->second);
  if (arch == "sm_90a") add_pairs(tiles, o, shape);
  // Columns, as far as they count: narrow tiles have few bytes on their way.
  // On an H100 16x57344x8192 takes 481 us in 64x32 and 337 in 64x64, by the model 231.9 and 232.0; 16x24576x1536 44 and
  // 41; wider ones of one price are within 4% either way.
  const auto columns = [](const MatmulTile& t) { return std::min<int64_t>(t.n, 64); };
  const auto parts = [](const MatmulTile& t) { return t.split; };
  return fastest<MatmulTile>("matmul", given, tiles, arch, shape, program, "give M, N, K, and batch where it has one",
                             columns, parts);
}

// Of packed sequences the price of as many that are all as long as the longest: what their lengths are stands in
// memory.
Choice choose_attention(const std::string& family, const Options& given, const std::string& arch,
                        const std::map<std::string, int64_t>& shape) {
  AttentionOptions o = attention_options(family, given);
  const bool backward = family == "attention_backward";
  const int64_t queries = value_of(shape, "queries"), keys = value_of(shape, "keys");
  const auto rows = [&](int64_t n, int64_t most) { return std::clamp<int64_t>(power_of_two_from(n), 16, most); };
  // A processor adds to what it has so far once a tile of keys: 256 take 5% less than 128. Where queries see some of
  // them, the last ones would be more in vain.
  const int64_t most_keys = backward || o.causal || o.left || o.right || o.packed ? 128 : 256;
  std::vector<AttentionTile> tiles = {{rows(queries, 128), rows(keys, most_keys), 1, 128}};
  if (!arch.empty()) tiles = backward ? attention_backward_tiles(o) : attention_tiles(o);
  // Tiles of one warpgroup read more, which the price takes for cheaper than it is: only where blocks are few.
  const int64_t blocks = value_of(shape, "batch") * value_of(shape, "kv_heads") *
                         (backward ? tilewright::ceildiv(keys, 128) : o.group * tilewright::ceildiv(queries, 128));
  if (!arch.empty() && blocks >= kMultiprocessors && tiles.front().threads > 128)
    std::erase_if(tiles, [](const AttentionTile& t) { return t.threads == 128; });
  o.packed = false;
  const auto program = [&](const AttentionTile& t) {
    return o.tile = t, backward ? attention_backward(o) : attention(o);
  };
  return fastest<AttentionTile>(family, given, tiles, arch, shape, program,
                                "give batch, kv_heads, queries, keys, left and right");
}

// Parts until multiprocessors have enough to do. Prices are of sequences that all have the keys there is room for, one
// behind the other: what tables and lengths say stands in memory.
Choice choose_decode(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  DecodeOptions o = decode_options(given);
  std::vector<AttentionTile> tiles = decode_attention_tiles(o);
  if (tiles.empty()) refuse("pages of " + std::to_string(o.page) + " keys", "a page has a multiple of 16");
  if (arch.empty()) tiles.front().m = std::min<int64_t>(o.group, 64);
  const int64_t keys = value_of(shape, "keys"), page = o.page;
  Choice best;
  for (int64_t parts = 1; parts <= 64; parts *= 2) {
    const AttentionTile& t = tiles.front();
    if (parts > 1 && keys < 4 * parts * t.n) break;
    const int64_t blocks = value_of(shape, "batch") * value_of(shape, "kv_heads") * tilewright::ceildiv(o.group, t.m);
    if (parts > 1 && (arch.empty() || blocks * parts > 4 * kMultiprocessors)) break;
    std::map<std::string, int64_t> all = shape;
    all["parts"] = parts, all["left"] = o.left ? value_of(shape, "left") : 0;
    all["rows"] = value_of(shape, "batch") * value_of(shape, "kv_heads") * o.group;
    o.page = 0, o.lengths = false;
    double more = 0;
    if (parts > 1) {
      const CombineOptions last{o.dtype, o.value_dim};
      const Options key = {{"result", last.result.name()}, {"dim", std::to_string(last.dim)}};
      more = model_of("combine", key, arch, [&] { return combine(last); }).microseconds(all).value_or(0);
    }
    const auto program = [&](const AttentionTile& tile) { return o.tile = tile, decode_attention(o); };
    Choice found = fastest<AttentionTile>("decode_attention", given, tiles, arch, all, program,
                                          "give batch, kv_heads, keys and left");
    o.page = page;
    found.microseconds += more, found.parts = parts;
    if (best.options.empty() || found.microseconds < best.microseconds) best = found;
  }
  return best;
}

// Columns of a row that a thread of 256 has in registers, and of more, twice as many, up to those of the largest block.
// On an H200 (bench/results/2026-11-29-rows-3.json; a copy takes 505 us) rows of up to 20,480 columns are as fast by
// one block of 512 threads as by more; longer ones are shared by blocks of a cluster: softmax of 32,768 columns takes
// 510 us by four blocks of 128 threads, 535 by two of 256 and 543 by one of 1,024, of 65,536 by eight of 128 519 (four
// of 256: 581), RMSNorm 514 by four of 256.
constexpr int64_t kRowElements = 32, kFastColumns = 256 * kRowElements, kWideElements = 64,
                  kMostColumns = 1024 * kRowElements, kColumnsOfPart = 256 * kWideElements,
                  kPowersOfPart = 128 * kWideElements, kColumnsOfBlock = 512 * 40;
constexpr int64_t kMostParts = 8;  // blocks of a cluster

Choice choose_rows(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  const bool some = value_of(shape, "N") > 0;  // rows of no columns are no tile: they are walked
  const int64_t n = some ? value_of(shape, "N") : 1;
  const bool gpu = !arch.empty();
  const RowFunction function = row_options(given).function;
  const bool powers = function == RowFunction::Softmax || function == RowFunction::LogSoftmax;
  int64_t parts = 1, threads = 128, rows = 1;
  if (arch == "sm_90a" && n > (function == RowFunction::SoftmaxBackward ? kMostColumns : kColumnsOfBlock))
    parts = std::min(kMostParts, power_of_two_from(tilewright::ceildiv(n, powers ? kPowersOfPart : kColumnsOfPart)));
  const int64_t width = tilewright::ceildiv(n, parts), most = gpu ? kMostColumns : 64 * 1024;
  const bool whole = some && width <= most;
  if (!whole) parts = 1, threads = 256;
  // Of a part, and of what 512 threads have, as many as there are registers for.
  const auto elements_of = [&](int64_t count) {
    if (parts > 1) return kWideElements;
    if (count == 512 && width <= kColumnsOfBlock) return tilewright::ceildiv(kColumnsOfBlock, int64_t{512});
    return count < 256 || width > kColumnsOfPart ? kRowElements : kWideElements;
  };
  if (gpu && whole)
    while (width > threads * elements_of(threads)) threads *= 2;
  const int64_t room = gpu ? threads * kRowElements : 16 * 1024;
  while (parts == 1 && rows < 64 && rows * 2 * std::min(n, most) <= room) rows *= 2;
  Choice out;
  out.options = {{"columns", std::to_string(whole ? n : 0)},
                 {"parts", std::to_string(parts)},
                 {"rows", std::to_string(rows)},
                 {"tile", std::to_string(gpu ? kFastColumns : 16 * 1024)},
                 {"threads", std::to_string(threads)}};
  return out;
}

// Blocks that a device, or a few cores, can have at once; where results are fewer, each is made in parts.
constexpr int64_t kBlocksAtOnce = 8 * kMultiprocessors, kCoresAtOnce = 16;

Choice choose_reduce(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  const ReduceOptions o = reduce_options(given);
  const int64_t m = value_of(shape, "M"), r = value_of(shape, "R"), n = o.last ? 1 : value_of(shape, "N");
  const bool gpu = !arch.empty();
  const int64_t elements = gpu ? 128 * 16 : 16 * 1024;
  int64_t rows = 1, tile = 0, columns = 1;
  if (o.last) {
    tile = std::clamp<int64_t>(power_of_two_from(r), 32, elements);
    rows = elements / tile;
  } else {
    columns = std::clamp<int64_t>(power_of_two_from(n), 32, gpu ? 128 : 512);
    tile = elements / columns;
  }
  const int64_t blocks = o.last ? tilewright::ceildiv(m, rows) : m * tilewright::ceildiv(n, columns);
  const int64_t tiles = tilewright::ceildiv(r, tile);
  const int64_t parts =
      std::min<int64_t>(tiles / 4, (gpu ? kBlocksAtOnce : kCoresAtOnce) / std::max<int64_t>(1, blocks));
  Choice out;
  out.options = {{"rows", std::to_string(rows)}, {"tile", std::to_string(tile)}, {"columns", std::to_string(columns)}};
  out.parts = std::max<int64_t>(1, parts);
  return out;
}

// Measured on an H200, of tiles of 32, 64 and 128 by 128 to 512 threads.
Choice choose_transpose(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  const int64_t bytes = std::max<int64_t>(1, transpose_options(given).x.storage_bits() / 8);
  const bool in_pieces = value_of(shape, "M") * bytes % 16 == 0 && value_of(shape, "N") * bytes % 16 == 0;
  int64_t tile = 128, threads = bytes == 1 ? 512 : bytes == 2 ? 128 : 256;
  if (bytes == 8) tile = 64;
  Choice out;
  if (!arch.empty() && !in_pieces) {  // 32 columns of words, so many loads of a thread in flight
    tile = bytes == 1 ? 128 : bytes == 8 ? 32 : 64, threads = 256;
    out.options = {{"whole", "false"}};
  } else if (!in_pieces && bytes <= 2) {
    tile = 32, threads = 256;
  }
  out.options.insert({{"tile", std::to_string(tile)}, {"threads", std::to_string(threads)}});
  return out;
}

// 16 bytes a thread and tensor, four times on a GPU. M: rows, N: elements of one.
Choice choose_elementwise(const Options& given, const std::string& arch, const std::map<std::string, int64_t>& shape) {
  const ElementwiseOptions o = elementwise_options(given);
  const int64_t bytes = std::max<int64_t>(1, std::max(o.x.storage_bits(), o.result.storage_bits()) / 8);
  const int64_t elements = arch.empty() ? 16 * 1024 : o.threads * std::max<int64_t>(8, 32 / bytes);
  const int64_t columns = std::clamp<int64_t>(power_of_two_from(value_of(shape, "N")), 8, elements);
  const int64_t rows = std::clamp<int64_t>(power_of_two_from(value_of(shape, "M")), 1, elements / columns);
  Choice out;
  out.options = {{"rows", std::to_string(rows)}, {"columns", std::to_string(columns)}};
  return out;
}

}  // namespace

Program library_program(const std::string& family, const Options& options) {
  if (family == "matmul") return matmul(matmul_options(options));
  if (family == "rows") return rows(row_options(options));
  if (family == "reduce") return reduce(reduce_options(options));
  if (family == "transpose") return transpose(transpose_options(options));
  if (family == "pad") return pad(pad_options(options));
  if (family == "attention") return attention(attention_options(family, options));
  if (family == "attention_backward") return attention_backward(attention_options(family, options));
  if (family == "decode_attention") return decode_attention(decode_options(options));
  if (family == "elementwise") return elementwise(elementwise_options(options));
  if (family == "combine") return combine(combine_options(options));
  refuse_family(family);
}

Choice choose(const std::string& family, const Options& options, const std::string& arch,
              const std::map<std::string, int64_t>& shape) {
  if (family == "matmul") return choose_matmul(options, arch, shape);
  if (family == "rows") return choose_rows(options, arch, shape);
  if (family == "reduce") return choose_reduce(options, arch, shape);
  if (family == "transpose") return choose_transpose(options, arch, shape);
  if (family == "pad") return {};
  if (family == "attention" || family == "attention_backward") return choose_attention(family, options, arch, shape);
  if (family == "decode_attention") return choose_decode(options, arch, shape);
  if (family == "elementwise") return choose_elementwise(options, arch, shape);
  if (family == "combine") return {};
  refuse_family(family);
}

}  // namespace tilewright::kernels
