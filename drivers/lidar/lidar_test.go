package lidar

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"viad/ros/msg/sensor_msgs"
)

func fields(kind uint8, at ...uint32) []sensor_msgs.PointField {
	out := make([]sensor_msgs.PointField, 0, 3)
	for i, n := range []string{"x", "y", "z"} {
		out = append(out, sensor_msgs.PointField{Name: n, Offset: at[i], Datatype: kind, Count: 1})
	}
	return out
}

// Two rows with padding, z before x, one point that is no number, one out of range.
func TestCloud(t *testing.T) {
	row := func(points ...[3]float32) []byte {
		var b []byte
		for _, p := range points {
			for _, v := range []float32{p[2], p[0], p[1], 77} {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
		return append(b, 1, 2, 3, 4)
	}
	nan := float32(math.NaN())
	data := append(row([3]float32{1, 2, 3}, [3]float32{nan, 0, 1}), row([3]float32{100, 0, 0}, [3]float32{-1, 0.5, 0})...)
	m := &sensor_msgs.PointCloud2{Width: 2, Height: 2, PointStep: 16, RowStep: 36, Data: data, Fields: fields(sensor_msgs.PointField_FLOAT32, 4, 8, 0)}
	got, err := decode(m, [2]float64{0.1, 15})
	if err != nil || !slices.Equal(got, []float32{1, 2, 3, -1, 0.5, 0}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestWideCloud(t *testing.T) {
	var b []byte
	for _, v := range []float64{1, -2, 0.25} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	}
	m := &sensor_msgs.PointCloud2{Width: 1, Height: 1, PointStep: 24, RowStep: 24, Data: b, IsBigendian: true, Fields: fields(sensor_msgs.PointField_FLOAT64, 0, 8, 16)}
	if got, err := decode(m, [2]float64{0, 15}); err != nil || !slices.Equal(got, []float32{1, -2, 0.25}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestBadClouds(t *testing.T) {
	for words, m := range map[string]*sensor_msgs.PointCloud2{
		"no x, y and z": {Width: 1, Height: 1, PointStep: 12, RowStep: 12, Data: make([]byte, 12)},
		"datatype":      {Width: 1, Height: 1, PointStep: 12, RowStep: 12, Data: make([]byte, 12), Fields: fields(sensor_msgs.PointField_INT16, 0, 4, 8)},
		"at most":       {Width: 1 << 20, Height: 1 << 20, Fields: fields(sensor_msgs.PointField_FLOAT32, 0, 4, 8)},
		"do not hold":   {Width: 2, Height: 1, PointStep: 12, RowStep: 24, Data: make([]byte, 20), Fields: fields(sensor_msgs.PointField_FLOAT32, 0, 4, 8)},
	} {
		if _, err := decode(m, [2]float64{0, 1}); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func FuzzCloud(f *testing.F) {
	f.Add(uint32(1), uint32(1), uint32(12), uint32(12), uint32(0), uint32(4), uint32(8), byte(7), false, make([]byte, 12))
	f.Add(uint32(3), uint32(1<<31), uint32(1<<31), uint32(1), uint32(1<<31), uint32(4), uint32(8), byte(8), true, []byte{1})
	f.Fuzz(func(t *testing.T, w, h, step, row, x, y, z uint32, kind byte, big bool, data []byte) {
		m := &sensor_msgs.PointCloud2{Width: w, Height: h, PointStep: step, RowStep: row, IsBigendian: big, Data: data, Fields: fields(kind, x, y, z)}
		if got, err := decode(m, [2]float64{0, 100}); err == nil && len(got)%3 != 0 {
			t.Errorf("%d numbers", len(got))
		}
	})
}
