//go:build !cgo || !linux

package view

import "image"

// turboEncode is not to be had without cgo.
func turboEncode(*image.RGBA, int) ([]byte, bool) { return nil, false }
