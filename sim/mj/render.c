#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// ---- EGL, by dlopen and without its headers -----------------------------------------------------
// MuJoCo's GL loader takes its symbols from whichever GL library the process holds globally, so
// libEGL is opened RTLD_GLOBAL and is the only one.

typedef void* egl_ptr;
static void* egl_lib;
static struct {
  egl_ptr (*get_proc)(const char*);
  unsigned (*initialize)(egl_ptr, int32_t*, int32_t*);
  int32_t (*error)(void);
  unsigned (*choose)(egl_ptr, const int32_t*, egl_ptr*, int32_t, int32_t*);
  unsigned (*bind)(unsigned);
  egl_ptr (*create)(egl_ptr, egl_ptr, egl_ptr, const int32_t*);
  unsigned (*make_current)(egl_ptr, egl_ptr, egl_ptr, egl_ptr);
  egl_ptr (*current)(void);
  unsigned (*destroy)(egl_ptr, egl_ptr);
} egl;

enum {
  EGL_PLATFORM_SURFACELESS = 0x31DD, EGL_OPENGL = 0x30A2, EGL_NONE_ = 0x3038, EGL_ALPHA = 0x3021,
  EGL_BLUE = 0x3022, EGL_GREEN = 0x3023, EGL_RED = 0x3024, EGL_DEPTH = 0x3025, EGL_STENCIL = 0x3026,
  EGL_SURFACES = 0x3033, EGL_PBUFFER = 1, EGL_RENDERABLE = 0x3040, EGL_OPENGL_BIT_ = 8
};

struct vmj_gl { egl_ptr dpy, ctx; };

static int egl_open(char* err, int errsz) {
  if (egl_lib) return 0;
  void* h = dlopen("libEGL.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!h) {
    snprintf(err, errsz, "%s", dlerror());
    return 1;
  }
#define GET(field, name)                                  \
  if (!(*(void**)&egl.field = dlsym(h, name))) {          \
    snprintf(err, errsz, "libEGL lacks " name);           \
    return 1;                                             \
  }
  GET(get_proc, "eglGetProcAddress") GET(initialize, "eglInitialize") GET(error, "eglGetError")
  GET(choose, "eglChooseConfig") GET(bind, "eglBindAPI") GET(create, "eglCreateContext")
  GET(make_current, "eglMakeCurrent") GET(current, "eglGetCurrentContext") GET(destroy, "eglDestroyContext")
#undef GET
  egl_lib = h;
  return 0;
}

static const char* egl_setup(vmj_gl* g) {
  typedef egl_ptr (*display_fn)(unsigned, void*, const int32_t*);
  display_fn display = (display_fn)egl.get_proc("eglGetPlatformDisplayEXT");
  if (!display) return "no eglGetPlatformDisplayEXT";
  g->dpy = display(EGL_PLATFORM_SURFACELESS, NULL, NULL);
  int32_t major, minor, n = 0;
  if (!g->dpy || !egl.initialize(g->dpy, &major, &minor)) return "no surfaceless display";
  const int32_t want[] = {EGL_RED, 8, EGL_GREEN, 8, EGL_BLUE, 8, EGL_ALPHA, 8, EGL_DEPTH, 24, EGL_STENCIL, 8,
                          EGL_SURFACES, EGL_PBUFFER, EGL_RENDERABLE, EGL_OPENGL_BIT_, EGL_NONE_};
  egl_ptr cfg;
  if (!egl.choose(g->dpy, want, &cfg, 1, &n) || n < 1) return "no OpenGL configuration";
  if (!egl.bind(EGL_OPENGL)) return "no desktop OpenGL";
  if (!(g->ctx = egl.create(g->dpy, cfg, NULL, NULL))) return "no context";
  if (!egl.make_current(g->dpy, NULL, NULL, g->ctx)) return "the context cannot be made current";
  return NULL;
}

vmj_gl* vmj_gl_open(char* err, int errsz) {
  if (egl_open(err, errsz)) return NULL;
  vmj_gl* g = calloc(1, sizeof *g);
  const char* why = g ? egl_setup(g) : "out of memory";
  if (!why) return g;
  snprintf(err, errsz, "%s (EGL error 0x%x)", why, (unsigned)egl.error());
  free(g);
  return NULL;
}

void vmj_gl_close(vmj_gl* g) {
  egl.make_current(g->dpy, NULL, NULL, NULL);
  egl.destroy(g->dpy, g->ctx); // never eglTerminate: the display belongs to the whole process
  free(g);
}

int vmj_gl_is_current(const vmj_gl* g) { return egl.current() == g->ctx; }

const char* vmj_gl_name(void) {
  typedef const unsigned char* (*get_fn)(unsigned);
  get_fn get = egl_lib ? (get_fn)egl.get_proc("glGetString") : NULL;
  const unsigned char* s = get ? get(0x1F01) : NULL;
  return s ? (const char*)s : "unknown";
}

// ---- MuJoCo's renderer ---------------------------------------------------------------------------

#define RENDER(X)                                                                              \
  X(mjv_defaultCamera) X(mjv_defaultOption) X(mjv_defaultScene) X(mjr_defaultContext)          \
  X(mjv_makeScene) X(mjv_freeScene) X(mjv_updateScene) X(mjr_makeContext) X(mjr_freeContext)   \
  X(mjr_setBuffer) X(mjr_render) X(mjr_readPixels)

#define DECL(f) __typeof__(f)* f##_;
static struct { RENDER(DECL) } lib;
#undef DECL

void vmj_resolve_render(void* (*sym)(const char*)) {
#define GET(f) lib.f##_ = (__typeof__(f)*)sym(#f);
  RENDER(GET)
#undef GET
}

struct vmj_render {
  mjvScene scn;
  mjvOption opt;
  mjrContext con;
  mjvCamera cam;
  unsigned char* rgb; // bottom-up scratch
  float* depth;
  size_t room; // pixels
};

typedef struct { vmj_render* r; const mjModel* m; int maxgeom; } new_arg;

static void new_body(void* p) {
  new_arg* a = p;
  lib.mjv_defaultCamera_(&a->r->cam);
  lib.mjv_defaultOption_(&a->r->opt);
  lib.mjv_defaultScene_(&a->r->scn);
  lib.mjr_defaultContext_(&a->r->con);
  lib.mjv_makeScene_(a->m, &a->r->scn, a->maxgeom);
  lib.mjr_makeContext_(a->m, &a->r->con, 100);
  lib.mjr_setBuffer_(mjFB_OFFSCREEN, &a->r->con);
}

vmj_render* vmj_render_new(const vmj_gl* g, const mjModel* m, int maxgeom, char* err, int errsz) {
  if (!vmj_gl_is_current(g)) {
    snprintf(err, errsz, "the GL context is not current on this thread");
    return NULL;
  }
  vmj_render* r = calloc(1, sizeof *r);
  if (!r) return NULL;
  new_arg a = {r, m, maxgeom};
  if (vmj_guard(new_body, &a, err, errsz) != VMJ_OK) {
    free(r);
    return NULL;
  }
  if (r->con.currentBuffer != mjFB_OFFSCREEN) {
    snprintf(err, errsz, "the GL has no offscreen framebuffer");
    vmj_render_free(r);
    return NULL;
  }
  return r;
}

void vmj_render_free(vmj_render* r) {
  lib.mjr_freeContext_(&r->con);
  lib.mjv_freeScene_(&r->scn);
  free(r->rgb);
  free(r->depth);
  free(r);
}

typedef struct { vmj_render* r; vmj_data* v; int cam, w, h; unsigned char* rgb; float* depth; int flags; } frame_arg;

static void frame_body(void* p) {
  frame_arg* a = p;
  vmj_render* r = a->r;
  mjrRect vp = {0, 0, a->w, a->h};
  r->cam.type = mjCAMERA_FIXED;
  r->cam.fixedcamid = a->cam;
  lib.mjv_updateScene_(a->v->m, a->v->d, &r->opt, NULL, &r->cam, mjCAT_ALL, &r->scn);
  r->scn.flags[mjRND_SKYBOX] = (a->flags & VMJ_SKY) != 0; // the sky cube writes depth: off when depth is wanted
  r->scn.flags[mjRND_SHADOW] = (a->flags & VMJ_SHADOWS) != 0;
  r->scn.flags[mjRND_REFLECTION] = 0;
  r->scn.flags[mjRND_FOG] = 0;
  lib.mjr_render_(vp, &r->scn, &r->con);
  lib.mjr_readPixels_(a->rgb ? r->rgb : NULL, a->depth ? r->depth : NULL, vp, &r->con);
}

static int grow(vmj_render* r, size_t pixels) {
  if (pixels <= r->room) return 1;
  free(r->rgb);
  free(r->depth);
  r->rgb = malloc(3 * pixels);
  r->depth = malloc(sizeof(float) * pixels);
  r->room = r->rgb && r->depth ? pixels : 0;
  return r->room != 0;
}

int vmj_render_frame(vmj_render* r, const vmj_gl* g, vmj_data* v, int cam, int w, int h,
                     unsigned char* rgb, float* depth, int flags) {
  // Another thread would silently get a black picture.
  const char* why = !vmj_gl_is_current(g) ? "the GL context is not current on this thread"
                    : w > r->con.offWidth || h > r->con.offHeight ? "the picture is larger than the offscreen buffer"
                    : !grow(r, (size_t)w * h) ? "out of memory" : NULL;
  if (why) {
    snprintf(v->msg, sizeof v->msg, "%s", why);
    return VMJ_RAISED;
  }
  frame_arg a = {r, v, cam, w, h, rgb, depth, flags};
  int rc = vmj_guard(frame_body, &a, v->msg, sizeof v->msg);
  if (rc != VMJ_OK) return rc;
  // GL rows run bottom-up; its depth is hyperbolic between the near and far planes.
  double zn = v->m->vis.map.znear * v->m->stat.extent, zf = v->m->vis.map.zfar * v->m->stat.extent;
  for (int y = 0; y < h; y++) {
    size_t from = (size_t)(h - 1 - y) * w, to = (size_t)y * w;
    if (rgb) memcpy(rgb + 3 * to, r->rgb + 3 * from, 3 * (size_t)w);
    if (!depth) continue;
    for (int x = 0; x < w; x++) {
      double d = r->depth[from + x];
      depth[to + x] = d >= 1 ? 0 : (float)(zn * zf / (zf - d * (zf - zn)));
    }
  }
  return VMJ_OK;
}
