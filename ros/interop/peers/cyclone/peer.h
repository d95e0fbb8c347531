// What the modes of the peer share: options, lines of JSON, the participant and endpoints with rmw's settings.
#pragma once
#include <dds/dds.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "ros.h"

const char *text(const char *key, const char *otherwise);  // an option key=value
double number(const char *key, double otherwise);

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));  // one line of JSON
const char *hex(const uint8_t *bytes, size_t n);                          // in a buffer that the next call uses again
int64_t nanoseconds(void);                                                // since the epoch
double cpuSeconds(void);
void pauseMs(double milliseconds);
void *need(void *p);                                        // ends the peer when there is no memory
void setText(char **field, const char *format, ...) __attribute__((format(printf, 2, 3)));

extern atomic_bool ended;  // standard input is closed

typedef struct {
  bool reliable, transient;
  int depth;  // 0 keeps all
  double deadline;
} qos_t;

extern const qos_t services, latched;
qos_t qosOfOptions(void);

dds_entity_t writer(const dds_topic_descriptor_t *type, qos_t qos, const char *userData, const char *topic, ...) __attribute__((format(printf, 4, 5)));
dds_entity_t reader(const dds_topic_descriptor_t *type, qos_t qos, const char *userData, const char *topic, ...) __attribute__((format(printf, 4, 5)));
int matchedReaders(dds_entity_t writer);
int matchedWriters(dds_entity_t reader);
bool takeOne(dds_entity_t reader, void *sample, dds_sample_info_t *info);  // false when there is none

void announce(void);  // publishes the graph of this process, when the options give the form of the gid
void readGraph(void);

int publish(void);
int subscribe(void);
int serve(void);
int call(void);
int serveAction(void);
int sendGoal(void);
