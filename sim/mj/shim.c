#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define CORE(X)                                                                                     \
  X(mj_version) X(mj_versionString) X(mj_loadXML) X(mj_deleteModel) X(mj_makeData) X(mj_deleteData) \
  X(mj_copyData) X(mj_step) X(mj_step1) X(mj_step2) X(mj_forward) X(mj_kinematics) X(mj_comPos)     \
  X(mj_camlight) X(mj_mulM) X(mj_contactForce) X(mj_jacSite) X(mj_ray) X(mj_name2id) X(mj_id2name)  \
  X(mj_stackAlloc) X(mj_defaultVFS) X(mj_makeEmptyFileVFS) X(mj_deleteVFS) X(mju_error)

#define DECL(f) __typeof__(f)* f##_;
static struct { CORE(DECL) } lib;
#undef DECL

static void* handle;

// ---- the guard -------------------------------------------------------------------------------

static __thread jmp_buf* guard_top; // innermost guard of this thread
static __thread char guard_msg[512];

static pthread_mutex_t warn_mu = PTHREAD_MUTEX_INITIALIZER;
static char warn_buf[8192];
static int warn_len;

static void on_error(const char* msg) {
  snprintf(guard_msg, sizeof guard_msg, "%s", msg);
  if (guard_top) longjmp(*guard_top, 1);
  // Every call into MuJoCo goes through a guard; returning from here would be undefined behaviour.
  fprintf(stderr, "mujoco: error outside a guard: %s\n", msg);
  abort();
}

static void on_warning(const char* msg) {
  pthread_mutex_lock(&warn_mu);
  int n = (int)strlen(msg);
  if (warn_len + n + 1 < (int)sizeof warn_buf) {
    memcpy(warn_buf + warn_len, msg, n);
    warn_len += n;
    warn_buf[warn_len++] = '\n';
  }
  pthread_mutex_unlock(&warn_mu);
}

int vmj_drain_warnings(char* buf, int bufsz) {
  pthread_mutex_lock(&warn_mu);
  int n = warn_len < bufsz ? warn_len : bufsz;
  memcpy(buf, warn_buf, n);
  warn_len = 0;
  pthread_mutex_unlock(&warn_mu);
  return n;
}

int vmj_guard(vmj_body f, void* arg, char* err, int errsz) {
  jmp_buf jb;
  jmp_buf* volatile outer = guard_top;
  if (setjmp(jb) == 0) {
    guard_top = &jb;
    f(arg);
    guard_top = outer;
    return VMJ_OK;
  }
  guard_top = outer;
  if (err) snprintf(err, errsz, "%s", guard_msg);
  return VMJ_RAISED;
}

// ---- the library -----------------------------------------------------------------------------

static void* lookup(const char* name) { return dlsym(handle, name); }

static int resolve(char* err, int errsz) {
#define GET(f)                                                                            \
  if (!(lib.f##_ = (__typeof__(f)*)dlsym(handle, #f))) {                                  \
    snprintf(err, errsz, "libmujoco lacks the function " #f);                             \
    return 1;                                                                             \
  }
  CORE(GET)
#undef GET
  if (lib.mj_version_() != mjVERSION_HEADER) {
    snprintf(err, errsz, "libmujoco is version %d, this program was built for %d", lib.mj_version_(), mjVERSION_HEADER);
    return 1;
  }
  void (**uerr)(const char*) = (void (**)(const char*))dlsym(handle, "mju_user_error");
  void (**uwarn)(const char*) = (void (**)(const char*))dlsym(handle, "mju_user_warning");
  mjfCollision(*table)[mjNGEOMTYPES] = (mjfCollision(*)[mjNGEOMTYPES])dlsym(handle, "mjCOLLISIONFUNC");
  if (!uerr || !uwarn || !table) {
    snprintf(err, errsz, "libmujoco lacks its hooks");
    return 1;
  }
  *uerr = on_error; // without these MuJoCo writes MUJOCO_LOG.TXT, waits for Enter and exits
  *uwarn = on_warning;
  vmj_fix_boxes(table);
  vmj_resolve_render(lookup);
  return 0;
}

int vmj_is_open(void) { return handle != NULL; }

// A simulation is one block of 20 MB. Left alone, glibc takes the first one that is freed as a sign that such blocks
// come and go, and from then on carves them out of the arena of whichever thread asks. A world put back again and
// again asks on any thread, and every arena (16 on two cores) kept its largest state: hundreds of MB that looked like
// a leak. With a threshold that was set, glibc leaves it where it is: a large block is mapped, and unmapped when freed.
static void give_back_large_blocks(void) { mallopt(M_MMAP_THRESHOLD, 256 << 10); }

int vmj_open(char* err, int errsz) {
  static const char* const names[] = {"libmujoco.so.2.2.2", "libmujoco.so"};
  for (int i = 0; i < 2 && !handle; i++) handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    snprintf(err, errsz, "%s", dlerror());
    return 1;
  }
  if (resolve(err, errsz)) {
    dlclose(handle);
    handle = NULL;
    return 1;
  }
  give_back_large_blocks();
  return 0;
}

// ---- models ----------------------------------------------------------------------------------

typedef struct { const char* xml; int len; mjVFS* vfs; mjModel* volatile m; char* err; int errsz; } load_arg;

static void load_body(void* p) {
  load_arg* a = p;
  if (lib.mj_makeEmptyFileVFS_(a->vfs, "model.xml", a->len) != 0) {
    snprintf(a->err, a->errsz, "no room for the model text");
    return;
  }
  memcpy(a->vfs->filedata[0], a->xml, a->len);
  a->m = lib.mj_loadXML_("model.xml", a->vfs, a->err, a->errsz);
}

mjModel* vmj_load(const char* xml, int len, char* err, int errsz) {
  load_arg a = {xml, len, calloc(1, sizeof(mjVFS)), NULL, err, errsz}; // 2 MB: never on a stack
  if (!a.vfs) {
    snprintf(err, errsz, "out of memory");
    return NULL;
  }
  lib.mj_defaultVFS_(a.vfs);
  int rc = vmj_guard(load_body, &a, err, errsz);
  lib.mj_deleteVFS_(a.vfs);
  free(a.vfs);
  return rc == VMJ_OK ? a.m : NULL;
}

// What was small was allocated on whichever threads happened to run, and glibc gives back only an arena's end.
void vmj_free_model(mjModel* m) {
  lib.mj_deleteModel_(m);
  malloc_trim(0);
}
int vmj_id(const mjModel* m, int type, const char* name) { return lib.mj_name2id_(m, type, name); }
const char* vmj_name(const mjModel* m, int type, int id) { return lib.mj_id2name_(m, type, id); }

// ---- data ------------------------------------------------------------------------------------

static void make_body(void* p) {
  vmj_data* v = p;
  v->d = lib.mj_makeData_(v->m);
}

vmj_data* vmj_new_data(const mjModel* m, char* err, int errsz) {
  vmj_data* v = calloc(1, sizeof *v);
  if (!v) return NULL;
  v->m = m;
  v->saved = calloc(1 + m->nq + 2 * m->nv + m->na, sizeof(mjtNum));
  snprintf(err, errsz, "out of memory");
  if (!v->saved || vmj_guard(make_body, v, err, errsz) != VMJ_OK || !v->d) {
    free(v->saved);
    free(v);
    return NULL;
  }
  return v;
}

void vmj_free_data(vmj_data* v) {
  lib.mj_deleteData_(v->d);
  free(v->saved);
  free(v);
}

static void save(vmj_data* v) {
  const mjModel* m = v->m;
  mjtNum* s = v->saved;
  *s++ = v->d->time;
  memcpy(s, v->d->qpos, m->nq * sizeof *s), s += m->nq;
  memcpy(s, v->d->qvel, m->nv * sizeof *s), s += m->nv;
  memcpy(s, v->d->qacc_warmstart, m->nv * sizeof *s), s += m->nv;
  memcpy(s, v->d->act, m->na * sizeof *s);
}

static void restore(vmj_data* v) {
  const mjModel* m = v->m;
  const mjtNum* s = v->saved;
  v->d->time = *s++;
  memcpy(v->d->qpos, s, m->nq * sizeof *s), s += m->nq;
  memcpy(v->d->qvel, s, m->nv * sizeof *s), s += m->nv;
  memcpy(v->d->qacc_warmstart, s, m->nv * sizeof *s), s += m->nv;
  memcpy(v->d->act, s, m->na * sizeof *s);
  memset(v->d->warning, 0, sizeof v->d->warning);
}

// MuJoCo answers a NaN state by silently resetting everything to time 0; only its counters tell.
static int check(vmj_data* v) {
  for (int w = mjWARN_BADQPOS; w <= mjWARN_BADCTRL; w++) {
    if (v->d->warning[w].number == 0) continue;
    v->bad = w;
    v->badinfo = v->d->warning[w].lastinfo;
    restore(v);
    return VMJ_BAD_STATE;
  }
  return VMJ_OK;
}

// After an error MuJoCo's own stack mark is stale: put it back to where it was.
static int guarded(vmj_data* v, vmj_body f, void* arg) {
  int mark = v->d->pstack;
  int rc = vmj_guard(f, arg, v->msg, sizeof v->msg);
  if (rc != VMJ_OK) v->d->pstack = mark;
  return rc;
}

typedef struct { vmj_data* v; int n; } step_arg;

static void step_body(void* p) {
  step_arg* a = p;
  for (int i = 0; i < a->n; i++) lib.mj_step_(a->v->m, a->v->d);
}

int vmj_step(vmj_data* v, int n) {
  step_arg a = {v, n};
  save(v);
  int rc = guarded(v, step_body, &a);
  if (rc != VMJ_OK) {
    restore(v);
    return rc;
  }
  return check(v);
}

static void step1_body(void* p) { vmj_data* v = p; lib.mj_step1_(v->m, v->d); }
static void step2_body(void* p) { vmj_data* v = p; lib.mj_step2_(v->m, v->d); }
static void forward_body(void* p) { vmj_data* v = p; lib.mj_forward_(v->m, v->d); }

int vmj_step1(vmj_data* v) {
  save(v);
  int rc = guarded(v, step1_body, v);
  return rc != VMJ_OK ? (restore(v), rc) : check(v);
}

int vmj_step2(vmj_data* v) {
  int rc = guarded(v, step2_body, v);
  return rc != VMJ_OK ? (restore(v), rc) : check(v);
}

int vmj_forward(vmj_data* v) {
  save(v);
  int rc = guarded(v, forward_body, v);
  return rc != VMJ_OK ? (restore(v), rc) : check(v);
}

typedef struct { vmj_data* dst; vmj_data* src; } copy_arg;

static void copy_body(void* p) {
  copy_arg* a = p;
  lib.mj_copyData_(a->dst->d, a->dst->m, a->src->d);
}

int vmj_copy(vmj_data* dst, vmj_data* src) {
  copy_arg a = {dst, src};
  return guarded(dst, copy_body, &a);
}

static void pose_body(void* p) {
  copy_arg* a = p;
  const mjModel* m = a->dst->m;
  mjData* d = a->dst->d;
  const mjData* s = a->src->d;
  memcpy(d->qpos, s->qpos, m->nq * sizeof(mjtNum));
  memcpy(d->mocap_pos, s->mocap_pos, 3 * m->nmocap * sizeof(mjtNum));
  memcpy(d->mocap_quat, s->mocap_quat, 4 * m->nmocap * sizeof(mjtNum));
  d->time = s->time;
  lib.mj_kinematics_(m, d);
  lib.mj_comPos_(m, d);
  lib.mj_camlight_(m, d);
}

int vmj_copy_pose(vmj_data* dst, vmj_data* src) {
  copy_arg a = {dst, src};
  return guarded(dst, pose_body, &a);
}

typedef struct { vmj_data* v; mjtNum* out; const mjtNum* in; int id; mjtNum* out2; } num_arg;

static void mulm_body(void* p) { num_arg* a = p; lib.mj_mulM_(a->v->m, a->v->d, a->out, a->in); }
static void force_body(void* p) { num_arg* a = p; lib.mj_contactForce_(a->v->m, a->v->d, a->id, a->out); }
static void jac_body(void* p) { num_arg* a = p; lib.mj_jacSite_(a->v->m, a->v->d, a->out, a->out2, a->id); }

int vmj_mul_m(vmj_data* v, mjtNum* res, const mjtNum* vec) {
  num_arg a = {v, res, vec, 0, NULL};
  return guarded(v, mulm_body, &a);
}
int vmj_contact_force(vmj_data* v, int id, mjtNum* force6) {
  num_arg a = {v, force6, NULL, id, NULL};
  return guarded(v, force_body, &a);
}
int vmj_jac_site(vmj_data* v, int site, mjtNum* jp, mjtNum* jr) {
  num_arg a = {v, jp, NULL, site, jr};
  return guarded(v, jac_body, &a);
}

typedef struct {
  const vmj_data* v; const mjtNum* from; const mjtNum* dirs; int n;
  const mjtByte* groups; int skip; mjtNum* dist; int* geom;
} ray_arg;

static void ray_body(void* p) {
  ray_arg* a = p;
  for (int i = 0; i < a->n; i++)
    a->dist[i] = lib.mj_ray_(a->v->m, a->v->d, a->from, a->dirs + 3 * i, a->groups, 1, a->skip, a->geom + i);
}

int vmj_rays(const vmj_data* v, const mjtNum* from, const mjtNum* dirs, int n, const mjtByte* groups,
             int skipbody, mjtNum* dist, int* geom, char* err, int errsz) {
  ray_arg a = {v, from, dirs, n, groups, skipbody, dist, geom};
  return vmj_guard(ray_body, &a, err, errsz);
}

// ---- hooks for tests -------------------------------------------------------------------------

static void raise_body(void* p) { lib.mju_error_(p); }
static void overflow_body(void* p) { vmj_data* v = p; lib.mj_stackAlloc_(v->d, v->d->nstack + 1); }

int vmj_test_raise(vmj_data* v, const char* msg) { return guarded(v, raise_body, (void*)msg); }
int vmj_test_overflow(vmj_data* v) { return guarded(v, overflow_body, v); }

double vmj_test_loop(vmj_data* v, int n) {
  struct timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  for (int i = 0; i < n; i++) lib.mj_step_(v->m, v->d);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  return (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
}
