#ifndef VIAD_MJ_SHIM_H
#define VIAD_MJ_SHIM_H
#include <mujoco/mujoco.h>

// libmujoco is opened by dlopen; only its headers are used at build time, for the struct layouts.
// Every call that can reach mju_error runs under a guard: the error comes back as a code and a text.

enum { VMJ_OK = 0, VMJ_RAISED = 1, VMJ_BAD_STATE = 2 };

typedef struct {
  const mjModel* m;
  mjData* d;
  mjtNum* saved;    // state before the running batch, put back when the batch goes bad
  int bad, badinfo; // which warning, and its detail, after VMJ_BAD_STATE
  char msg[512];    // what MuJoCo said, after VMJ_RAISED
} vmj_data;

int  vmj_open(char* err, int errsz);
int  vmj_is_open(void);
int  vmj_drain_warnings(char* buf, int bufsz);

mjModel* vmj_load(const char* xml, int len, char* err, int errsz);
void vmj_free_model(mjModel* m);
int  vmj_id(const mjModel* m, int type, const char* name);
const char* vmj_name(const mjModel* m, int type, int id);

vmj_data* vmj_new_data(const mjModel* m, char* err, int errsz);
void vmj_free_data(vmj_data* v);
int  vmj_copy(vmj_data* dst, vmj_data* src);       // everything, bit for bit
int  vmj_copy_pose(vmj_data* dst, vmj_data* src);  // positions only, then kinematics, cameras and lights
int  vmj_step(vmj_data* v, int n);
int  vmj_step1(vmj_data* v);
int  vmj_step2(vmj_data* v);
int  vmj_forward(vmj_data* v);
int  vmj_mul_m(vmj_data* v, mjtNum* res, const mjtNum* vec);
int  vmj_contact_force(vmj_data* v, int id, mjtNum* force6);
int  vmj_jac_site(vmj_data* v, int site, mjtNum* jp, mjtNum* jr);
int  vmj_rays(const vmj_data* v, const mjtNum* from, const mjtNum* dirs, int n, const mjtByte* groups,
              int skipbody, mjtNum* dist, int* geom, char* err, int errsz);

// hooks for tests of the guard
int  vmj_test_raise(vmj_data* v, const char* msg);
int  vmj_test_overflow(vmj_data* v);
double vmj_test_loop(vmj_data* v, int n); // MuJoCo's own loop, unguarded: the reference of the benchmark

// OpenGL: one EGL context without a surface, and one MuJoCo renderer in it.
typedef struct vmj_gl vmj_gl;
vmj_gl* vmj_gl_open(char* err, int errsz); // makes the context current on the calling thread
void vmj_gl_close(vmj_gl* g);
int  vmj_gl_is_current(const vmj_gl* g);
const char* vmj_gl_name(void);

typedef struct vmj_render vmj_render;
vmj_render* vmj_render_new(const vmj_gl* g, const mjModel* m, int maxgeom, char* err, int errsz);
void vmj_render_free(vmj_render* r);
enum { VMJ_SKY = 1, VMJ_SHADOWS = 2 };
int  vmj_render_frame(vmj_render* r, const vmj_gl* g, vmj_data* v, int cam, int w, int h,
                      unsigned char* rgb, float* depth, int flags);

// internal to the shim
void vmj_resolve_render(void* (*sym)(const char*));
typedef void (*vmj_body)(void*);
int  vmj_guard(vmj_body f, void* arg, char* err, int errsz);
void vmj_fix_boxes(mjfCollision table[mjNGEOMTYPES][mjNGEOMTYPES]); // once, of the library's own table
#endif
