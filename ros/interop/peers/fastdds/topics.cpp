// Publishing and subscribing. Each sample carries its number, the time of its making and bytes that follow from the
// number, so that loss, order and corruption show in the content and not only in the wire's own counts.
#include "peer.hpp"

#include <algorithm>
#include <cstring>

namespace {

using builtin_interfaces::msg::dds_::Time_;
using sensor_msgs::msg::dds_::Image_;
using sensor_msgs::msg::dds_::JointState_;
using sensor_msgs::msg::dds_::PointCloud2_;
using sensor_msgs::msg::dds_::PointField_;
using std_msgs::msg::dds_::Header_;
using std_msgs::msg::dds_::String_;

struct Mark {
  int64_t seq = -1, stamp = 0;
  bool whole = false;
};

const uint64_t mix = 0x9E3779B97F4A7C15ull;

void fillBytes(std::vector<uint8_t>& data, int64_t seq) {
  uint64_t base = (uint64_t)seq * mix;
  size_t words = data.size() / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t v = base + i;
    memcpy(&data[i * 8], &v, 8);
  }
  for (size_t i = words * 8; i < data.size(); i++) data[i] = (uint8_t)seq;
}

bool checkBytes(const std::vector<uint8_t>& data, int64_t seq) {
  uint64_t base = (uint64_t)seq * mix, wrong = 0;
  size_t words = data.size() / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t v;
    memcpy(&v, &data[i * 8], 8);
    wrong |= v ^ (base + i);
  }
  for (size_t i = words * 8; i < data.size(); i++) wrong |= data[i] ^ (uint8_t)seq;
  return wrong == 0;
}

void fillHeader(Header_& h, int64_t seq, int64_t stamp) {
  h.stamp().sec((int32_t)(stamp / 1000000000));
  h.stamp().nanosec((uint32_t)(stamp % 1000000000));
  h.frame_id(std::to_string(seq));
}

Mark readHeader(const Header_& h) {
  Mark m;
  m.seq = atoll(h.frame_id().c_str());
  m.stamp = h.stamp().sec() * 1000000000ll + h.stamp().nanosec();
  return m;
}

void fill(String_& s, int64_t seq, int64_t stamp, size_t size, bool) {
  s.data() = std::to_string(seq) + ":" + std::to_string(stamp) + ":";
  s.data().append(size, (char)('a' + seq % 26));
}

Mark check(const String_& s, size_t size, bool) {
  Mark m;
  const char* at = s.data().c_str();
  char* rest;
  m.seq = strtoll(at, &rest, 10);
  if (*rest != ':') return m;
  m.stamp = strtoll(rest + 1, &rest, 10);
  m.whole = *rest == ':' && std::string(rest + 1) == std::string(size, (char)('a' + m.seq % 26));
  return m;
}

void fill(Image_& im, int64_t seq, int64_t stamp, size_t size, bool verify) {
  if (im.data().size() != size) {
    im.data().resize(size);
    im.width(640);
    im.step(1920);
    im.height((uint32_t)(size / 1920));
    im.encoding("rgb8");
    fillBytes(im.data(), 0);
  }
  if (verify) fillBytes(im.data(), seq);
  fillHeader(im.header(), seq, stamp);
}

Mark check(const Image_& im, size_t size, bool verify) {
  Mark m = readHeader(im.header());
  m.whole = im.encoding() == "rgb8" && im.width() == 640 && im.step() == 1920 && im.height() == size / 1920 && im.data().size() == size && (!verify || checkBytes(im.data(), m.seq));
  return m;
}

const int joints = 7;

void fill(JointState_& j, int64_t seq, int64_t stamp, size_t, bool) {
  if (j.name().empty()) {
    for (int i = 1; i <= joints; i++) j.name().push_back("fr3_joint" + std::to_string(i));
    j.position().resize(joints);
    j.velocity().resize(joints);
    j.effort().resize(joints);
  }
  for (int i = 0; i < joints; i++) {
    j.position()[i] = (double)seq + 0.125 * i;
    j.velocity()[i] = -(double)seq - 0.25 * i;
    j.effort()[i] = 0.5 * i;
  }
  fillHeader(j.header(), seq, stamp);
}

Mark check(const JointState_& j, size_t, bool) {
  Mark m = readHeader(j.header());
  if (j.name().size() != joints || j.position().size() != joints || j.velocity().size() != joints || j.effort().size() != joints) return m;
  m.whole = true;
  for (int i = 0; i < joints; i++) {
    m.whole = m.whole && j.name()[i] == "fr3_joint" + std::to_string(i + 1) && j.position()[i] == (double)m.seq + 0.125 * i && j.velocity()[i] == -(double)m.seq - 0.25 * i && j.effort()[i] == 0.5 * i;
  }
  return m;
}

const char* const fieldNames[] = {"x", "y", "z", "intensity"};

void fill(PointCloud2_& c, int64_t seq, int64_t stamp, size_t size, bool) {
  c.height(1);
  c.width((uint32_t)(size / 16));
  c.point_step(16);
  c.row_step((uint32_t)size);
  c.is_dense(true);
  c.fields().resize(4);
  for (uint32_t i = 0; i < 4; i++) {
    c.fields()[i].name(fieldNames[i]);
    c.fields()[i].offset(4 * i);
    c.fields()[i].datatype(7);
    c.fields()[i].count(1);
  }
  c.data().resize(size);
  fillBytes(c.data(), seq);
  fillHeader(c.header(), seq, stamp);
}

Mark check(const PointCloud2_& c, size_t size, bool) {
  Mark m = readHeader(c.header());
  m.whole = c.height() == 1 && c.width() == size / 16 && c.point_step() == 16 && c.row_step() == size && c.is_dense() && c.fields().size() == 4 && c.data().size() == size && checkBytes(c.data(), m.seq);
  for (uint32_t i = 0; m.whole && i < 4; i++) {
    auto& f = c.fields()[i];
    m.whole = f.name() == fieldNames[i] && f.offset() == 4 * i && f.datatype() == 7 && f.count() == 1;
  }
  return m;
}

template <class Support, class T>
int publishType(Peer& p, const Options& o) {
  auto* w = p.writer(fdds::TypeSupport(new Support()), "rt/" + o.text("topic", "chatter"), QoS::of(o));
  p.announce();
  say("{\"ev\":\"ready\"}");
  int wait = (int)o.number("wait", 1);
  while (!ended && p.matched(w) < wait) pause(1);
  pause(o.number("settle", 0));
  int64_t count = (int64_t)o.number("count", 10);
  double period = o.number("rate", 0) > 0 ? 1000 / o.number("rate", 0) : 0;
  size_t size = (size_t)o.number("size", 0);
  bool verify = o.number("verify", 1) != 0;
  T sample;
  int64_t began = nanoseconds(), failed = 0;
  for (int64_t i = 0; i < count && !ended; i++) {
    fill(sample, i, nanoseconds(), size, verify);
    if (!w->write(&sample)) failed++;
    double early = (double)(i + 1) * period - (double)(nanoseconds() - began) / 1e6;
    if (early > 0) pause(early);
  }
  double seconds = (double)(nanoseconds() - began) / 1e9;
  auto acked = w->wait_for_acknowledgments(eprosima::fastrtps::Duration_t((long double)(o.number("acktime", 10))));
  say("{\"ev\":\"sent\",\"n\":%lld,\"failed\":%lld,\"seconds\":%.3f,\"acked\":%s}", (long long)count, (long long)failed, seconds, acked == ReturnCode_t::RETCODE_OK ? "true" : "false");
  while (!ended) {
    p.readGraph();
    pause(5);
  }
  return 0;
}

struct Tally {
  std::set<int64_t> seen;
  std::vector<double> latency;
  int64_t last = -1;
  int corrupt = 0, disorder = 0, twice = 0;

  void add(const Mark& m) {
    double ms = (double)(nanoseconds() - m.stamp) / 1e6;
    if (!m.whole) {
      corrupt++;
      return;
    }
    if (!seen.insert(m.seq).second) twice++;
    else if (m.seq < last) disorder++;
    last = std::max(last, m.seq);
    latency.push_back(ms);
  }
  double quantile(double q) {
    if (latency.empty()) return 0;
    std::sort(latency.begin(), latency.end());
    return latency[std::min(latency.size() - 1, (size_t)(q * (double)latency.size()))];
  }
  void report(double cpu, double seconds) {
    say("{\"ev\":\"report\",\"n\":%zu,\"first\":%lld,\"last\":%lld,\"corrupt\":%d,\"disorder\":%d,\"twice\":%d,\"p50\":%.4f,\"p99\":%.4f,\"max\":%.4f,\"cpu\":%.4f,\"seconds\":%.3f}",
        seen.size(), seen.empty() ? -1ll : (long long)*seen.begin(), (long long)last, corrupt, disorder, twice, quantile(.5), quantile(.99), quantile(1), cpu, seconds);
  }
};

template <class Support, class T>
int subscribeType(Peer& p, const Options& o) {
  auto* r = p.reader(fdds::TypeSupport(new Support()), "rt/" + o.text("topic", "chatter"), QoS::of(o));
  p.announce();
  say("{\"ev\":\"ready\"}");
  size_t count = (size_t)o.number("count", 10), size = (size_t)o.number("size", 0);
  bool verify = o.number("verify", 1) != 0, each = o.number("each", 0) != 0;
  T sample;
  fdds::SampleInfo info;
  Tally tally;
  double cpu = cpuSeconds();
  int64_t began = 0, end = 0;
  while (!ended && tally.seen.size() < count) {
    if (!r->wait_for_unread_message(eprosima::fastrtps::Duration_t(0, 50000000))) continue;
    while (r->take_next_sample(&sample, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      if (began == 0) {
        began = nanoseconds();
        cpu = cpuSeconds();
      }
      Mark m = check(sample, size, verify);
      tally.add(m);
      end = nanoseconds();
      if (each) say("{\"ev\":\"sample\",\"seq\":%lld,\"whole\":%s}", (long long)m.seq, m.whole ? "true" : "false");
    }
  }
  tally.report(cpuSeconds() - cpu, (double)(end - began) / 1e9);
  while (!ended) {
    p.readGraph();
    pause(5);
  }
  return 0;
}

}  // namespace

int publish(Peer& p, const Options& o) {
  auto type = o.text("type", "String");
  if (type == "Image") return publishType<sensor_msgs::msg::dds_::Image_PubSubType, Image_>(p, o);
  if (type == "JointState") return publishType<sensor_msgs::msg::dds_::JointState_PubSubType, JointState_>(p, o);
  if (type == "PointCloud2") return publishType<sensor_msgs::msg::dds_::PointCloud2_PubSubType, PointCloud2_>(p, o);
  return publishType<std_msgs::msg::dds_::String_PubSubType, String_>(p, o);
}

int subscribe(Peer& p, const Options& o) {
  auto type = o.text("type", "String");
  if (type == "Image") return subscribeType<sensor_msgs::msg::dds_::Image_PubSubType, Image_>(p, o);
  if (type == "JointState") return subscribeType<sensor_msgs::msg::dds_::JointState_PubSubType, JointState_>(p, o);
  if (type == "PointCloud2") return subscribeType<sensor_msgs::msg::dds_::PointCloud2_PubSubType, PointCloud2_>(p, o);
  return subscribeType<std_msgs::msg::dds_::String_PubSubType, String_>(p, o);
}
