#include "blas.h"

#include <fmt/core.h>

#include <stdexcept>

#include "runtime/cuda_device.h"
#include "runtime/loaded_library.h"
#include "tilewright/cuda.h"

namespace bench::gpu {
namespace {

namespace rt = tilewright::runtime;
using tilewright::DType;
using tilewright::NDArray;

// cublas_api.h and library_types.h of CUDA 13.0; they keep these for binary compatibility.
using Status = int;                                    // cublasStatus_t, 0 is success
enum Operation : int { kPlain = 0, kTransposed = 1 };  // cublasOperation_t
enum class DataType : int {                            // cudaDataType
  R32F = 0,
  R64F = 1,
  R16F = 2,
  R8I = 3,
  R32I = 10,
  R16BF = 14,
  R8F_E4M3 = 28,
  R8F_E5M2 = 29
};
enum class Compute : int { F32 = 68, F64 = 70, I32 = 72, F32FastTf32 = 77 };  // cublasComputeType_t
constexpr int kDefaultAlgorithm = -1;                                         // CUBLAS_GEMM_DEFAULT
// cublasLt.h of CUDA 13.0: cublasLtMatmulDescAttributes_t, cublasLtMatmulPreferenceAttributes_t.
enum class Attribute : int { TransposeA = 3, TransposeB = 4, FastAccumulation = 25 };
constexpr int kMaxWorkspaceBytes = 1;
constexpr uint64_t kWorkspaceBytes = 32 << 20;

// cublasLtMatmulHeuristicResult_t
struct Heuristic {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  Status state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

DataType type_of(DType t) {
  using namespace tilewright;
  if (t == f32 || t == tf32) return DataType::R32F;
  if (t == f64) return DataType::R64F;
  if (t == f16) return DataType::R16F;
  if (t == bf16) return DataType::R16BF;
  if (t == i8) return DataType::R8I;
  if (t == i32) return DataType::R32I;
  if (t == e4m3) return DataType::R8F_E4M3;
  if (t == e5m2) return DataType::R8F_E5M2;
  throw std::runtime_error("cuBLAS has no type " + t.name());
}

Compute compute_of(const Product& p) {
  using namespace tilewright;
  return p.input == i8     ? Compute::I32
         : p.input == f64  ? Compute::F64
         : p.input == tf32 ? Compute::F32FastTf32
                           : Compute::F32;
}

// The type of the factors of A * B and C: that of the sums.
DataType scale_of(const Product& p) {
  return p.input == tilewright::i8 ? DataType::R32I : p.input == tilewright::f64 ? DataType::R64F : DataType::R32F;
}

// 1 and 0 in that type.
struct Factors {
  explicit Factors(DataType t) {
    if (t == DataType::R32I)
      one.i = 1;
    else if (t == DataType::R64F)
      one.d = 1;
    else
      one.f = 1;
  }
  union {
    float f;
    double d;
    int32_t i;
  } one{}, zero{};
};

// A row-major matrix is the transposed one in column-major order, so C^T = op(B)^T op(A)^T: B comes first, and both
// keep their flags.
struct ColumnMajor {
  int64_t first_rows, first_columns, second_rows, second_columns;  // as they lie in memory
  Operation first, second;
  explicit ColumnMajor(const Product& p)
      : first_rows(p.transpose_b ? p.k : p.n),
        first_columns(p.transpose_b ? p.n : p.k),
        second_rows(p.transpose_a ? p.m : p.k),
        second_columns(p.transpose_a ? p.k : p.m),
        first(p.transpose_b ? kTransposed : kPlain),
        second(p.transpose_a ? kTransposed : kPlain) {}
};

void check(Status status, const char* what) {
  if (status != 0) throw std::runtime_error(fmt::format("{} gives status {}", what, status));
}

std::vector<std::string> candidates(const std::string& folder, const std::string& name) {
  std::vector<std::string> out;
  for (const char* version : {"13", "12"})
    out.push_back((folder.empty() ? "" : folder + "/") + name + ".so." + version);
  return out;
}

}  // namespace

struct Blas::Functions {
  Status (*create)(void**);
  Status (*destroy)(void*);
  Status (*version)(void*, int*);
  Status (*set_stream)(void*, rt::cuda::Stream);
  Status (*gemm)(void*, Operation, Operation, int, int, int, const void*, const void*, DataType, int, const void*,
                 DataType, int, const void*, void*, DataType, int, Compute, int);
  Status (*light_create)(void**);
  Status (*light_destroy)(void*);
  Status (*describe)(void**, Compute, DataType);
  Status (*describe_set)(void*, Attribute, const void*, size_t);
  Status (*describe_destroy)(void*);
  Status (*layout)(void**, DataType, uint64_t rows, uint64_t columns, int64_t leading);
  Status (*layout_destroy)(void*);
  Status (*preference)(void**);
  Status (*preference_set)(void*, int, const void*, size_t);
  Status (*preference_destroy)(void*);
  Status (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  Status (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                   void*, void*, const uint64_t*, void*, size_t, rt::cuda::Stream);

  // The name of what is missing, or null.
  const char* load(const rt::LoadedLibrary& blas, const rt::LoadedLibrary& light) {
    const char* missing = nullptr;
    const auto get = [&](const rt::LoadedLibrary& library, const char* name, auto& slot) {
      if (!library.load(name, slot) && !missing) missing = name;
    };
    get(blas, "cublasCreate_v2", create), get(blas, "cublasDestroy_v2", destroy);
    get(blas, "cublasGetVersion_v2", version), get(blas, "cublasSetStream_v2", set_stream);
    get(blas, "cublasGemmEx", gemm), get(light, "cublasLtCreate", light_create);
    get(light, "cublasLtDestroy", light_destroy), get(light, "cublasLtMatmulDescCreate", describe);
    get(light, "cublasLtMatmulDescSetAttribute", describe_set);
    get(light, "cublasLtMatmulDescDestroy", describe_destroy);
    get(light, "cublasLtMatrixLayoutCreate", layout), get(light, "cublasLtMatrixLayoutDestroy", layout_destroy);
    get(light, "cublasLtMatmulPreferenceCreate", preference);
    get(light, "cublasLtMatmulPreferenceSetAttribute", preference_set);
    get(light, "cublasLtMatmulPreferenceDestroy", preference_destroy);
    get(light, "cublasLtMatmulAlgoGetHeuristic", heuristic), get(light, "cublasLtMatmul", matmul);
    return missing;
  }
};

class Blas::Plan {
 public:
  Plan(const Functions& call, const Product& p, PlanOptions options) : call_(call), product_(p) {
    const ColumnMajor o(p);
    check(call.describe(&description_, compute_of(p), scale_of(p)), "cublasLtMatmulDescCreate");
    const int32_t first = o.first, second = o.second;
    check(call.describe_set(description_, Attribute::TransposeA, &first, sizeof first), "a transposition");
    check(call.describe_set(description_, Attribute::TransposeB, &second, sizeof second), "a transposition");
    const int8_t fast = options.fast_accumulation;
    if (fast) check(call.describe_set(description_, Attribute::FastAccumulation, &fast, sizeof fast), "fast sums");
    make_layout(first_, p.input, o.first_rows, o.first_columns);
    make_layout(second_, p.input, o.second_rows, o.second_columns);
    make_layout(result_, p.output, p.n, p.m);
  }
  ~Plan() {
    for (void* layout : {first_, second_, result_})
      if (layout) call_.layout_destroy(layout);
    if (description_) call_.describe_destroy(description_);
  }
  Plan(const Plan&) = delete;

  bool choose(void* light) {
    void* preference = nullptr;
    check(call_.preference(&preference), "cublasLtMatmulPreferenceCreate");
    check(call_.preference_set(preference, kMaxWorkspaceBytes, &kWorkspaceBytes, sizeof kWorkspaceBytes),
          "the size of the workspace");
    int found = 0;
    const Status status =
        call_.heuristic(light, description_, first_, second_, result_, result_, preference, 1, &heuristic_, &found);
    call_.preference_destroy(preference);
    return status == 0 && found > 0 && heuristic_.state == 0;
  }

  void run(void* light, const void* a, const void* b, void* c, void* workspace) const {
    const Factors f(scale_of(product_));
    check(call_.matmul(light, description_, &f.one, b, first_, a, second_, &f.zero, c, result_, c, result_,
                       heuristic_.algorithm, workspace, kWorkspaceBytes, rt::cuda::current_stream()),
          "cublasLtMatmul");
  }

 private:
  void make_layout(void*& layout, DType type, int64_t rows, int64_t columns) {
    check(call_.layout(&layout, type_of(type), static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows),
          "cublasLtMatrixLayoutCreate");
  }
  const Functions& call_;
  Product product_;
  void *description_ = nullptr, *first_ = nullptr, *second_ = nullptr, *result_ = nullptr;
  Heuristic heuristic_{};
};

std::unique_ptr<Blas> Blas::find(const std::string& folder, std::string& problem) {
  // cuBLAS needs cuBLASLt, and finds the one that is loaded already.
  const rt::LoadedLibrary light = rt::LoadedLibrary::open(candidates(folder, "libcublasLt"), problem);
  if (!light) return nullptr;
  const rt::LoadedLibrary blas = rt::LoadedLibrary::open(candidates(folder, "libcublas"), problem);
  if (!blas) return nullptr;
  auto call = std::make_unique<Functions>();
  if (const char* missing = call->load(blas, light)) {
    problem = fmt::format("{} has no {}", blas.path(), missing);
    return nullptr;
  }
  return std::unique_ptr<Blas>(new Blas(std::move(call)));
}

Blas::Blas(std::unique_ptr<Functions> call) : call_(std::move(call)) {
  const rt::cuda::CudaDevice& device = rt::cuda::CudaDevice::get(0);
  const rt::cuda::ScopedDevice scope(device);
  check(call_->create(&handle_), "cublasCreate");
  check(call_->light_create(&light_), "cublasLtCreate");
  int version = 0;
  check(call_->version(handle_, &version), "cublasGetVersion");
  version_ = fmt::format("cuBLAS {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  workspace_ = rt::cuda::allocate(device, kWorkspaceBytes);
}

Blas::~Blas() {
  const rt::cuda::ScopedDevice scope(rt::cuda::CudaDevice::get(0));
  if (light_) call_->light_destroy(light_);
  if (handle_) call_->destroy(handle_);
}

bool Blas::has(const Product& p) { return !p.input.is_float8(); }

void Blas::gemm(const Product& p, const NDArray& a, const NDArray& b, const NDArray& c) const {
  const rt::cuda::ScopedDevice scope(rt::cuda::CudaDevice::get(0));
  const ColumnMajor o(p);
  const Factors f(scale_of(p));
  const auto narrow = [](int64_t x) { return static_cast<int>(x); };
  check(call_->set_stream(handle_, rt::cuda::current_stream()), "cublasSetStream");
  check(call_->gemm(handle_, o.first, o.second, narrow(p.n), narrow(p.m), narrow(p.k), &f.one, b.data(),
                    type_of(p.input), narrow(o.first_rows), a.data(), type_of(p.input), narrow(o.second_rows), &f.zero,
                    c.data(), type_of(p.output), narrow(p.n), compute_of(p), kDefaultAlgorithm),
        "cublasGemmEx");
}

std::shared_ptr<const Blas::Plan> Blas::plan(const Product& p, PlanOptions options) const {
  const rt::cuda::ScopedDevice scope(rt::cuda::CudaDevice::get(0));
  auto plan = std::make_shared<Plan>(*call_, p, options);
  if (!plan->choose(light_)) return nullptr;
  return plan;
}

void Blas::run(const Plan& plan, const NDArray& a, const NDArray& b, const NDArray& c) const {
  const rt::cuda::ScopedDevice scope(rt::cuda::CudaDevice::get(0));
  plan.run(light_, a.data(), b.data(), c.data(), workspace_.get());
}

}  // namespace bench::gpu
