package all_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"

	"viad/ros/msg"
)

// fill gives every field of a message a random value; sequences are short, and empty one time in three.
func fill(rnd *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !strings.HasSuffix(v.Type().Field(i).Tag.Get("json"), ",omitempty") {
				fill(rnd, v.Field(i))
			}
		}
	case reflect.Slice:
		n := max(0, rnd.IntN(6)-1)
		if strings.HasSuffix(v.Type().Elem().Name(), "Range") {
			n = min(n, 1) // the two sequences that have a bound
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rnd, v.Index(i))
		}
	case reflect.Array:
		n := v.Len()
		if v.Type().String() == "[24]uint8" {
			n = 16 // what every distribution has of a Gid
		}
		for i := range n {
			fill(rnd, v.Index(i))
		}
	case reflect.String:
		b := make([]byte, rnd.IntN(9))
		for i := range b {
			b[i] = byte(1 + rnd.IntN(127))
		}
		v.SetString(string(b))
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(float32(rnd.NormFloat64())))
	default:
		if v.CanInt() {
			v.SetInt(int64(rnd.Uint64()) >> (64 - v.Type().Bits()))
		} else {
			v.SetUint(rnd.Uint64() >> (64 - v.Type().Bits()))
		}
	}
}

// script says m's values in the order of its fields to testdata/fastcdr.cpp, which lays them out.
func script(b *strings.Builder, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.NumField() == 0 {
			b.WriteString(" u1 0")
		}
		for i := range v.NumField() {
			script(b, v.Field(i))
		}
	case reflect.Slice:
		if n := size(v.Type().Elem()); n > 0 {
			fmt.Fprintf(b, " v%d %d", n, v.Len())
			for i := range v.Len() {
				fmt.Fprintf(b, " %d", bits(v.Index(i)))
			}
			return
		}
		fmt.Fprintf(b, " u4 %d", v.Len())
		elements(b, v)
	case reflect.Array:
		elements(b, v)
	case reflect.String:
		if v.Len() == 0 {
			b.WriteString(" s -")
		} else {
			b.WriteString(" s " + hex.EncodeToString([]byte(v.String())))
		}
	default:
		fmt.Fprintf(b, " u%d %d", size(v.Type()), bits(v))
	}
}

func elements(b *strings.Builder, v reflect.Value) {
	for i := range v.Len() {
		script(b, v.Index(i))
	}
}

// size is how many bytes a primitive has, 0 for all else.
func size(t reflect.Type) int {
	switch t.Kind() {
	case reflect.Bool:
		return 1
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.String:
		return 0
	default:
		return t.Bits() / 8
	}
}

func bits(v reflect.Value) uint64 {
	switch {
	case v.Kind() == reflect.Bool:
		if v.Bool() {
			return 1
		}
		return 0
	case v.Kind() == reflect.Float32:
		return uint64(math.Float32bits(float32(v.Float())))
	case v.CanFloat():
		return math.Float64bits(v.Float())
	case v.CanInt():
		return uint64(v.Int()) & (^uint64(0) >> (64 - v.Type().Bits()))
	default:
		return v.Uint()
	}
}

func structOf(m msg.Message) reflect.Value { return reflect.ValueOf(m).Elem() }
