package ros

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"viad/ros/msg/rcl_interfaces"
)

// ParamType constrains what a parameter's value can be in Go.
type ParamType interface {
	bool | int64 | float64 | string | []byte | []bool | []int64 | []float64 | []string
}

// P is a parameter with a value: ros.P("use_sim_time", true).
func P[T ParamType](name string, value T) Param {
	p := Param{Name: name}
	v := &p.Value
	switch x := any(value).(type) {
	case bool:
		v.Type, v.BoolValue = rcl_interfaces.ParameterType_PARAMETER_BOOL, x
	case int64:
		v.Type, v.IntegerValue = rcl_interfaces.ParameterType_PARAMETER_INTEGER, x
	case float64:
		v.Type, v.DoubleValue = rcl_interfaces.ParameterType_PARAMETER_DOUBLE, x
	case string:
		v.Type, v.StringValue = rcl_interfaces.ParameterType_PARAMETER_STRING, x
	case []byte:
		v.Type, v.ByteArrayValue = rcl_interfaces.ParameterType_PARAMETER_BYTE_ARRAY, x
	case []bool:
		v.Type, v.BoolArrayValue = rcl_interfaces.ParameterType_PARAMETER_BOOL_ARRAY, x
	case []int64:
		v.Type, v.IntegerArrayValue = rcl_interfaces.ParameterType_PARAMETER_INTEGER_ARRAY, x
	case []float64:
		v.Type, v.DoubleArrayValue = rcl_interfaces.ParameterType_PARAMETER_DOUBLE_ARRAY, x
	case []string:
		v.Type, v.StringArrayValue = rcl_interfaces.ParameterType_PARAMETER_STRING_ARRAY, x
	}
	return p
}

// As is the parameter's value, if it has that type; an integer is not taken for a float, as ROS does not.
func As[T ParamType](p Param) (T, error) {
	v, ok := p.any().(T)
	if !ok {
		return v, fmt.Errorf("the parameter %s is a %s, not a %T", p.Name, ParamTypeName(p.Value.Type), v)
	}
	return v, nil
}

func (p Param) any() any {
	v := &p.Value
	switch v.Type {
	case rcl_interfaces.ParameterType_PARAMETER_BOOL:
		return v.BoolValue
	case rcl_interfaces.ParameterType_PARAMETER_INTEGER:
		return v.IntegerValue
	case rcl_interfaces.ParameterType_PARAMETER_DOUBLE:
		return v.DoubleValue
	case rcl_interfaces.ParameterType_PARAMETER_STRING:
		return v.StringValue
	case rcl_interfaces.ParameterType_PARAMETER_BYTE_ARRAY:
		return v.ByteArrayValue
	case rcl_interfaces.ParameterType_PARAMETER_BOOL_ARRAY:
		return v.BoolArrayValue
	case rcl_interfaces.ParameterType_PARAMETER_INTEGER_ARRAY:
		return v.IntegerArrayValue
	case rcl_interfaces.ParameterType_PARAMETER_DOUBLE_ARRAY:
		return v.DoubleArrayValue
	case rcl_interfaces.ParameterType_PARAMETER_STRING_ARRAY:
		return v.StringArrayValue
	}
	return nil
}

// ParamTypeName is a type's name as ros2 param describe prints it.
func ParamTypeName(t uint8) string {
	names := []string{"not set", "boolean", "integer", "double", "string", "byte array", "boolean array", "integer array", "double array", "string array"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type %d", t)
}

// String is the value as ParseParam reads it.
func (p Param) String() string {
	switch v := p.any().(type) {
	case nil:
		return "(not set)"
	case float64:
		return float(v)
	case []float64:
		return listed(v, float)
	case []int64:
		return listed(v, func(i int64) string { return strconv.FormatInt(i, 10) })
	case []bool:
		return listed(v, strconv.FormatBool)
	case []string:
		return listed(v, strconv.Quote)
	case string:
		if again := ParseParam("", v); again.Value.Type != rcl_interfaces.ParameterType_PARAMETER_STRING || again.Value.StringValue != v {
			return strconv.Quote(v)
		}
		return v
	default:
		return fmt.Sprint(v)
	}
}

func listed[T any](v []T, f func(T) string) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = f(x)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// float shows that it is one.
func float(f float64) string {
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".eEnN") && !math.IsInf(f, 0) {
		s += ".0"
	}
	return s
}

// ParseParam reads a value as a person writes it: true, 3, 0.5, text, "quoted", [1, 2, 3]. What is nothing else is text.
func ParseParam(name, s string) Param {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		if p, ok := parseList(name, strings.TrimSuffix(inner, "]")); ok {
			return p
		}
		return P(name, s)
	}
	if s == "true" || s == "false" {
		return P(name, s == "true")
	}
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		return P(name, i)
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return P(name, f)
	}
	if q, err := strconv.Unquote(s); err == nil && len(s) > 1 && s[0] == '"' {
		return P(name, q)
	}
	return P(name, s)
}

// parseList reads a list whose elements have one type; integers beside floats are floats.
func parseList(name, s string) (Param, bool) {
	if strings.TrimSpace(s) == "" {
		return Param{}, false // of which type is not known
	}
	var items []Param
	for _, part := range splitList(s) {
		items = append(items, ParseParam(name, part))
	}
	kind := items[0].Value.Type
	for _, i := range items {
		switch {
		case i.Value.Type == kind:
		case kind == rcl_interfaces.ParameterType_PARAMETER_INTEGER && i.Value.Type == rcl_interfaces.ParameterType_PARAMETER_DOUBLE:
			kind = i.Value.Type
		case kind == rcl_interfaces.ParameterType_PARAMETER_DOUBLE && i.Value.Type == rcl_interfaces.ParameterType_PARAMETER_INTEGER:
		default:
			return Param{}, false
		}
	}
	switch kind {
	case rcl_interfaces.ParameterType_PARAMETER_BOOL:
		return P(name, collect(items, func(p Param) bool { return p.Value.BoolValue })), true
	case rcl_interfaces.ParameterType_PARAMETER_INTEGER:
		return P(name, collect(items, func(p Param) int64 { return p.Value.IntegerValue })), true
	case rcl_interfaces.ParameterType_PARAMETER_DOUBLE:
		return P(name, collect(items, func(p Param) float64 {
			if p.Value.Type == rcl_interfaces.ParameterType_PARAMETER_INTEGER {
				return float64(p.Value.IntegerValue)
			}
			return p.Value.DoubleValue
		})), true
	case rcl_interfaces.ParameterType_PARAMETER_STRING:
		return P(name, collect(items, func(p Param) string { return p.Value.StringValue })), true
	}
	return Param{}, false
}

func collect[T any](items []Param, f func(Param) T) []T {
	out := make([]T, len(items))
	for i, p := range items {
		out[i] = f(p)
	}
	return out
}

// splitList splits at the commas that are not within quotes.
func splitList(s string) (out []string) {
	quoted, escaped, from := false, false, 0
	for i, r := range s {
		switch {
		case escaped:
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}
