// Publishing and subscribing. Each sample carries its number, the time of its making and bytes that follow from the
// number, so that loss, order and corruption show in the content and not only in the wire's own counts.
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int64_t seq, stamp;
  bool whole;
} mark_t;

static size_t size;
static bool verify;

static void fillBytes(dds_sequence_octet *s, int64_t seq) {
  if (s->_length != size) {
    s->_buffer = need(realloc(s->_buffer, size + 1));
    s->_length = s->_maximum = (uint32_t)size;
    s->_release = true;
  }
  uint64_t base = (uint64_t)seq * 0x9E3779B97F4A7C15ull;
  size_t words = size / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t v = base + i;
    memcpy(s->_buffer + i * 8, &v, 8);
  }
  memset(s->_buffer + words * 8, (int)(seq & 255), size - words * 8);
}

static bool checkBytes(const dds_sequence_octet *s, int64_t seq) {
  if (s->_length != size) return false;
  uint64_t base = (uint64_t)seq * 0x9E3779B97F4A7C15ull, wrong = 0;
  size_t words = size / 8;
  for (size_t i = 0; i < words; i++) {
    uint64_t v;
    memcpy(&v, s->_buffer + i * 8, 8);
    wrong |= v ^ (base + i);
  }
  for (size_t i = words * 8; i < size; i++) wrong |= s->_buffer[i] ^ (uint8_t)seq;
  return wrong == 0;
}

static void fillHeader(std_msgs_msg_dds__Header_ *h, int64_t seq, int64_t stamp) {
  h->stamp.sec = (int32_t)(stamp / 1000000000);
  h->stamp.nanosec = (uint32_t)(stamp % 1000000000);
  setText(&h->frame_id, "%lld", (long long)seq);
}

static mark_t readHeader(const std_msgs_msg_dds__Header_ *h) {
  mark_t m = {atoll(h->frame_id), h->stamp.sec * 1000000000ll + h->stamp.nanosec, false};
  return m;
}

static void fillString(void *to, int64_t seq, int64_t stamp) {
  std_msgs_msg_dds__String_ *s = to;
  char *tail = need(malloc(size + 1));
  memset(tail, 'a' + (int)(seq % 26), size);
  tail[size] = 0;
  setText(&s->data, "%lld:%lld:%s", (long long)seq, (long long)stamp, tail);
  free(tail);
}

static mark_t checkString(const void *from) {
  const std_msgs_msg_dds__String_ *s = from;
  char *rest;
  mark_t m = {strtoll(s->data, &rest, 10), 0, false};
  if (*rest != ':') return m;
  m.stamp = strtoll(rest + 1, &rest, 10);
  if (*rest != ':') return m;
  m.whole = strlen(++rest) == size;
  for (size_t i = 0; m.whole && i < size; i++) m.whole = rest[i] == 'a' + (int)(m.seq % 26);
  return m;
}

static void fillImage(void *to, int64_t seq, int64_t stamp) {
  sensor_msgs_msg_dds__Image_ *im = to;
  if (verify || im->data._length != size) fillBytes(&im->data, verify ? seq : 0);
  if (im->encoding == NULL) setText(&im->encoding, "rgb8");
  im->width = 640;
  im->step = 1920;
  im->height = (uint32_t)(size / 1920);
  fillHeader(&im->header, seq, stamp);
}

static mark_t checkImage(const void *from) {
  const sensor_msgs_msg_dds__Image_ *im = from;
  mark_t m = readHeader(&im->header);
  m.whole = strcmp(im->encoding, "rgb8") == 0 && im->width == 640 && im->step == 1920 && im->height == size / 1920 && im->data._length == size && (!verify || checkBytes(&im->data, m.seq));
  return m;
}

#define JOINTS 7

static void makeDoubles(dds_sequence_double *s) {
  s->_buffer = need(calloc(JOINTS, sizeof(double)));
  s->_length = s->_maximum = JOINTS;
  s->_release = true;
}

static void fillJoints(void *to, int64_t seq, int64_t stamp) {
  sensor_msgs_msg_dds__JointState_ *j = to;
  if (j->name._length == 0) {
    j->name._buffer = need(calloc(JOINTS, sizeof(char *)));
    j->name._length = j->name._maximum = JOINTS;
    j->name._release = true;
    for (int i = 0; i < JOINTS; i++) setText(&j->name._buffer[i], "fr3_joint%d", i + 1);
    makeDoubles(&j->position);
    makeDoubles(&j->velocity);
    makeDoubles(&j->effort);
  }
  for (int i = 0; i < JOINTS; i++) {
    j->position._buffer[i] = (double)seq + 0.125 * i;
    j->velocity._buffer[i] = -(double)seq - 0.25 * i;
    j->effort._buffer[i] = 0.5 * i;
  }
  fillHeader(&j->header, seq, stamp);
}

static mark_t checkJoints(const void *from) {
  const sensor_msgs_msg_dds__JointState_ *j = from;
  mark_t m = readHeader(&j->header);
  m.whole = j->name._length == JOINTS && j->position._length == JOINTS && j->velocity._length == JOINTS && j->effort._length == JOINTS;
  for (int i = 0; m.whole && i < JOINTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "fr3_joint%d", i + 1);
    m.whole = strcmp(j->name._buffer[i], name) == 0 && j->position._buffer[i] == (double)m.seq + 0.125 * i && j->velocity._buffer[i] == -(double)m.seq - 0.25 * i && j->effort._buffer[i] == 0.5 * i;
  }
  return m;
}

static const char *const fieldNames[] = {"x", "y", "z", "intensity"};

static void fillCloud(void *to, int64_t seq, int64_t stamp) {
  sensor_msgs_msg_dds__PointCloud2_ *c = to;
  if (c->fields._length == 0) {
    c->fields._buffer = need(calloc(4, sizeof *c->fields._buffer));
    c->fields._length = c->fields._maximum = 4;
    c->fields._release = true;
    for (uint32_t i = 0; i < 4; i++) {
      setText(&c->fields._buffer[i].name, "%s", fieldNames[i]);
      c->fields._buffer[i].offset = 4 * i;
      c->fields._buffer[i].datatype = 7;
      c->fields._buffer[i].count = 1;
    }
  }
  c->height = 1;
  c->width = (uint32_t)(size / 16);
  c->point_step = 16;
  c->row_step = (uint32_t)size;
  c->is_dense = true;
  fillBytes(&c->data, seq);
  fillHeader(&c->header, seq, stamp);
}

static mark_t checkCloud(const void *from) {
  const sensor_msgs_msg_dds__PointCloud2_ *c = from;
  mark_t m = readHeader(&c->header);
  m.whole = c->height == 1 && c->width == size / 16 && c->point_step == 16 && c->row_step == size && c->is_dense && c->fields._length == 4 && checkBytes(&c->data, m.seq);
  for (uint32_t i = 0; m.whole && i < 4; i++) {
    const sensor_msgs_msg_dds__PointField_ *f = &c->fields._buffer[i];
    m.whole = strcmp(f->name, fieldNames[i]) == 0 && f->offset == 4 * i && f->datatype == 7 && f->count == 1;
  }
  return m;
}

typedef struct {
  const char *name;
  const dds_topic_descriptor_t *type;
  void (*fill)(void *, int64_t, int64_t);
  mark_t (*check)(const void *);
} kind_t;

static const kind_t *kindOfOptions(void) {
  static const kind_t kinds[] = {{"String", &std_msgs_msg_dds__String__desc, fillString, checkString},
                                 {"Image", &sensor_msgs_msg_dds__Image__desc, fillImage, checkImage},
                                 {"JointState", &sensor_msgs_msg_dds__JointState__desc, fillJoints, checkJoints},
                                 {"PointCloud2", &sensor_msgs_msg_dds__PointCloud2__desc, fillCloud, checkCloud}};
  size = (size_t)number("size", 0);
  verify = number("verify", 1) != 0;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i].name, text("type", "String")) == 0) return &kinds[i];
  return &kinds[0];
}

int publish(void) {
  const kind_t *kind = kindOfOptions();
  dds_entity_t w = writer(kind->type, qosOfOptions(), NULL, "rt/%s", text("topic", "chatter"));
  announce();
  say("{\"ev\":\"ready\"}");
  while (!ended && matchedReaders(w) < (int)number("wait", 1)) pauseMs(1);
  pauseMs(number("settle", 0));
  int64_t count = (int64_t)number("count", 10), failed = 0;
  double period = number("rate", 0) > 0 ? 1000 / number("rate", 0) : 0;
  void *sample = need(calloc(1, kind->type->m_size));
  int64_t began = nanoseconds();
  for (int64_t i = 0; i < count && !ended; i++) {
    kind->fill(sample, i, nanoseconds());
    if (dds_write(w, sample) != 0) failed++;
    double early = (double)(i + 1) * period - (double)(nanoseconds() - began) / 1e6;
    if (early > 0) pauseMs(early);
  }
  double seconds = (double)(nanoseconds() - began) / 1e9;
  dds_return_t acked = dds_wait_for_acks(w, (dds_duration_t)(number("acktime", 10) * 1e9));
  say("{\"ev\":\"sent\",\"n\":%lld,\"failed\":%lld,\"seconds\":%.3f,\"acked\":%s}", (long long)count, (long long)failed, seconds, acked == 0 ? "true" : "false");
  while (!ended) {
    readGraph();
    pauseMs(5);
  }
  return 0;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

int subscribe(void) {
  const kind_t *kind = kindOfOptions();
  dds_entity_t r = reader(kind->type, qosOfOptions(), NULL, "rt/%s", text("topic", "chatter"));
  announce();
  say("{\"ev\":\"ready\"}");
  int64_t count = (int64_t)number("count", 10), first = -1, last = -1;
  bool each = number("each", 0) != 0;
  void *sample = need(calloc(1, kind->type->m_size));
  const int64_t bound = 1 << 20;  // numbers beyond it are corrupt
  uint8_t *seen = need(calloc(1, (size_t)bound));
  double *latency = need(calloc((size_t)count + 1, sizeof *latency));
  int64_t n = 0, corrupt = 0, disorder = 0, twice = 0, began = 0, end = 0;
  double cpu = cpuSeconds();
  dds_entity_t set = dds_create_waitset(DDS_CYCLONEDDS_HANDLE);
  dds_entity_t any = dds_create_readcondition(r, DDS_ANY_STATE);
  dds_waitset_attach(set, any, 0);
  dds_sample_info_t info;
  while (!ended && n < count) {
    dds_waitset_wait(set, NULL, 0, DDS_MSECS(50));
    while (n < count && takeOne(r, sample, &info)) {
      if (began == 0) {
        began = nanoseconds();
        cpu = cpuSeconds();
      }
      mark_t m = kind->check(sample);
      end = nanoseconds();
      if (each) say("{\"ev\":\"sample\",\"seq\":%lld,\"whole\":%s}", (long long)m.seq, m.whole ? "true" : "false");
      if (!m.whole || m.seq < 0 || m.seq >= bound) {
        corrupt++;
        continue;
      }
      if (seen[m.seq]) {
        twice++;
        continue;
      }
      if (m.seq < last) disorder++;
      seen[m.seq] = 1;
      latency[n++] = (double)(end - m.stamp) / 1e6;
      if (m.seq > last) last = m.seq;
      if (first < 0 || m.seq < first) first = m.seq;
    }
  }
  cpu = cpuSeconds() - cpu;
  qsort(latency, (size_t)n, sizeof *latency, ascending);
#define QUANTILE(q) (n == 0 ? 0.0 : latency[(int64_t)((q) * (double)n) < n ? (int64_t)((q) * (double)n) : n - 1])
  say("{\"ev\":\"report\",\"n\":%lld,\"first\":%lld,\"last\":%lld,\"corrupt\":%lld,\"disorder\":%lld,\"twice\":%lld,\"p50\":%.4f,\"p99\":%.4f,\"max\":%.4f,\"cpu\":%.4f,\"seconds\":%.3f}", (long long)n, (long long)first, (long long)last, (long long)corrupt,
      (long long)disorder, (long long)twice, QUANTILE(.5), QUANTILE(.99), QUANTILE(1), cpu, (double)(end - began) / 1e9);
  while (!ended) {
    readGraph();
    pauseMs(5);
  }
  return 0;
}
