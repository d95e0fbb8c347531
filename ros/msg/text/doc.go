// Package text prints messages for people and reads and writes them as the JSON that rosbridge and command lines use. It
// goes over the fields by reflection; the hot path is the codec of the messages themselves.
package text

import (
	"reflect"
	"strings"

	"viad/ros/msg"
)

// structOf is the structure behind m.
func structOf(m msg.Message) reflect.Value { return reflect.ValueOf(m).Elem() }

// name is the ROS name of a field; omit says that not every distribution has it, so that an empty one is left out.
func name(f reflect.StructField) (rosName string, omit bool) {
	rosName, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
	return rosName, rest == "omitempty"
}

// leftOut says that the field is empty and not of every distribution.
func leftOut(f reflect.StructField, v reflect.Value) bool {
	_, omit := name(f)
	return omit && (v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0)
}

// Fields are the ROS names of m's fields with their types as Go has them, in the order of the wire:
// "header std_msgs.Header", "position []float64".
func Fields(m msg.Message) []string {
	t := structOf(m).Type()
	out := make([]string, t.NumField())
	for i := range out {
		n, _ := name(t.Field(i))
		out[i] = n + " " + t.Field(i).Type.String()
	}
	return out
}
