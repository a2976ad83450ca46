// The interpreter's code: what translate.cpp makes of a module and handlers.inc runs.
//
// A function works on a frame of bytes. Every value of the module has a place of its own there, so that an
// instruction is its handler and the places of its operands; constants are copied in when a function is
// called. A lane of i1 takes a byte that is 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "artifact/abi.h"

namespace cuvil::interpret {

enum class Opcode : uint8_t {
#define CUVIL_OPCODE(id) id,
#include "interpret/opcodes.def"
#undef CUVIL_OPCODE
};

// Of a lane. i1 counts as kI8, pointers as kI64.
enum class Kind : uint8_t { kI8, kI16, kI32, kI64, kHalf, kF32, kF64 };

struct Inst;
// Does one instruction and returns the next, or nullptr to leave the function.
using Handler = const Inst* (*)(const Inst*, std::byte* frame);

struct Function;

// kService: which function of CuvilServices, and where its arguments are.
struct ServiceCall {
  uint32_t byte = 0;
  uint32_t arguments[6] = {};
};

struct Inst {
  Handler run = nullptr;
  uint32_t dst = 0, a = 0, b = 0, c = 0;  // places in the frame
  uint32_t lanes = 1;                     // kCopy, kLoad, kLoadAt, kStore: bytes
  int32_t otherwise = 0;                  // kBranch: distance if the condition is false
  union {
    // kJump, kBranch: distance; kOffset, kIndex, k*At: bytes; kExtract, kInsert: lane
    int64_t imm = 0;
    const Function* function;    // kCall, kCallOver
    const ServiceCall* service;  // kService
    const uint8_t* lane_list;    // kShuffle
  };
};

// The start of every frame.
struct alignas(64) FrameHead {
  int64_t result = 0;
  int64_t arguments[4] = {};  // 8 bytes each, whatever they are
};

struct Function {
  std::vector<Inst> code;
  std::vector<std::byte> constants;  // copied to the frame behind its head
  uint32_t frame_bytes = 0;          // a multiple of 64
  std::vector<const Function*> callees;
};

// The handlers for a CPU level.
struct Level {
  // nullptr for what no module holds. `from`: of the operand, for conversions. `size`: lanes, or bytes
  // for kCopy, kLoad, kLoadAt and kStore.
  Handler (*pick)(Opcode op, Kind kind, Kind from, uint32_t size);
  // The arguments are in the frame's head already.
  int64_t (*run)(const Function& f, std::byte* frame);
};
extern const Level kBase;  // x86-64, what every CPU has
extern const Level kV3;    // x86-64-v3: AVX2, FMA, F16C

struct Code {
  const Level* level = nullptr;
  std::deque<Function> functions;  // the entry is the first
  std::deque<ServiceCall> services;
  std::deque<std::vector<uint8_t>> lane_lists;
  std::deque<std::vector<uint64_t>> tables;  // constant arrays, aligned to 64 bytes within
  size_t frame_bytes = 0;                    // of the entry and what it calls
};

}  // namespace cuvil::interpret
