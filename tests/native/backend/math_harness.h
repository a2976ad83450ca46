// What the tests and the benchmark of the elementary functions share: kernels that map a function
// over an array, compiled in memory, references in long double, errors in units in the last place.
#pragma once

#include <llvm/ExecutionEngine/Orc/LLJIT.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codegen/math.h"

namespace cuvil::testing {

using codegen::MathFn;

struct KernelOptions {
  unsigned lanes = 1;  // 1: scalar code
  bool has_fma = true;
  bool baseline = false;  // generate for x86-64 without extensions instead of for the host
};

// out[k] = fn(x[k], y[k]) for k < n; n is a multiple of the lanes.
template <class T> class MapKernel {
 public:
  using Pointer = void (*)(const T* x, const T* y, T* out, int64_t n);
  MapKernel(MathFn fn, KernelOptions options);
  void operator()(const T* x, const T* y, T* out, int64_t n) const { pointer_(x, y, out, n); }
  // Empty, or what went wrong; for instance the library function that code generation slipped in.
  const std::string& error() const { return error_; }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Pointer pointer_ = nullptr;
  std::string error_;
};

struct FunctionInfo {
  MathFn fn;
  const char* name;
  int arity;
  long double (*reference)(long double, long double);
  double (*fast_reference)(double, double);  // accurate enough for float results
};
const std::vector<FunctionInfo>& functions();

bool host_has_fma();
template <class T> unsigned host_lanes();  // of the widest vectors

// |result - reference| in units of the last place of the reference in T; infinite where one is NaN
// and the other not, where zeros differ in sign, or where only one is infinite without being close
// to the overflow threshold.
template <class T> double ulp_error(T result, long double reference);
double ulp_error_fast(float result, double reference);

// Zeros, infinities, NaN, subnormals, ends of the range, and neighbourhoods of small integers,
// multiples of pi/2, powers of 2 and 10 and of the functions' own thresholds.
template <class T> std::vector<T> special_values();

// `count` arguments where the function is neither constant nor undefined: intervals of its own,
// sampled evenly and evenly in the exponent, and all bit patterns.
template <class T>
void sample(MathFn fn, uint64_t seed, size_t count, std::vector<T>& x, std::vector<T>& y);

}  // namespace cuvil::testing
