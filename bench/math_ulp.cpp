// Accuracy and speed of the elementary functions, as the Markdown table of docs/math.md.
//
//   math_ulp [--no-accuracy] [--no-speed] [--samples=2^24] [--threads=2] [name...]
//
// Floats: every one of the 2^32 arguments (pow, atan2, hypot: samples), first against libmvec in
// double, and again against long double wherever that would raise the maximum. Doubles: random
// samples against long double. Speed: 4096 arguments in cache, one core. Needs an AVX-512 host.
#include <immintrin.h>
#include <llvm/ADT/StringRef.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "codegen/math_harness.h"

using namespace cuvil::testing;
using cuvil::codegen::MathFn;

// libmvec's AVX-512 entry points, two for each row.
extern "C" {
#define CUVIL_MVEC_1(name)            \
  __m512 _ZGVeN16v_##name##f(__m512); \
  __m512d _ZGVeN8v_##name(__m512d);
#define CUVIL_MVEC_2(name)                     \
  __m512 _ZGVeN16vv_##name##f(__m512, __m512); \
  __m512d _ZGVeN8vv_##name(__m512d, __m512d);
#define CUVIL_MATH(name, arity) CUVIL_MVEC_##arity(name)
#include "ops/math.def"
#undef CUVIL_MATH
}

namespace {

template <class T> using Map = void (*)(const T* x, const T* y, T* out, int64_t n);

// Per function: libmvec over float and double arrays, scalar libm over both.
struct Competitors {
  Map<float> mvec_f32;
  Map<double> mvec_f64;
  Map<float> scalar_f32;
  Map<double> scalar_f64;
};

#define CUVIL_LOOP(T, step, body)                                  \
  [](const T* x, [[maybe_unused]] const T* y, T* out, int64_t n) { \
    for (int64_t k = 0; k < n; k += step) body;                    \
  }
#define CUVIL_VECTOR_1(name)                                                                     \
  CUVIL_LOOP(float, 16, _mm512_storeu_ps(out + k, _ZGVeN16v_##name##f(_mm512_loadu_ps(x + k)))), \
      CUVIL_LOOP(double, 8, _mm512_storeu_pd(out + k, _ZGVeN8v_##name(_mm512_loadu_pd(x + k))))
#define CUVIL_VECTOR_2(name)                                                                      \
  CUVIL_LOOP(float, 16,                                                                           \
             _mm512_storeu_ps(                                                                    \
                 out + k, _ZGVeN16vv_##name##f(_mm512_loadu_ps(x + k), _mm512_loadu_ps(y + k)))), \
      CUVIL_LOOP(double, 8,                                                                       \
                 _mm512_storeu_pd(                                                                \
                     out + k, _ZGVeN8vv_##name(_mm512_loadu_pd(x + k), _mm512_loadu_pd(y + k))))
#define CUVIL_SCALAR_1(name) \
  CUVIL_LOOP(float, 1, out[k] = std::name(x[k])), CUVIL_LOOP(double, 1, out[k] = std::name(x[k]))
#define CUVIL_SCALAR_2(name)                            \
  CUVIL_LOOP(float, 1, out[k] = std::name(x[k], y[k])), \
      CUVIL_LOOP(double, 1, out[k] = std::name(x[k], y[k]))

const Competitors competitors[] = {
#define CUVIL_MATH(name, arity) {CUVIL_VECTOR_##arity(name), CUVIL_SCALAR_##arity(name)},
#include "ops/math.def"
#undef CUVIL_MATH
};

struct Options {
  bool accuracy = true, speed = true;
  size_t samples = size_t{1} << 24;
  unsigned threads = 2;
  std::vector<std::string> names;
};

struct Worst {
  double ulp = 0, x = 0, y = 0;
  void raise(double error, double at_x, double at_y) {
    if (error > ulp) *this = {error, at_x, at_y};
  }
};

template <class T> KernelOptions fastest() {
  return {.lanes = host_lanes<T>(), .has_fma = host_has_fma()};
}

// Every float in blocks of 2^16, each thread taking the next block.
Worst exhaustive_f32(const FunctionInfo& info, const Options& options) {
  const MapKernel<float> kernel(info.fn, fastest<float>());
  constexpr size_t block = 1 << 16;
  std::atomic<uint32_t> next{0};
  std::mutex lock;
  Worst worst;
  auto work = [&] {
    std::vector<float> x(block), y(block, 0.0f), out(block);
    std::vector<double> wide(block), wide_y(block, 0.0), reference(block);
    Worst mine{.ulp = 0.5};  // results that round correctly are not looked at
    for (uint32_t index; (index = next++) < (1u << 16);) {
      for (size_t k = 0; k < block; k++) {
        x[k] = std::bit_cast<float>(static_cast<uint32_t>(index * block + k));
        wide[k] = x[k];
      }
      kernel(x.data(), y.data(), out.data(), block);
      competitors[static_cast<int>(info.fn)].mvec_f64(wide.data(), wide_y.data(), reference.data(),
                                                      block);
      for (size_t k = 0; k < block; k++) {
        const float rounded = static_cast<float>(reference[k]);
        if (std::bit_cast<uint32_t>(rounded) == std::bit_cast<uint32_t>(out[k])) continue;
        if (ulp_error_fast(out[k], reference[k]) <= mine.ulp) continue;
        mine.raise(ulp_error<float>(out[k], info.reference(x[k], 0)), x[k], 0);
      }
    }
    const std::lock_guard guard(lock);
    worst.raise(mine.ulp, mine.x, mine.y);
  };
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < options.threads; k++) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  return worst;
}

template <class T> Worst sampled(const FunctionInfo& info, const Options& options) {
  const MapKernel<T> kernel(info.fn, fastest<T>());
  constexpr size_t block = 1 << 16;
  std::atomic<size_t> next{0};
  std::mutex lock;
  Worst worst;
  auto work = [&] {
    std::vector<T> x, y, out(block);
    Worst mine;
    for (size_t index; (index = next++) * block < options.samples;) {
      sample<T>(info.fn, 1000 + index, block, x, y);
      kernel(x.data(), y.data(), out.data(), block);
      for (size_t k = 0; k < block; k++)
        mine.raise(ulp_error<T>(out[k], info.reference(x[k], y[k])), x[k], y[k]);
    }
    const std::lock_guard guard(lock);
    worst.raise(mine.ulp, mine.x, mine.y);
  };
  std::vector<std::thread> threads;
  for (unsigned k = 0; k < options.threads; k++) threads.emplace_back(work);
  for (auto& t : threads) t.join();
  return worst;
}

// The bulk of what programs pass: moderate arguments, no special values.
template <class T> void typical(MathFn fn, std::vector<T>& x, std::vector<T>& y) {
  double lo = -4, hi = 4;
  switch (fn) {
    case MathFn::log:
    case MathFn::log2:
    case MathFn::log10:
    case MathFn::log1p:
    case MathFn::pow: lo = 0.01; break;
    case MathFn::asin:
    case MathFn::acos:
    case MathFn::atanh: lo = -0.999, hi = 0.999; break;
    case MathFn::acosh: lo = 1, hi = 20; break;
    default: break;
  }
  std::mt19937_64 random(1);
  for (auto& v : x) v = static_cast<T>(std::uniform_real_distribution<double>(lo, hi)(random));
  for (auto& v : y) v = static_cast<T>(std::uniform_real_distribution<double>(-4, 4)(random));
}

// Billions of elements a second, the best of several runs: others share the machine.
template <class T, class F>
double throughput(const F& f, const std::vector<T>& x, const std::vector<T>& y, int repeats) {
  std::vector<T> out(x.size());
  double best = 1e9;
  for (int run = 0; run < 15; run++) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < repeats; k++)
      f(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / repeats);
  }
  return static_cast<double>(x.size()) / best * 1e-9;
}

template <class T> std::string speed(const FunctionInfo& info, Map<T> mvec, Map<T> scalar) {
  std::vector<T> x(4096), y(4096);
  typical<T>(info.fn, x, y);
  const MapKernel<T> kernel(info.fn, fastest<T>());
  const double ours = throughput<T>(kernel, x, y, 100);
  const double vector = throughput<T>(mvec, x, y, 100);
  const double libm = throughput<T>(scalar, x, y, 10);
  char text[128];
  std::snprintf(text, sizeof text, "%.2f | %.2f× | %.0f×", ours, ours / vector, ours / libm);
  return text;
}

std::string place(const FunctionInfo& info, const Worst& w) {
  char text[128];
  if (info.arity == 1)
    std::snprintf(text, sizeof text, "%.3f | %.9g", w.ulp, w.x);
  else
    std::snprintf(text, sizeof text, "%.3f | %.9g, %.9g", w.ulp, w.x, w.y);
  return text;
}

void report(const FunctionInfo& info, const Options& options) {
  std::printf("| %s |", info.name);
  if (options.accuracy) {
    const Worst f32 =
        info.arity == 1 ? exhaustive_f32(info, options) : sampled<float>(info, options);
    const Worst f64 = sampled<double>(info, options);
    std::printf(" %s | %s |", place(info, f32).c_str(), place(info, f64).c_str());
  }
  if (options.speed) {
    const Competitors& c = competitors[static_cast<int>(info.fn)];
    std::printf(" %s | %s |", speed<float>(info, c.mvec_f32, c.scalar_f32).c_str(),
                speed<double>(info, c.mvec_f64, c.scalar_f64).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int k = 1; k < argc; k++) {
    const llvm::StringRef argument = argv[k];
    if (argument == "--no-accuracy")
      options.accuracy = false;
    else if (argument == "--no-speed")
      options.speed = false;
    else if (argument.starts_with("--samples=2^"))
      options.samples = size_t{1} << std::atoi(argv[k] + 12);
    else if (argument.starts_with("--threads="))
      options.threads = static_cast<unsigned>(std::atoi(argv[k] + 10));
    else
      options.names.emplace_back(argument);
  }
  std::printf(
      "| function |%s%s\n", options.accuracy ? " f32 max ulp | at | f64 max ulp | at |" : "",
      options.speed ? " f32 G/s | ÷ libmvec | ÷ libm | f64 G/s | ÷ libmvec | ÷ libm |" : "");
  std::printf("| --- |%s%s\n", options.accuracy ? " --- | --- | --- | --- |" : "",
              options.speed ? " --- | --- | --- | --- | --- | --- |" : "");
  for (const FunctionInfo& info : functions())
    if (options.names.empty() ||
        std::find(options.names.begin(), options.names.end(), info.name) != options.names.end())
      report(info, options);
}
