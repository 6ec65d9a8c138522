// What a program was lowered to, as bytes: back equal, and no other bytes taken for it.
#include "runtime/lowered_kernel.h"

#include "runtime/plans.h"
#include "runtime/scratch.h"

namespace tilewright::runtime {
namespace {

using cuda::TensorMapPlan;

// Every field of every struct as no default has it.
LoweredKernel everything() {
  LoweredKernel kernel;
  kernel.text = std::string("text\0of a kernel", 16);
  Site print{Site::Kind::PrintScalar, "x is", {"a file.py", 7, 3}, {{"x", bf16}}};
  Site check{Site::Kind::Assert, "i < n", {}, {{"i", i32}, {"n", pointer}}};
  kernel.sites = {print, check, {}};
  TensorMapPlan map;
  map.name = "A", map.buffer = 2, map.dtype = e4m3, map.byte_offset = -5;
  map.dims = {symbol(0), combine(IntOp::Kind::FloorDiv, scalar(1), constant(int64_t{1} << 40))};
  map.strides = {negate(symbol(3))};
  map.box = {64, 256}, map.element_strides = {1, 8};
  map.swizzle = TensorMapPlan::Swizzle::Bytes128, map.interleave = TensorMapPlan::Interleave::Bytes32;
  map.l2_promotion = TensorMapPlan::L2Promotion::Bytes64, map.oob_fill = TensorMapPlan::OobFill::Nan;
  cuda::KernelLaunch launch;
  launch.function = "main";
  launch.grid = {symbol(0), constant(-1), scalar(2)}, launch.block = {384, 2, 3}, launch.cluster = {2, 4, 1};
  launch.dynamic_shared_bytes = 100000, launch.cooperative = true, launch.programmatic_serialization = true;
  launch.parameters = {cuda::TensorMapParameter{4}, cuda::ReportParameter{}, cuda::BufferParameter{3},
                       cuda::ValueParameter{symbol(1), 4}};
  kernel.plan = {{map, {}}, {launch, {}}};
  kernel.alignments = {0, 16, -1};
  kernel.workspaces = {{0, false}, {1 << 20, true}};
  return kernel;
}

TEST(LoweredKernel, IsReadBackEqual) {
  const CacheEntry entry = encode_lowered(everything());
  const std::optional<LoweredKernel> back = decode_lowered(entry);
  ASSERT_TRUE(back);
  EXPECT_EQ(encode_lowered(*back), entry);
  EXPECT_EQ(back->text, everything().text);
  EXPECT_EQ(back->sites[0].location, (SourceLocation{"a file.py", 7, 3}));
  EXPECT_EQ(back->sites[1].operands[1].dtype, pointer);
  EXPECT_EQ(back->plan.tensor_maps[0].dims, everything().plan.tensor_maps[0].dims);
  EXPECT_EQ(back->plan.tensor_maps[0].oob_fill, TensorMapPlan::OobFill::Nan);
  EXPECT_EQ(back->plan.launches[0].block, (std::array<int, 3>{384, 2, 3}));
  EXPECT_TRUE(back->plan.launches[0].cooperative);
  EXPECT_EQ(std::get<cuda::ValueParameter>(back->plan.launches[0].parameters[3]).bytes, 4);
  EXPECT_EQ(back->alignments, (std::vector<int64_t>{0, 16, -1}));
  EXPECT_EQ(back->workspaces, (std::vector<KernelWorkspace>{{0, false}, {1 << 20, true}}));
}

TEST(LoweredKernel, TruncatedAndLongerBytesAreRefused) {
  const CacheEntry entry = encode_lowered(everything());
  for (size_t n = 0; n < entry.metadata.size(); ++n)
    ASSERT_FALSE(decode_lowered({entry.metadata.substr(0, n), entry.payload})) << n;
  EXPECT_FALSE(decode_lowered({entry.metadata + '\0', entry.payload}));
}

// What the checksum would let through: bytes that somebody wrote on purpose.
TEST(LoweredKernel, OfOtherBytesOnlyWhatSaysTheSameIsTaken) {
  const CacheEntry entry = encode_lowered(everything());
  int taken = 0, refused = 0;
  for (size_t at = 0; at < entry.metadata.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      CacheEntry other = entry;
      other.metadata[at] = static_cast<char>(other.metadata[at] ^ (1 << bit));
      const std::optional<LoweredKernel> kernel = decode_lowered(other);
      kernel ? ++taken : ++refused;
      if (kernel) {
        ASSERT_EQ(encode_lowered(*kernel), other) << at << " " << bit;
      }
    }
  EXPECT_GT(taken, 1000);    // numbers and names
  EXPECT_GT(refused, 1000);  // lengths, kinds, types
  for (size_t at = 0; at + 8 <= entry.metadata.size(); ++at)
    for (uint64_t lie : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{entry.metadata.size()}}) {
      CacheEntry other = entry;
      std::memcpy(other.metadata.data() + at, &lie, 8);
      if (const auto kernel = decode_lowered(other)) {
        ASSERT_EQ(encode_lowered(*kernel), other) << at << " " << lie;
      }
    }
}

TEST(LoweredKernel, IsFoundByTheBuildThatKeptIt) {
  const Scratch scratch;
  const ScopedVariable directory("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  const LoweredPlace place("a program", "this build");
  EXPECT_FALSE(place.find());
  place.keep(everything());
  const std::optional<LoweredKernel> found = place.find();
  ASSERT_TRUE(found);
  EXPECT_EQ(encode_lowered(*found), encode_lowered(everything()));
  EXPECT_FALSE(LoweredPlace("a program", "another build").find());
  EXPECT_FALSE(LoweredPlace("another program", "this build").find());
  const LoweredPlace none("a program", "");
  none.keep(everything());
  EXPECT_FALSE(none.find());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / "cache"), {}), 1);
}

}  // namespace
}  // namespace tilewright::runtime
