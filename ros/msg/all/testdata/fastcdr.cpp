// Writes payloads with eProsima's Fast CDR, for a test to compare with. A line of input is one payload: "le" or "be",
// then for each value a kind and its digits: u1 u2 u4 u8 hold the bits of a value of so many bytes, s a string in hex
// ("-" is empty), v1 v2 v4 v8 a sequence: its count and its values. A line of output is the payload in hex.
#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

template <typename T> static T value(std::istream &in) {
  unsigned long long v;
  in >> v;
  return static_cast<T>(v);
}

template <typename T> static void sequence(std::istream &in, Cdr &out) {
  std::vector<T> v(value<size_t>(in));
  for (auto &x : v) x = value<T>(in);
  out << v;
}

static std::string text(std::istream &in) {
  std::string hex, out;
  in >> hex;
  for (size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::string kind;
    in >> kind;
    std::vector<char> memory(1 << 17); // zero, because Fast CDR leaves its padding as it is
    FastBuffer buffer(memory.data(), memory.size());
    Cdr out(buffer, kind == "be" ? Cdr::BIG_ENDIANNESS : Cdr::LITTLE_ENDIANNESS, Cdr::DDS_CDR);
    out.serialize_encapsulation();
    while (in >> kind) {
      if (kind == "u1") out << value<uint8_t>(in);
      else if (kind == "u2") out << value<uint16_t>(in);
      else if (kind == "u4") out << value<uint32_t>(in);
      else if (kind == "u8") out << value<uint64_t>(in);
      else if (kind == "v1") sequence<uint8_t>(in, out);
      else if (kind == "v2") sequence<uint16_t>(in, out);
      else if (kind == "v4") sequence<uint32_t>(in, out);
      else if (kind == "v8") sequence<uint64_t>(in, out);
      else if (kind == "s") out << text(in);
      else return 1;
    }
    for (size_t i = 0; i < out.getSerializedDataLength(); i++) std::printf("%02x", static_cast<unsigned char>(buffer.getBuffer()[i]));
    std::printf("\n");
  }
}
