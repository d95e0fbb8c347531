package camera

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
	"math"

	"viad/ros/msg/builtin_interfaces"
	"viad/ros/msg/sensor_msgs"
)

// most is the longest side of a picture that is taken, in pixels.
const most = 8192

// pixel says how a colour encoding lies in memory: bytes a pixel, and where red, green and blue are in it.
type pixel struct{ size, r, g, b int }

func pixelOf(encoding string) (pixel, bool) {
	switch encoding {
	case "rgb8":
		return pixel{3, 0, 1, 2}, true
	case "bgr8":
		return pixel{3, 2, 1, 0}, true
	case "rgba8":
		return pixel{4, 0, 1, 2}, true
	case "bgra8":
		return pixel{4, 2, 1, 0}, true
	case "mono8", "8UC1":
		return pixel{1, 0, 0, 0}, true
	}
	return pixel{}, false
}

// decode reads an image's pixels, whatever its row padding and byte order. Depth that is missing, not finite or negative
// is 0, which means no reading.
func decode(m *sensor_msgs.Image, deep bool) (*picture, error) {
	w, h := int(m.Width), int(m.Height)
	if w <= 0 || h <= 0 || w > most || h > most {
		return nil, fmt.Errorf("a picture of %d x %d pixels; sides of 1 to %d are taken", m.Width, m.Height, most)
	}
	p := &picture{w: w, h: h, stamp: nanoseconds(m.Header.Stamp), from: m.Header.FrameId}
	px, known := pixelOf(m.Encoding)
	size := px.size
	if deep {
		switch m.Encoding {
		case "16UC1", "mono16":
			size = 2
		case "32FC1":
			size = 4
		default:
			return nil, fmt.Errorf("depth is encoded as %q; 16UC1 (millimetres) and 32FC1 (metres) can be read", m.Encoding)
		}
	} else if !known {
		return nil, fmt.Errorf("colour is encoded as %q; rgb8, bgr8, rgba8, bgra8 and mono8 can be read", m.Encoding)
	}
	step := int(m.Step)
	if step < w*size || len(m.Data) < step*(h-1)+w*size {
		return nil, fmt.Errorf("%d bytes with rows of %d do not hold %d x %d pixels of %d bytes", len(m.Data), m.Step, w, h, size)
	}
	p.sum = crc32.ChecksumIEEE(m.Data)
	if deep {
		p.depth = depths(m, w, h, step, size)
		return p, nil
	}
	p.rgb = colours(m, w, h, step, px)
	return p, nil
}

// unpack reads a JPEG or a PNG. Its size is looked at before memory is taken for it.
func unpack(m *sensor_msgs.CompressedImage) (*picture, error) {
	conf, format, err := image.DecodeConfig(bytes.NewReader(m.Data))
	if err != nil {
		return nil, fmt.Errorf("%d bytes that say %q are neither JPEG nor PNG: %w", len(m.Data), m.Format, err)
	}
	if conf.Width <= 0 || conf.Height <= 0 || conf.Width > most || conf.Height > most {
		return nil, fmt.Errorf("a picture of %d x %d pixels; sides of 1 to %d are taken", conf.Width, conf.Height, most)
	}
	decoder := png.Decode
	if format == "jpeg" {
		decoder = jpeg.Decode
	}
	img, err := decoder(bytes.NewReader(m.Data))
	if err != nil {
		return nil, fmt.Errorf("a broken %s of %d bytes: %w", format, len(m.Data), err)
	}
	b := img.Bounds()
	rgba := image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
	draw.Draw(rgba, rgba.Rect, img, b.Min, draw.Src)
	p := &picture{w: b.Dx(), h: b.Dy(), stamp: nanoseconds(m.Header.Stamp), from: m.Header.FrameId, sum: crc32.ChecksumIEEE(m.Data)}
	p.rgb = make([]byte, 0, 3*p.w*p.h)
	for q := rgba.Pix; len(q) >= 4; q = q[4:] {
		p.rgb = append(p.rgb, q[0], q[1], q[2])
	}
	return p, nil
}

func nanoseconds(t builtin_interfaces.Time) int64 { return int64(t.Sec)*1e9 + int64(t.Nanosec) }

func colours(m *sensor_msgs.Image, w, h, step int, px pixel) []byte {
	if m.Encoding == "rgb8" && step == 3*w {
		return m.Data[:3*w*h]
	}
	out := make([]byte, 0, 3*w*h)
	for y := range h {
		row := m.Data[y*step:]
		for x := range w {
			q := row[x*px.size:]
			out = append(out, q[px.r], q[px.g], q[px.b])
		}
	}
	return out
}

func depths(m *sensor_msgs.Image, w, h, step, size int) []float32 {
	var order binary.ByteOrder = binary.LittleEndian
	if m.IsBigendian != 0 {
		order = binary.BigEndian
	}
	out := make([]float32, 0, w*h)
	for y := range h {
		row := m.Data[y*step:]
		for x := range w {
			var d float32
			if size == 2 {
				d = float32(order.Uint16(row[2*x:])) / 1000
			} else {
				d = math.Float32frombits(order.Uint32(row[4*x:]))
			}
			if !(d > 0 && d <= math.MaxFloat32) {
				d = 0
			}
			out = append(out, d)
		}
	}
	return out
}
