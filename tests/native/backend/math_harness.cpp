#include "math_harness.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <bit>
#include <cmath>
#include <limits>

namespace cuvil::testing {

using namespace llvm;

namespace {

template <class T> using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

void build_map(Module& module, Type* scalar, MathFn fn, KernelOptions options) {
  LLVMContext& context = module.getContext();
  IRBuilder<> b(context);
  Type* pointer = b.getPtrTy();
  auto* type = FunctionType::get(b.getVoidTy(), {pointer, pointer, pointer, b.getInt64Ty()}, false);
  auto* f = Function::Create(type, Function::ExternalLinkage, "map", module);
  f->addFnAttr(Attribute::NoUnwind);
  f->addFnAttr("prefer-vector-width", "512");
  f->addParamAttr(2, Attribute::NoAlias);
  auto* entry = BasicBlock::Create(context, "entry", f);
  auto* loop = BasicBlock::Create(context, "loop", f);
  b.SetInsertPoint(entry);
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  PHINode* k = b.CreatePHI(b.getInt64Ty(), 2);
  k->addIncoming(b.getInt64(0), entry);
  Type* value = options.lanes == 1 ? scalar : FixedVectorType::get(scalar, options.lanes);
  auto at = [&](unsigned argument) { return b.CreateInBoundsGEP(scalar, f->getArg(argument), k); };
  const Align align(scalar->getScalarSizeInBits() / 8);
  Value* x = b.CreateAlignedLoad(value, at(0), align);
  Value* y = b.CreateAlignedLoad(value, at(1), align);
  Value* result = codegen::emit_math(fn, b, x, y, {.has_fma = options.has_fma});
  b.CreateAlignedStore(result, at(2), align);
  Value* next = b.CreateAdd(k, b.getInt64(options.lanes));
  k->addIncoming(next, b.GetInsertBlock());
  auto* exit = BasicBlock::Create(context, "exit", f);
  b.CreateCondBr(b.CreateICmpULT(next, f->getArg(3)), loop, exit);
  b.SetInsertPoint(exit);
  b.CreateRetVoid();
}

}  // namespace

template <class T> MapKernel<T>::MapKernel(MathFn fn, KernelOptions options) {
  static const bool initialised = [] {
    InitializeNativeTarget();
    InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialised;
  auto target = cantFail(orc::JITTargetMachineBuilder::detectHost());
  if (options.baseline) {
    target.setCPU("x86-64");
    target.getFeatures() = SubtargetFeatures();
  }
  // No symbol of this process is visible to the kernel: a call to libm cannot be linked.
  jit_ = cantFail(orc::LLJITBuilder()
                      .setJITTargetMachineBuilder(target)
                      .setLinkProcessSymbolsByDefault(false)
                      .setPlatformSetUp(orc::setUpInactivePlatform)
                      .create());
  jit_->getIRTransformLayer().setTransform(
      [](orc::ThreadSafeModule module, const orc::MaterializationResponsibility&) {
        module.withModuleDo([](Module& m) {
          legacy::PassManager passes;
          passes.add(createEarlyCSEPass());
          passes.add(createInstructionCombiningPass());
          passes.run(m);
        });
        return Expected<orc::ThreadSafeModule>(std::move(module));
      });
  auto context = std::make_unique<LLVMContext>();
  auto module = std::make_unique<Module>("math", *context);
  module->setDataLayout(jit_->getDataLayout());
  build_map(*module, sizeof(T) == 4 ? Type::getFloatTy(*context) : Type::getDoubleTy(*context), fn,
            options);
  raw_string_ostream stream(error_);
  if (verifyModule(*module, &stream)) return;
  cantFail(jit_->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))));
  jit_->getExecutionSession().setErrorReporter(
      [this](Error e) { error_ += toString(std::move(e)) + "\n"; });
  if (auto symbol = jit_->lookup("map"))
    pointer_ = symbol->template toPtr<Pointer>();
  else
    error_ += toString(symbol.takeError());
}

template class MapKernel<float>;
template class MapKernel<double>;

#define CUVIL_REFERENCE_1(name)                            \
  [](long double x, long double) { return std::name(x); }, \
      [](double x, double) { return std::name(x); }
#define CUVIL_REFERENCE_2(name)                                 \
  [](long double x, long double y) { return std::name(x, y); }, \
      [](double x, double y) { return std::name(x, y); }

const std::vector<FunctionInfo>& functions() {
  static const std::vector<FunctionInfo> list = {
#define CUVIL_MATH(name, arity) {MathFn::name, #name, arity, CUVIL_REFERENCE_##arity(name)},
#include "ops/math.def"
#undef CUVIL_MATH
  };
  return list;
}

bool host_has_fma() {
  const auto features = sys::getHostCPUFeatures();
  return features.lookup("fma");
}

template <class T> unsigned host_lanes() {
  const auto features = sys::getHostCPUFeatures();
  const unsigned bytes = features.lookup("avx512f") ? 64 : features.lookup("avx2") ? 32 : 16;
  return bytes / sizeof(T);
}

template unsigned host_lanes<float>();
template unsigned host_lanes<double>();

namespace {

template <class T, class Reference> double ulp_error_of(T result, Reference reference) {
  using Limits = std::numeric_limits<T>;
  constexpr double never = std::numeric_limits<double>::infinity();
  if (std::isnan(reference) || std::isnan(result))
    return std::isnan(reference) && std::isnan(result) ? 0 : never;
  if (std::isinf(reference) && std::isinf(result)) return reference == result ? 0 : never;
  if (reference == 0 && result == 0)
    return std::signbit(reference) == std::signbit(result) ? 0 : never;
  // An infinity stands for the number one step beyond the largest.
  const Reference beyond = std::ldexp(Reference(1), Limits::max_exponent);
  auto finite = [&](Reference v) { return std::isinf(v) ? std::copysign(beyond, v) : v; };
  const Reference r = finite(reference), y = finite(static_cast<Reference>(result));
  if (std::isinf(reference) || std::abs(r) >= beyond) {
    if (std::isinf(result) && std::signbit(result) == std::signbit(reference)) return 0;
  }
  const int exponent =
      r == 0 ? Limits::min_exponent - 1 : std::max(std::ilogb(r), Limits::min_exponent - 1);
  const int last = std::min(exponent, Limits::max_exponent - 1) - (Limits::digits - 1);
  return static_cast<double>(std::ldexp(std::abs(y - r), -last));
}

}  // namespace

template <class T> double ulp_error(T result, long double reference) {
  return ulp_error_of(result, reference);
}

template double ulp_error(float, long double);
template double ulp_error(double, long double);

double ulp_error_fast(float result, double reference) { return ulp_error_of(result, reference); }

template <class T> std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {
      T(0),          Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(),
      Limits::min(), Limits::max(),      Limits::epsilon()};
  auto around = [&](double center) {
    T below = static_cast<T>(center), above = below;
    for (int k = 0; k < 3; k++) {
      values.push_back(below);
      values.push_back(above);
      below = std::nextafter(below, -Limits::infinity());
      above = std::nextafter(above, Limits::infinity());
    }
  };
  for (int k = 1; k <= 16; k++) around(k), around(k * M_PI / 2), around(k * M_LN2 / 2);
  for (int k = Limits::min_exponent - Limits::digits; k < Limits::max_exponent; k++)
    around(std::ldexp(1.0, k)), values.push_back(T(std::ldexp(1.5, k)));
  for (int k = Limits::min_exponent10; k <= Limits::max_exponent10; k++)
    around(std::strtod(("1e" + std::to_string(k)).c_str(), nullptr));
  for (double v : {0.41421356,
                   2.41421356,
                   0.5,
                   0.91,
                   0.92,
                   0.8,
                   1.4142135623730951,
                   0.7071067811865476,
                   87.336544,
                   88.722839,
                   103.97208,
                   89.415985,
                   708.39641853226408,
                   709.78271289338397,
                   745.13321910194122,
                   710.47586007394394,
                   149.0,
                   150.0,
                   1022.0,
                   1074.0,
                   1075.0,
                   17.3,
                   37.4,
                   26.543,
                   27.226,
                   9.19455,
                   10.05,
                   3.8325,
                   5.9216,
                   32768.0,
                   65536.0,
                   1048576.0,
                   6381956970095103.0 * 0x1p797})
    around(v);
  const size_t positive = values.size();
  for (size_t k = 0; k < positive; k++) values.push_back(-values[k]);
  return values;
}

template std::vector<float> special_values();
template std::vector<double> special_values();

namespace {

struct Interval {
  double lo, hi;
};

std::vector<Interval> intervals(MathFn fn, bool is_double) {
  auto pick = [&](double f, double d) { return is_double ? d : f; };
  const double tiny = pick(1e-12, 1e-20);
  switch (fn) {
    case MathFn::exp: return {{-1, 1}, {-30, 30}, {pick(-104, -746), pick(89, 710)}, {tiny, 1}};
    case MathFn::exp2: return {{-1, 1}, {-30, 30}, {pick(-151, -1076), pick(129, 1025)}, {tiny, 1}};
    case MathFn::expm1: return {{-1, 1}, {-40, 40}, {-2, pick(89, 710)}, {tiny, 1}, {-1, -tiny}};
    case MathFn::log:
    case MathFn::log2:
    case MathFn::log10:
      return {{0.5, 2}, {0.95, 1.05}, {tiny, 1e3}, {pick(1e-45, 5e-324), pick(3e38, 1e308)}};
    case MathFn::log1p:
      return {{-0.5, 1}, {-1, 8}, {tiny, 1e3}, {-1, -tiny}, {1, pick(3e38, 1e308)}};
    case MathFn::sin:
    case MathFn::cos:
    case MathFn::tan:
      return {{-4, 4}, {-200, 200}, {-4e4, 4e4}, {-2e6, 2e6}, {1e3, pick(3e38, 1e308)}, {tiny, 10}};
    case MathFn::asin:
    case MathFn::acos: return {{-1, 1}, {0.4, 0.6}, {0.9, 1}, {tiny, 1}, {-1, -tiny}};
    case MathFn::atan: return {{-1, 1}, {-8, 8}, {0.3, 3}, {tiny, 1e12}};
    case MathFn::sinh:
    case MathFn::cosh: return {{-1, 1}, {-10, 10}, {pick(-90, -711), pick(90, 711)}, {tiny, 1}};
    case MathFn::tanh: return {{-1, 1}, {-10, 10}, {tiny, 20}, {-25, 25}};
    case MathFn::asinh: return {{-1, 1}, {-100, 100}, {tiny, 1e3}, {1, pick(3e38, 1e308)}};
    case MathFn::acosh: return {{1, 2}, {1, 1.01}, {1, 100}, {1, pick(3e38, 1e308)}};
    case MathFn::atanh: return {{-1, 1}, {0.9, 1}, {tiny, 1}, {-0.3, 0.3}};
    case MathFn::erf: return {{-1, 1}, {-6, 6}, {0.85, 1}, {tiny, 6}};
    case MathFn::erfc: return {{-1, 1}, {-6, 6}, {0.5, pick(10.1, 27.3)}, {tiny, 6}};
    case MathFn::cbrt:
      return {{-1, 1}, {1, 8}, {tiny, 1e12}, {pick(1e-45, 5e-324), pick(3e38, 1e308)}};
    default: return {{-1, 1}, {-10, 10}, {0.5, 2}, {tiny, 1e12}};
  }
}

class Sampler {
 public:
  explicit Sampler(uint64_t seed) : random_(seed) {}

  template <class T> T any() { return std::bit_cast<T>(static_cast<Bits<T>>(random_())); }
  double unit() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double even(Interval i) { return i.lo + (i.hi - i.lo) * unit(); }
  // Evenly in the exponent if the interval does not contain 0.
  double skewed(Interval i) {
    if (i.lo <= 0 && i.hi >= 0) return even(i) * std::ldexp(1.0, -static_cast<int>(random_() % 12));
    const double ratio = std::log(i.hi / i.lo);
    return i.lo * std::exp(ratio * unit());
  }
  template <class T> T from(const std::vector<Interval>& list) {
    const uint64_t choice = random_();
    const size_t k = choice % (list.size() + 1);
    if (k == list.size()) return any<T>();
    return static_cast<T>((choice >> 32) & 1 ? even(list[k]) : skewed(list[k]));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

template <class T>
void sample(MathFn fn, uint64_t seed, size_t count, std::vector<T>& x, std::vector<T>& y) {
  Sampler s(seed);
  x.resize(count);
  y.resize(count);
  const bool is_double = sizeof(T) == 8;
  const auto list = intervals(fn, is_double);
  const double span = is_double ? 1080 : 152;
  for (size_t k = 0; k < count; k++) {
    x[k] = s.from<T>(list);
    y[k] = T(0);
    if (fn == MathFn::pow) {
      if (k % 2) x[k] = s.any<T>();
      if (k % 8 == 2) x[k] = static_cast<T>(1 + s.even({-1, 1}) * 0x1p-10);
      // Cover the results evenly in the exponent; now and then an integer, with a negative base.
      const double steep = std::log2(std::abs(static_cast<double>(x[k])));
      y[k] = static_cast<T>(s.even({-span, span}) / steep);
      if (k % 4 == 1) y[k] = std::rint(y[k]);
      if (k % 8 == 0) y[k] = s.from<T>(list);
    } else if (fn == MathFn::atan2 || fn == MathFn::hypot) {
      y[k] = static_cast<T>(x[k] * std::exp2(s.even({-8, 8})));
      if (k % 4 == 0) y[k] = s.from<T>(list);
      if (k % 2) y[k] = -y[k];
    }
  }
}

template void sample(MathFn, uint64_t, size_t, std::vector<float>&, std::vector<float>&);
template void sample(MathFn, uint64_t, size_t, std::vector<double>&, std::vector<double>&);

}  // namespace cuvil::testing
