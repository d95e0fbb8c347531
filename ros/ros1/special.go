package ros1

import (
	"fmt"
	"reflect"
	"strings"
)

// specials are the layouts that no list of fields describes.
func specials() map[string]func(two reflect.Type) (codec, error) {
	return map[string]func(reflect.Type) (codec, error){"controller_manager_msgs/ControllerState": controllerState}
}

// controllerState is one controller of a list. ROS 1 has what it claims as lists by interface, ROS 2 as
// "joint/interface"; a controller that runs is "running" in ROS 1 and "active" in ROS 2.
func controllerState(two reflect.Type) (codec, error) {
	var at [4]int
	for i, name := range []string{"Name", "State", "Type", "ClaimedInterfaces"} {
		if at[i] = index(two, name); at[i] < 0 {
			return codec{}, fmt.Errorf("%s has no %s", two, name)
		}
	}
	return codec{
		least: 16,
		write: func(b []byte, v reflect.Value) ([]byte, error) {
			b = putText(b, v.Field(at[0]).String())
			b = putText(b, exchange(v.Field(at[1]).String(), 1))
			b = putText(b, v.Field(at[2]).String())
			return putClaims(b, v.Field(at[3])), nil
		},
		read: func(r *reader, v reflect.Value) {
			v.SetZero()
			v.Field(at[0]).SetString(r.text())
			v.Field(at[1]).SetString(exchange(r.text(), 0))
			v.Field(at[2]).SetString(r.text())
			kinds := r.count(8)
			claims := make([]string, 0, kinds)
			for range kinds {
				kind := r.text()
				for range r.count(4) {
					claims = append(claims, strings.TrimPrefix(r.text()+"/"+kind, "/"))
				}
			}
			v.Field(at[3]).Set(reflect.ValueOf(claims))
		},
	}, nil
}

// exchange gives a state its word in ROS 2 (0) or ROS 1 (1).
func exchange(state string, to int) string {
	for _, pair := range [][2]string{{"active", "running"}, {"inactive", "stopped"}, {"inactive", "initialized"}} {
		if pair[1-to] == state {
			return pair[to]
		}
	}
	return state
}

func putClaims(b []byte, claims reflect.Value) []byte {
	var kinds []string
	of := make(map[string][]string)
	for i := range claims.Len() {
		claim := claims.Index(i).String()
		cut := max(strings.LastIndexByte(claim, '/'), 0)
		kind := strings.TrimPrefix(claim[cut:], "/")
		if _, ok := of[kind]; !ok {
			kinds = append(kinds, kind)
		}
		of[kind] = append(of[kind], claim[:cut])
	}
	b = putUint(b, 4, uint64(len(kinds)))
	for _, kind := range kinds {
		b = putUint(putText(b, kind), 4, uint64(len(of[kind])))
		for _, joint := range of[kind] {
			b = putText(b, joint)
		}
	}
	return b
}
