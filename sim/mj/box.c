#include "shim.h"

#include <math.h>

// Two faults of MuJoCo's collider of boxes, mended from outside. Later versions had them too (its issue
// 3476, of August 2026).
//
// It asks first which of 15 directions the boxes overlap least along. When they lie level on each other, a
// face's normal and up to four products of edges are the same direction, and a relative margin of 1e-12
// is to make the face win: less than rounding once the overlap is under about 0.01 mm. An edge that wins
// is collided as an edge, and its contacts come out up to as deep as the larger box is long (seen: 1.1 m
// for a cube on a table, 9 % of the level ones). One step of that throws a resting cube across the room.
// No contact can be deeper than the least overlap along a face's normal. When one is, the boxes are
// collided again a little deeper in each other, where the margin suffices, and that much is taken off.
//
// And where a face does win, one corner of the other box becomes a contact wherever it is: a cube on a
// table was held by the table's corner 0.6 m away (17 % of the level ones).

static mjfCollision theirs;

#define DEEPER 3e-4 // metres
#define ROUNDING 1e-6
#define OUTSIDE 1e-3 // metres

typedef struct { const mjtNum *pos, *mat, *size; } box;

static box box_of(const mjModel* m, const mjData* d, int g) {
  return (box){d->geom_xpos + 3 * g, d->geom_xmat + 9 * g, m->geom_size + 3 * g};
}

static mjtNum dot(const mjtNum* a, const mjtNum* b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void axis(mjtNum* v, box b, int i) {
  for (int k = 0; k < 3; k++) v[k] = b.mat[3 * k + i];
}

// reach is half the length of a box along n.
static mjtNum reach(box b, const mjtNum* n) {
  mjtNum sum = 0, a[3];
  for (int i = 0; i < 3; i++) {
    axis(a, b, i);
    sum += b.size[i] * fabs(dot(a, n));
  }
  return sum;
}

// overlap is the least overlap along a face's normal, which points from a to b.
static mjtNum overlap(box a, box b, mjtNum* normal) {
  mjtNum least = mjMAXVAL, between[3];
  for (int k = 0; k < 3; k++) between[k] = b.pos[k] - a.pos[k];
  for (int i = 0; i < 6; i++) {
    mjtNum n[3];
    axis(n, i < 3 ? a : b, i % 3);
    mjtNum along = dot(n, between);
    mjtNum o = reach(a, n) + reach(b, n) - fabs(along);
    if (o >= least) continue;
    least = o;
    for (int k = 0; k < 3; k++) normal[k] = along < 0 ? -n[k] : n[k];
  }
  return least;
}

static int too_deep(const mjContact* con, int n, mjtNum least) {
  for (int i = 0; i < n; i++)
    if (con[i].dist < -least - ROUNDING) return 1;
  return 0;
}

// shallower takes the extra depth off face contacts again and drops those that it alone had made.
static int shallower(mjContact* con, int n, const mjtNum* normal, mjtNum margin) {
  int kept = 0;
  for (int i = 0; i < n; i++) {
    con[i].dist += DEEPER / 2; // a face's contacts carry half of their depth
    if (2 * con[i].dist > margin) continue;
    for (int k = 0; k < 3; k++) con[i].pos[k] += normal[k] * DEEPER / 2;
    con[kept++] = con[i];
  }
  return kept;
}

static int near(const mjContact* c, box b, mjtNum slack) {
  for (int i = 0; i < 3; i++) {
    mjtNum a[3], to[3];
    axis(a, b, i);
    for (int k = 0; k < 3; k++) to[k] = c->pos[k] - b.pos[k];
    if (fabs(dot(a, to)) > b.size[i] + slack) return 0;
  }
  return 1;
}

// trim drops the contacts that lie outside a box, unless all do.
static int trim(mjContact* con, int n, box a, box b, mjtNum slack) {
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (near(con + i, a, slack) && near(con + i, b, slack)) kept++;
  if (kept == 0 || kept == n) return n;
  kept = 0;
  for (int i = 0; i < n; i++)
    if (near(con + i, a, slack) && near(con + i, b, slack)) con[kept++] = con[i];
  return kept;
}

static int box_box(const mjModel* m, const mjData* d, mjContact* con, int g1, int g2, mjtNum margin) {
  int n = theirs(m, d, con, g1, g2, margin);
  if (n == 0) return 0;
  box a = box_of(m, d, g1), b = box_of(m, d, g2);
  mjtNum normal[3];
  mjtNum least = overlap(a, b, normal);
  if (too_deep(con, n, least)) {
    mjtNum* at = d->geom_xpos + 3 * g2;
    const mjtNum was[3] = {at[0], at[1], at[2]};
    for (int k = 0; k < 3; k++) at[k] -= normal[k] * DEEPER;
    n = theirs(m, d, con, g1, g2, margin);
    for (int k = 0; k < 3; k++) at[k] = was[k];
    if (n == 0 || too_deep(con, n, least + DEEPER) || dot(con[0].frame, normal) < 1 - ROUNDING) return 0;
    n = shallower(con, n, normal, margin);
  }
  return trim(con, n, a, b, OUTSIDE + fmax(least, 0) + margin);
}

void vmj_fix_boxes(mjfCollision table[mjNGEOMTYPES][mjNGEOMTYPES]) {
  theirs = table[mjGEOM_BOX][mjGEOM_BOX];
  table[mjGEOM_BOX][mjGEOM_BOX] = box_box;
}
