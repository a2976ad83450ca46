// Errors as values: what was found, where in the user's source, what to do about it.
// Used everywhere below the Python boundary; one place (python/ or frontend/) turns them into exceptions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace cuvil {

// A half-open range in the user's source. `function` says whose source: 0 is the compiled function,
// k > 0 the k-th helper that was inlined (frontend's table of walked functions).
struct SourceLoc {
  uint32_t function = 0;
  int32_t line = 0;    // 1-based, absolute in the file; 0: unknown
  int32_t column = 0;  // 0-based, in UTF-8 bytes, as in `ast`
  int32_t end_line = 0;
  int32_t end_column = 0;
};

enum class ErrorClass : uint16_t {
#define CUVIL_ERROR(id, python) id,
#include "support/errors.def"
#undef CUVIL_ERROR
};

// Qualified name of the Python class, e.g. "cuvil.ShapeError"; "" for kPython.
const char* python_class_name(ErrorClass c);

struct Error {
  ErrorClass cls = ErrorClass::kInternal;
  std::string found;   // what was found: "operands of shapes (2, 3) and (2, 4) do not broadcast"
  std::string remedy;  // what to do: "give y the shape (2, 3) or (3,)"; may be empty
  SourceLoc loc;
};

struct Ok {};

// Either a value or an Error.
template <class T = Ok> class [[nodiscard]] Result {
 public:
  Result(T value) : v_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : v_(std::in_place_index<1>, std::move(error)) {}
  bool ok() const { return v_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() { return *std::get_if<0>(&v_); }
  const T& operator*() const { return *std::get_if<0>(&v_); }
  T* operator->() { return std::get_if<0>(&v_); }
  const T* operator->() const { return std::get_if<0>(&v_); }
  Error& error() { return *std::get_if<1>(&v_); }
  const Error& error() const { return *std::get_if<1>(&v_); }

 private:
  std::variant<T, Error> v_;
};

inline Error make_error(ErrorClass c, std::string found, std::string remedy = {},
                        SourceLoc loc = {}) {
  return Error{c, std::move(found), std::move(remedy), loc};
}

}  // namespace cuvil

// CUVIL_TRY(auto x, f());  declares x from the value, or returns the error from this function.
#define CUVIL_CONCAT_(a, b) a##b
#define CUVIL_CONCAT(a, b) CUVIL_CONCAT_(a, b)
#define CUVIL_TRY_(tmp, decl, ...)              \
  auto tmp = (__VA_ARGS__);                     \
  if (!tmp.ok()) return std::move(tmp.error()); \
  decl = std::move(*tmp)
#define CUVIL_TRY(decl, ...) CUVIL_TRY_(CUVIL_CONCAT(cuvil_try_, __LINE__), decl, __VA_ARGS__)
// CUVIL_CHECK(f());  returns the error from this function if there is one.
#define CUVIL_CHECK(...)                                            \
  do {                                                              \
    auto cuvil_check_ = (__VA_ARGS__);                              \
    if (!cuvil_check_.ok()) return std::move(cuvil_check_.error()); \
  } while (0)
