package view

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
)

const (
	// DefaultQuality keeps thin coloured lines and small words clean.
	DefaultQuality = 85
	// MaxJPEG is the largest picture in bytes. A result holds at most two, grows by a third in base64, and must
	// stay under 1 MB.
	MaxJPEG = 350_000
)

// JPEG packs a picture at a quality of 1 to 100; zero is DefaultQuality. A picture that would be larger than
// MaxJPEG is packed again at lower qualities. It uses libjpeg-turbo where the machine has it, else image/jpeg.
func JPEG(img *image.RGBA, quality int) ([]byte, error) {
	return pack(img, quality, turboEncode)
}

// encoder packs a picture at one quality; ok is false when this encoder is not to be had or would not do it.
type encoder func(img *image.RGBA, quality int) (b []byte, ok bool)

func pack(img *image.RGBA, quality int, first encoder) ([]byte, error) {
	if quality == 0 {
		quality = DefaultQuality
	}
	if img == nil {
		return nil, errors.New("the picture could not be drawn: an internal fault, which is in the daemon's log")
	}
	if img.Rect.Empty() || quality < 1 || quality > 100 {
		return nil, fmt.Errorf("pack JPEG: want a picture and a quality of 1..100, got quality %d", quality)
	}
	for {
		b, ok := first(img, quality)
		if !ok {
			var err error
			if b, err = plainEncode(img, quality); err != nil {
				return nil, fmt.Errorf("pack JPEG: %w", err)
			}
		}
		if len(b) <= MaxJPEG {
			return b, nil
		}
		if quality <= 5 {
			return nil, fmt.Errorf("pack JPEG: %d bytes at quality %d, limit %d", len(b), quality, MaxJPEG)
		}
		quality = max(5, quality*3/4)
	}
}

func plainEncode(img *image.RGBA, quality int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(MaxJPEG / 2)
	err := jpeg.Encode(&b, img, &jpeg.Options{Quality: quality})
	return b.Bytes(), err
}
