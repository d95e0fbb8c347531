//go:build cgo && linux

package view

/*
#cgo LDFLAGS: -ldl -lpthread
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// The few calls of the TurboJPEG API (2.x and 3.x) that are used, declared here so that no header is needed.
typedef void *(*init_fn)(void);
typedef int (*compress_fn)(void *, const unsigned char *, int, int, int, int, unsigned char **, unsigned long *, int, int, int);
typedef int (*destroy_fn)(void *);
typedef void (*free_fn)(unsigned char *);

static init_fn tj_init;
static compress_fn tj_compress;
static destroy_fn tj_destroy;
static free_fn tj_free;
static pthread_once_t tj_once = PTHREAD_ONCE_INIT;

static void tj_open(void) {
	void *lib = dlopen("libturbojpeg.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!lib) return;
	init_fn init = (init_fn)dlsym(lib, "tjInitCompress");
	tj_compress = (compress_fn)dlsym(lib, "tjCompress2");
	tj_destroy = (destroy_fn)dlsym(lib, "tjDestroy");
	tj_free = (free_fn)dlsym(lib, "tjFree");
	if (tj_compress && tj_destroy && tj_free) tj_init = init;
}

// viad_tj_pack returns 0, -1 without the library, or -2 when it failed. *out is given back with viad_tj_free.
static int viad_tj_pack(const unsigned char *pix, int w, int h, int pitch, int subsamp, int quality,
                        unsigned char **out, unsigned long *size) {
	enum { RGBX = 2, FASTDCT = 2048 };
	pthread_once(&tj_once, tj_open);
	*out = NULL;
	*size = 0;
	if (!tj_init) return -1;
	void *h_ = tj_init();
	if (!h_) return -2;
	int rc = tj_compress(h_, pix, w, pitch, h, RGBX, out, size, subsamp, quality, FASTDCT);
	tj_destroy(h_);
	if (rc == 0) return 0;
	if (*out) tj_free(*out);
	*out = NULL;
	return -2;
}

static void viad_tj_free(unsigned char *p) { tj_free(p); }
*/
import "C"

import (
	"image"
	"unsafe"
)

// Chroma subsampling as TurboJPEG numbers it.
const subsamp444 = 0

// turboEncode packs with libjpeg-turbo, opened when first needed. Colour is kept at full resolution: red and
// blue lines a pixel or two wide carry meaning.
func turboEncode(img *image.RGBA, quality int) ([]byte, bool) {
	var out *C.uchar
	var size C.ulong
	pix := img.Pix[img.PixOffset(img.Rect.Min.X, img.Rect.Min.Y):]
	//nolint:gocritic // dupSubExpr sees cgo's own pointer checks
	rc := C.viad_tj_pack((*C.uchar)(unsafe.Pointer(&pix[0])), C.int(img.Rect.Dx()), C.int(img.Rect.Dy()),
		C.int(img.Stride), subsamp444, C.int(quality), &out, &size)
	if rc != 0 {
		return nil, false
	}
	b := C.GoBytes(unsafe.Pointer(out), C.int(size))
	C.viad_tj_free(out)
	return b, true
}
